import type { Random } from '../../fuzz/random.ts';
import { Connections } from './connection.ts';
import type { Ground } from './ground.ts';
import { type Judgement, judge } from './judge.ts';
import { type Fault, faultsOf, heal, runNemesis } from './nemesis.ts';
import { Violation } from './operation.ts';
import { Recorder } from './recorder.ts';
import { Watcher, type WatcherOptions } from './watcher.ts';
import { listOf, pause, type Scene, Worker } from './worker.ts';

export interface HistoryOptions {
  readonly ground: Ground;
  readonly random: Random;
  /** Namespace of the history's own, which it creates. */
  readonly namespace: string;
  /** How long clients and faults go on, and for how many acknowledged writes at least. */
  readonly milliseconds: number;
  readonly leastWrites: number;
  readonly workers: number;
  readonly keys: number;
  readonly thinkMs: number;
  /** Longest time that a fault lasts, and that passes until the next, milliseconds. */
  readonly holdMs: number;
  readonly restMs: number;
  /** Which faults may happen; all that fit the ground when absent. */
  readonly faults?: readonly Fault[];
  /** Most faults of servers, and of their store. */
  readonly faultsMax?: number;
}

export interface HistoryReport extends Judgement {
  readonly streams: number;
  readonly relists: number;
  readonly faults: ReadonlyMap<Fault, number>;
}

const fence = 'fence';
const settleMs = 60_000;

/** Runs clients, watchers, and faults for a while, heals everything, and checks what came of it. */
export async function runHistory(options: HistoryOptions): Promise<HistoryReport> {
  const { ground } = options;
  const recorder = new Recorder();
  const calls = new Connections();
  let isOver = false;
  const scene: Scene = {
    recorder,
    collection: `/api/v1/namespaces/${options.namespace}/configmaps`,
    keys: Array.from({ length: options.keys }, (_, i) => `key-${i}`),
    endpoints: () => ground.servers.flatMap(({ endpoint }) => endpoint ?? []),
    isOver: () => isOver,
  };
  const start = await begin(scene, calls, options.namespace);
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
    const faults = all.filter((fault) => options.faults?.includes(fault) ?? true);
    const { holdMs, random, restMs, faultsMax = 1e9 } = options;
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
    const fenced = await closeHistory(scene, calls);
    const all = [...watchers, replayer];
    watching.push(replayer.run(() => isSettled));
    await settle(scene, fenced, all);
    isSettled = true;
    for (const watcher of all) watcher.hangUp();
    await Promise.all(watching);
    const checked = judge(recorder, scene.keys, { start, fenced });
    const streams = all.reduce((sum, watcher) => sum + watcher.streams, 0);
    const relists = all.reduce((sum, watcher) => sum + watcher.relists, 0);
    return { ...checked, streams, relists, faults: new Map(faults.flatMap((one) => [...one])) };
  } finally {
    isOver = true;
    isSettled = true;
    for (const watcher of [...watchers, replayer]) watcher.hangUp();
    calls.cut();
  }
}

async function goOn(recorder: Recorder, options: HistoryOptions): Promise<void> {
  const began = performance.now();
  await pause(options.milliseconds);
  while (recorder.writes < options.leastWrites) {
    if (performance.now() - began > options.milliseconds + settleMs) {
      throw new Violation(`only ${recorder.writes} writes were acknowledged`);
    }
    await pause(50);
  }
}

/** Creates the namespace; resolves with a version before all changes in it. */
async function begin(scene: Scene, calls: Connections, name: string): Promise<number> {
  const path = '/api/v1/namespaces';
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await answered(scene, calls, { method: 'POST', path, body, statuses: [201, 409] });
  const list = await answered(scene, calls, { method: 'GET', path: scene.collection });
  return listOf(list).version;
}

/** Sends a request until one of the servers answers it as it should. */
async function answered(
  scene: Scene,
  calls: Connections,
  request: {
    readonly method: string;
    readonly path: string;
    readonly body?: unknown;
    readonly statuses?: readonly number[];
    readonly server?: number;
  },
) {
  const { statuses = [200], server = 0 } = request;
  const end = performance.now() + settleMs;
  for (;;) {
    const endpoint = scene.endpoints()[server];
    const reply =
      endpoint === undefined
        ? undefined
        : await calls.send(endpoint, { ...request, patienceMs: settleMs });
    if (reply?.type === 'answer' && statuses.includes(reply.status)) return reply.body;
    if (performance.now() > end) {
      throw new Violation(`${request.method} ${request.path}: ${JSON.stringify(reply)}`);
    }
    await pause(50);
  }
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

/** Writes a last object; resolves when every server shows it in a list, with its version. */
async function closeHistory(scene: Scene, calls: Connections): Promise<number> {
  const { collection, recorder } = scene;
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: fence } };
  const statuses = [201, 409];
  await answered(scene, calls, { method: 'POST', path: collection, body, statuses });
  let version = 0;
  for (let server = 0; server < scene.endpoints().length; server += 1) {
    const invoked = recorder.tick();
    const list = listOf(await answered(scene, calls, { method: 'GET', path: collection, server }));
    const completed = recorder.tick();
    const by = `last list of server ${server}`;
    recorder.lists.push({ by, process: by, isCached: false, invoked, completed, ...list });
    version = list.items.find(({ key }) => key === fence)?.version ?? 0;
    if (version === 0) throw new Violation(`${by} does not have what was acknowledged last`);
  }
  return version;
}

/** Waits until every watcher has what there is at the end. */
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
