import { type ApiObject, silentLogger, systemClock } from '@wheelhouse/machinery';
import {
  createResourceCache,
  EntryHint,
  type EntryIndex,
  type ListResult,
} from '@wheelhouse/server/testing';
import { encodeContinue } from '@wheelhouse/store';
import { createMemoryStore } from '@wheelhouse/store/testing';

/**
 * Measures the watch cache alone, without sockets: `node --import tsx bench/watchcache.bench.ts`.
 */

const objects = 10_000;
const watchers = 1000;
const prefix = '/registry/widgets/';
const tokenVersion = 'meta.bench/v1';

function indexOf({ metadata }: ApiObject): EntryIndex {
  const { name = '', namespace = '', labels = {} } = metadata;
  return { name, namespace, uid: '', labels, fields: {}, ownerUids: [] };
}

function widget(i: number, value: number): ApiObject {
  const namespace = `ns-${i % 10}`;
  const metadata = { name: `widget-${i}`, namespace, labels: { team: `t${i % 5}` } };
  const spec = { value, filler: 'x'.repeat(1150) };
  return { apiVersion: 'bench/v1', kind: 'Widget', metadata, spec } as ApiObject;
}

const store = createMemoryStore();
const revisions = new Map<number, number>();

async function write(i: number, value: number): Promise<void> {
  const object = widget(i, value);
  const { namespace, name } = object.metadata;
  const result = await store.put({
    key: `${prefix}${namespace}/${name}`,
    value: Buffer.from(JSON.stringify(object)),
    expect: revisions.get(i) ?? 0,
    hint: new EntryHint(indexOf(object)),
  });
  if (!result.ok) throw new Error('lost a race with nobody');
  revisions.set(i, result.revision);
}

async function measure(name: string, times: number, work: () => unknown): Promise<number> {
  for (let i = 0; i < Math.min(times, 5); i++) await work();
  const start = systemClock.monotonic();
  for (let i = 0; i < times; i++) await work();
  const perRunUs = ((systemClock.monotonic() - start) * 1000) / times;
  process.stdout.write(`${name.padEnd(56)} ${perRunUs.toFixed(2).padStart(10)} us\n`);
  return perRunUs;
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

for (let i = 0; i < objects; i++) await write(i, 0);
const cache = createResourceCache({
  store,
  prefix,
  namespaced: true,
  clock: systemClock,
  logger: silentLogger,
  indexOf,
  groupResource: { group: 'bench', resource: 'widgets' },
  tokenVersion,
});
await cache.ready();

let bytes = 0;
function drain(list: ListResult): void {
  for (const piece of list.jsonPieces(0)) bytes += piece.length;
}
const all = {
  namespace: '',
  resourceVersion: undefined,
  resourceVersionMatch: undefined,
  limit: undefined,
  continueToken: undefined,
  filter: undefined,
};
const filter = (index: EntryIndex) => index.labels.team === 't1';
const start = 'ns-5/widget-5\0';
const continueToken = encodeContinue({ revision: objects, start }, tokenVersion);

await measure('get, newest', 200_000, () => cache.get('ns-7/widget-7', undefined));
await measure(`list ${objects}`, 500, async () => drain(await cache.list(all)));
await measure(`list ${objects} after a write`, 200, async () => {
  await write(77, 1);
  drain(await cache.list(all));
});
await measure('list one namespace', 500, async () =>
  drain(await cache.list({ ...all, namespace: 'ns-3' })),
);
await measure(`list ${objects}, a fifth passes the filter`, 50, async () =>
  drain(await cache.list({ ...all, filter })),
);
await measure('list chunk of 500 at an old revision', 500, async () =>
  drain(await cache.list({ ...all, limit: 500, continueToken })),
);

let received = 0;
const sink = {
  write: () => {
    received += 1;
    return true;
  },
  onDrain: () => {},
  end: () => {},
};
const encoder = {
  key: 'bench',
  frame: (type: string, entry: { json: Buffer }) =>
    Buffer.concat([Buffer.from(`{"type":"${type}","object":`), entry.json, Buffer.from('}\n')]),
  bookmark: () => Buffer.from('{}\n'),
};
const spec = {
  namespace: '',
  resourceVersion: undefined,
  filter: undefined,
  allowBookmarks: false,
  sendInitialEvents: false,
  timeoutMs: 600_000,
  encoder,
  sink,
};
await measure('write, no watchers', 2000, () => write(78, received));
for (let i = 0; i < watchers; i++) await cache.watch(spec);
const perEvent = await measure(`write and send to ${watchers} watchers`, 1000, async () => {
  await write(79, received);
  await nextTurn();
});
process.stdout.write(`  per watcher and event: ${(perEvent / watchers).toFixed(3)} us\n`);
for (let i = 0; i < objects; i++) {
  await cache.watch({ ...spec, namespace: `ns-${i % 10}`, name: `widget-${i}` });
}
await measure(`… beside ${objects} watches of single objects`, 1000, async () => {
  await write(79, received);
  await nextTurn();
});
await measure('10 writes in one turn', 200, async () => {
  const writes = [];
  for (let i = 100; i < 110; i++) writes.push(write(i, received));
  await Promise.all(writes);
  await nextTurn();
});
process.stdout.write(`${bytes} bytes listed, ${received} frames taken\n`);
cache.close();
await store.close();
