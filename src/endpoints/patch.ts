import { badRequest } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import { updateObject } from '../registry/update.ts';
import { type PatchOptions, parsePatchOptions } from '../request/options.ts';
import { applyBody, reportRepeated } from './apply-body.ts';
import type { ApiCall } from './call.ts';
import { Complaints } from './field-validation.ts';
import { acceptedPatchTypes, type PatchType, patchTypeOf } from './patch-types.ts';
import { patcherFor } from './patchers.ts';
import { sendEntry } from './respond.ts';
import { shapeObject } from './shape-object.ts';
import { authorizeCreate, writeContext } from './write-context.ts';

/** PATCH: the Content-Type says which kind (PATCH-1 to PATCH-5, SSA-1). */
export async function patchEndpoint(call: ApiCall): Promise<void> {
  const { context, exchange, target } = call;
  const type = patchTypeOf(exchange.header('content-type'), acceptedPatchTypes(target.def));
  const options = parsePatchOptions(call.info.query, {
    dialect: context.dialect,
    isApply: type === 'apply',
  });
  const bytes = await exchange.body(context.limits.bodyBytesMax);
  const written =
    type === 'apply'
      ? await applyWrite(call, { bytes, options })
      : await patchWrite(call, { type, bytes, options });
  await sendEntry(call, { status: written.created ? 201 : 200, entry: written.entry });
}

/** A patch of the current object; without a resourceVersion in it, races are retried (PATCH-4). */
function patchWrite(
  call: ApiCall,
  patch: { type: Exclude<PatchType, 'apply'>; bytes: Buffer; options: PatchOptions },
) {
  const patcher = patcherFor(call, patch);
  return updateObject(call.context.registry, {
    target: call.target,
    context: writeContext(call, patch.options),
    transform: (current) => patcher(current as ApiObject),
    record: true,
    onAbsent: 'refuse',
  });
}

/**
 * The merged object in the form its schema has, defaulted. Its owners were worked out before and
 * are kept; when they are the live object's own list nothing has changed, and nothing is to be done.
 */
function shapeApplied(call: ApiCall, live: ApiObject | undefined, merged: ApiObject): ApiObject {
  const { managedFields } = merged.metadata;
  if (managedFields !== undefined && managedFields === live?.metadata.managedFields) return merged;
  delete merged.metadata.managedFields;
  const complaints = new Complaints();
  const object = shapeObject(call.target, merged, { complaints, fail: badRequest });
  if (managedFields !== undefined) object.metadata.managedFields = managedFields;
  return object;
}

/** Server-side apply: creates what is absent, merges what is there. */
async function applyWrite(call: ApiCall, patch: { bytes: Buffer; options: PatchOptions }) {
  const { registry } = call.context;
  const { options } = patch;
  const { fieldValidation } = options;
  const { value, repeated } = await applyBody(patch.bytes);
  const manager = options.fieldManager as string;
  const { target } = call;
  const { force } = options;
  return updateObject(registry, {
    target,
    context: writeContext(call, options),
    transform: (live) => {
      const nowMs = registry.clock.now();
      const apply = { target, live, patch: value, manager, force, nowMs };
      const merged = registry.fieldManager.applyPatch(apply);
      reportRepeated(call, { repeated, fieldValidation });
      return shapeApplied(call, live, merged);
    },
    record: false,
    onAbsent: 'create',
    beforeCreate: () => authorizeCreate(call),
  });
}
