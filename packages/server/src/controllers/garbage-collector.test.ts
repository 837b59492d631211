import { type ApiObject, type OwnerReference, silentLogger } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import type { ResourceCache } from '../watchcache/contract.ts';
import { startGarbageCollector } from './garbage-collector.ts';
import { createObjectWriter, type ObjectWriter } from './tools.ts';

let server: TestApi;
let writer: ObjectWriter;
let collector: { close(): Promise<void> };
let options: Parameters<typeof startGarbageCollector>[0];

beforeEach(async () => {
  server = await openTestApi({ admission: { disabled: ['NamespaceLifecycle'] } });
  const { api, clock } = server;
  writer = createObjectWriter({ registry: api.registry, controller: 'test' });
  const { caches } = api.registry;
  options = { catalogue: api.catalogue, caches, writer, clock, logger: silentLogger };
  collector = startGarbageCollector(options);
});
afterEach(async () => {
  await collector.close();
  await server.close();
});

/** An object as it is stored now. */
async function read(
  name: string,
  namespace = 'default',
  resource = 'configmaps',
): Promise<ApiObject | undefined> {
  const cache = server.api.registry.caches.of(server.def(resource));
  const entry = await cache.get(objectKey(namespace, name), undefined);
  return entry === undefined ? undefined : decodeEntry(entry);
}

async function create(
  name: string,
  metadata: Partial<ApiObject['metadata']> = {},
): Promise<OwnerReference> {
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', ...metadata },
  };
  await server.create(object, { resource: 'configmaps' });
  const uid = (await read(name, metadata.namespace))?.metadata.uid ?? '';
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid };
}

const ownedBy = (...ownerReferences: OwnerReference[]) => ({ ownerReferences });
const remove = (name: string, propagationPolicy: 'Background' | 'Foreground' | 'Orphan') =>
  writer.remove(
    { def: server.def('configmaps'), namespace: 'default', name },
    { propagationPolicy },
  );
const exists = (name: string) => async () => (await read(name)) !== undefined;
const owners = (name: string) => async () =>
  (await read(name))?.metadata.ownerReferences?.map((ownerReference) => ownerReference.name) ?? [];

/** A cache whose lists wait. */
function slowCache(cache: ResourceCache, until: Promise<void>): ResourceCache {
  return {
    ready: () => cache.ready(),
    peek: (key) => cache.peek(key),
    count: () => cache.count(),
    get: (key, resourceVersion) => cache.get(key, resourceVersion),
    async list(request) {
      await until;
      return cache.list(request);
    },
    watch: (spec) => cache.watch(spec),
    subscribe: (listener) => cache.subscribe(listener),
    trimSteps: () => cache.trimSteps(),
    close: () => cache.close(),
  };
}

/** Advances the clock while waiting for a condition, because retries wait for the clock. */
const passing =
  <T>(look: () => Promise<T>) =>
  () => {
    server.clock.advance(100);
    return look();
  };

describe('DEL-5: the garbage collector', () => {
  test('removes the dependents of a missing owner, recursively', async () => {
    const top = await create('top');
    const middle = await create('middle', ownedBy(top));
    await create('bottom', ownedBy(middle));
    await remove('top', 'Background');
    await expect.poll(exists('middle')).toBe(false);
    await expect.poll(exists('bottom')).toBe(false);
  });

  test('keeps an object with another owner and drops the reference', async () => {
    const [one, two] = [await create('one'), await create('two')];
    await create('shared', ownedBy(one, two));
    await remove('one', 'Background');
    await expect.poll(owners('shared')).toEqual(['two']);
  });

  test('drops thousands of references to missing owners', async () => {
    const present = await create('present');
    const missing = Array.from({ length: 2_000 }, (_, index) => ({
      ...present,
      name: `missing-${index}`,
      uid: `uid-${index}`,
    }));
    await create('shared', ownedBy(...missing, present));
    await expect.poll(owners('shared')).toEqual(['present']);
  });

  test('treats an owner with another uid or namespace as missing', async () => {
    const far = await create('far', { namespace: 'other' });
    const old = { ...(await create('again')), uid: 'of-the-one-before' };
    await create('of-far', ownedBy(far));
    await create('of-old', ownedBy(old));
    await expect.poll(exists('of-far')).toBe(false);
    await expect.poll(exists('of-old')).toBe(false);
  });

  test('keeps objects with an owner of an unknown kind', async () => {
    const [one, gone] = [await create('one'), await create('gone')];
    const unknown = { apiVersion: 'example.com/v1', kind: 'Tab', name: 'tab', uid: '1' };
    await create('of-unknown', ownedBy(unknown, gone));
    await create('of-known', ownedBy(one, gone));
    await remove('gone', 'Background');
    // Both are processed when `gone` disappears, in the order of their creation.
    await expect.poll(owners('of-known')).toEqual(['one']);
    expect(await owners('of-unknown')()).toEqual(['tab', 'gone']);
  });

  test('removes the references to an orphaning owner before it removes the owner', async () => {
    const top = await create('top');
    await create('left', ownedBy(top));
    await remove('top', 'Orphan');
    await expect.poll(passing(exists('top'))).toBe(false);
    expect(await owners('left')()).toEqual([]);
  });

  test('keeps a foreground owner until its blocking dependents are gone', async () => {
    const top = await create('top');
    const finalizers = ['example.com/hold'];
    const blocking = ownedBy({ ...top, blockOwnerDeletion: true });
    await create('held', { ...blocking, finalizers });
    await remove('top', 'Foreground');
    const isDeleting = async () => (await read('held'))?.metadata.deletionTimestamp !== undefined;
    await expect.poll(passing(isDeleting)).toBe(true);
    expect(await exists('top')()).toBe(true);
    const at = { def: server.def('configmaps'), namespace: 'default', name: 'held' };
    await writer.change(at, (object) => {
      delete object.metadata.finalizers;
      return object;
    });
    await expect.poll(passing(exists('top'))).toBe(false);
  });

  test('does not wait for dependents that do not block', async () => {
    const top = await create('top');
    await create('held', { ...ownedBy(top), finalizers: ['example.com/hold'] });
    await remove('top', 'Foreground');
    await expect.poll(passing(exists('top'))).toBe(false);
    expect((await read('held'))?.metadata.deletionTimestamp).toBeDefined();
  });

  test('orphans dependents of a kind that is listed last', async () => {
    await collector.close();
    const top = await create('top');
    const metadata = { name: 'left', namespace: 'default', ...ownedBy(top) };
    await server.create({ apiVersion: 'v1', kind: 'Secret', metadata }, { resource: 'secrets' });
    await remove('top', 'Orphan');
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const of: typeof options.caches.of = (def) => {
      const cache = options.caches.of(def);
      return def.resource === 'secrets' ? slowCache(cache, released) : cache;
    };
    collector = startGarbageCollector({ ...options, caches: { ...options.caches, of } });
    // Time in which a collector that does not wait would remove `top`.
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    expect(await exists('top')()).toBe(true);
    release();
    await expect.poll(passing(exists('top'))).toBe(false);
    const left = await read('left', 'default', 'secrets');
    expect(left).toBeDefined();
    expect(left?.metadata.ownerReferences).toBeUndefined();
  });

  /** A collector whose catalogue omits Secrets while `isHidden`. */
  function hideSecrets() {
    const state = { isHidden: false };
    const snapshot = () => {
      const whole = options.catalogue.snapshot();
      const defs = whole.defs.filter(({ resource }) => resource !== 'secrets');
      return state.isHidden ? { ...whole, defs } : whole;
    };
    const { subscribe } = options.catalogue;
    collector = startGarbageCollector({ ...options, catalogue: { snapshot, subscribe } });
    return state;
  }

  async function createSecret(): Promise<OwnerReference> {
    const metadata = { name: 'secret', namespace: 'default' };
    await server.create({ apiVersion: 'v1', kind: 'Secret', metadata }, { resource: 'secrets' });
    const { uid = '' } = (await read('secret', 'default', 'secrets'))?.metadata ?? {};
    return { apiVersion: 'v1', kind: 'Secret', name: 'secret', uid };
  }
  const removeSecret = () =>
    writer.remove({ def: server.def('secrets'), namespace: 'default', name: 'secret' });

  test('removes the dependents of a removed owner whose kind is removed at once', async () => {
    await collector.close();
    const state = hideSecrets();
    const owner = await createSecret();
    await create('owned', ownedBy(owner));
    state.isHidden = true;
    await create('of-another', ownedBy({ ...owner, name: 'another' }));
    await removeSecret();
    await expect.poll(exists('owned')).toBe(false);
    expect(await exists('of-another')()).toBe(true);
  });

  test('retries objects with an owner of an unknown kind', async () => {
    await collector.close();
    const state = hideSecrets();
    state.isHidden = true;
    const gone = await create('gone');
    const one = await create('one');
    await remove('gone', 'Background');
    await create('of-unknown', ownedBy({ ...gone, kind: 'Secret' }));
    await create('of-known', ownedBy(one, gone));
    await expect.poll(owners('of-known')).toEqual(['one']);
    expect(await exists('of-unknown')()).toBe(true);
    state.isHidden = false;
    await expect.poll(passing(exists('of-unknown'))).toBe(false);
  });
});
