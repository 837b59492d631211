import {
  aggregateText,
  appendAll,
  type Dialect,
  fieldErrorsText,
  invalid,
  jsonEqual,
  runInOnePiece,
} from '@wheelhouse/machinery';
import type { Crd, CrdCondition, CrdNames, CrdStatus } from '../custom/definition.ts';
import { approvalCondition } from './api-approval.ts';
import type { CrdRules } from './crd-validation.ts';
import { notStructural, validateStructural } from './structural.ts';

/** A definition of the same group, with its accepted names. */
type OtherCrd = Pick<Crd, 'metadata' | 'spec' | 'status'>;

/** Inputs of `reconcileCrd`. */
export interface ReconcileOptions {
  readonly dialect: Dialect;
  readonly checkBundle?: CrdRules['checkBundle'] | undefined;
  /** Wall time in milliseconds since the epoch. */
  readonly nowMs: number;
}

/**
 * Returns the status that a definition should have; undefined if it is unchanged. Accepted names
 * stay accepted; a name that a change or a deletion frees is available at the next call. A
 * definition is established as soon as all its names are accepted and the CA bundle of its
 * conversion webhook is valid; the caller adds it to the catalogue before writing the status.
 * @param others all definitions, which may include this one
 */
export function reconcileCrd(
  crd: Crd,
  others: readonly OtherCrd[],
  options: ReconcileOptions,
): CrdStatus | undefined {
  const { acceptedNames, conditions } = crdConditions(crd, others, options);
  const status: CrdStatus = {
    conditions,
    acceptedNames,
    storedVersions: crd.status?.storedVersions ?? [],
  };
  return jsonEqual(status, crd.status) ? undefined : status;
}

interface Outcome {
  readonly acceptedNames: CrdNames;
  readonly conditions: CrdCondition[];
}

/** Computes the accepted names, and the conditions of names, serving, schemas, and approval. */
function crdConditions(crd: Crd, others: readonly OtherCrd[], options: ReconcileOptions): Outcome {
  const now = `${new Date(options.nowMs).toISOString().slice(0, 19)}Z`;
  const { names, conflict } = acceptNames(crd, takenNames(crd, others));
  const accepted: CrdCondition =
    conflict === undefined
      ? {
          type: 'NamesAccepted',
          status: 'True',
          reason: 'NoConflicts',
          message: 'no conflicts found',
        }
      : { type: 'NamesAccepted', status: 'False', ...conflict };
  const structure = structureCondition(crd);
  const before = (crd.status?.conditions ?? []).filter(
    ({ type }) => type !== 'NonStructuralSchema' || structure !== undefined,
  );
  const obstacle =
    conflict !== undefined ? 'names' : hasInvalidBundle(crd, options) ? 'bundle' : undefined;
  const approval = approvalCondition(crd, options.dialect);
  const newConditions = [
    ...(approval === undefined ? [] : [approval]),
    accepted,
    establishedFor(before, obstacle),
    ...(structure === undefined ? [] : [structure]),
  ];
  let conditions: readonly CrdCondition[] = before;
  for (const newCondition of newConditions)
    conditions = setCondition(conditions, newCondition, now);
  return { acceptedNames: names, conditions: [...conditions] };
}

const violations = new WeakMap<Crd['spec'], CrdCondition | 'none'>();

/** The `NonStructuralSchema` condition, for definitions from before `v1` required the form. */
function structureCondition({ spec }: Crd): CrdCondition | undefined {
  const condition = violations.get(spec) ?? findViolations(spec) ?? 'none';
  violations.set(spec, condition);
  return condition === 'none' ? undefined : condition;
}

function findViolations(spec: Crd['spec']): CrdCondition | undefined {
  const type = 'NonStructuralSchema';
  const errors = spec.preserveUnknownFields === true ? [keepsUnknown] : [];
  for (const [index, { name, schema }] of spec.versions.entries()) {
    const props = schema?.openAPIV3Schema;
    if (props === undefined) continue;
    const reason = runInOnePiece(notStructural(props));
    if (reason !== undefined) {
      const message = `failed to check validation schema for version ${name}: ${reason}`;
      return { type, status: 'Unknown', reason: 'StructuralError', message };
    }
    appendAll(
      errors,
      runInOnePiece(validateStructural(props, `spec.versions[${index}].schema.openAPIV3Schema`)),
    );
  }
  if (errors.length === 0) return undefined;
  const message = fieldErrorsText(errors.slice(0, violationsMax));
  return { type, status: 'True', reason: 'Violations', message };
}

/** Upper bound of the violations listed in one condition. */
const violationsMax = 100;
const keepsUnknown = invalid('spec.preserveUnknownFields', true, 'must be false');

/** Whether the definition has an unreadable CA bundle for its conversion webhook. */
function hasInvalidBundle({ spec }: Crd, { checkBundle }: ReconcileOptions): boolean {
  const bundle = spec.conversion?.webhook?.clientConfig?.['caBundle'];
  return typeof bundle === 'string' && (checkBundle?.(bundle) ?? []).length > 0;
}

/** An established definition stays established, because its objects exist. */
function establishedFor(
  before: readonly CrdCondition[],
  obstacle: 'names' | 'bundle' | undefined,
): CrdCondition {
  const old = before.find((condition) => condition.type === 'Established');
  if (old?.status === 'True') return old;
  if (obstacle === 'bundle') {
    return {
      type: 'Established',
      status: 'False',
      reason: 'InvalidCABundle',
      message: 'The conversion webhook CABundle is invalid',
    };
  }
  if (obstacle === undefined) {
    return {
      type: 'Established',
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    };
  }
  return {
    type: 'Established',
    status: 'False',
    reason: 'NotAccepted',
    message: 'not all names are accepted',
  };
}

/**
 * Returns the list with the condition added or replaced; its transition time changes only with its
 * status.
 * @param now time in RFC 3339
 */
export function setCondition(
  list: readonly CrdCondition[],
  condition: CrdCondition,
  now: string,
): readonly CrdCondition[] {
  const { type, status, reason = '', message = '' } = condition;
  const index = list.findIndex((existing) => existing.type === type);
  const old = list[index];
  const same = old?.status === status && typeof old.lastTransitionTime === 'string';
  const lastTransitionTime = same ? (old.lastTransitionTime ?? now) : now;
  const set: CrdCondition = { type, status, lastTransitionTime, reason, message };
  return old === undefined
    ? [...list, set]
    : list.map((existing, at) => (at === index ? set : existing));
}

interface Taken {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

function takenNames(crd: Crd, others: readonly OtherCrd[]): Taken {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const otherCrd of others) {
    const names = otherCrd.status?.acceptedNames;
    if (otherCrd.spec.group !== crd.spec.group || names === undefined) continue;
    for (const name of [names.plural, names.singular, ...(names.shortNames ?? [])]) {
      if (name !== undefined && name !== '') resources.add(name);
    }
    for (const name of [names.kind, names.listKind]) {
      if (name !== undefined && name !== '') kinds.add(name);
    }
  }
  return { resources, kinds };
}

interface Conflict {
  readonly reason: string;
  readonly message: string;
}

const inUse = (name: string) => `${JSON.stringify(name)} is already in use`;

/** Accepts each name on its own; the last conflict is reported, as in kube-apiserver. */
function acceptNames(crd: Crd, taken: Taken): { names: CrdNames; conflict: Conflict | undefined } {
  const requested = crd.spec.names;
  const old: Partial<CrdNames> = crd.status?.acceptedNames ?? {};
  const names: CrdNames = { ...old, plural: old.plural ?? '', kind: old.kind ?? '' };
  let conflict: Conflict | undefined;
  const claim = (
    member: 'plural' | 'singular' | 'kind' | 'listKind',
    reason: string,
    used: ReadonlySet<string>,
  ) => {
    const name = requested[member] ?? '';
    if (name !== (old[member] ?? '') && used.has(name)) conflict = { reason, message: inUse(name) };
    else if (name !== '') names[member] = name;
  };
  claim('plural', 'PluralConflict', taken.resources);
  claim('singular', 'SingularConflict', taken.resources);
  const short = requested.shortNames ?? [];
  const oldShort = new Set(old.shortNames);
  const clashes = short.filter((name) => !oldShort.has(name) && taken.resources.has(name));
  if (clashes.length > 0) {
    conflict = { reason: 'ShortNamesConflict', message: aggregateText(clashes.map(inUse)) };
  } else if (short.length > 0) names.shortNames = [...short];
  else delete names.shortNames;
  claim('kind', 'KindConflict', taken.kinds);
  claim('listKind', 'ListKindConflict', taken.kinds);
  if (requested.categories === undefined) delete names.categories;
  else names.categories = [...requested.categories];
  return { names, conflict };
}
