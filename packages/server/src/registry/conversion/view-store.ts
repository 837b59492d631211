import { type ResourceDef, versionNamed } from '@wheelhouse/kinds';
import type { MaybePromise } from '@wheelhouse/machinery';
import { convertedStore, type Store, type StoredRecord } from '@wheelhouse/store';
import type { Entry, ResourceCache } from '../../watchcache/contract.ts';
import { withoutRevision } from '../../watchcache/entry.ts';
import { entryOf } from '../object-codec.ts';
import { entriesIn } from './views.ts';

/**
 * The store as the cache of one version's watches reads it: all objects of a kind in that version.
 * What the kind's own cache has, and others have had converted, is not converted again.
 */
export function viewStore(
  view: ResourceDef,
  options: { readonly store: Store; readonly base: ResourceCache },
): Store {
  const { store, base } = options;
  const def = view.viewOf;
  const version = def === undefined ? undefined : versionNamed(def, view.storage.apiVersion);
  if (def === undefined || version === undefined) throw new Error(`${view.resource} is no view`);
  const heldBy = (record: StoredRecord): Entry => {
    const known = base.peek(record.key.slice(def.storage.prefix.length));
    const held = known?.revision === record.modRevision ? known : entryOf(def, record);
    if (held === undefined) throw new Error(`${record.key} is no record`);
    return held;
  };
  return convertedStore(store, (records): MaybePromise<readonly Buffer[]> => {
    const shown = entriesIn(def, version, records.map(heldBy));
    return shown instanceof Promise ? shown.then(valuesOf) : valuesOf(shown);
  });
}

const valuesOf = (entries: readonly Entry[]) => entries.map(({ json }) => withoutRevision(json));
