import { orderedMapRank } from '@wheelhouse/machinery';
import type { Snapshot } from './window.ts';

/** Which keys a list or watch is about: all, a namespace's, or those of one name. */
export interface Scope {
  /** Empty: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string;
  readonly name?: string | undefined;
}

/**
 * The positions of the scope's entries in a snapshot, as narrow as the order of keys allows: one
 * name in all namespaces is still a walk over all of them.
 * @param start only keys from here on, relative to the namespace
 */
export function scopeRange(
  snapshot: Snapshot,
  options: { readonly scope: Scope; readonly namespaced: boolean; readonly start?: string },
): { from: number; to: number } {
  const { namespace, name } = options.scope;
  const prefix = namespace === '' ? '' : `${namespace}/`;
  const exact = name !== undefined && (namespace !== '' || !options.namespaced);
  const range = exact ? keyRange(snapshot, prefix + name) : prefixRange(snapshot, namespace);
  if (options.start === undefined) return range;
  return {
    from: Math.max(range.from, orderedMapRank(snapshot, prefix + options.start)),
    to: range.to,
  };
}

function keyRange(snapshot: Snapshot, key: string): { from: number; to: number } {
  return { from: orderedMapRank(snapshot, key), to: orderedMapRank(snapshot, `${key}\0`) };
}

function prefixRange(snapshot: Snapshot, namespace: string): { from: number; to: number } {
  if (namespace === '') return { from: 0, to: snapshot.size };
  // `0` is the character behind `/`: the first key that is no longer in the namespace.
  const from = orderedMapRank(snapshot, `${namespace}/`);
  return { from, to: orderedMapRank(snapshot, `${namespace}0`) };
}
