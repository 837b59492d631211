import { type Random, randomOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { configMap, connect, freshNamespace, type TestWatch } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Writes of each writer, and lost connections of each follower, after which a run may end. */
const [writesMin, disconnectsMin] = [50, 50];
/** The longest run in milliseconds, for a machine that is too busy for these numbers. */
const runMsMax = 40_000;
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

const directory = temporaryFolder();
const server = await withServer({ store: { type: 'embedded', directory } });

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Creates, changes, and removes its own objects; each write increments the object's `step`. */
async function write(options: { url: string; id: number; random: Random; until: () => boolean }) {
  const { url, id, random, until } = options;
  const steps = new Map<string, number>();
  const present = new Set<string>();
  let writes = 0;
  while (writes < writesMin || !until()) {
    const name = `w${id}-${random.below(8)}`;
    const isThere = present.has(name);
    if (isThere && random.chance(0.25)) {
      expect((await server.remove(`${url}/${name}`)).status).toBe(200);
      present.delete(name);
    } else {
      const step = (steps.get(name) ?? 0) + 1;
      const body = configMap(name, { data: { step: String(step) } });
      const answer = isThere
        ? await server.put(`${url}/${name}`, body)
        : await server.post(url, body);
      expect(answer.status).toBe(isThere ? 200 : 201);
      steps.set(name, step);
      present.add(name);
    }
    writes += 1;
  }
  return writes;
}

interface Follower {
  /** The step of each object that it believes to exist, by name. */
  readonly state: Map<string, number>;
  readonly faults: string[];
  version: string;
  events: number;
  disconnects: number;
}

type Calls = ReturnType<typeof connect>['calls'];

/** Lists in chunks, like a client library. */
async function listAll(calls: Calls, url: string, follower: Follower): Promise<void> {
  let token = '';
  do {
    const more = token === '' ? '' : `&continue=${encodeURIComponent(token)}`;
    const { status, body } = await calls.get(`${url}?limit=7${more}`);
    expect(status).toBe(200);
    for (const { metadata, data } of body.items) {
      follower.state.set(metadata.name, Number(data.step));
    }
    follower.version = body.metadata.resourceVersion;
    token = body.metadata.continue ?? '';
  } while (token !== '');
}

/** Checks one event against its predecessors: nothing missed, nothing twice, in order. */
function take(follower: Follower, lastSteps: Map<string, number>, event: Frame): void {
  const { type, object } = event;
  follower.events += 1;
  const { name, resourceVersion } = object.metadata;
  if (type === 'ERROR') {
    follower.faults.push(`ERROR ${JSON.stringify(object)}`);
    return;
  }
  if (BigInt(resourceVersion) <= BigInt(follower.version)) {
    follower.faults.push(`${type} ${name} at ${resourceVersion} after ${follower.version}`);
  }
  follower.version = resourceVersion;
  if (type === 'BOOKMARK') return;
  const step = Number(object.data.step);
  const before = follower.state.get(name);
  const expected = type === 'DELETED' ? before : (before ?? lastSteps.get(name));
  const known = lastSteps.has(name) || before !== undefined;
  if ((before === undefined) !== (type === 'ADDED')) {
    follower.faults.push(
      `${type} ${name}, but it was ${before === undefined ? 'absent' : 'there'}`,
    );
  }
  if (known && expected !== undefined && step !== expected + (type === 'DELETED' ? 0 : 1)) {
    follower.faults.push(`${type} ${name} step ${step} after ${expected}`);
  }
  lastSteps.set(name, step);
  if (type === 'DELETED') follower.state.delete(name);
  else follower.state.set(name, step);
}

type Frame = TestWatch['events'][number];

/** Lists once, then watches continuously, losing its connection at random moments. */
async function follow(options: {
  url: string;
  random: Random;
  follower: Follower;
  until: () => boolean;
}): Promise<void> {
  const { url, random, follower, until } = options;
  const lastSteps = new Map<string, number>();
  let client = connect(server.url);
  await listAll(client.calls, url, follower);
  while (!until()) {
    const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${follower.version}`;
    const watch = await client.calls.watch(`${url}?${query}`);
    expect(watch.status).toBe(200);
    await pause(random.fraction() * 60);
    if (random.chance(0.5)) watch.close();
    else {
      client.close();
      client = connect(server.url);
    }
    // Events that arrived before the cut count; the others are requested again.
    for (const event of watch.events) take(follower, lastSteps, event);
    follower.disconnects += 1;
  }
  client.close();
}

test(`WATCH-10: list plus watch never misses a change (SEED=${seed})`, async () => {
  const namespace = await freshNamespace(server);
  const url = `/api/v1/namespaces/${namespace}/configmaps`;
  const end = performance.now() + runMsMax;
  let newest: string | undefined;
  const followers: Follower[] = Array.from({ length: 6 }, () => ({
    state: new Map(),
    faults: [],
    version: '0',
    events: 0,
    disconnects: 0,
  }));
  const following = followers.map((follower, i) =>
    follow({
      url,
      random: randomOf(seed + 100 + i),
      follower,
      until: () =>
        (newest !== undefined && BigInt(follower.version) >= BigInt(newest)) ||
        performance.now() > end + 10_000,
    }),
  );
  const until = () =>
    performance.now() > end || followers.every(({ disconnects }) => disconnects >= disconnectsMin);
  const writes = await Promise.all(
    Array.from({ length: 4 }, (_, id) => write({ url, id, random: randomOf(seed + id), until })),
  );
  const last = await server.post(url, configMap('last', { data: { step: '1' } }));
  newest = last.body.metadata.resourceVersion;
  await Promise.all(following);
  const truth = await server.get(url);
  const expected = new Map<string, number>(
    truth.body.items.map((item) => [item.metadata.name, Number(item['data'].step)]),
  );
  for (const follower of followers) {
    expect(follower.faults).toEqual([]);
    expect(new Map([...follower.state].sort())).toEqual(new Map([...expected].sort()));
    expect(follower.events).toBeGreaterThan(10);
    expect(follower.disconnects).toBeGreaterThan(10);
  }
  expect(Math.min(...writes)).toBeGreaterThanOrEqual(writesMin);
});
