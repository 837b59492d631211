import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  goItems,
  invalid,
  invalidGo,
  type JsonObject,
  pairErrorsMax,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource, steppedDefaults } from '../define.ts';
import type {
  ResourceQuota,
  ResourceQuotaSpec,
  ScopedResourceSelectorRequirement,
  ScopeSelector,
} from '../gen/types/core/v1.ts';
import {
  isStandardForQuota,
  quantitySteps,
  validateAmount,
  validateQuotaResourceName,
} from '../pod/validation/resources.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, goList, goStrings, keyed, sortedKeys } from '../rules/checks.ts';
import { roundAmountsSteps } from '../rules/fill.ts';

/** ResourceQuota: limits the resources that a namespace uses. */
export function resourceQuota(dialect: Dialect): ResourceDef {
  return defineKind<ResourceQuota>({
    dialect,
    facts: 'core',
    kind: 'ResourceQuota',
    scope: 'Namespaced',
    shortNames: ['quota'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(fillSteps),
        columns: [
          nameColumn,
          ageColumn,
          column('Request', (object) => usage(object, { limits: false }), {
            description: 'Used and hard requests and counts.',
          }),
          column('Limit', (object) => usage(object, { limits: true }), {
            description: 'Used and hard limits.',
          }),
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validateQuota(object, dialect),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateQuotaStatus(object, dialect)
          : validateQuotaUpdate(object, old, dialect),
      deleteAnswers: 'object',
    },
    subresources: [statusSubresource],
    example: () => ({ spec: { hard: { pods: '10', 'limits.memory': '4Gi' } } }),
  });
}

function* fillSteps({ spec, status }: Stored<ResourceQuota>): Generator<void, void> {
  for (const amounts of [spec?.hard, status?.hard, status?.used]) {
    if (amounts !== undefined) yield* roundAmountsSteps(amounts);
  }
}

/** The cell with `used/hard` of the resources that are limits, or of the others. */
function usage(object: Stored<ResourceQuota>, options: { limits: boolean }): string {
  const hard = object.status?.hard;
  return sortedKeys(hard)
    .filter((name) => name.startsWith('limits.') === options.limits)
    .map((name) => `${name}: ${at(object, 'status', 'used', name) ?? '0'}/${hard?.[name]}`)
    .join(', ');
}

/** Validates a ResourceQuota except its metadata. */
function* validateQuota(
  object: Stored<ResourceQuota>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  return [
    ...(yield* validateSpec(object, dialect)),
    ...(yield* validateQuotaStatus(object, dialect)),
  ];
}

function* validateSpec(
  object: Stored<ResourceQuota>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  return [
    ...(yield* validateAmounts(spec.hard, 'spec.hard', dialect)),
    ...(yield* validateScopes(spec)),
    ...(yield* validateScopeSelector(spec)),
  ];
}

function* validateAmounts(
  list: JsonObject | undefined,
  path: string,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  return yield* flatMapSteps(yield* quantitySteps(list), ([name, quantity]) => {
    const field = keyed(path, name);
    return [
      ...validateQuotaResourceName(name, field),
      ...validateAmount({ name, quantity }, field, dialect),
    ];
  });
}

/** Scopes that select pods without values. */
const podScopes = [
  'Terminating',
  'NotTerminating',
  'BestEffort',
  'NotBestEffort',
  'CrossNamespacePodAffinity',
];
const scopes = new Set([...podScopes, 'PriorityClass']);

function* validateScopes(spec: Stored<ResourceQuotaSpec>): Generator<void, FieldError[]> {
  const specScopes: readonly string[] = spec.scopes ?? [];
  const refuse = (detail: string) => invalidGo('spec.scopes', () => goScopes(spec), detail);
  const countUnsupported = unsupportedCounter(spec);
  const errors = yield* flatMapSteps(specScopes, (scope) => [
    ...(scopes.has(scope) ? [] : [refuse('unsupported scope')]),
    ...Array.from({ length: countUnsupported(scope) }, () =>
      refuse('unsupported scope applied to resource'),
    ),
  ]);
  return [...errors, ...conflicting(specScopes).map(() => refuse('conflicting scopes'))];
}

const goScopes = (spec: Stored<ResourceQuotaSpec> | undefined): string => {
  const list = spec?.scopes ?? [];
  return goList('core.ResourceQuotaScope', list.length === 0 ? undefined : list);
};

/**
 * Returns a function that counts the resources that a scope excludes; each is an error. It stops
 * counting when the total number of errors reaches its bound.
 */
function unsupportedCounter(spec: Stored<ResourceQuotaSpec>): (scope: string) => number {
  const standard = sortedKeys(spec.hard).filter(isStandardForQuota);
  const counts = new Map(
    [...scopes].map((scope) => [scope, standard.filter((name) => !fitsScope(scope, name)).length]),
  );
  let left = pairErrorsMax;
  return (scope) => {
    const count = Math.min(counts.get(scope) ?? 0, left);
    left -= count;
    return count;
  };
}

const computeResources = new Set(
  ['cpu', 'memory'].flatMap((name) => [name, `limits.${name}`, `requests.${name}`]),
);

/** Whether the resource can be counted for pods within the scope. */
function fitsScope(scope: string, resource: string): boolean {
  if (!scopes.has(scope) || resource === 'pods') return true;
  return scope !== 'BestEffort' && computeResources.has(resource);
}

const conflicts = [
  ['BestEffort', 'NotBestEffort'],
  ['NotTerminating', 'Terminating'],
] as const;

const conflicting = (scopeNames: readonly string[]) =>
  conflicts.filter((pair) => pair.every((scope) => scopeNames.includes(scope)));

const selectorPath = 'spec.scopeSelector.matchExpressions';

function* validateScopeSelector(spec: Stored<ResourceQuotaSpec>): Generator<void, FieldError[]> {
  const selector = spec.scopeSelector;
  if (selector === undefined) return [];
  const expressions = selector.matchExpressions ?? [];
  const countUnsupported = unsupportedCounter(spec);
  const errors = yield* flatMapSteps(expressions, (expression) =>
    validateExpression(expression, { countUnsupported, selector }),
  );
  const selectedScopes = expressions.map((expression) => expression.scopeName ?? '');
  const refused = conflicting(selectedScopes).map(() =>
    invalidGo(selectorPath, () => goScopes(spec), 'conflicting scopes'),
  );
  return [...errors, ...refused];
}

function validateExpression(
  expression: Stored<ScopedResourceSelectorRequirement>,
  of: { countUnsupported: (scope: string) => number; selector: JsonObject },
): FieldError[] {
  const scope = expression.scopeName ?? '';
  const operator = expression.operator ?? '';
  const errors: FieldError[] = [];
  if (!scopes.has(scope)) {
    errors.push(invalid(`${selectorPath}.scopeName`, scope, 'unsupported scope'));
  }
  for (let count = of.countUnsupported(scope); count > 0; count -= 1) {
    const detail = 'unsupported scope applied to resource';
    errors.push(invalidGo(selectorPath, () => goScopeSelector(of.selector), detail));
  }
  if (podScopes.includes(scope) && operator !== 'Exists') {
    const detail =
      "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, " +
      'ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ' +
      'ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity';
    errors.push(invalid(`${selectorPath}.operator`, operator, detail));
  }
  return [...errors, ...validateValues(expression, operator)];
}

function goScopeSelector(selector: Stored<ScopeSelector>): string {
  const type = 'core.ScopedResourceSelectorRequirement';
  const shown = goItems(selector.matchExpressions ?? [], (requirement) => {
    const values = listAt(requirement, 'values').map(String);
    const list = goList('string', values.length === 0 ? undefined : values);
    const [name, operator] = [textAt(requirement, 'scopeName'), textAt(requirement, 'operator')];
    return `${type}{ScopeName:${JSON.stringify(name)}, Operator:${JSON.stringify(operator)}, Values:${list}}`;
  });
  return `core.ScopeSelector{MatchExpressions:[]${type}{${shown}}}`;
}

function validateValues(
  expression: Stored<ScopedResourceSelectorRequirement>,
  operator: string,
): FieldError[] {
  const values = (expression.values ?? []).map(String);
  const field = `${selectorPath}.values`;
  switch (operator) {
    case 'In':
    case 'NotIn': {
      const detail =
        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
      return values.length > 0 ? [] : [required(field, detail)];
    }
    case 'Exists':
    case 'DoesNotExist': {
      const detail =
        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
      return values.length === 0 ? [] : [invalidGo(field, () => goStrings(values), detail)];
    }
    default:
      return [invalid(`${selectorPath}.operator`, operator, 'not a valid selector operator')];
  }
}

/** Validates the amounts in `status`. */
function validateQuotaStatus(
  object: Stored<ResourceQuota>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  return flatMapSteps(['hard', 'used'] as const, (name) =>
    validateAmounts(object.status?.[name], `status.${name}`, dialect),
  );
}

/** Validates a changed quota, whose scopes are immutable. */
function* validateQuotaUpdate(
  object: Stored<ResourceQuota>,
  old: Stored<ResourceQuota>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const errors = yield* validateSpec(object, dialect);
  const of = (quota: Stored<ResourceQuota>) => new Set<string>(quota.spec?.scopes);
  yield;
  const now = of(object);
  yield;
  const before = of(old);
  if (now.size === before.size && [...now].every((scope) => before.has(scope))) return errors;
  const shown = goScopes(object.spec);
  return [...errors, invalidGo('spec.scopes', () => shown, 'field is immutable')];
}
