import { resolved, type Schema } from './schema.ts';

/**
 * How changes to a value combine (MF-6): a `scalar` and an `atomic` value only as a whole; a
 * `struct` and a `map` per member; a `set` per item; a `list-map` per item found by its keys.
 */
export type Topology =
  | { readonly kind: 'scalar' | 'atomic' | 'struct' | 'set' }
  | { readonly kind: 'map'; readonly element: Schema }
  | { readonly kind: 'list-map'; readonly keys: readonly string[] };

const scalar: Topology = { kind: 'scalar' };
const atomic: Topology = { kind: 'atomic' };
const struct: Topology = { kind: 'struct' };
const set: Topology = { kind: 'set' };

/**
 * The topology of values of a schema. Lists without a type are atomic; objects without one are
 * granular. Values of unknown structure (`preserveUnknownFields` alone) are `atomic`: a caller that
 * merges untyped values by what they are decides so itself.
 */
export function topologyOf(schema: Schema): Topology {
  const at = resolved(schema);
  if (at.alternatives !== undefined) return atomic;
  if (at.type === 'array') return listTopology(at);
  if (at.type === 'object' || at.properties !== undefined) {
    if (at.mapType === 'atomic') return atomic;
    if (at.additionalProperties === undefined) return struct;
    return { kind: 'map', element: at.additionalProperties };
  }
  if (at.type === undefined && at.intOrString !== true) return atomic;
  return scalar;
}

function listTopology(schema: Schema): Topology {
  if (schema.listType === 'set') return set;
  if (schema.listType === 'map') return { kind: 'list-map', keys: schema.listMapKeys ?? [] };
  return atomic;
}

/** Whether values of a schema change only as a whole (scalars included). */
export function isAtomic(schema: Schema): boolean {
  const { kind } = topologyOf(schema);
  return kind === 'scalar' || kind === 'atomic';
}
