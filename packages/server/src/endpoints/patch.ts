import {
  type ApiObject,
  atPace,
  badRequest,
  cloneJson,
  type JsonObject,
  type MaybePromise,
  type Pace,
} from '@wheelhouse/machinery';
import type { FoundPaths } from '@wheelhouse/schema';
import { describe, describeKind } from '@wheelhouse/structured-merge';
import { sendEntry } from '../answer/respond.ts';
import { type ObjectSize, shapeSteps, sizeAt } from '../answer/shape-object.ts';
import type { Target } from '../registry/contract.ts';
import { write } from '../registry/write.ts';
import { type PatchOptions, parsePatchOptions } from '../request/options.ts';
import {
  type ApplyBody,
  applyBody,
  applyBodyOfCbor,
  refuseUndeclared,
  reportRepeated,
} from './body/apply-body.ts';
import { readingOf } from './body/body.ts';
import { Complaints } from './body/field-validation.ts';
import type { ApiCall } from './call.ts';
import { acceptedPatches, type PatchType, patchFormOf } from './patches/patch-types.ts';
import { patcherFor } from './patches/patchers.ts';
import { authorizeCreate, writeContext } from './write-context.ts';

/** A decoded PATCH request: an apply with its body, or another patch with its bytes. */
export type AnyPatch = { readonly bytes: Buffer; readonly options: PatchOptions } & (
  | { readonly type: 'apply'; readonly body: ApplyBody }
  | { readonly type: Exclude<PatchType, 'apply'> }
);

/** PATCH: the Content-Type says which kind (PATCH-1 to PATCH-5, SSA-1). */
export async function patchEndpoint(call: ApiCall): Promise<void> {
  const patch = await readPatch(call);
  const { entry, effect } = await (patch.type === 'apply'
    ? applyWrite(call, patch)
    : patchWrite(call, patch));
  await sendEntry(call, { status: effect === 'created' ? 201 : 200, entry });
}

/** Reads a PATCH request; throws 400, 413, 415 and 422 for what is wrong with it by itself. */
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

/** A patch of the current object; without a resourceVersion in it, races are retried (PATCH-4). */
function patchWrite(
  call: ApiCall,
  patch: { type: Exclude<PatchType, 'apply'>; bytes: Buffer; options: PatchOptions },
) {
  const patcher = patcherFor(call, patch);
  return write(call.context.registry, {
    operation: 'update',
    target: call.target,
    context: writeContext(call, patch.options, patch.bytes.length),
    transform: (current, _, live, pace) =>
      patcher({ current: current as ApiObject, live: live as ApiObject, pace }),
    source: 'patched',
    onAbsent: 'refuse',
  });
}

/**
 * The merged object in the form its schema has, defaulted. Its owners were worked out before and
 * are kept; when they are the live object's own list nothing has changed, and nothing is to be done.
 */
function* appliedSteps(
  call: ApiCall,
  of: {
    readonly live: ApiObject | undefined;
    readonly merged: ApiObject;
    readonly body: JsonObject;
    readonly size: ObjectSize;
  },
): Generator<void, ApiObject> {
  const { live, merged, body, size } = of;
  const { managedFields } = merged.metadata;
  // A copy, since what is merged shares parts with the live object, and admission may change it.
  if (managedFields !== undefined && managedFields === live?.metadata.managedFields) {
    return cloneJson(merged);
  }
  // What is undefined counts as absent to a typed decoder, and leaves the object a quick one.
  if (isTyped(call.target)) (merged.metadata as JsonObject)['managedFields'] = undefined;
  else delete merged.metadata.managedFields;
  const complaints = new Complaints();
  const fail = (message: string) =>
    badRequest(
      `failed to convert new object (${describe(body)}) to proper version: ` +
        `unable to convert unstructured object to ${describeKind(body)}: ${message}`,
    );
  const options = { complaints, fail, source: 'map', size } as const;
  const object = yield* shapeSteps(call.target, merged, options);
  if (managedFields !== undefined) object.metadata.managedFields = managedFields;
  return object;
}

/** Whether decoding makes a new object, so that what is decoded may be shared with others. */
const isTyped = ({ def }: Target) => def.behavior.bodies === 'typed';

/** What an apply makes of the live object, owners included, as often as it is asked. */
export function applierFor(
  call: ApiCall,
  { value, repeated }: ApplyBody,
  options: PatchOptions,
): (live: ApiObject | undefined, pace?: Pace) => MaybePromise<ApiObject> {
  const { registry } = call.context;
  const { target } = call;
  const { force, fieldValidation } = options;
  const manager = options.fieldManager as string;
  const onUndeclared =
    fieldValidation === 'Strict'
      ? (undeclared: FoundPaths) => refuseUndeclared(value, { repeated, undeclared })
      : undefined;
  const patchOf = () => (isTyped(target) ? value : cloneJson(value));
  return (live, pace) => {
    const nowMs = registry.clock.now();
    const apply = { target, live, patch: patchOf(), manager, force, nowMs, onUndeclared, pace };
    const shape = (merged: ApiObject) => {
      reportRepeated(call, { repeated, fieldValidation });
      const size = sizeAt(pace);
      return atPace(appliedSteps(call, { live, merged, body: value, size }), pace);
    };
    const applied = registry.fieldManager.applyPatch(apply);
    return applied instanceof Promise ? applied.then(shape) : shape(applied);
  };
}

/** Server-side apply: creates what is absent, merges what is there. */
function applyWrite(
  call: ApiCall,
  patch: { body: ApplyBody; bytes: Buffer; options: PatchOptions },
) {
  const apply = applierFor(call, patch.body, patch.options);
  const context = writeContext(call, patch.options, patch.bytes.length);
  return write(call.context.registry, {
    operation: 'update',
    target: call.target,
    context,
    transform: (_, __, live, pace) => apply(live, pace),
    ...(isTyped(call.target) ? { base: 'shared' } : {}),
    source: 'merged',
    onAbsent: call.target.subresource === '' ? 'create' : 'refuse',
    beforeCreate: () => authorizeCreate(call),
  });
}
