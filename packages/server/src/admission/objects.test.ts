import type { ApiObject } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { createObjectReader, followed, onlyCollectorsFieldsDiffer } from './objects.ts';

const old: ApiObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'one',
    namespace: 'default',
    uid: '1',
    resourceVersion: '5',
    finalizers: ['orphan'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: '2' }],
    labels: { a: 'b' },
  },
  data: { key: 'value' },
};
const changed = (metadata: Partial<ApiObject['metadata']>, more: object = {}): ApiObject => ({
  ...old,
  ...more,
  metadata: { ...old.metadata, ...metadata },
});

describe('ADM-1: which updates only the garbage collector makes', () => {
  test.each<[string, ApiObject, boolean]>([
    ['no change', changed({}), true],
    ['no owners', changed({ ownerReferences: [] }), true],
    ['no finalizers', changed({ finalizers: [] }), true],
    ['another version', changed({ resourceVersion: '6', generation: 2 }), true],
    ['another label', changed({ labels: { a: 'c' } }), false],
    ['an annotation', changed({ annotations: { a: 'c' } }), false],
    ['other content', changed({}, { data: { key: 'other' } }), false],
    ['a new member', changed({}, { immutable: true }), false],
  ])('%s: %s', (_, object, expected) => {
    expect(onlyCollectorsFieldsDiffer(object, old)).toBe(expected);
  });
});

/** A clock on which the slice of a turn is always over, so that work pauses at each step. */
function impatient() {
  let reads = 0;
  let before = 0;
  const monotonic = () => {
    reads += 1;
    return reads * 10;
  };
  return {
    clock: { monotonic },
    /** The number of looks at the clock since the last call. */
    steps: () => {
      const count = reads - before;
      before = reads;
      return count;
    },
  };
}

describe('TRUST-2: objects that admission reads', () => {
  let server: TestApi;
  beforeEach(async () => {
    server = await openTestApi({ admission: { disabled: ['NamespaceLifecycle'] } });
  });
  afterEach(() => server.close());

  const create = (name: string, keys: number) => {
    const data = Object.fromEntries(Array.from({ length: keys }, (_, at) => [`key-${at}`, 'text']));
    const metadata = { name, namespace: 'default' };
    return server.create(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
      { resource: 'configmaps' },
    );
  };
  const keysOf = (object: ApiObject | undefined) => Object.keys(object?.['data'] ?? {}).length;

  test('are decoded in steps if they are large, and once', async () => {
    await create('large', 12_000);
    await create('small', 2);
    const { caches } = server.api.registry;
    const { clock, steps } = impatient();
    const { dialect, api } = server;
    const snapshot = () => api.catalogue.snapshot();
    const reader = createObjectReader({ dialect, caches, clock, snapshot });
    const get = (name: string) => reader.get('configmaps', { namespace: 'default', name });
    expect(keysOf(await get('small'))).toBe(2);
    expect(steps()).toBe(0);
    const large = await get('large');
    expect(keysOf(large)).toBe(12_000);
    expect(steps()).toBeGreaterThan(10);
    expect(await get('large')).toBe(large);
    expect(await reader.list('configmaps', 'default')).toContain(large);
    await create('other', 12_000);
    steps();
    const listed = await reader.list('configmaps', 'default');
    expect(listed.map(keysOf)).toEqual([12_000, 12_000, 2]);
    expect(steps()).toBeGreaterThan(10);
  });

  test('and that it follows are read in steps, including those that arrive meanwhile', async () => {
    await create('small', 2);
    const { caches } = server.api.registry;
    const { clock, steps } = impatient();
    const def = server.def('configmaps');
    function* read(object: ApiObject): Generator<void, readonly string[]> {
      for (const _ of Array.from({ length: keysOf(object) / 1_000 })) yield;
      return [`${object.metadata.name} ${keysOf(object)}`];
    }
    const source = followed({ caches, clock, def, read });
    await source.ready;
    expect(source.current()).toEqual(['small 2']);
    expect(steps()).toBe(0);
    await create('large', 12_000);
    const reading = source.current();
    expect(reading).toBeInstanceOf(Promise);
    expect(source.current()).toBe(reading);
    await create('larger', 13_000);
    const all = ['large 12000', 'larger 13000', 'small 2'];
    expect(await reading).toEqual(all);
    expect(source.current()).toEqual(all);
    expect(steps()).toBeGreaterThan(2 * 10 + 25);
    source.close();
  });
});
