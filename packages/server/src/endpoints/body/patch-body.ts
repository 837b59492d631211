import { decodeJson, decodeJsonSteps, JsonError, TooManyValues } from '@wheelhouse/codec';
import {
  badRequest,
  goValue,
  isObject,
  type JsonValue,
  member,
  pacedBytesMin,
} from '@wheelhouse/machinery';
import type { FieldValidation } from '../../request/options.ts';
import type { PatchType } from '../patches/patch-types.ts';
import { bodyLimits } from './body.ts';

/** A patch's body decoded, and the paths of members that stand there twice. */
export interface PatchBody {
  readonly value: JsonValue;
  readonly duplicates: readonly string[];
}

type TextPatch = Exclude<PatchType, 'apply'>;

/**
 * Decodes the body of a patch other than apply, and throws 400 for what cannot be one. Upstream reads
 * a body whose fields it validates with another decoder, which words things differently.
 */
export function* patchBodySteps(
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
  const problem = type === 'json' ? misfitOperations(body.value, isChecked) : misfitMap(body.value);
  if (problem !== undefined) {
    const isUnread = type === 'merge' && !isChecked;
    throw badRequest(isUnread ? noMergePatch : `${prefix}${problem}`);
  }
  if (body.value !== null) return body;
  if (type === 'merge') throw badRequest(noMergePatch);
  return { ...body, value: type === 'json' ? [] : {} };
}

const noMergePatch = 'Invalid JSON Patch';

const cannotBe = (value: JsonValue, goType: string) =>
  `json: cannot unmarshal ${goValue(value)} into Go ${goType}`;

function misfitMap(value: JsonValue): string | undefined {
  if (value === null || isObject(value)) return undefined;
  return cannotBe(value, 'value of type map[string]interface {}');
}

function misfitOperations(value: JsonValue, isChecked: boolean): string | undefined {
  if (value === null) return undefined;
  if (!Array.isArray(value)) {
    return cannotBe(
      value,
      `value of type ${isChecked ? '[]handlers.jsonPatchOp' : 'jsonpatch.Patch'}`,
    );
  }
  for (const operation of value) {
    if (operation === null) continue;
    if (!isObject(operation)) {
      const goType = isChecked ? 'handlers.jsonPatchOp' : 'jsonpatch.Operation';
      return cannotBe(operation, `value of type ${goType}`);
    }
    for (const name of isChecked ? ['op', 'path', 'from'] : []) {
      const text = member(operation, name) ?? null;
      if (text === null || typeof text === 'string') continue;
      return cannotBe(text, `struct field jsonPatchOp.${name} of type string`);
    }
  }
  return undefined;
}
