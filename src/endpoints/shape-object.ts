import type { JsonObject } from '../base/json.ts';
import { decodeTyped } from '../engines/schema/decode-typed.ts';
import { DecodeError } from '../engines/schema/depth.ts';
import { EmbeddedError } from '../engines/schema/embedded.ts';
import { invalidObject } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import type { Target } from '../registry/contract.ts';
import { asApiObject } from '../registry/object-codec.ts';
import { groupKindOf } from '../registry/registry.ts';
import type { Complaints } from './field-validation.ts';

/**
 * Gives a decoded body the form its kind's schema has: types checked, unknown members dropped and
 * told, defaults filled in. The body itself may be changed. `fail` makes the 400 of a wrong type.
 */
export function shapeObject(
  target: Target,
  value: JsonObject,
  options: { complaints: Complaints; fail: (message: string) => Error },
): ApiObject {
  const { version } = target;
  const { complaints, fail } = options;
  const report = (path: string) => complaints.unknown(path);
  try {
    if (version.decode !== undefined) {
      for (const path of version.decode(value)) report(path);
      return asApiObject(value);
    }
    const object = asApiObject(decodeTyped(version.schema)(value, report));
    version.defaults?.(object);
    return object;
  } catch (error) {
    if (error instanceof DecodeError) throw fail(error.message);
    if (error instanceof EmbeddedError) {
      throw invalidObject(groupKindOf(target.def), '', [error.fieldError]);
    }
    throw error;
  }
}
