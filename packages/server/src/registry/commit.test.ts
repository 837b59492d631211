import { type ApiObject, asApiObject, cloneJson, type JsonObject } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import type { Entry } from '../watchcache/entry.ts';
import { commitChange } from './commit.ts';
import type { Target } from './contract.ts';
import { decodeEntry } from './object-codec.ts';
import { type Registry, serverContext } from './registry.ts';

/** A clock on which each reading ends a slice of work, so that paced work pauses at each step. */
class CountingClock extends FakeClock {
  readings = 0;

  override monotonic(): number {
    this.readings += 1;
    return this.readings * 1000;
  }
}

let opened: TestApi;
let target: Target;
let current: Entry;
beforeAll(async () => {
  opened = await openTestApi({
    dialect: 'kubernetes',
    admission: { disabled: ['NamespaceLifecycle'] },
  });
  const data = Object.fromEntries(Array.from({ length: 8_000 }, (_, key) => [`k${key}`, 'value']));
  const metadata = { name: 'a', namespace: 'default' };
  const object: ApiObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  await opened.create(object, { resource: 'configmaps' });
  const def = opened.def('configmaps');
  target = { def, version: def.versions[0]!, namespace: 'default', name: 'a', subresource: '' };
  const found = await opened.api.registry.caches.of(def).get('default/a', undefined);
  if (found === undefined) throw new Error('the object is not stored');
  current = found;
});
afterAll(() => opened.close());

/** Commits a change of the object's data, or none, after reading it as `entry`. */
function commit(registry: Registry, entry: Entry, change: JsonObject, at: Target = target) {
  const old = decodeEntry(current);
  const stored = asApiObject({ ...cloneJson(old), ...change });
  const context = serverContext;
  return commitChange(registry, {
    target: at,
    context,
    owners: 'needed',
    current: entry,
    stored,
    old,
    pace: undefined,
  });
}

const stale = (): Entry => ({ ...current, revision: current.revision - 1 });

test('TRUST-2: a writer that loses a race continues with the cached entry', async () => {
  const outcome = await commit(opened.api.registry, stale(), { data: {} });
  expect(outcome).toMatchObject({ type: 'lost' });
  expect(outcome.type === 'lost' && outcome.current).toBe(current);
});

test('TRUST-2: a large object that won a race and is not cached is decoded in steps', async () => {
  const { registry } = opened.api;
  const clock = new CountingClock();
  const cache = { ...registry.caches.of(target.def), peek: () => undefined };
  const caches = { ...registry.caches, of: () => cache };
  const outcome = await commit({ ...registry, caches, clock }, stale(), { data: {} });
  expect(outcome.type === 'lost' && outcome.current?.json.equals(current.json)).toBe(true);
  expect(clock.readings).toBeGreaterThan(20);
});

test('TRUST-2: the stored form of a large unchanged object is compared in steps', async () => {
  const { def } = target;
  const custom = { ...def, behavior: { ...def.behavior, refreshesStored: true } };
  const clock = new CountingClock();
  const registry = { ...opened.api.registry, clock };
  const outcome = await commit(registry, current, {}, { ...target, def: custom });
  expect(outcome.type).toBe('written');
  expect(clock.readings).toBeGreaterThan(40);
});
