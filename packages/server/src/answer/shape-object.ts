import { asApiObject } from '@wheelhouse/kinds';
import { type ApiObject, invalidObject, type JsonObject } from '@wheelhouse/machinery';
import {
  DecodeError,
  type DecodeSource,
  decodeTyped,
  EmbeddedError,
  FoundPaths,
} from '@wheelhouse/schema';
import type { Complaints } from '../endpoints/body/field-validation.ts';
import type { Target } from '../registry/contract.ts';
import { groupKindOf } from '../registry/registry.ts';

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
