import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type MaybePromise, systemClock } from '@wheelhouse/machinery';
import { type Revision, type Store, StoreError, type StoreEvent } from '../contract.ts';
import { openEtcdStore } from './etcd-store.ts';

/** An etcd process for one test, on loopback. */
export interface TestEtcd {
  readonly url: string;
  /** Kills the process like a crash; its data remains. */
  kill(): Promise<void>;
  /** Suspends the process, as on a machine that is out of memory; `resume` continues it. */
  pause(): Promise<void>;
  resume(): void;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  /**
   * Calls a method such as `maintenance/status` through etcd's JSON gateway. Rejects if etcd
   * refuses.
   */
  request(path: string, content: object): Promise<Record<string, unknown>>;
  /** Stops it and removes its data. */
  dispose(): Promise<void>;
}

interface TestEtcdOptions {
  /** Files of a certificate, its key, and the CA of clients' certificates. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
  readonly flags?: readonly string[];
}

/** Whether tests against etcd can run; `npm test` installs etcd where it can. */
export const hasEtcd = spawnSync('etcd', ['--version'], { stdio: 'ignore' }).status === 0;

/**
 * A folder in memory, where writes are fast; its content survives the process but not the machine.
 */
const fastDirectory = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir();
const startTimeoutMs = 20_000;
const requestTimeoutMs = 5000;

function hasRoom(directory: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize > 2 ** 30;
  } catch {
    return false;
  }
}

/** Starts an etcd with one member. Rejects if etcd is not installed or does not start. */
export async function startTestEtcd(options: TestEtcdOptions = {}): Promise<TestEtcd> {
  const etcd = await onFreePorts(2, ([clientPort = 0, peerPort = 0]) => {
    const peer = `http://127.0.0.1:${peerPort}`;
    const member = { name: 'test', clientPort, peer, cluster: `test=${peer}`, options };
    // A single member elects itself, so a short election timeout is safe.
    return startMember({ ...member, electionMs: 50 });
  });
  // An etcd that is killed before it has stored its membership never elects a leader again.
  if (options.tls === undefined) await serving(etcd);
  return etcd;
}

/** Waits until an etcd answers, which is later than it accepts connections. */
async function serving(etcd: TestEtcd): Promise<void> {
  const end = systemClock.monotonic() + startTimeoutMs;
  for (;;) {
    try {
      await etcd.request('maintenance/status', {});
      return;
    } catch (error) {
      if (systemClock.monotonic() > end) {
        await etcd.dispose();
        throw error;
      }
      await pause(20);
    }
  }
}

/** An etcd of several members. */
export interface TestCluster {
  readonly members: readonly TestEtcd[];
  /** Returns the leader as the running members report it; waits until there is one. */
  leader(): Promise<TestEtcd>;
  dispose(): Promise<void>;
}

/** Starts three members, which elect a new leader within a second. */
export async function startTestCluster(): Promise<TestCluster> {
  const members = await onFreePorts(6, startMembers);
  return {
    members,
    async leader() {
      const end = systemClock.monotonic() + startTimeoutMs;
      for (;;) {
        for (const member of members) if (await isLeader(member)) return member;
        if (systemClock.monotonic() > end) throw new Error('no member is the leader');
        await pause(50);
      }
    },
    async dispose() {
      await Promise.all(members.map((member) => member.dispose()));
    },
  };
}

async function startMembers(ports: readonly number[]): Promise<readonly TestEtcd[]> {
  const peers = ports.slice(3).map((port) => `http://127.0.0.1:${port}`);
  const cluster = peers.map((peer, i) => `m${i}=${peer}`).join(',');
  const started = await Promise.allSettled(
    peers.map((peer, i) => {
      const clientPort = ports[i] ?? 0;
      const member = { name: `m${i}`, clientPort, peer, cluster, options: {} };
      return startMember({ ...member, electionMs: 500 });
    }),
  );
  const members = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  for (const each of started) {
    if (each.status === 'fulfilled') continue;
    await Promise.all(members.map((member) => member.dispose()));
    throw each.reason;
  }
  return members;
}

async function isLeader(member: TestEtcd): Promise<boolean> {
  try {
    const { header, leader } = await member.request('maintenance/status', {});
    return leader !== undefined && leader === (header as { member_id?: string }).member_id;
  } catch {
    return false;
  }
}

interface Member {
  readonly name: string;
  readonly clientPort: number;
  readonly peer: string;
  /** All members in the form of etcd's flag. */
  readonly cluster: string;
  readonly electionMs: number;
  readonly options: TestEtcdOptions;
}

async function startMember(member: Member): Promise<TestEtcd> {
  const { clientPort, options } = member;
  const directory = mkdtempSync(join(fastDirectory, 'wheelhouse-etcd-'));
  const scheme = options.tls === undefined ? 'http' : 'https';
  const url = `${scheme}://127.0.0.1:${clientPort}`;
  const args = argumentsOf(member, { directory, url });
  let running: ChildProcess | undefined;
  const start = async () => {
    const child = spawn('etcd', args, { stdio: 'ignore' });
    running = child;
    await listening(child, clientPort);
  };
  const kill = async () => {
    const child = running;
    running = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  };
  const dispose = async () => {
    await kill();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    url,
    kill,
    async pause() {
      running?.kill('SIGSTOP');
      while (running !== undefined && !isStopped(running)) await pause(5);
    },
    resume: () => void running?.kill('SIGCONT'),
    start,
    async request(path, content) {
      const signal = AbortSignal.timeout(requestTimeoutMs);
      const body = JSON.stringify(content);
      const response = await fetch(`${url}/v3/${path}`, { method: 'POST', body, signal });
      const decoded = (await response.json()) as Record<string, unknown>;
      if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(decoded)}`);
      return decoded;
    },
    dispose,
  };
}

function argumentsOf(
  member: Member,
  { directory, url }: { readonly directory: string; readonly url: string },
): readonly string[] {
  const { name, peer, cluster, electionMs } = member;
  const { tls, flags = [] } = member.options;
  const secure =
    tls === undefined
      ? []
      : [
          '--client-cert-auth',
          `--cert-file=${tls.cert}`,
          `--key-file=${tls.key}`,
          `--trusted-ca-file=${tls.ca}`,
        ];
  return [
    `--name=${name}`,
    `--data-dir=${directory}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${cluster}`,
    '--log-level=error',
    '--logger=zap',
    `--heartbeat-interval=${electionMs / 5}`,
    `--election-timeout=${electionMs}`,
    ...secure,
    ...flags,
  ];
}

/** The process ended before it listened. */
class EndedAtStart extends Error {}

const startsMax = 3;

/**
 * Starts programs on free ports, and again on others if they end at once: another program can take
 * a port after it was found and before the start.
 */
async function onFreePorts<Result>(
  count: number,
  start: (ports: readonly number[]) => Promise<Result>,
): Promise<Result> {
  for (let starts = 1; ; starts += 1) {
    try {
      return await start(await freePorts(count));
    } catch (error) {
      if (!(error instanceof EndedAtStart) || starts === startsMax) throw error;
    }
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) => {
          server.listen(0, '127.0.0.1', () => {
            const address = server.address();
            resolve(typeof address === 'object' && address !== null ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Waits until the port accepts connections or the process has ended. */
async function listening(child: ChildProcess, port: number): Promise<void> {
  let failure: string | undefined;
  child.once('error', (error) => {
    failure = String(error);
  });
  child.once('exit', (status) => {
    failure = `exit status ${status}`;
  });
  const end = systemClock.monotonic() + startTimeoutMs;
  while (!(await accepts(port))) {
    if (failure !== undefined) throw new EndedAtStart(`etcd did not start: ${failure}`);
    if (systemClock.monotonic() > end) throw new Error('etcd did not listen in time');
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.after(ms, resolve));
}

/** Whether all threads of a process have been stopped by a signal. */
function isStopped({ pid }: ChildProcess): boolean {
  const threads = `/proc/${pid}/task`;
  return readdirSync(threads).every((thread) => {
    const stat = readFileSync(join(threads, thread, 'stat'), 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

let spaces = 0;

/**
 * Opens a store on a test's etcd with separate keys and with revisions from 0, like those of an
 * empty store.
 */
export async function freshStore(etcd: TestEtcd): Promise<Store> {
  spaces += 1;
  const store = await openEtcdStore({
    connection: { servers: [etcd.url] },
    clock: systemClock,
    keys: { storePrefix: '', etcdPrefix: `/space-${spaces}:` },
    callTimeoutMs: 25_000,
    startTimeoutMs: 10_000,
  });
  return rebased(store, await store.currentRevision());
}

/** The same store with revisions counted from `base`. */
function rebased(store: Store, base: Revision): Store {
  const up = (revision: Revision) => (revision === 0 ? 0 : revision + base);
  const at = (revision: Revision) => revision + base;
  const down = (revision: Revision) => Math.max(0, revision - base);
  const record = <T extends { createRevision: Revision; modRevision: Revision }>(
    original: T,
  ): T => ({
    ...original,
    createRevision: down(original.createRevision),
    modRevision: down(original.modRevision),
  });
  const event = (original: StoreEvent): StoreEvent =>
    original.type === 'delete'
      ? { ...original, revision: down(original.revision) }
      : {
          ...original,
          revision: down(original.revision),
          createRevision: down(original.createRevision),
        };
  const refused = (error: unknown): never => {
    if (!(error instanceof StoreError) || error.revision === undefined) throw error;
    const { code, message, revision } = error;
    throw new StoreError({ code, message, revision: down(revision) });
  };
  const write = async (run: () => ReturnType<Store['put']>) => {
    const result = await run();
    if (result.ok) return { ok: true as const, revision: down(result.revision) };
    const { current } = result;
    return { ok: false as const, current: current === undefined ? undefined : record(current) };
  };
  return {
    sharing: store.sharing,
    currentRevision: async () => down(await store.currentRevision()),
    compactRevision: async () => down(await store.compactRevision()),
    async get(key, revision) {
      const shifted = revision === undefined ? undefined : at(revision);
      const found = await Promise.resolve(store.get(key, shifted)).catch(refused);
      return found === undefined ? undefined : record(found);
    },
    async range(request) {
      const { revision } = request;
      const shiftedRequest =
        revision === undefined ? request : { ...request, revision: at(revision) };
      const result = await store.range(shiftedRequest).catch(refused);
      return { ...result, records: result.records.map(record), revision: down(result.revision) };
    },
    put: (request) => write(() => store.put({ ...request, expect: up(request.expect) })),
    delete: (request) => write(() => store.delete({ ...request, expect: up(request.expect) })),
    async watch(request) {
      const after = at(request.after);
      const onEvents = (events: readonly StoreEvent[]) => request.onEvents(events.map(event));
      const watch = await store.watch({ ...request, after, onEvents }).catch(refused);
      return {
        get progress() {
          return down(watch.progress);
        },
        reached: (revision): MaybePromise<void> => watch.reached(at(revision)),
        close: () => watch.close(),
      };
    },
    compact: (revision) => store.compact(at(revision)).catch(refused),
    ping: () => store.ping(),
    sizeBytes: () => store.sizeBytes(),
    snapshot: () => store.snapshot(),
    close: () => store.close(),
  };
}
