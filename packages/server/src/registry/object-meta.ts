import type { ResourceDef, StrategyContext } from '@wheelhouse/kinds';
import {
  type ApiObject,
  atPace,
  badRequest,
  conflict,
  dedupOwnerReferences,
  type FieldError,
  formatTime,
  generateName,
  invalid,
  invalidObject,
  jsonObject,
  type MaybePromise,
  type MetaJudgement,
  type MetaRules,
  modifiedMessage,
  type Pace,
  problemText,
  randomUuid,
  type StatusError,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from '@wheelhouse/machinery';
import { parseResourceVersion } from '@wheelhouse/store';
import type { Target } from './contract.ts';
import { groupKindOf, groupResourceOf } from './registry.ts';

/**
 * The server's own metadata fields, as every create and update treats them (META-1, META-2, META-4).
 */

/**
 * Name and namespace of the body must be the path's (API-7). Fills an absent namespace; a kind
 * outside namespaces loses one that was given, as upstream.
 */
export function checkPathAgreement(target: Target, object: ApiObject): void {
  const { metadata } = object;
  if (target.def.scope !== 'Namespaced') delete metadata.namespace;
  else if ((metadata.namespace ?? '') === '') metadata.namespace = target.namespace;
  else if (metadata.namespace !== target.namespace) {
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  }
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

/** 400 for an object that does not say its name. */
export function namelessBody(name: string): Error {
  return badRequest(
    `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
  );
}

/**
 * Leaves out owner references that stand there twice, with upstream's warning (META-7).
 * @param after admission has changed the object since it was looked at before
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
 * Whether a new object names a resourceVersion. Zero and values that are not numbers count as none,
 * as upstream.
 */
export function namesVersion({ metadata }: ApiObject): boolean {
  const version = parseResourceVersion(metadata.resourceVersion);
  return version.ok && version.revision !== 0;
}

/** 400 for a new object that names a resourceVersion (META-2). */
export function versionOnCreate(): StatusError {
  return badRequest('resourceVersion should not be set on objects to be created');
}

/** Takes from a new object what the server alone gives. */
export function wipeSystemFields(object: ApiObject): void {
  const { metadata } = object;
  for (const name of serverFields) leaveOut(metadata, name);
  // A null, which every typed client sends, is what upstream's own hooks see until it is filled in.
  if (jsonObject(metadata)['creationTimestamp'] !== null) leaveOut(metadata, 'creationTimestamp');
}

// Kinds that count their changes begin at generation 1; upstream lets the client choose for the others.
const serverFields = [
  'resourceVersion',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'generation',
  'uid',
] as const;

/** Asks first: most have none of these, and a removal of nothing costs more than a look. */
function leaveOut(metadata: ApiObject['metadata'], name: keyof ApiObject['metadata']): void {
  if (metadata[name] !== undefined) delete metadata[name];
}

/** Stamps what the server owns on a new object, behind mutating admission as upstream. */
export function fillSystemFields(object: ApiObject, nowMs: number): void {
  const { metadata } = object;
  leaveOut(metadata, 'resourceVersion');
  leaveOut(metadata, 'deletionTimestamp');
  leaveOut(metadata, 'deletionGracePeriodSeconds');
  metadata.uid = randomUuid();
  metadata.creationTimestamp = formatTime(nowMs);
  const prefix = metadata.generateName ?? '';
  if ((metadata.name ?? '') === '' && prefix !== '') metadata.name = generateName(prefix);
}

/** Carries over what an update cannot change, before the strategy looks at it. */
export function keepSystemFields(object: ApiObject, old: ApiObject): void {
  const { metadata } = object;
  const before = old.metadata;
  if (before.generation === undefined) leaveOut(metadata, 'generation');
  else metadata.generation = before.generation;
  if ((metadata.uid ?? '') === '' && before.uid !== undefined) metadata.uid = before.uid;
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

/** 409 when the body names another uid than the stored object's (META-2). */
export function checkUid(target: Target, object: ApiObject, old: ApiObject): void {
  const wanted = object.metadata.uid ?? '';
  const actual = old.metadata.uid ?? '';
  if (wanted !== '' && wanted !== actual)
    throw preconditionFailed(target, { wanted, actual, what: 'UID' });
}

/** Upstream's 409 for a precondition on uid or resourceVersion. */
export function preconditionFailed(
  target: Target,
  mismatch: { wanted: string; actual: string; what: 'UID' | 'ResourceVersion' },
): Error {
  const prefix = target.def.storage.prefix.replace(/\/$/, '');
  const key = [prefix, target.namespace, target.name].filter((part) => part !== '').join('/');
  const { what, wanted, actual } = mismatch;
  const why =
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ` +
    `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${actual}`;
  return conflict(groupResourceOf(target.def), target.name, why);
}

/** The optimistic lock of an update (PATCH-4): 409 when stale, 422 when needed and absent. */
export function checkResourceVersion(target: Target, object: ApiObject, current: number): void {
  const resourceVersion = object.metadata.resourceVersion ?? '';
  if (resourceVersion === String(current)) return;
  checkReadable(target, object);
  if (resourceVersion === '' || BigInt(resourceVersion) === 0n) {
    if (target.def.strategy.allowUnconditionalUpdate) return;
    const { group, resource } = target.def;
    // Upstream has the resource where the kind stands otherwise.
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

const uint64Max = 2n ** 64n - 1n;

/** 422 for a resourceVersion that is not a number, whether or not an object exists to compare. */
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

export function invalidMeta(def: ResourceDef, name: string, errors: readonly FieldError[]): Error {
  return invalidObject(groupKindOf(def), name, errors);
}

const asChange: readonly MetaJudgement[] = ['change'];

function metaRules({ scope, strategy }: ResourceDef, subresource: string): MetaRules {
  return {
    namespaced: scope === 'Namespaced',
    validateName: strategy.validateName,
    path: 'metadata',
    judgements: strategy.extraMetadataChecks?.[subresource] ?? asChange,
    ...(strategy.standardFinalizers === undefined
      ? {}
      : { standardFinalizers: strategy.standardFinalizers }),
  };
}

/**
 * Checks a new or a changed object against the rules of metadata and those of its kind. Throws 422
 * naming all that is wrong, or
 * rejects with it where the work on a large object pauses.
 * @param change.old undefined: the object is new
 */
export function validateObject(
  target: Target,
  context: StrategyContext,
  change: Change & { readonly pace: Pace | undefined },
): MaybePromise<void> {
  const { object, old, pace } = change;
  const { strategy } = target.def;
  const findings =
    old === undefined
      ? (strategy.validateCreate?.(context, object) ?? [])
      : (strategy.validateUpdate?.(context, object, old) ?? []);
  const own = 'next' in findings ? atPace(findings, pace) : findings;
  const refuse = (errors: readonly FieldError[]) =>
    judge(target, context, { ...change, own: errors });
  return own instanceof Promise ? own.then(refuse) : refuse(own);
}

interface Change {
  readonly object: ApiObject;
  readonly old: ApiObject | undefined;
}

/** Throws 422 for what the kind's rules have found, and for what is wrong with the metadata. */
function judge(
  target: Target,
  context: StrategyContext,
  { object, old, own }: Change & { readonly own: readonly FieldError[] },
): void {
  const { def } = target;
  const { strategy } = def;
  if (old !== undefined) {
    const rules = metaRules(def, context.subresource);
    const errors = validateObjectMetaUpdate(object.metadata, old.metadata, rules);
    refuseInvalid(target, object, [...errors, ...own]);
    return;
  }
  if (strategy.reportsMetadataLast === true) refuseInvalid(target, object, own);
  const errors = validateObjectMeta(object.metadata, metaRules(def, ''));
  refuseInvalid(target, object, [...errors, ...own]);
}

function refuseInvalid({ def }: Target, object: ApiObject, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const { kind, group } = groupKindOf(def);
  const reported = { kind, group: def.strategy.errorGroup ?? group };
  throw invalidObject(reported, object.metadata.name ?? '', errors);
}
