import { builtinKinds, loadOlderReleases, type ResourceDef } from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import type { Registry } from '../../registry/registry.ts';
import { encodedStore } from '../../registry/stored-encoding.ts';
import { storedVersions } from '../../registry/stored-version.ts';
import type { ServerConfig } from '../flags/config.ts';
import { rangeAllocation } from '../services/range-allocations.ts';
import type { OpenedStore } from './opened-store.ts';

/**
 * The store with objects in the encodings that the configuration names, above encryption, and in the
 * versions that are stored now.
 */
export async function encodedObjects<Opened extends OpenedStore & Pick<Registry, 'isStale'>>(
  opened: Opened,
  { config, kinds }: { readonly config: ServerConfig; readonly kinds: readonly ResourceDef[] },
): Promise<Opened & Pick<Registry, 'encodeAhead'>> {
  const isShared = config.store.type === 'etcd';
  const dialect = dialectOf(config.dialect);
  const { kindsOfAllReleases } = await loadOlderReleases();
  const everyRelease = () => kindsOfAllReleases(builtinKinds(dialect), dialect);
  const encoded = encodedStore({
    store: opened.store,
    dialect,
    encodings: {
      builtin: config.storedBuiltins ?? (isShared ? 'protobuf' : 'json'),
      custom: config.cborServed === true ? 'cbor' : 'json',
    },
    versions: storedVersions({ kinds: [...kinds, rangeAllocation(dialect)], everyRelease }),
    writers: isShared ? 'any' : 'this',
  });
  const isStale = async (key: string) =>
    (await opened.isStale?.(key)) === true || encoded.isStale(key);
  return { ...opened, store: encoded.store, isStale, encodeAhead: encoded.encodeAhead };
}
