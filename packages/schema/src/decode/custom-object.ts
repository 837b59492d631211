import type { JsonObject } from '@wheelhouse/machinery';
import { FoundPaths } from '../found-paths.ts';
import type { Schema } from '../schema.ts';
import { decodeTyped } from './decode-typed.ts';
import { applyDefaults } from './defaults.ts';
import { coerceEmbedded, type EmbeddedRules, wellTyped } from './embedded.ts';
import { dropNulls, dropUntypedNulls, prune } from './prune.ts';

/** What makes of an object in place what the server keeps of it, and tells which members it drops. */
export type CustomDecoder = (object: JsonObject, options?: CustomDecoding) => FoundPaths;

export interface CustomDecoding {
  /** Leaves nulls for validation to judge, where it does not take them for values of any type. */
  readonly keepsNulls?: boolean;
  /** Drops members of metadata that have the wrong type, as of what is stored, and does not throw. */
  readonly dropsMistyped?: boolean;
}

/**
 * Makes of a body what the server keeps of a custom object, in place, in upstream's order: defaults,
 * then typed metadata, pruning, nulls dropped, embedded metadata. Gives the paths of the members
 * that were not known. Throws `DecodeError` or `EmbeddedError` for metadata of the wrong type.
 */
export function decodeCustom(schema: Schema, rules: EmbeddedRules): CustomDecoder {
  let fill: ((object: JsonObject) => void) | undefined;
  const shape = pruneCustom(schema, rules);
  return (object, options) => {
    fill ??= applyDefaults(schema);
    fill(object);
    return shape(object, options);
  };
}

/** The same for an object that has its defaults: only drops what its schema does not know. */
export function pruneCustom(schema: Schema, rules: EmbeddedRules): CustomDecoder {
  // Compiled by who first needs it: definitions are many and large, and most have few objects.
  let compiled: ReturnType<typeof compilePruning> | undefined;
  return (object, { keepsNulls = false, dropsMistyped = false } = {}) => {
    compiled ??= compilePruning(schema, rules);
    const { pruneObject, drop, dropUntyped, metadataOf } = compiled;
    const unknown = new FoundPaths();
    const metadataValue = object['metadata'];
    const ofMetadata = new FoundPaths();
    const decode = dropsMistyped ? wellTyped(metadataOf) : metadataOf;
    const metadata = metadataValue === undefined ? undefined : decode(metadataValue, ofMetadata);
    unknown.addUnder('metadata', ofMetadata);
    unknown.addAll(pruneObject(object));
    if (keepsNulls) dropUntyped(object);
    else drop(object);
    unknown.addAll(coerceEmbedded(schema, object, rules, { dropsMistyped }));
    if (metadata !== undefined) object['metadata'] = metadata;
    return unknown;
  };
}

const compilePruning = (schema: Schema, rules: EmbeddedRules) => ({
  pruneObject: prune(schema),
  drop: dropNulls(schema),
  dropUntyped: dropUntypedNulls(schema),
  metadataOf: decodeTyped(rules.objectMeta),
});
