import { decodeJson } from '@wheelhouse/codec';
import {
  type ApiObject,
  type Clock,
  errorText,
  inSlices,
  internalError,
  isObject,
  type JsonObject,
  type JsonValue,
  WorkExceeded,
} from '@wheelhouse/machinery';
import { DecodeError } from '@wheelhouse/schema';
import { jsonPatchWork, PatchError, parseJsonPatch } from '@wheelhouse/structured-merge';
import { reshaped } from '../matching/reshape.ts';
import { HookFailure } from './denial.ts';
import type { Verdict } from './review.ts';
import type { Invocation } from './select.ts';

/**
 * The object as a webhook's patch makes it, decoded and defaulted anew in the version it was shown
 * in; undefined where the patch is empty. Throws HookFailure for a patch that cannot be read, and
 * 500 for one that does not fit the object.
 */
export async function patchedBy(
  verdict: Verdict,
  { hook, convertedCall, served }: Invocation,
  clock: Pick<Clock, 'monotonic'>,
): Promise<{ readonly object: ApiObject; readonly operations: JsonValue } | undefined> {
  if (verdict.patch.length === 0) return undefined;
  const { value, operations } = readPatch(verdict, hook.name);
  if (operations.length === 0) return undefined;
  const { object } = convertedCall;
  if (object === undefined) {
    const name = JSON.stringify(hook.name);
    const why = 'attempted to modify the object, which is not supported for this operation';
    throw internalError(`admission webhook ${name} ${why}`);
  }
  if (verdict.patchType !== 'JSONPatch') {
    const why = `unsupported patch type ${JSON.stringify(verdict.patchType)}`;
    throw new HookFailure(hook.name, { why, code: 400 });
  }
  try {
    const patched = await inSlices(jsonPatchWork(object, operations, { rules: 'lenient' }), clock);
    if (!isObject(patched)) throw new DecodeError('the patched object is no object');
    return { object: reshaped(patched, { served, kind: convertedCall.kind }), operations: value };
  } catch (error) {
    const isRefused = error instanceof PatchError || error instanceof WorkExceeded;
    if (isRefused || error instanceof DecodeError) {
      throw internalError(error.message, error);
    }
    throw error;
  }
}

function readPatch(
  { patch }: Verdict,
  name: string,
): { value: JsonValue; operations: ReturnType<typeof parseJsonPatch> } {
  try {
    const { value } = decodeJson(patch);
    return { value, operations: parseJsonPatch(value) };
  } catch (error) {
    const why = errorText(error);
    throw new HookFailure(name, {
      why: `received undecodable patch in webhook response: ${why}`,
      code: 503,
    });
  }
}

/** Makes one object what another is, in place: whoever holds it goes on with the new content. */
export function replaceContent(target: JsonObject, content: JsonObject): void {
  for (const name of Object.keys(target)) delete target[name];
  Object.assign(target, content);
}
