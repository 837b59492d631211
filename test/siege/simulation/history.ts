import { observeFaults } from '@wheelhouse/machinery';
import { replaceHost } from '@wheelhouse/machinery/testing';
import { worldOf } from './fault-plans.ts';
import { SimulatedClient, simulatedNamespaces } from './simulated-client.ts';
import { logBackend } from './simulated-log.ts';
import { SimulatedServer } from './simulated-server.ts';
import { type Backend, memoryBackend } from './simulated-store.ts';
import { Informer } from './simulated-watch.ts';
import { demand, Truth } from './truth.ts';
import type { World } from './world.ts';

export interface HistoryReport {
  /** All events in order; equal seeds give equal bytes. */
  readonly trace: readonly string[];
  readonly writes: number;
  readonly answers: number;
  readonly lost: number;
  readonly crashes: number;
  readonly events: number;
}

/** All actors of one history. */
interface Stage {
  readonly world: World;
  readonly backend: Backend;
  readonly truth: Truth;
  readonly servers: SimulatedServer[];
  readonly clients: readonly SimulatedClient[];
  readonly informers: readonly Informer[];
  /** The newest revision at each crash. */
  readonly crashes: number[];
}

const drainStepsMax = 400;
/**
 * Maximum number of deliveries per step; a write takes one on the disk and several on the network.
 */
const deliveriesMax = { disk: 4, log: 8, network: 24 };

/** A violated guarantee, with the trace that led to it. */
export class BrokenHistory extends Error {
  readonly seed: number;
  readonly #trace: readonly string[];

  constructor(options: { seed: number; trace: readonly string[]; cause: unknown }) {
    super(`seed ${options.seed}, ${String(options.cause)}`, { cause: options.cause });
    this.seed = options.seed;
    this.#trace = options.trace;
  }

  get trace(): readonly string[] {
    return this.#trace;
  }
}

/** Runs the history of a seed. Rejects with BrokenHistory. */
export async function runHistory(seed: number): Promise<HistoryReport> {
  const world = worldOf(seed);
  const { stackTraceLimit } = Error;
  const fail = (error: unknown) => world.fail(error);
  const undo = [replaceHost(world.host), observeFaults(({ error }) => fail(error))];
  // Capturing stacks of errors that become answers takes a tenth of the time; a failing seed is run
  // again.
  Error.stackTraceLimit = 0;
  process.on('unhandledRejection', fail);
  try {
    return await playHistory(world);
  } catch (error) {
    throw new BrokenHistory({ seed, trace: world.trace, cause: error });
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    process.off('unhandledRejection', fail);
    for (const end of undo) end();
  }
}

async function playHistory(world: World): Promise<HistoryReport> {
  const stage = await openStage(world);
  const steps = 15 + world.random.below(30);
  let step = 0;
  try {
    await createNamespaces(stage);
    for (world.isStormy = true; step < steps; step++) {
      await act(stage);
      if (world.violation !== undefined) throw world.violation;
    }
    await calmDown(stage);
    world.check(() => checkAll(stage));
    if (world.violation !== undefined) throw world.violation;
  } catch (error) {
    throw new Error(`step ${step} (${stage.backend.kind}): ${String(error)}`, { cause: error });
  } finally {
    for (const server of stage.servers) await server.crash();
  }
  return reportOf(stage);
}

function reportOf({ world, truth, clients, informers, crashes }: Stage): HistoryReport {
  return {
    trace: world.trace,
    writes: truth.revision,
    answers: clients.reduce((sum, client) => sum + client.answers, 0),
    lost: clients.reduce((sum, client) => sum + client.unanswered, 0),
    crashes: crashes.length,
    events: informers.reduce((sum, informer) => sum + informer.events, 0),
  };
}

async function openStage(world: World): Promise<Stage> {
  const truth = new Truth(world);
  const kind = world.random.pick(['disk', 'log', 'network', 'network'] as const);
  const on = { world, truth };
  const backend = kind === 'log' ? logBackend(on) : await memoryBackend({ ...on, kind });
  const servers = [await SimulatedServer.start(world, backend)];
  if (kind === 'network') servers.push(await SimulatedServer.start(world, backend));
  const paddingBytes = kind === 'log' ? 50_000 : 0;
  const clients = Array.from(
    { length: 4 },
    (_, i) => new SimulatedClient({ world, truth, name: `client-${i}`, paddingBytes }),
  );
  const maps = '/registry/configmaps/';
  const informer = (name: string, url: string, prefix: string) =>
    new Informer({ world, truth, name, url, prefix });
  const informers = [
    informer('all-maps', '/api/v1/configmaps', maps),
    informer('maps-of-a', '/api/v1/namespaces/a/configmaps', `${maps}a/`),
    informer('namespaces', '/api/v1/namespaces', '/registry/namespaces/'),
  ];
  return { world, backend, truth, servers, clients, informers, crashes: [] };
}

async function createNamespaces(stage: Stage): Promise<void> {
  const { world, servers } = stage;
  const [server] = servers as [SimulatedServer];
  let missing = simulatedNamespaces.length;
  for (const name of simulatedNamespaces) {
    const body = Buffer.from(JSON.stringify({ metadata: { name } }));
    const url = '/api/v1/namespaces';
    const request = { method: 'POST', url, body, type: 'application/json' };
    void server.request(request).then((answer) => {
      missing -= 1;
      const isCreated = answer !== 'lost' && answer.status === 201;
      world.check(() => demand(isCreated, () => `namespace ${name}: ${JSON.stringify(answer)}`));
    });
  }
  for (let turn = 0; missing > 0; turn++) {
    demand(turn < drainStepsMax, () => 'the namespaces were not created');
    for (let i = 0; i < 10; i++) world.deliver();
    await world.settle();
  }
}

/** One step: an actor acts, or something in flight arrives. */
async function act(stage: Stage): Promise<void> {
  const { world, servers, clients, informers } = stage;
  const { random } = world;
  const server = random.pick(servers);
  const dice = random.below(100);
  if (world.strikes(0.03)) await crashAndRestart(stage);
  if (dice < 6) world.advance(random.below(3000));
  else if (dice < 7) {
    // No network delays a message that long.
    await deliverAll(world);
    world.advance(random.below(90_000));
  } else if (dice < 9) await compact(stage);
  else if (dice < 12) server.cutWatch();
  else if (dice < 16) random.pick(informers).disconnect();
  else if (dice < 20) random.pick(informers).isPaused = true;
  else if (dice < 24) random.pick(informers).resume();
  else for (const client of clients) if (random.chance(0.6)) client.step(random.pick(servers));
  for (const informer of informers) if (random.chance(0.5)) informer.step(random.pick(servers));
  const deliveries = random.below(deliveriesMax[stage.backend.kind]);
  for (let i = 0; i < deliveries; i++) {
    if (world.strikes(0.002)) await crashAndRestart(stage);
    world.deliver();
    if (i % 4 === 0) await world.settle();
  }
  await world.settle(2);
}

async function crashAndRestart(stage: Stage): Promise<void> {
  const { world, backend, truth, servers } = stage;
  const at = world.random.below(servers.length);
  stage.crashes.push(truth.revision);
  world.note(`server ${at} crashes`);
  await servers[at]?.crash();
  await world.settle();
  servers[at] = await SimulatedServer.start(world, backend);
}

async function compact({ world, backend, truth }: Stage): Promise<void> {
  const revision = truth.revision - world.random.below(6);
  if (revision > 0) await backend.compact(revision);
}

/** Ends the storm and lets everything arrive, including retries and controllers. */
async function calmDown(stage: Stage): Promise<void> {
  const { world, truth, clients, informers, servers } = stage;
  world.isStormy = false;
  let quietTurns = 0;
  for (let turn = 0; quietTurns < 8; turn++) {
    demand(turn < drainStepsMax, () => 'the history does not come to rest');
    const before = truth.revision;
    for (const informer of informers) {
      informer.resume();
      informer.step(servers[0] as SimulatedServer);
    }
    await deliverAll(world);
    // Slow at first: waits for the store take some seconds, retries up to a minute.
    world.advance(turn < 10 ? 500 : 20_000);
    await deliverAll(world);
    const isQuiet = truth.revision === before && !clients.some((client) => client.isBusy);
    quietTurns = isQuiet && turn > 10 ? quietTurns + 1 : 0;
    if (world.violation !== undefined) throw world.violation;
  }
}

/** Delivers until nothing is in flight; no time passes. */
async function deliverAll(world: World): Promise<void> {
  for (let i = 0; i < drainStepsMax; i++) {
    await world.settle();
    for (let k = 0; k < 4; k++) world.deliver();
    if (world.pending > 0) continue;
    await world.settle(2);
    if (world.pending === 0) return;
  }
}

/** Checks the final state: nothing is missing, duplicated, or left behind. */
function checkAll(stage: Stage): void {
  for (const informer of stage.informers) informer.check();
  for (const client of stage.clients) client.check();
  checkPromises(stage);
}

/** Checks the guarantees of controllers. */
function checkPromises({ truth, crashes }: Stage): void {
  const maps = truth.collection('/registry/configmaps/', truth.revision);
  const uids = new Set([...maps.values()].map(({ object }) => object.metadata.uid));
  for (const [key, { object }] of maps) {
    const { namespace, finalizers = [], ownerReferences = [], deletionTimestamp } = object.metadata;
    const removal = truth.removal(`/registry/namespaces/${namespace}`);
    // A killed server forgets that creates may overtake the deletion of a namespace.
    const isForgotten = crashes.some((revision) => revision >= (removal ?? Infinity));
    const isHeld = finalizers.length > 0;
    const isGoing = deletionTimestamp !== undefined;
    // A create that overtakes the deletion of its namespace may contain finalizers.
    const mayStay = removal === undefined || isForgotten || (isHeld && isGoing);
    demand(mayStay, () => `${key} has outlived its namespace`);
    demand(isHeld || !isGoing, () => `${key} is deleted and does not go`);
    const absent = ownerReferences.filter(({ uid }: { uid: string }) => !uids.has(uid));
    const isOrphan = ownerReferences.length > 0 && absent.length === ownerReferences.length;
    demand(!isOrphan || isGoing, () => `${key} has outlived its owners`);
  }
  for (const [key, { object }] of truth.collection('/registry/namespaces/', truth.revision)) {
    if (object.metadata.deletionTimestamp === undefined) continue;
    const content = `/registry/configmaps/${object.metadata.name}/`;
    const isEmpty = truth.collection(content, truth.revision).size === 0;
    demand(!isEmpty, () => `${key} is deleted, empty, and does not go`);
  }
}
