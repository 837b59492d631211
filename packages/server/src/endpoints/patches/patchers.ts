import {
  decodeJson,
  decodeJsonSteps,
  encodeJsonSteps,
  JsonError,
  type SpelledJson,
  spelledJsonSteps,
  TooManyValues,
  withSpellings,
} from '@wheelhouse/codec';
import {
  type ApiObject,
  badRequest,
  cloneJsonSteps,
  goPlain,
  goValue,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  type Pace,
  pacedBytesMin,
  problemText,
  runAtPace,
  runInSlices,
  StatusError,
} from '@wheelhouse/machinery';
import { exceedsDepth } from '@wheelhouse/schema';
import {
  jsonPatchWork,
  mergePatchSteps,
  PatchError,
  parseJsonPatch,
  remainingPatchSteps,
  StrategicMergeError,
  strategicMergeSteps,
} from '@wheelhouse/structured-merge';
import type { FieldValidation } from '../../request/options.ts';
import { bodyLimits } from '../body/body.ts';
import {
  Complaints,
  kindObjectSteps,
  type ObjectSize,
  reportComplaints,
  sizeAt,
} from '../body/kind-object.ts';
import type { ApiCall } from '../call.ts';
import type { PatchChange } from './apply.ts';
import { checkPatchedKind, inPatchedOrder, type PatchType } from './patched-document.ts';

/** The objects that an attempt patches. */
interface PatchedObjects {
  /** A copy of the live object, which the patch may modify. */
  readonly current: ApiObject;
  readonly live: ApiObject;
  readonly pace: Pace | undefined;
}

/**
 * A patch other than an apply, as the change of a plan: returns the patched object in the form of
 * its schema. The patch is decoded once for all attempts, when there is an object to patch. The
 * transform throws 400 for a body that is not a patch and 422 for a patch that does not fit the
 * object (PATCH-1 to PATCH-3, FV-2).
 */
export function patchChange(call: ApiCall, patch: ReadPatch): PatchChange {
  let decodedOnce: DecodedPatch | undefined;
  function* steps({ current, live, pace }: PatchedObjects): Generator<void, ApiObject> {
    const decodedPatch = decodedOnce ?? (yield* decodedSteps(call, patch));
    decodedOnce = decodedPatch;
    yield;
    const patched = yield* asStatusError(() => decodedPatch.change(current));
    yield;
    const size = sizeAt(pace);
    return yield* patchedObjectSteps(call, patch, { decodedPatch, patched, live, size });
  }
  const transform: PatchChange['transform'] = ({ current, live, pace }) => {
    if (current === undefined || live === undefined) throw new Error('there is nothing to patch');
    const work = steps({ current, live, pace });
    return pace === undefined ? runInSlices(work, call.context.clock) : runAtPace(work, pace);
  };
  return { source: 'patched', transform };
}

/** A patch that has been read but not decoded. */
interface ReadPatch {
  readonly type: Exclude<PatchType, 'apply'>;
  readonly bytes: Buffer;
  readonly options: { readonly fieldValidation: FieldValidation };
}

/** The patched document in the form of its schema. */
function* patchedObjectSteps(
  call: ApiCall,
  patch: ReadPatch,
  of: {
    readonly decodedPatch: DecodedPatch;
    readonly patched: JsonValue;
    readonly live: ApiObject;
    readonly size: ObjectSize;
  },
): Generator<void, ApiObject> {
  const { patched, live, size } = of;
  const { value, duplicates, hasFraction } = of.decodedPatch;
  const { type } = patch;
  const { fieldValidation } = patch.options;
  if (!isObject(patched)) {
    const shown = (yield* encodeJsonSteps(patched)).toString('utf8');
    throw refusedAs(shown, 'the patched document is not an object');
  }
  const isStrategic = type === 'strategic';
  const complaints = new Complaints();
  complainOfPatch(complaints, { ...patch, value, duplicates });
  const { schema, decode } = call.target.version;
  // The decoder of a custom kind modifies its input.
  const isKept = decode === undefined || type === 'json';
  const kept = decode !== undefined && isKept ? yield* cloneJsonSteps(patched) : patched;
  const isSpelled = hasFraction === true && !isStrategic;
  const spelled = isSpelled ? yield* spelledSteps(call, patch, live) : undefined;
  function* refusal({ message, isStrict }: Unfit): Generator<void, StatusError> {
    const refused = yield* isStrategic ? refusedPatch(message) : refusedDocument(message);
    return isStrict ? badRequest(refused.message) : refused;
  }
  function* refusedPatch(message: string): Generator<void, StatusError> {
    const spent = yield* remainingPatchSteps(schema, live, isObject(value) ? value : {});
    return refusedAs(goPlain(spent), message);
  }
  function* refusedDocument(message: string): Generator<void, StatusError> {
    const order = { schema: decode === undefined ? schema : undefined, type, patch: value };
    const again = isKept
      ? (spelled?.value ?? kept)
      : yield* changeOf(call, { type, value })(yield* cloneJsonSteps(live));
    const shown = (yield* encodeJsonSteps(yield* inPatchedOrder(again, order))).toString('utf8');
    return refusedAs(
      spelled === undefined ? shown : withSpellings(shown, spelled.spellings),
      message,
    );
  }
  const source = isStrategic ? 'map' : 'patched';
  const fail = (message: string) => new Unfit(message);
  const failStrictly = (message: string) => new Unfit(message, { isStrict: true });
  try {
    if (!isStrategic)
      yield* checkPatchedKind(call, patched, { live, fieldValidation, fail, failStrictly });
    const decoding = { complaints, fail, source, spelled, size } as const;
    const object = yield* kindObjectSteps(call.target, patched, decoding);
    // A patch may omit apiVersion and kind, and a strategic merge patch may state any.
    object.apiVersion = live.apiVersion;
    object.kind = live.kind;
    reportComplaints(call, { complaints, fieldValidation, fail: failStrictly });
    return object;
  } catch (error) {
    if (!(error instanceof Unfit)) throw error;
    throw yield* refusal(error);
  }
}

/**
 * The patched document with placeholders for the patch's numbers that have a fraction. Operations
 * that test are left out: they compare values, and have succeeded.
 */
function* spelledSteps(
  call: ApiCall,
  { type, bytes }: ReadPatch,
  live: ApiObject,
): Generator<void, SpelledJson> {
  const { value, spellings } = yield* spelledJsonSteps(bytes, bodyLimits);
  const isTest = (operation: JsonValue) => isObject(operation) && operation['op'] === 'test';
  const changes = Array.isArray(value) ? value.filter((operation) => !isTest(operation)) : value;
  const change = changeFor(call, type, changes);
  return { value: yield* change((yield* cloneJsonSteps(live)) as ApiObject), spellings };
}

/** The patched document does not fit its kind; the client's error shows the document. */
class Unfit extends Error {
  /** Whether the reason is an unknown or duplicate field, which is a 400 for every verb (FV-2). */
  readonly isStrict: boolean;

  constructor(message: string, { isStrict = false }: { readonly isStrict?: boolean } = {}) {
    super(message);
    this.isStrict = isStrict;
  }
}

/** Changes an object in steps. Throws a patch error if the patch does not fit it. */
type Change = (current: ApiObject) => Generator<void, JsonValue>;

interface DecodedPatch extends PatchBody {
  readonly change: Change;
}

function* decodedSteps(call: ApiCall, patch: ReadPatch): Generator<void, DecodedPatch> {
  const { type, bytes, options } = patch;
  const body = yield* patchBodySteps(bytes, { type, fieldValidation: options.fieldValidation });
  return { ...body, change: changeFor(call, type, body.value) };
}

const operationFields = new Set(['op', 'path', 'from', 'value']);

/** Adds complaints about the patch itself; those about operations follow the order of the text. */
function complainOfPatch(
  complaints: Complaints,
  patch: { type: PatchType; bytes: Buffer; value: JsonValue; duplicates: readonly string[] },
): void {
  if (patch.type !== 'json') {
    for (const path of patch.duplicates) complaints.duplicate(path);
    return;
  }
  const prefix = 'json patch ';
  const operations = Array.isArray(patch.value) ? patch.value : [];
  for (const [index, operation] of operations.entries()) {
    for (const name of Object.keys((operation ?? {}) as JsonObject)) {
      if (!operationFields.has(name)) complaints.unknown(`[${index}].${name}`, prefix);
    }
  }
  for (const path of patch.duplicates) complaints.duplicate(path, prefix);
  complaints.inTypedOrder(patch.bytes);
}

/**
 * The specification names RFC 6902. The clients of kube-apiserver rely on more: Tekton replaces an
 * annotation that is not there.
 */
const jsonPatchRules = { svc: 'exact', kubernetes: 'lenient' } as const;

function changeFor(call: ApiCall, type: Exclude<PatchType, 'apply'>, value: JsonValue): Change {
  if (type !== 'json') return changeOf(call, { type, value });
  const operations = thrownAsStatus(() => parseJsonPatch(value));
  const rules = jsonPatchRules[call.context.dialect.name];
  return function* (current) {
    const patched = yield* jsonPatchWork(current, operations, { rules });
    // The only patch whose result can nest more deeply than both the object and the patch.
    if (exceedsDepth(patched)) throw unprocessable();
    return patched;
  };
}

/** A merge, whose cost is linear in the object and the patch. */
function changeOf(
  call: ApiCall,
  { type, value }: { readonly type: PatchType; readonly value: JsonValue },
): Change {
  const patch = isObject(value) ? value : {};
  const { schema } = call.target.version;
  return function* (current) {
    yield;
    return type === 'merge'
      ? yield* mergePatchSteps(current, patch)
      : yield* strategicMergeSteps(schema, current, patch);
  };
}

/**
 * The 422 for a patched document that cannot be decoded. It shows the whole document, or for a
 * strategic merge patch the patch.
 */
function refusedAs(shown: string, message: string): StatusError {
  return invalidObject({ group: '', kind: '' }, '', [invalid('patch', shown, message)]);
}

function* asStatusError<T>(run: () => Generator<void, T>): Generator<void, T> {
  try {
    return yield* run();
  } catch (error) {
    return rethrow(error);
  }
}

function thrownAsStatus<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    return rethrow(error);
  }
}

/** Throws the StatusError for an error in patching. */
function rethrow(error: unknown): never {
  if (error instanceof StrategicMergeError) throw strategicFailure(error);
  // Operations may nest copies until a walk of the document overflows the stack.
  if (error instanceof RangeError) throw unprocessable();
  if (!(error instanceof PatchError)) throw error;
  const { kind, message } = error;
  if (kind === 'malformed') throw badRequest(message);
  if (kind === 'too-many') {
    const framed = `Request entity too large: ${message}`;
    throw new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message: framed });
  }
  throw unprocessable();
}

/** The 422 of a patch that does not apply; like kube-apiserver's, it does not say why. */
function unprocessable(): StatusError {
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
    details: {},
  });
}

/** A patch that does not fit the object is a 400, where kube-apiserver answers 500. */
function strategicFailure(error: StrategicMergeError): StatusError {
  return error.kind === 'unprocessable' ? unprocessable() : badRequest(error.message);
}

/** The decoded body of a patch, and the paths of its duplicate members. */
interface PatchBody {
  readonly value: JsonValue;
  readonly duplicates: readonly string[];
  readonly hasFraction?: true;
}

type TextPatch = Exclude<PatchType, 'apply'>;

/**
 * Decodes the body of a patch other than an apply. Throws 400 for a body that is not a patch. The
 * wording depends on `fieldValidation`, because kube-apiserver uses another decoder for `Ignore`.
 */
function* patchBodySteps(
  bytes: Buffer,
  { type, fieldValidation }: { type: TextPatch; fieldValidation: FieldValidation },
): Generator<void, PatchBody> {
  const isChecked = fieldValidation !== 'Ignore';
  const prefix = isChecked && type !== 'strategic' ? 'error decoding patch: ' : '';
  let body: PatchBody;
  try {
    body =
      bytes.length < pacedBytesMin
        ? decodeJson(bytes, bodyLimits)
        : yield* decodeJsonSteps(bytes, bodyLimits);
  } catch (error) {
    if (!(error instanceof JsonError) || error instanceof TooManyValues) throw error;
    if (type === 'merge' && !isChecked) throw badRequest(noMergePatch);
    throw badRequest(`${prefix}${error.message}`);
  }
  const problem =
    type !== 'json' ? misfitMap(body.value) : isChecked ? misfitOperations(body.value) : undefined;
  if (problem !== undefined) {
    const isUnread = type === 'merge' && !isChecked;
    throw badRequest(isUnread ? noMergePatch : `${prefix}${problem}`);
  }
  if (body.value === null && type === 'merge') throw badRequest(noMergePatch);
  return body;
}

const noMergePatch = 'Invalid JSON Patch';

const cannotBe = (value: JsonValue, type: string, field?: string) =>
  problemText({ code: 'misfit', what: goValue(value), type, field });

function misfitMap(value: JsonValue): string | undefined {
  if (value === null || isObject(value)) return undefined;
  return cannotBe(value, 'map[string]interface {}');
}

/** The problem of operations that are checked before `parseJsonPatch` reads them. */
function misfitOperations(value: JsonValue): string | undefined {
  if (value === null) return undefined;
  if (!Array.isArray(value)) return cannotBe(value, '[]handlers.jsonPatchOp');
  for (const operation of value) {
    if (operation === null) continue;
    if (!isObject(operation)) return cannotBe(operation, 'handlers.jsonPatchOp');
    for (const name of ['op', 'path', 'from']) {
      const text = member(operation, name) ?? null;
      if (text === null || typeof text === 'string') continue;
      return cannotBe(text, 'string', `jsonPatchOp.${name}`);
    }
  }
  return undefined;
}
