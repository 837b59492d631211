import { setMaxListeners } from 'node:events';
import { decodeJsonSteps, JsonError } from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  deadlineEarlyMs,
  definedMembers,
  type Exchange,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  memoized,
  type Pace,
  runAtPace,
  unprintable,
  unsupportedMediaType,
  type WaitingClient,
} from '@wheelhouse/machinery';
import { copyDecoded, copyDecodedSteps } from '@wheelhouse/schema';
import type { Encodings } from '../answer/encodings.ts';
import { sendEntry } from '../answer/respond.ts';
import { type AuditLevel, reaches } from '../gates/audit/event.ts';
import type { RequestSide, WriteContext, Written } from '../registry/contract.ts';
import { checkPathAgreement } from '../registry/object-meta.ts';
import { type Permit, type ResourceAccess, requireTarget } from '../registry/permit.ts';
import { write } from '../registry/write.ts';
import {
  type DeleteOptions,
  type PatchOptions,
  parsePatchOptions,
  type WriteOptions,
} from '../request/options.ts';
import { bodyPace } from '../request/request-state.ts';
import { bodyLimits, readingOf } from './body/body.ts';
import { objectSteps, readWrite } from './body/decode-object.ts';
import type { ApiCall } from './call.ts';
import {
  type ApplyBody,
  applyBody,
  applyBodyOfCbor,
  applyChange,
  type PatchChange,
} from './patches/apply.ts';
import type { PatchType } from './patches/patched-document.ts';
import { patchChange } from './patches/patchers.ts';

/**
 * POST, PUT, and PATCH. Each decodes the body and describes the write as a plan, which
 * `registry/write.ts` carries out.
 */

/** POST on a collection: 201 with the stored object (API-3, DRY-1, FV-2). */
export async function createEndpoint(call: ApiCall): Promise<void> {
  const { object, context } = await readObject(call);
  const { tap, registry } = call.context;
  tap?.named(call.exchange, object.metadata.name ?? '');
  const { target } = call;
  const written = await write(registry, { operation: 'create', target, object, context });
  tap?.named(call.exchange, written.entry.index.name);
  await answer(call, written);
}

/** PUT: replaces the object, or creates it where its kind allows (API-5). */
export async function updateEndpoint(call: ApiCall): Promise<void> {
  const { object, context } = await readObject(call);
  const { target } = call;
  checkPathAgreement(target, object);
  const mayCreate = target.def.strategy.allowCreateOnUpdate && target.subresource === '';
  const written = await write(call.context.registry, {
    operation: 'update',
    target,
    context,
    source: 'body',
    transform: ({ pace }) => copied(object, pace),
    base: 'shared',
    onAbsent: mayCreate ? 'create' : 'refuse',
    beforeCreate: () => authorizeCreate(call),
  });
  await answer(call, written);
}

/** Copies a decoded body for one attempt. */
function copied(object: ApiObject, pace: Pace | undefined): MaybePromise<ApiObject> {
  if (pace === undefined) return copyDecoded(object);
  return Promise.resolve(runAtPace(copyDecodedSteps(object), pace)).then(asApiObject);
}

/**
 * PATCH: the Content-Type selects the patch type (PATCH-1 to PATCH-5, SSA-1). A patch without a
 * resourceVersion is retried after a lost race (PATCH-4); an apply creates an absent object.
 */
export async function patchEndpoint(call: ApiCall): Promise<void> {
  const { target } = call;
  const patch = await readPatch(call);
  const mayCreate = patch.type === 'apply' && target.subresource === '';
  const written = await write(call.context.registry, {
    operation: 'update',
    target,
    context: writeContext(call, patch.options, sizeOf(patch)),
    ...changeOf(call, patch),
    onAbsent: mayCreate ? 'create' : 'refuse',
    beforeCreate: () => authorizeCreate(call),
  });
  await answer(call, written);
}

/** Bytes of a patch, or of an apply without its aliases, which set the pace of the work. */
const sizeOf = (patch: AnyPatch): number =>
  (patch.type === 'apply' ? patch.body.expandedBytes : undefined) ?? patch.bytes.length;

const answer = (call: ApiCall, { entry, effect }: Written): Promise<void> =>
  sendEntry(call, { status: effect === 'created' ? 201 : 200, entry });

/** Decodes the body of a POST or a PUT. Throws 400, 413, 415, and 422. */
async function readObject(
  call: ApiCall,
): Promise<{ readonly object: ApiObject; readonly context: WriteContext }> {
  const { body, options } = await readWrite(call);
  const context = writeContext(call, options, body.size);
  await context.pace?.pause();
  const { fieldValidation } = options;
  const decoded = runAtPace(objectSteps(call, { body, fieldValidation }), context.pace);
  const object = decoded instanceof Promise ? await decoded : decoded;
  if (context.pace?.over) await context.pace.pause();
  return { object, context };
}

/** A decoded PATCH request: an apply with its body, or another patch with its bytes. */
type AnyPatch = { readonly bytes: Buffer; readonly options: PatchOptions } & (
  | { readonly type: 'apply'; readonly body: ApplyBody }
  | { readonly type: Exclude<PatchType, 'apply'> }
);

/**
 * Reads a PATCH request. Throws 400, 413, 415, and 422 for a patch that cannot apply to any object.
 */
export async function readPatch(call: ApiCall): Promise<AnyPatch> {
  const { context, exchange, target } = call;
  const { dialect, encodings, limits } = context;
  const { type, encoding } = patchFormOf(exchange, target.def, encodings);
  const bytes = await exchange.body(limits.bodyBytesMax);
  const options = parsePatchOptions(call.info.query, { dialect, isApply: type === 'apply' });
  const audit = call.audit?.recordsRequests === true ? call.audit : undefined;
  if (type !== 'apply') {
    if (audit !== undefined) await recordPatch(call, { audit, bytes, patch: bytes });
    return { type, bytes, options };
  }
  const decoded = encoding === 'cbor' ? applyBodyOfCbor(bytes) : applyBody(bytes, readingOf(call));
  const body = decoded instanceof Promise ? await decoded : decoded;
  if (audit !== undefined) await recordPatch(call, { audit, bytes, patch: body.value });
  return { type, bytes, options, body };
}

/** Records a patch for audit (OPS-2), except JSON that cannot be decoded. */
async function recordPatch(
  call: ApiCall,
  of: {
    readonly audit: NonNullable<ApiCall['audit']>;
    readonly bytes: Buffer;
    readonly patch: Buffer | JsonValue;
  },
): Promise<void> {
  const { audit, bytes, patch } = of;
  const pace = bodyPace(call, bytes.length);
  try {
    const value = Buffer.isBuffer(patch)
      ? (await runAtPace(decodeJsonSteps(patch, bodyLimits), pace)).value
      : (patch as JsonValue);
    await runAtPace(audit.setRequestPatch(value), pace);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
  }
}

/** The change that a patch makes, as part of an update's plan. */
export const changeOf = (call: ApiCall, patch: AnyPatch): PatchChange =>
  patch.type === 'apply' ? applyChange(call, patch.body, patch.options) : patchChange(call, patch);

/** One Content-Type that a PATCH may have. */
interface PatchForm {
  readonly type: PatchType;
  readonly mediaType: string;
  /** Encoding of the body: an apply may be CBOR. */
  readonly encoding: 'text' | 'cbor';
}

const forms: readonly PatchForm[] = [
  { type: 'json', mediaType: 'application/json-patch+json', encoding: 'text' },
  { type: 'merge', mediaType: 'application/merge-patch+json', encoding: 'text' },
  { type: 'strategic', mediaType: 'application/strategic-merge-patch+json', encoding: 'text' },
  { type: 'apply', mediaType: 'application/apply-patch+yaml', encoding: 'text' },
  { type: 'apply', mediaType: 'application/apply-patch+cbor', encoding: 'cbor' },
];

/**
 * The patches that a kind accepts, in the order of kube-apiserver's 415: custom kinds take no
 * strategic merge patch, and CBOR needs its feature gate (SSA-1, CODEC-4).
 */
function acceptedPatches(
  def: ResourceDef,
  options: { readonly cbor: 'served' | 'off' },
): readonly PatchForm[] {
  return forms.filter(
    ({ type, encoding }) =>
      (type !== 'strategic' || def.behavior.offersStrategicMerge) &&
      (encoding !== 'cbor' || options.cbor === 'served'),
  );
}

/** The form of a PATCH, from its Content-Type. Throws a 415 that lists the accepted ones. */
export function patchFormOf(
  exchange: Exchange,
  def: ResourceDef,
  encodings: Pick<Encodings, 'cbor'>,
): PatchForm {
  const accepted = acceptedPatches(def, { cbor: encodings.cbor });
  // Compared as written: kube-apiserver accepts no other case and no space before a parameter.
  const mediaType = (exchange.header('content-type') ?? '').split(';', 1)[0];
  const found = accepted.find((form) => form.mediaType === mediaType);
  if (found !== undefined) return found;
  throw unsupportedMediaType(accepted.map((form) => form.mediaType));
}

/**
 * The context of a writing request for the registry, besides its object.
 * @param bodyBytes size of the request's body: work on a large one pauses between its steps
 */
export function writeContext(
  call: ApiCall,
  options: Pick<WriteOptions, 'dryRun' | 'fieldManager'> & {
    /** The options in admission reviews, if they do not come from the query alone. */
    readonly shown?: () => JsonObject;
  },
  bodyBytes = 0,
): WriteContext {
  const { context, exchange, deadline } = call;
  return {
    permit: call.permit,
    user: call.user,
    dryRun: options.dryRun,
    fieldManager: options.fieldManager ?? managerFromUserAgent(exchange.header('user-agent') ?? ''),
    warn: (text) => call.warnings.add(text),
    expired: () =>
      exchange.aborted || context.clock.monotonic() >= deadline.dueMs - deadlineEarlyMs,
    request: new CallSide(call, options.shown),
    pace: bodyPace(call, bodyBytes),
  };
}

/** A class, because one is created for every write and its members are rarely used. */
class CallSide implements RequestSide {
  readonly #call: ApiCall;
  readonly #shown: (() => JsonObject) | undefined;
  #left: AbortController | undefined;

  constructor(call: ApiCall, shown: (() => JsonObject) | undefined) {
    this.#call = call;
    this.#shown = shown;
  }

  get client(): WaitingClient {
    return this.#call.exchange;
  }

  options(): JsonObject {
    return this.#shown?.() ?? queryOptions(this.#call.info.query);
  }

  left(): AbortSignal {
    if (this.#left !== undefined) return this.#left.signal;
    const { exchange } = this.#call;
    const controller = new AbortController();
    // Each webhook call adds a listener, and a write may call any number of webhooks.
    setMaxListeners(0, controller.signal);
    this.#left = controller;
    if (exchange.aborted) controller.abort();
    else exchange.onAbort(() => controller.abort());
    return controller.signal;
  }

  remainingMs(): number {
    return this.#call.deadline.dueMs - this.#call.context.clock.monotonic();
  }

  askedOthers(tookMs: number): void {
    this.#call.deadline.addOthersMs(tookMs);
  }

  annotate(key: string, value: string, level: AuditLevel = 'Metadata'): void {
    const { audit } = this.#call;
    if (audit !== undefined && reaches(audit.level, level)) audit.annotate(key, value);
  }
}

/** The options of a write, from its query. */
function queryOptions(query: URLSearchParams): JsonObject {
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const texts = ['fieldManager', 'fieldValidation'].flatMap((name) => {
    const value = query.get(name) ?? '';
    return value === '' ? [] : [[name, value]];
  });
  return { ...(dryRun.length === 0 ? {} : { dryRun }), ...Object.fromEntries(texts) };
}

/** The options of a deletion as JSON, whether they came from the query or the body. */
export function deleteOptionsShown(options: DeleteOptions): JsonObject {
  const { gracePeriodSeconds, preconditions, orphanDependents, propagationPolicy } = options;
  return definedMembers({
    gracePeriodSeconds,
    preconditions: preconditions && definedMembers(preconditions),
    orphanDependents,
    propagationPolicy,
    dryRun: options.dryRun ? ['All'] : undefined,
  });
}

const managerBytesMax = 128;

/**
 * The User-Agent up to its first `/` (MF-2), cut to the length of a manager name. Memoized, because
 * every request of a client has the same one.
 */
const managerFromUserAgent = memoized(readManager, { countMax: 256, lengthMax: 256 });

function readManager(userAgent: string): string {
  const name = asUtf8(userAgent.split('/', 1)[0] ?? '').replace(unprintable, '');
  let kept = '';
  for (const character of name) {
    if (Buffer.byteLength(kept + character) > managerBytesMax) break;
    kept += character;
  }
  return kept === '' ? 'unknown' : kept;
}

/** Decodes a header value, which has one character per byte. */
function asUtf8(text: string): string {
  return /[\x80-\xff]/.test(text) && !/[^\0-\xff]/.test(text)
    ? Buffer.from(text, 'latin1').toString('utf8')
    : text;
}

/** Authorizes the create that a PUT or an apply of an absent object implies (API-5, SSA-7). */
async function authorizeCreate(call: ApiCall): Promise<Permit<ResourceAccess>> {
  const permit = await call.context.authorize(call.user, call.info, 'create');
  return requireTarget(permit, 'create', call.target);
}
