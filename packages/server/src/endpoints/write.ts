import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  atPace,
  type MaybePromise,
  type Pace,
  unsupportedMediaType,
} from '@wheelhouse/machinery';
import { copyDecoded, copyDecodedSteps } from '@wheelhouse/schema';
import { sendEntry } from '../answer/respond.ts';
import type { WriteContext, Written } from '../registry/contract.ts';
import { checkPathAgreement } from '../registry/object-meta.ts';
import { write } from '../registry/write.ts';
import { type PatchOptions, parsePatchOptions, type WriteOptions } from '../request/options.ts';
import { readingOf } from './body/body.ts';
import { decodeBody, objectSteps } from './body/decode-object.ts';
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
import { authorizeCreate, writeContext } from './write-context.ts';

/**
 * POST, PUT, and PATCH. Each decodes what the client sent and states its write as a plan, which
 * `registry/write.ts` carries out.
 */

/** POST on a collection: 201 with the stored object (API-3, DRY-1, FV-2). */
export async function createEndpoint(call: ApiCall, options: WriteOptions): Promise<void> {
  const { object, context } = await readObject(call, options);
  const { tap, registry } = call.context;
  tap?.named(call.exchange, object.metadata.name ?? '');
  const { target } = call;
  const written = await write(registry, { operation: 'create', target, object, context });
  tap?.named(call.exchange, written.entry.index.name);
  await answer(call, written);
}

/** PUT: replaces the object, or creates it where its kind allows (API-5). */
export async function updateEndpoint(call: ApiCall, options: WriteOptions): Promise<void> {
  const { object, context } = await readObject(call, options);
  const { target } = call;
  checkPathAgreement(target, object);
  const mayCreate = target.def.strategy.allowCreateOnUpdate && target.subresource === '';
  const written = await write(call.context.registry, {
    operation: 'update',
    target,
    context,
    source: 'body',
    transform: (_, __, ___, pace) => copied(object, pace),
    base: 'shared',
    onAbsent: mayCreate ? 'create' : 'refuse',
    beforeCreate: () => authorizeCreate(call),
  });
  await answer(call, written);
}

/** A copy of a decoded body, for one attempt. */
function copied(object: ApiObject, pace: Pace | undefined): MaybePromise<ApiObject> {
  if (pace === undefined) return copyDecoded(object);
  return Promise.resolve(atPace(copyDecodedSteps(object), pace)).then(asApiObject);
}

/**
 * PATCH: the Content-Type says which kind (PATCH-1 to PATCH-5, SSA-1). Without a resourceVersion in
 * it, races are retried (PATCH-4); an apply creates what is absent.
 */
export async function patchEndpoint(call: ApiCall): Promise<void> {
  const { target } = call;
  const patch = await readPatch(call);
  const mayCreate = patch.type === 'apply' && target.subresource === '';
  const written = await write(call.context.registry, {
    operation: 'update',
    target,
    context: writeContext(call, patch.options, patch.bytes.length),
    ...changeOf(call, patch),
    onAbsent: mayCreate ? 'create' : 'refuse',
    beforeCreate: () => authorizeCreate(call),
  });
  await answer(call, written);
}

const answer = (call: ApiCall, { entry, effect }: Written): Promise<void> =>
  sendEntry(call, { status: effect === 'created' ? 201 : 200, entry });

/** Decodes the body of a POST or a PUT. Throws 400, 413, 415, and 422. */
async function readObject(
  call: ApiCall,
  options: WriteOptions,
): Promise<{ readonly object: ApiObject; readonly context: WriteContext }> {
  const body = await decodeBody(call);
  const context = writeContext(call, options, body.bytes.length);
  await context.pace?.pause();
  const { fieldValidation } = options;
  const decoded = atPace(objectSteps(call, { body, fieldValidation }), context.pace);
  const object = decoded instanceof Promise ? await decoded : decoded;
  if (context.pace?.over) await context.pace.pause();
  return { object, context };
}

/** A decoded PATCH request: an apply with its body, or another patch with its bytes. */
export type AnyPatch = { readonly bytes: Buffer; readonly options: PatchOptions } & (
  | { readonly type: 'apply'; readonly body: ApplyBody }
  | { readonly type: Exclude<PatchType, 'apply'> }
);

/** Reads a PATCH request. Throws 400, 413, 415, and 422 for what is wrong with it by itself. */
export async function readPatch(call: ApiCall): Promise<AnyPatch> {
  const { context, exchange, target } = call;
  const { dialect, encodings, limits } = context;
  const accepted = acceptedPatches(target.def, { cbor: encodings.cbor });
  const { type, encoding } = patchFormOf(exchange.header('content-type'), accepted);
  const options = parsePatchOptions(call.info.query, { dialect, isApply: type === 'apply' });
  const bytes = await exchange.body(limits.bodyBytesMax);
  if (type !== 'apply') {
    call.audit?.requestPatch(bytes);
    return { type, bytes, options };
  }
  const decoded = encoding === 'cbor' ? applyBodyOfCbor(bytes) : applyBody(bytes, readingOf(call));
  const body = decoded instanceof Promise ? await decoded : decoded;
  call.audit?.requestPatch(body.value);
  return { type, bytes, options, body };
}

/** What a patch changes, as a part of an update's plan. */
export const changeOf = (call: ApiCall, patch: AnyPatch): PatchChange =>
  patch.type === 'apply' ? applyChange(call, patch.body, patch.options) : patchChange(call, patch);

/** One Content-Type a PATCH may have. */
interface PatchForm {
  readonly type: PatchType;
  readonly mediaType: string;
  /** How the body is encoded: an apply's may be CBOR. */
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
 * What a kind takes, in the order upstream lists it: no strategic merge for custom kinds, CBOR
 * behind its gate only (SSA-1, CODEC-4).
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

/** The form a Content-Type names; throws 415 naming the accepted ones. */
function patchFormOf(contentType: string | undefined, accepted: readonly PatchForm[]): PatchForm {
  // As it is written: upstream takes no other case, and no blank before a parameter.
  const mediaType = (contentType ?? '').split(';', 1)[0];
  const found = accepted.find((form) => form.mediaType === mediaType);
  if (found !== undefined) return found;
  throw unsupportedMediaType(accepted.map((form) => form.mediaType));
}
