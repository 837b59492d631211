import { checkValuesSteps } from '@wheelhouse/codec';
import {
  type ApiObject,
  asApiObject,
  invalidObject,
  type JsonObject,
  type Pace,
} from '@wheelhouse/machinery';
import {
  DecodeError,
  type DecodeSource,
  decodeTyped,
  decodeTypedSteps,
  EmbeddedError,
  FoundPaths,
} from '@wheelhouse/schema';
import type { Complaints } from '../endpoints/body/field-validation.ts';
import type { Target } from '../registry/contract.ts';
import { groupKindOf } from '../registry/registry.ts';

/** Whether an object is so large that the work on it pauses between its steps. */
export type ObjectSize = 'small' | 'large';

/** The size of an object on which work has this pace. */
export const sizeAt = (pace: Pace | undefined): ObjectSize =>
  pace === undefined ? 'small' : 'large';

/**
 * Gives a decoded body the form its kind's schema has: types checked, unknown members dropped and
 * told, defaults filled in. The body itself may be changed. `fail` makes the 400 of a wrong type,
 * whose wording follows the `source` that upstream decodes from, a body's text unless given. Throws
 * TooManyValues for a large object that defaults or a patch make larger than a body may be.
 */
export function* shapeSteps(
  target: Target,
  value: JsonObject,
  options: {
    readonly complaints: Complaints;
    readonly fail: (message: string) => Error;
    readonly source?: DecodeSource;
    /** Large: the work on it pauses, and what comes of it is checked against the limits of bodies. */
    readonly size: ObjectSize;
  },
): Generator<void, ApiObject> {
  const { version } = target;
  const { complaints, fail, source } = options;
  try {
    if (version.decode !== undefined) {
      // Upstream drops nulls from what it decodes, and an apply's result it does not.
      complaints.unknownIn(version.decode(value, { keepsNulls: source === 'map' }));
      return yield* checked(asApiObject(value), options);
    }
    const unknown = new FoundPaths();
    const decoded =
      options.size === 'large'
        ? yield* decodeTypedSteps(version.schema, value, { unknown, source })
        : decodeTyped(version.schema)(value, unknown, source);
    const object = asApiObject(decoded);
    complaints.unknownIn(unknown);
    yield;
    version.defaults?.(object);
    yield;
    return yield* checked(object, options);
  } catch (error) {
    if (error instanceof DecodeError) throw fail(error.message);
    if (!(error instanceof EmbeddedError)) throw error;
    // What comes of an apply was decoded before, and is judged.
    if (source !== 'map') throw fail(error.message);
    throw invalidObject(groupKindOf(target.def), target.name, [error.fieldError]);
  }
}

/** The object, unless it holds more than a body may, the owners of its fields left aside. */
function* checked(
  object: ApiObject,
  { size }: { readonly size: ObjectSize },
): Generator<void, ApiObject> {
  if (size === 'large') yield* checkValuesSteps(object, object.metadata.managedFields);
  return object;
}
