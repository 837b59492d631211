import type {
  Findings,
  KindBehavior,
  ResourceDef,
  Strategy,
  StrategyContext,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  andThen,
  badRequest,
  type Clock,
  conflict,
  dedupOwnerReferences,
  type FieldError,
  formatTime,
  generateName,
  invalid,
  invalidObject,
  jsonObject,
  type MaybePromise,
  type MetadataPass,
  type MetaRules,
  modifiedMessage,
  type Pace,
  problemText,
  randomUuid,
  runAtPace,
  runInSlices,
  type StatusError,
  uint64Max,
  validateObjectMeta,
  validateObjectMetaSteps,
  validateObjectMetaUpdate,
  validateObjectMetaUpdateSteps,
} from '@wheelhouse/machinery';
import { parseResourceVersion, type Store, shownKey } from '@wheelhouse/store';
import type { Target } from './contract.ts';
import { groupKindOf, groupResourceOf } from './registry.ts';

/**
 * Handling of metadata that the server owns, in every create and update (META-1, META-2, META-4).
 */

/**
 * Throws 400 unless name and namespace of the body are those of the path (API-7). Fills in an
 * absent namespace, and removes it from objects of cluster-scoped kinds.
 */
export function checkPathAgreement(target: Target, object: ApiObject): void {
  checkNamespace(target, object);
  const { metadata } = object;
  if (target.name === '') return;
  if ((metadata.name ?? '') === '') {
    throw namelessBody(target.name);
  }
  if (metadata.name !== target.name) {
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${target.name})`,
    );
  }
}

/** The part of `checkPathAgreement` that concerns the namespace. */
export function checkNamespace(target: Target, { metadata }: ApiObject): void {
  if (target.def.scope !== 'Namespaced') delete metadata.namespace;
  else if ((metadata.namespace ?? '') === '') metadata.namespace = target.namespace;
  else if (metadata.namespace !== target.namespace) {
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  }
}

/** The 400 for an object without a name. */
export function namelessBody(name: string): Error {
  return badRequest(
    `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
  );
}

/**
 * Removes duplicate owner references, with kube-apiserver's warning (META-7).
 * @param options.after `admission`: admission may have added them
 */
export function dropDuplicateOwners(
  object: ApiObject,
  options: { readonly warn: (text: string) => void; readonly after: 'body' | 'admission' },
): void {
  const references = object.metadata.ownerReferences ?? [];
  if (references.length < 2) return;
  const { kept, duplicateUids } = dedupOwnerReferences(references);
  if (duplicateUids.length === 0) return;
  object.metadata.ownerReferences = [...kept];
  const when = options.after === 'admission' ? ' after mutating admission happens' : '';
  options.warn(
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner ` +
      'references in 1.20+, and may reject such requests as early as 1.24; please fix your ' +
      `requests; duplicate UID(s) observed: ${duplicateUids.join(', ')}`,
  );
}

/**
 * Whether a new object states a resourceVersion. Zero and malformed values count as absent.
 */
export function namesVersion({ metadata }: ApiObject): boolean {
  const version = parseResourceVersion(metadata.resourceVersion);
  return version.ok && version.revision !== 0;
}

/** The 400 for a new object that states a resourceVersion (META-2). */
export function versionOnCreate(): StatusError {
  return badRequest('resourceVersion should not be set on objects to be created');
}

/** Removes the fields that only the server sets from a new object. */
export function wipeSystemFields(
  object: ApiObject,
  { bodies }: Pick<KindBehavior, 'bodies'>,
): void {
  const { metadata } = object;
  for (const name of serverFields) leaveOut(metadata, name);
  // Null, which typed bodies have, is what webhooks see until the server fills in the time.
  const isTyped = bodies === 'typed' && jsonObject(metadata)['creationTimestamp'] === null;
  if (!isTyped) leaveOut(metadata, 'creationTimestamp');
}

// Includes `generation`, which kube-apiserver lets clients set on kinds that do not count changes.
const serverFields = [
  'resourceVersion',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'generation',
  'uid',
] as const;

/** Removes a member if present. Most objects have none, and `delete` is slower than a check. */
function leaveOut(metadata: ApiObject['metadata'], name: keyof ApiObject['metadata']): void {
  if (metadata[name] !== undefined) delete metadata[name];
}

/** Sets the server's fields on a new object, after mutating admission. */
export function fillSystemFields(
  { strategy }: ResourceDef,
  object: ApiObject,
  nowMs: number,
): void {
  const { metadata } = object;
  leaveOut(metadata, 'resourceVersion');
  leaveOut(metadata, 'deletionTimestamp');
  leaveOut(metadata, 'deletionGracePeriodSeconds');
  metadata.uid = randomUuid();
  metadata.creationTimestamp = formatTime(nowMs);
  const prefix = metadata.generateName ?? '';
  if ((metadata.name ?? '') === '' && prefix !== '') metadata.name = nameFrom(prefix, strategy);
}

/** Generates a name for a new object. */
export function nameFrom(prefix: string, strategy: Pick<Strategy, 'generateName'>): string {
  return strategy.generateName?.(prefix) ?? generateName(prefix);
}

/** Restores the fields that an update cannot change, before the strategy runs. */
export function keepSystemFields(object: ApiObject, old: ApiObject): void {
  const { metadata } = object;
  const before = old.metadata;
  if (before.generation === undefined) leaveOut(metadata, 'generation');
  else metadata.generation = before.generation;
  if ((metadata.uid ?? '') === '' && before.uid !== undefined) metadata.uid = before.uid;
  if (before.resourceVersion !== undefined) metadata.resourceVersion = before.resourceVersion;
  if (before.creationTimestamp !== undefined) metadata.creationTimestamp = before.creationTimestamp;
  if (before.deletionTimestamp !== undefined) {
    metadata.deletionTimestamp = before.deletionTimestamp;
    if (
      before.deletionGracePeriodSeconds !== undefined &&
      metadata.deletionGracePeriodSeconds === undefined
    ) {
      metadata.deletionGracePeriodSeconds = before.deletionGracePeriodSeconds;
    }
  }
  leaveOut(metadata, 'selfLink');
}

/** Throws 409 if the body states another uid than the stored object's (META-2). */
export function checkUid(
  target: Target,
  object: ApiObject,
  { old, ...at }: { readonly old: ApiObject } & KeyShown,
): void {
  const expected = object.metadata.uid ?? '';
  const actual = old.metadata.uid ?? '';
  if (expected !== '' && expected !== actual)
    throw preconditionFailed(target, { expected, actual, what: 'UID', ...at });
}

/** How messages show the key of an object. */
export interface KeyShown {
  readonly store: Pick<Store, 'shownKey'>;
  readonly dryRun: boolean;
}

/**
 * The 409 for a failed precondition on uid or resourceVersion. Like kube-apiserver, a dry run names
 * the key without the prefix of all keys.
 */
export function preconditionFailed(
  target: Target,
  mismatch: { expected: string; actual: string; what: 'UID' | 'ResourceVersion' } & KeyShown,
): Error {
  const { what, expected, actual, dryRun, store } = mismatch;
  const prefix = target.def.storage.prefix.replace(/\/$/, '');
  const parts = [prefix, target.namespace, target.name].filter((part) => part !== '');
  const stored = parts.join('/');
  const key = dryRun ? stored.replace(/^\/registry/, '') : shownKey(store, stored);
  const why =
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ` +
    `Precondition failed: ${what} in precondition: ${expected}, ${what} in object meta: ${actual}`;
  return conflict(groupResourceOf(target.def), target.name, why);
}

/** The optimistic lock of an update (PATCH-4): throws 409 if stale, 422 if required and absent. */
export function checkResourceVersion(target: Target, object: ApiObject, current: number): void {
  const resourceVersion = object.metadata.resourceVersion ?? '';
  if (resourceVersion === String(current)) return;
  checkReadable(target, object);
  if (resourceVersion === '' || BigInt(resourceVersion) === 0n) {
    if (target.def.strategy.allowUnconditionalUpdate) return;
    const { group, resource } = target.def;
    // kube-apiserver names the resource here instead of the kind.
    throw invalidObject({ group, kind: resource }, target.name, [
      {
        type: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        message: 'Invalid value: 0x0: must be specified for an update',
      },
    ]);
  }
  if (BigInt(resourceVersion) !== BigInt(current)) {
    throw conflict(groupResourceOf(target.def), target.name, modifiedMessage);
  }
}

/** Throws 422 for a malformed resourceVersion, whether or not the object exists. */
export function checkReadable(target: Target, object: ApiObject): void {
  const resourceVersion = object.metadata.resourceVersion ?? '';
  if (resourceVersion === '') return;
  const isNumber = /^\d+$/.test(resourceVersion);
  // Parsing a long text is slow, and no valid version has a thousand leading zeros.
  if (isNumber && resourceVersion.length < 1000 && BigInt(resourceVersion) <= uint64Max) return;
  const problem = isNumber ? 'range' : 'syntax';
  const text = resourceVersion;
  const why = problemText({ code: 'number', parser: 'ParseUint', text, problem });
  throw invalidMeta(target.def, target.name, [
    invalid('metadata.resourceVersion', resourceVersion, why),
  ]);
}

function invalidMeta(def: ResourceDef, name: string, errors: readonly FieldError[]): Error {
  return invalidObject(groupKindOf(def), name, errors);
}

const asChange: readonly MetadataPass[] = ['change'];

function metaRules({ scope, strategy }: ResourceDef, subresource: string): MetaRules {
  return {
    namespaced: scope === 'Namespaced',
    validateName: strategy.validateName,
    path: 'metadata',
    extraPasses: strategy.extraMetadataChecks?.[subresource] ?? asChange,
    ...(strategy.standardFinalizers === undefined
      ? {}
      : { standardFinalizers: strategy.standardFinalizers }),
  };
}

/**
 * Validates a new or changed object against the rules of metadata and of its kind. Throws a 422
 * that lists all errors, or rejects with it if work on a large object pauses.
 * @param change.old undefined for a new object
 */
export function validateObject(
  target: Target,
  context: StrategyContext,
  change: Change & { readonly pace: Pace | undefined; readonly clock: Clock },
): MaybePromise<void> {
  const { object, old, pace, clock } = change;
  const { strategy } = target.def;
  let found: readonly FieldError[] | undefined;
  const metadata = () => {
    found ??= metadataErrors(target, context, change);
    return found;
  };
  const rules = (): Findings =>
    old === undefined
      ? (strategy.validateCreate?.(context, object, metadata) ?? [])
      : (strategy.validateUpdate?.(context, object, old, metadata) ?? []);
  function* afterMetadata(): Generator<void, readonly FieldError[]> {
    found = yield* metadataErrorSteps(target, context, change);
    yield;
    const findings = rules();
    return 'next' in findings ? yield* findings : findings;
  }
  const findings = pace === undefined ? rules() : afterMetadata();
  const own = 'next' in findings ? inSteps(findings, { pace, clock }) : findings;
  const refuse = (errors: readonly FieldError[]) => {
    if (old === undefined && strategy.reportsMetadataLast === true) {
      refuseInvalid(target, object, errors);
    }
    refuseInvalid(target, object, metadata().concat(errors));
  };
  return andThen(own, refuse);
}

/** Also a small object may contain expressions that take long to compile or to evaluate. */
function inSteps(
  findings: Generator<void, readonly FieldError[]>,
  { pace, clock }: { readonly pace: Pace | undefined; readonly clock: Clock },
): MaybePromise<readonly FieldError[]> {
  return pace === undefined ? runInSlices(findings, clock) : runAtPace(findings, pace);
}

interface Change {
  readonly object: ApiObject;
  readonly old: ApiObject | undefined;
}

/** The errors in the metadata of a new or changed object. */
function metadataErrors(
  { def }: Target,
  context: StrategyContext,
  { object, old }: Change,
): readonly FieldError[] {
  return old === undefined
    ? validateObjectMeta(object.metadata, newMetaRules(def, object))
    : validateObjectMetaUpdate(object.metadata, old.metadata, metaRules(def, context.subresource));
}

/** `metadataErrors` in steps, for a large object (TRUST-2). */
function metadataErrorSteps(
  { def }: Target,
  context: StrategyContext,
  { object, old }: Change,
): Generator<void, readonly FieldError[]> {
  const { metadata } = object;
  return old === undefined
    ? validateObjectMetaSteps(metadata, newMetaRules(def, object))
    : validateObjectMetaUpdateSteps(metadata, old.metadata, metaRules(def, context.subresource));
}

const newMetaRules = (def: ResourceDef, object: ApiObject): MetaRules => ({
  ...metaRules(def, ''),
  ...def.strategy.nameRules?.(object),
});

function refuseInvalid({ def }: Target, object: ApiObject, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const { kind, group } = groupKindOf(def);
  const reported = { kind, group: def.strategy.errorGroup ?? group };
  throw invalidObject(reported, object.metadata.name ?? '', errors);
}
