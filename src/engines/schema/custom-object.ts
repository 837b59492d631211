import type { JsonObject } from '../../base/json.ts';
import { decodeTyped } from './decode-typed.ts';
import { applyDefaults } from './defaults.ts';
import { coerceEmbedded, type EmbeddedRules } from './embedded.ts';
import { dropNulls, prune } from './prune.ts';
import type { Schema } from './schema.ts';

/**
 * Makes of a body what the server keeps of a custom object, in place, in upstream's order: defaults,
 * then typed metadata, pruning, nulls dropped, embedded metadata. Gives the paths of the members
 * that were not known. Throws `DecodeError` or `EmbeddedError` for metadata of the wrong type.
 */
export function decodeCustom(
  schema: Schema,
  rules: EmbeddedRules,
): (object: JsonObject) => string[] {
  const fill = applyDefaults(schema);
  const pruneObject = prune(schema);
  const drop = dropNulls(schema);
  const metadataOf = decodeTyped(rules.objectMeta);
  return (object) => {
    fill(object);
    const unknown: string[] = [];
    const given = object['metadata'];
    const metadata =
      given === undefined
        ? undefined
        : metadataOf(given, (path) => unknown.push(`metadata.${path}`));
    unknown.push(...pruneObject(object));
    drop(object);
    unknown.push(...coerceEmbedded(schema, object, rules));
    if (metadata !== undefined) object['metadata'] = metadata;
    return unknown;
  };
}
