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
  const entryFor = (record: StoredRecord): Entry => {
    const cached = base.peek(record.key.slice(def.storage.prefix.length));
    const entry = cached?.revision === record.modRevision ? cached : entryOf(def, record);
    if (entry === undefined) throw new Error(`${record.key} is no record`);
    return entry;
  };
  return convertedStore(store, (records): MaybePromise<readonly Buffer[]> => {
    const shown = entriesIn(def, version, records.map(entryFor));
    return shown instanceof Promise ? shown.then(valuesOf) : valuesOf(shown);
  });
}

const valuesOf = (entries: readonly Entry[]) => entries.map(({ json }) => withoutRevision(json));
