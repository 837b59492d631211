import { ruleEscalation, rulesOf } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
} from '@wheelhouse/machinery';
import { defaultMarks } from './default-roles.ts';

/** What to do so that a default is in force; `recreate` is delete, then create. */
export type Reconciliation =
  | { readonly action: 'none' }
  | { readonly action: 'create' | 'update' | 'recreate'; readonly object: ApiObject };

/**
 * Compares a stored default role or binding with what it should be (AUTHZ-7): missing permissions,
 * subjects, labels and annotations are added, what somebody added stays, an object whose autoupdate
 * annotation is `false` is left alone, and a binding of another role is made anew, since its
 * roleRef cannot change. Pure.
 */
export function reconcile(options: {
  readonly existing: ApiObject | undefined;
  readonly desired: ApiObject;
  readonly dialect: Dialect;
}): Reconciliation {
  const { existing, desired, dialect } = options;
  if (existing === undefined) return { action: 'create', object: desired };
  const { autoupdate } = defaultMarks(dialect);
  if (existing.metadata.annotations?.[autoupdate] === 'false') return { action: 'none' };
  const isBinding = desired.roleRef !== undefined;
  if (isBinding && !jsonEqual(existing.roleRef, desired.roleRef)) {
    return { action: 'recreate', object: desired };
  }
  const object: ApiObject = {
    ...existing,
    ...(isBinding ? withSubjects(existing, desired) : withRules(existing, desired)),
    metadata: {
      ...existing.metadata,
      labels: { ...desired.metadata.labels, ...existing.metadata.labels },
      annotations: { ...desired.metadata.annotations, ...existing.metadata.annotations },
    },
  };
  return jsonEqual(object, existing) ? { action: 'none' } : { action: 'update', object };
}

const list = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);

function missingOf(existing: readonly JsonValue[], desired: readonly JsonValue[]): JsonValue[] {
  return desired.filter((one) => !existing.some((other) => jsonEqual(one, other)));
}

function withSubjects(existing: ApiObject, desired: ApiObject): JsonObject {
  const present = list(existing.subjects);
  const missing = missingOf(present, list(desired.subjects));
  return missing.length === 0 ? {} : { subjects: [...present, ...missing] };
}

function withRules(existing: ApiObject, desired: ApiObject): JsonObject {
  if (isObject(desired.aggregationRule)) return withSelectors(existing, desired.aggregationRule);
  // An aggregated role's rules are its controller's; adding to them would be undone.
  if (existing.aggregationRule !== undefined) return {};
  const existingRules = rulesOf(existing);
  const missing = list(desired.rules).filter(
    (rule) => isObject(rule) && !ruleEscalation(existingRules, rulesOf({ rules: [rule] })).covered,
  );
  return missing.length === 0 ? {} : { rules: [...list(existing.rules), ...missing] };
}

function withSelectors(existing: ApiObject, desired: JsonObject): JsonObject {
  const current = isObject(existing.aggregationRule) ? existing.aggregationRule : {};
  const present = list(current.clusterRoleSelectors);
  const missing = missingOf(present, list(desired.clusterRoleSelectors));
  if (missing.length === 0) return {};
  return { aggregationRule: { ...current, clusterRoleSelectors: [...present, ...missing] } };
}
