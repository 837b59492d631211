import { schemaOf } from '@wheelhouse/kinds';
import { type ApiObject, asApiObject, type JsonObject } from '@wheelhouse/machinery';
import { decodeTyped, type Schema } from '@wheelhouse/schema';
import type { KindFact } from './facts.ts';
import type { Served } from './versioned.ts';

/**
 * An object that was changed from outside, in the form its kind has: types checked, members nobody
 * knows dropped, defaults filled in. The object itself may be used up. Throws DecodeError.
 */
export function reshaped(
  object: JsonObject,
  { served, kind }: { readonly served: Served; readonly kind: KindFact },
): ApiObject {
  const { def, version } = served;
  if (kind.kind !== def.kind) {
    return asApiObject(decodeTyped(schemaFor({ served, kind }))(object));
  }
  if (version.decode !== undefined) {
    version.decode(object);
    return asApiObject(object);
  }
  const made = asApiObject(decodeTyped(version.schema)(object));
  version.defaults?.(made);
  return made;
}

/** The schema of an object, or of what a sub-resource takes in its place. */
export function schemaFor(at: { readonly served: Served; readonly kind: KindFact }): Schema {
  const { group, version, kind } = at.kind;
  if (kind === at.served.def.kind) return at.served.version.schema;
  const stem = group === '' ? 'core' : (group.split('.', 1)[0] ?? group);
  return schemaOf(`${stem}.${version}.${kind}`);
}
