import type { ResourceDef } from '../catalogue/resource-def.ts';
import { dialectOf } from '../dialect.ts';
import type { Registry } from '../registry/registry.ts';
import { encodedStore } from '../registry/stored-encoding.ts';
import type { ServerConfig } from './config.ts';
import type { OpenedStore } from './opened-store.ts';
import { rangeKeys } from './range-allocations.ts';

/** The store with objects in the encodings that the configuration names, above encryption. */
export function encodedObjects<Opened extends OpenedStore & Pick<Registry, 'isStale'>>(
  opened: Opened,
  { config, kinds }: { readonly config: ServerConfig; readonly kinds: readonly ResourceDef[] },
): Opened {
  const isShared = config.store.type === 'etcd';
  const encoded = encodedStore({
    store: opened.store,
    dialect: dialectOf(config.dialect),
    encodings: {
      builtin: config.storedBuiltins ?? (isShared ? 'protobuf' : 'json'),
      custom: config.cborServed === true ? 'cbor' : 'json',
    },
    isBuiltin: builtinKeys(kinds),
  });
  const isStale = async (key: string) =>
    (await opened.isStale?.(key)) === true || encoded.isStale(key);
  return { ...opened, store: encoded.store, isStale };
}

/** Tells keys of built-in kinds from those of custom kinds, which have their group in them. */
function builtinKeys(kinds: readonly ResourceDef[]): (key: string) => boolean {
  const prefixes = new Set([rangeKeys, ...kinds.map(({ storage }) => storage.prefix)]);
  return (key) => {
    const first = key.indexOf('/', '/registry/'.length) + 1;
    if (prefixes.has(key.slice(0, first))) return true;
    return prefixes.has(key.slice(0, key.indexOf('/', first) + 1));
  };
}
