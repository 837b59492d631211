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

/**
 * The accepted names of a group's definitions, with how many definitions have each. A change of one
 * definition takes the time of its own names, however many the group has.
 */
export class AcceptedNames {
  readonly #resources = new Map<string, number>();
  readonly #kinds = new Map<string, number>();

  /** Replaces the names of one definition; either may be undefined. */
  replace(before: CrdNames | undefined, after: CrdNames | undefined): void {
    count(this.#resources, resourceNames(before), -1);
    count(this.#kinds, kindNames(before), -1);
    count(this.#resources, resourceNames(after), 1);
    count(this.#kinds, kindNames(after), 1);
  }

  hasResource(name: string): boolean {
    return this.#resources.has(name);
  }

  hasKind(name: string): boolean {
    return this.#kinds.has(name);
  }
}

function count(counts: Map<string, number>, names: readonly string[], by: 1 | -1): void {
  for (const name of names) {
    const next = (counts.get(name) ?? 0) + by;
    if (next > 0) counts.set(name, next);
    else counts.delete(name);
  }
}

const isName = (name: string | undefined): name is string => name !== undefined && name !== '';

function resourceNames(names: CrdNames | undefined): readonly string[] {
  if (names === undefined) return [];
  return [names.plural, names.singular, ...(names.shortNames ?? [])].filter(isName);
}

function kindNames(names: CrdNames | undefined): readonly string[] {
  return names === undefined ? [] : [names.kind, names.listKind].filter(isName);
}

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
 * @param taken the accepted names of its group, which may include its own
 */
export function reconcileCrd(
  crd: Crd,
  taken: AcceptedNames,
  options: ReconcileOptions,
): CrdStatus | undefined {
  const { acceptedNames, conditions } = crdConditions(crd, taken, options);
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
function crdConditions(crd: Crd, taken: AcceptedNames, options: ReconcileOptions): Outcome {
  const now = `${new Date(options.nowMs).toISOString().slice(0, 19)}Z`;
  const { names, conflict } = acceptNames(crd, taken);
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
  runInOnePiece(checkStructure(spec));
  const condition = violations.get(spec);
  return condition === 'none' ? undefined : condition;
}

/**
 * Checks whether the schemas of a definition are structural, in steps, and remembers the result for
 * `reconcileCrd`, which would otherwise check them in one piece (TRUST-2).
 */
export function* checkStructure(spec: Crd['spec']): Generator<void, void> {
  if (!violations.has(spec)) violations.set(spec, (yield* findViolations(spec)) ?? 'none');
}

function* findViolations(spec: Crd['spec']): Generator<void, CrdCondition | undefined> {
  const type = 'NonStructuralSchema';
  const errors = spec.preserveUnknownFields === true ? [keepsUnknown] : [];
  for (const [index, { name, schema }] of spec.versions.entries()) {
    const props = schema?.openAPIV3Schema;
    if (props === undefined) continue;
    const reason = yield* notStructural(props);
    if (reason !== undefined) {
      const message = `failed to check validation schema for version ${name}: ${reason}`;
      return { type, status: 'Unknown', reason: 'StructuralError', message };
    }
    appendAll(
      errors,
      yield* validateStructural(props, `spec.versions[${index}].schema.openAPIV3Schema`, 'stored'),
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

interface Conflict {
  readonly reason: string;
  readonly message: string;
}

const inUse = (name: string) => `${JSON.stringify(name)} is already in use`;

/** Accepts each name on its own; the last conflict is reported, as in kube-apiserver. */
function acceptNames(
  crd: Crd,
  taken: AcceptedNames,
): { names: CrdNames; conflict: Conflict | undefined } {
  const requested = crd.spec.names;
  const old: Partial<CrdNames> = crd.status?.acceptedNames ?? {};
  const names: CrdNames = { ...old, plural: old.plural ?? '', kind: old.kind ?? '' };
  let conflict: Conflict | undefined;
  const claim = (
    member: 'plural' | 'singular' | 'kind' | 'listKind',
    reason: string,
    isTaken: (name: string) => boolean,
  ) => {
    const name = requested[member] ?? '';
    if (name !== (old[member] ?? '') && isTaken(name)) conflict = { reason, message: inUse(name) };
    else if (name !== '') names[member] = name;
  };
  const isResource = (name: string) => taken.hasResource(name);
  const isKind = (name: string) => taken.hasKind(name);
  claim('plural', 'PluralConflict', isResource);
  claim('singular', 'SingularConflict', isResource);
  const short = requested.shortNames ?? [];
  const oldShort = new Set(old.shortNames);
  const clashes = short.filter((name) => !oldShort.has(name) && isResource(name));
  if (clashes.length > 0) {
    conflict = { reason: 'ShortNamesConflict', message: aggregateText(clashes.map(inUse)) };
  } else if (short.length > 0) names.shortNames = [...short];
  else delete names.shortNames;
  claim('kind', 'KindConflict', isKind);
  claim('listKind', 'ListKindConflict', isKind);
  if (requested.categories === undefined) delete names.categories;
  else names.categories = [...requested.categories];
  return { names, conflict };
}
