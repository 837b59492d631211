import type { JsonObject } from '../base/json.ts';
import type { DecodeSource } from '../engines/schema/decode-context.ts';
import { decodeTyped } from '../engines/schema/decode-typed.ts';
import { DecodeError } from '../engines/schema/depth.ts';
import { EmbeddedError } from '../engines/schema/embedded.ts';
import { FoundPaths } from '../engines/schema/found-paths.ts';
import { asApiObject } from '../kinds/version-forms.ts';
import { invalidObject } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import type { Target } from '../registry/contract.ts';
import { groupKindOf } from '../registry/registry.ts';
import type { Complaints } from './field-validation.ts';

/**
 * Gives a decoded body the form its kind's schema has: types checked, unknown members dropped and
 * told, defaults filled in. The body itself may be changed. `fail` makes the 400 of a wrong type,
 * whose wording follows the `source` that upstream decodes from, a body's text unless given.
 */
export function shapeObject(
  target: Target,
  value: JsonObject,
  options: { complaints: Complaints; fail: (message: string) => Error; source?: DecodeSource },
): ApiObject {
  const { version } = target;
  const { complaints, fail, source } = options;
  try {
    if (version.decode !== undefined) {
      // Upstream drops nulls from what it decodes, and an apply's result it does not.
      complaints.unknownIn(version.decode(value, { keepsNulls: source === 'map' }));
      return asApiObject(value);
    }
    const unknown = new FoundPaths();
    const object = asApiObject(decodeTyped(version.schema)(value, unknown, source));
    complaints.unknownIn(unknown);
    version.defaults?.(object);
    return object;
  } catch (error) {
    if (error instanceof DecodeError) throw fail(error.message);
    if (!(error instanceof EmbeddedError)) throw error;
    // What comes of an apply was decoded before, and is judged.
    if (source !== 'map') throw fail(error.message);
    throw invalidObject(groupKindOf(target.def), target.name, [error.fieldError]);
  }
}
