import { isDeepStrictEqual } from 'node:util';
import type { JsonObject, Random } from '@wheelhouse/machinery';
import type { ResponseBody } from '../../support/harness.ts';
import { Caller } from './caller.ts';
import { checkHistory, type HistoryFigures } from './check-history.ts';
import { type Endpoint, pause } from './connection.ts';
import type { Ground } from './ground.ts';
import { type Fault, faultsOf, heal, runNemesis } from './nemesis.ts';
import { Violation } from './operation.ts';
import { Recorder } from './recorder.ts';
import type { Resource } from './resources.ts';
import { Watcher, type WatcherOptions } from './watcher.ts';
import { listOf, type Scene, Worker } from './worker.ts';

export interface HistoryOptions {
  readonly ground: Ground;
  readonly random: Random;
  /** The history's own namespace, which it creates. */
  readonly namespace: string;
  readonly resource: Resource;
  /** Duration of clients and faults in milliseconds. */
  readonly milliseconds: number;
  /** Minimum number of acknowledged writes, for which it waits up to one more minute. */
  readonly leastWrites: number;
  readonly workers: number;
  readonly keys: number;
  readonly thinkMs: number;
  /** Maximum duration of a fault, and maximum pause between two faults, in milliseconds. */
  readonly holdMs: number;
  readonly restMs: number;
  /** The faults that may happen; by default all that suit the ground. */
  readonly faults?: readonly Fault[];
  /** Whether an etcd's history may be compacted meanwhile, which may end watches. */
  readonly isCompacted?: boolean;
  /** Maximum number of faults of servers, and of faults of their store. */
  readonly faultsMax?: number;
}

export interface HistoryReport extends HistoryFigures {
  readonly streams: number;
  readonly relists: number;
  readonly faults: ReadonlyMap<Fault, number>;
  readonly remains: Remains;
}

const fence = 'fence';
const settleMs = 60_000;

/** Runs clients, watchers, and faults for a while, heals everything, and checks the result. */
export async function runHistory(options: HistoryOptions): Promise<HistoryReport> {
  const { ground, resource } = options;
  const recorder = new Recorder();
  const caller = new Caller(() => endpointsOf(ground));
  let isOver = false;
  const scene: Scene = {
    recorder,
    resource,
    collection: resource.collection(options.namespace),
    keys: Array.from({ length: options.keys }, (_, i) => `key-${i}`),
    endpoints: () => endpointsOf(ground),
    isOver: () => isOver,
  };
  const start = await begin(scene, caller, options);
  const workers = workersOf(scene, options);
  const watchers = watchersOf(scene, options.random);
  const replayer = replayerOf(scene, { random: options.random, from: start });
  let isSettled = false;
  const watching = watchers.map((watcher) => watcher.run(() => isSettled));
  const working = workers.map((worker) => worker.run());
  const cutConnections = () => {
    for (const { connections } of [...workers, ...watchers]) connections.cut();
  };
  const storms = faultsOf(ground).map((all) => {
    const { holdMs, random, restMs, faultsMax = 1e9, isCompacted = false } = options;
    const faults = all.filter(
      (fault) => (options.faults?.includes(fault) ?? true) && (isCompacted || fault !== 'compact'),
    );
    const limits = { isOver: () => isOver, faultsMax, holdMs, restMs };
    return runNemesis({ ground, random, cutConnections, faults, ...limits });
  });
  try {
    await goOn(recorder, options);
    isOver = true;
    const faults = await Promise.all(storms);
    heal(ground);
    await Promise.all(working);
    for (const server of ground.servers) server.expectAlive();
    const fenced = await closeHistory(scene, caller);
    const all = [...watchers, replayer];
    watching.push(replayer.run(() => isSettled));
    await settle(scene, fenced, all);
    isSettled = true;
    for (const watcher of all) watcher.hangUp();
    await Promise.all(watching);
    const last = await caller.send({ method: 'GET', path: scene.collection });
    return {
      ...checkHistory(recorder, scene.keys, { start, fenced }),
      streams: all.reduce((sum, watcher) => sum + watcher.streams, 0),
      relists: all.reduce((sum, watcher) => sum + watcher.relists, 0),
      faults: new Map(faults.flatMap((counts) => [...counts])),
      remains: { collection: scene.collection, items: writtenItems(last.items) },
    };
  } finally {
    isOver = true;
    isSettled = true;
    for (const watcher of [...watchers, replayer]) watcher.hangUp();
    caller.close();
    // A nemesis that is still starting a server would leave it behind.
    await Promise.allSettled(storms);
  }
}

/** Gives clients more time if a busy machine has left them too few writes. */
async function goOn(recorder: Recorder, options: HistoryOptions): Promise<void> {
  await pause(options.milliseconds);
  const end = performance.now() + settleMs;
  while (recorder.writes < options.leastWrites && performance.now() < end) await pause(50);
}

/** Creates the kind and the namespace; resolves with a version that precedes all changes. */
async function begin(scene: Scene, caller: Caller, options: HistoryOptions): Promise<number> {
  const { namespace: name, resource } = options;
  const made = { method: 'POST', statuses: [201, 409] };
  if (resource.definition !== undefined) await caller.send({ ...made, ...resource.definition });
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await caller.send({ ...made, path: '/api/v1/namespaces', body });
  const lists = await caller.sendAll({ method: 'GET', path: scene.collection });
  const [list] = lists;
  if (list === undefined) throw new Error(`no server lists ${scene.collection}`);
  return listOf(list).version;
}

function workersOf(scene: Scene, options: HistoryOptions): readonly Worker[] {
  const { random, thinkMs, workers } = options;
  return Array.from(
    { length: workers },
    (_, i) => new Worker({ scene, random, name: `w${i}`, thinkMs }),
  );
}

function watchersOf(scene: Scene, random: Random): readonly Watcher[] {
  const kinds: readonly Omit<WatcherOptions, 'scene' | 'random'>[] = [
    { name: 'steady', stayMs: 60_000, awayMs: 0, initial: 'list' },
    { name: 'hasty', stayMs: 300, awayMs: 50, initial: 'list' },
    { name: 'absent', stayMs: 300, awayMs: 2000, initial: 'list' },
    { name: 'initial', stayMs: 2000, awayMs: 200, initial: 'watch' },
    { name: 'single', stayMs: 1000, awayMs: 200, initial: 'list', only: scene.keys[0] as string },
  ];
  return kinds.map((kind) => new Watcher({ scene, random, ...kind }));
}

/** Watches the whole history once more, unless it has been compacted. */
function replayerOf(scene: Scene, options: { readonly random: Random; readonly from: number }) {
  const stay = { stayMs: settleMs, awayMs: 100, initial: 'list' as const };
  return new Watcher({ scene, name: 'replayer', ...stay, ...options });
}

/** Writes a last object; resolves with its version when every server lists it. */
async function closeHistory(scene: Scene, caller: Caller): Promise<number> {
  const { collection, recorder, resource } = scene;
  const { apiVersion, kind } = resource;
  const body = { apiVersion, kind, metadata: { name: fence } };
  await caller.send({ method: 'POST', path: collection, body, statuses: [201, 409] });
  let version = 0;
  const invoked = recorder.tick();
  for (const list of await caller.sendAll({ method: 'GET', path: collection })) {
    const completed = recorder.tick();
    const by = 'last list';
    const read = { by, process: by, type: 'consistent' as const, invoked, completed };
    recorder.lists.push({ ...read, ...listOf(list) });
    version = listOf(list).items.find(({ key }) => key === fence)?.version ?? 0;
    if (version === 0) throw new Violation(`${by} does not have what was acknowledged last`);
  }
  return version;
}

/** The remains of one history, to which nothing writes any more. */
export interface Remains {
  readonly collection: string;
  /** The objects that clients wrote; controllers may continue to write theirs. */
  readonly items: readonly JsonObject[];
}

/** Rejects if a server shows anything other than the remains of a history. */
export async function expectRemains(ground: Ground, all: readonly Remains[]): Promise<void> {
  const caller = new Caller(() => endpointsOf(ground));
  try {
    for (const { collection, items } of all) {
      for (const list of await caller.sendAll({ method: 'GET', path: collection })) {
        const found = writtenItems(list.items);
        if (isDeepStrictEqual(found, items)) continue;
        const [was, is] = [JSON.stringify(items), JSON.stringify(found)];
        throw new Violation(`${collection} was ${was}, and is ${is}`);
      }
    }
  } finally {
    caller.close();
  }
}

function writtenItems(items: readonly ResponseBody[]): readonly ResponseBody[] {
  return items.filter(({ metadata }) => /^(?:key-\d+|fence)$/.test(metadata.name));
}

function endpointsOf({ servers }: Ground): readonly Endpoint[] {
  return servers.flatMap(({ endpoint }) => endpoint ?? []);
}

/** Waits until every watcher has received the final state. */
async function settle(scene: Scene, fenced: number, watchers: readonly Watcher[]): Promise<void> {
  const last = new Map(scene.recorder.lists.at(-1)?.items.map((item) => [item.key, item.version]));
  const end = performance.now() + settleMs;
  for (const watcher of watchers) {
    const { only } = watcher;
    const isThere = () =>
      only === undefined
        ? watcher.position >= fenced
        : watcher.position >= 0 && watcher.replica.get(only)?.version === last.get(only);
    while (!isThere() && watcher.failure === undefined) {
      if (performance.now() > end) {
        throw new Violation(`${watcher.name} is at ${watcher.position}, the fence at ${fenced}`);
      }
      await pause(20);
    }
    if (watcher.failure !== undefined) throw watcher.failure;
  }
}
