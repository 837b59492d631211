import { type ApiObject, isObject, runInOnePiece, silentLogger } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import { remainingConditions, startNamespaceDeletion } from './namespaces.ts';
import { createObjectWriter, type ObjectWriter } from './tools.ts';

let server: TestApi;
let writer: ObjectWriter;
let controller: { close(): Promise<void> };
/** How many of the controller's next deletions of ConfigMaps fail. */
let refusals = 0;
/** Called before each of the controller's deletions of ConfigMaps. */
let beforeRemoval: () => Promise<void>;

beforeEach(async () => {
  server = await openTestApi({ admission: { disabled: ['NamespaceLifecycle'] } });
  const { api, clock, dialect } = server;
  writer = createObjectWriter({ registry: api.registry, controller: 'test' });
  refusals = 0;
  beforeRemoval = async () => {};
  const refusing: ObjectWriter = {
    ...writer,
    async remove(at, options) {
      if (at.def.resource === 'configmaps') {
        if (refusals-- > 0) throw new Error('the disk fails');
        await beforeRemoval();
      }
      return writer.remove(at, options);
    },
  };
  controller = startNamespaceDeletion({
    catalogue: api.catalogue,
    caches: api.registry.caches,
    writer: refusing,
    clock,
    logger: silentLogger,
    namespaces: server.def('namespaces'),
    finalizer: dialect.productName,
  });
  await createNamespace();
});
afterEach(async () => {
  await controller.close();
  await server.close();
});

async function read(
  resource: string,
  name: string,
  namespace = '',
): Promise<ApiObject | undefined> {
  const cache = server.api.registry.caches.of(server.def(resource));
  const entry = await cache.get(objectKey(namespace, name), undefined);
  return entry === undefined ? undefined : decodeEntry(entry);
}

const createNamespace = () =>
  server.create(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } },
    { resource: 'namespaces' },
  );
const createSecret = (name: string) =>
  server.create(
    { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'team' } },
    { resource: 'secrets' },
  );
const createMap = (name: string, finalizers: string[] = []) =>
  server.create(
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'team', finalizers } },
    { resource: 'configmaps' },
  );
const removeNamespace = () =>
  writer.remove({ def: server.def('namespaces'), namespace: '', name: 'team' });
const exists = (resource: string, name: string, namespace?: string) => async () =>
  (await read(resource, name, namespace)) !== undefined;

/** The status and message of a condition of the namespace. */
async function condition(type: string): Promise<readonly unknown[]> {
  const status = (await read('namespaces', 'team'))?.['status'];
  const conditions = isObject(status) ? status['conditions'] : undefined;
  const list = Array.isArray(conditions) ? conditions.filter(isObject) : [];
  const found = list.find((entry) => entry['type'] === type);
  return [found?.['status'], found?.['message'], found?.['lastTransitionTime']];
}

describe('DEL-4: a deleted namespace', () => {
  test('is removed when its content is gone', async () => {
    await createMap('one');
    await createMap('two');
    await removeNamespace();
    await expect.poll(exists('namespaces', 'team')).toBe(false);
    expect(await exists('configmaps', 'one', 'team')()).toBe(false);
  });

  test('reports remaining finalizers, and is removed once they are gone', async () => {
    await createMap('held', ['example.com/hold']);
    await removeNamespace();
    const remaining = async () => (await condition('NamespaceContentRemaining')).slice(0, 2);
    const message = 'Some resources are remaining: configmaps. has 1 resource instances';
    await expect.poll(remaining).toEqual(['True', message]);
    expect((await condition('NamespaceFinalizersRemaining')).slice(0, 2)).toEqual([
      'True',
      'Some content in the namespace has finalizers remaining: ' +
        'example.com/hold in 1 resource instances',
    ]);
    const at = { def: server.def('configmaps'), namespace: 'team', name: 'held' };
    await writer.change(at, (object) => {
      delete object.metadata.finalizers;
      return object;
    });
    await expect
      .poll(() => {
        server.clock.advance(1000);
        return exists('namespaces', 'team')();
      })
      .toBe(false);
  });

  test('keeps the transition times of its conditions', async () => {
    await createMap('held', ['example.com/hold']);
    await removeNamespace();
    await expect.poll(() => condition('NamespaceContentRemaining')).toContain('True');
    const before = await condition('NamespaceContentRemaining');
    const revision = async () => (await read('namespaces', 'team'))?.metadata.resourceVersion;
    await createMap('another', ['example.com/hold']);
    const first = await revision();
    await expect
      .poll(() => {
        server.clock.advance(1000);
        return revision();
      })
      .not.toBe(first);
    const after = await condition('NamespaceContentRemaining');
    expect(after[1]).toContain('has 2 resource instances');
    expect(after[2]).toBe(before[2]);
  });

  test('is emptied of objects that a late create stored', async () => {
    await removeNamespace();
    await expect.poll(exists('namespaces', 'team')).toBe(false);
    await createMap('late');
    await expect
      .poll(() => {
        server.clock.advance(10_000);
        return exists('configmaps', 'late', 'team')();
      })
      .toBe(false);
  });

  test('is emptied again if the removal of a late object fails', async () => {
    await removeNamespace();
    await expect.poll(exists('namespaces', 'team')).toBe(false);
    await createMap('late');
    refusals = 5;
    await expect
      .poll(() => {
        server.clock.advance(10_000);
        return exists('configmaps', 'late', 'team')();
      })
      .toBe(false);
    expect(refusals).toBeLessThanOrEqual(0);
  });

  test('keeps the objects of a successor that is created meanwhile', async () => {
    await removeNamespace();
    await expect.poll(exists('namespaces', 'team')).toBe(false);
    await createMap('late');
    beforeRemoval = async () => {
      await createNamespace();
      await createSecret('new');
    };
    await expect
      .poll(() => {
        server.clock.advance(10_000);
        return exists('configmaps', 'late', 'team')();
      })
      .toBe(false);
    await controller.close();
    expect(await exists('namespaces', 'team')()).toBe(true);
    expect(await exists('secrets', 'new', 'team')()).toBe(true);
  });

  test('keeps a successor of a late object', async () => {
    await removeNamespace();
    await expect.poll(exists('namespaces', 'team')).toBe(false);
    await createMap('late');
    beforeRemoval = async () => {
      beforeRemoval = async () => {};
      await writer.remove({ def: server.def('configmaps'), namespace: 'team', name: 'late' });
      await createNamespace();
      await createMap('late');
    };
    await expect
      .poll(() => {
        server.clock.advance(10_000);
        return exists('namespaces', 'team')();
      })
      .toBe(true);
    await controller.close();
    expect(await exists('configmaps', 'late', 'team')()).toBe(true);
  });
});

test('TRUST-2: thousands of finalizers are reported in steps, sorted by name', () => {
  const names = Array.from({ length: 20_000 }, (_, at) => `a.io/f${(at * 7) % 20_000}`);
  const remaining = {
    count: 1,
    resources: new Map([['configmaps.', 1]]),
    finalizers: new Map(names.map((name) => [name, 1])),
    failures: [],
  };
  expect([...remainingConditions(remaining)].length).toBeGreaterThan(names.length / 250);
  const [condition] = runInOnePiece(remainingConditions(remaining)).slice(-1);
  const shown = names.sort().map((name) => `${name} in 1 resource instances`);
  expect(condition?.['message']).toBe(
    `Some content in the namespace has finalizers remaining: ${shown.join(', ')}`,
  );
});
