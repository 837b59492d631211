import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Random, randomOf } from '@wheelhouse/machinery';
import { sample } from '../operations/metric-samples.ts';
import { connect, eventually } from '../support/harness.ts';
import { buildPrograms, type ServerProcess, startProcess } from '../support/program.ts';
import {
  onServer,
  type SiegeFigures,
  type SiegeOptions,
  type SiegePart,
  timeLimit,
} from './part.ts';

/**
 * Fills a server with a small heap or few file descriptors until it rejects work, and then releases
 * it.
 */

const heapMegabytes = 200;
const filesMax = 150;
const mebibyte = 1024 * 1024;
const namespace = '/api/v1/namespaces/default';

/** The tools of an attack. */
interface Attack {
  readonly server: ServerProcess;
  readonly random: Random;
  /** Called after the attack. */
  readonly cleanup: (() => void)[];
  /** Counts requests and connections that the server rejected or closed. */
  readonly turnedAway: () => void;
}

const attacks: Readonly<Record<string, (attack: Attack) => Promise<void>>> = {
  'watches with large selectors': watchesWithLargeSelectors,
  'lists that nobody reads': unreadLists,
  'bodies that do not end': halfOpenBodies,
  'large objects in flight': largeObjects,
  'idle connections': idleConnections,
};

export const exhaustionPart: SiegePart = {
  name: 'exhaustion',
  summary:
    'Fills servers with 200 MB of heap and with 150 files: they refuse work, stay alive, and serve ' +
    'normally afterwards. One round is every attack once.',
  defaultRounds: 3,
  run,
};

async function run({ seed, rounds, log, ...limits }: SiegeOptions): Promise<SiegeFigures> {
  const random = randomOf(seed);
  // Each of the two servers is attacked for half of the time.
  const half = limits.seconds === undefined ? {} : { seconds: limits.seconds / 2 };
  const programs = await buildPrograms();
  const figures: Record<string, number> = {};
  try {
    const heapOptions = { env: { NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}` } };
    const small = await startProcess(programs, heapOptions);
    try {
      await fillStore(small);
      const isOver = timeLimit(half);
      for (let round = 0; round < rounds && !isOver(); round += 1) {
        for (const name of Object.keys(attacks).sort(() => random.fraction() - 0.5)) {
          const turnedAway = await oneAttack(small, { name, random, seed, round });
          log(`round ${round}: ${name}: ${turnedAway} turned away`);
          const key = `${name.replaceAll(' ', '-')}-turned-away`;
          figures[key] = (figures[key] ?? 0) + turnedAway;
        }
      }
      figures['resident-bytes-max'] = residentMax(small);
      Object.assign(figures, await budgetFigures(small));
    } finally {
      await small.remove();
    }
    const few = await startProcess(programs, { within: withFiles(filesMax) });
    try {
      const isOver = timeLimit(half);
      for (let round = 0; round < rounds && !isOver(); round += 1) {
        const closed = await fillFiles(few, { seed, round });
        log(`round ${round}: files: ${closed} connections closed`);
        figures['files-connections-closed'] = (figures['files-connections-closed'] ?? 0) + closed;
      }
    } finally {
      await few.remove();
    }
  } finally {
    programs.remove();
  }
  return figures;
}

async function oneAttack(
  server: ServerProcess,
  of: { name: string; random: Random; seed: number; round: number },
): Promise<number> {
  const { name, random } = of;
  const attack = attacks[name] as (attack: Attack) => Promise<void>;
  const cleanup: (() => void)[] = [];
  let count = 0;
  const turnedAway = (): void => {
    count += 1;
  };
  try {
    await onServer({ name: `seed ${of.seed}, round ${of.round}, ${name}`, server }, async () => {
      await attack({ server, random, cleanup, turnedAway });
      expectAlive(server);
      for (const task of cleanup) task();
      await expectServed(server);
    });
  } finally {
    for (const task of cleanup) task();
  }
  return count;
}

function expectAlive({ child }: ServerProcess): void {
  const { exitCode, signalCode } = child;
  if (exitCode !== null || signalCode !== null) {
    throw new Error(`the server died: ${exitCode ?? signalCode}`);
  }
}

/** Checks that a well-behaved client can read and write, however full the server was before. */
async function expectServed(server: ServerProcess): Promise<void> {
  const { token } = server;
  const name = `after-${Math.random().toString(36).slice(2)}`;
  await eventually(async () => {
    expectAlive(server);
    const client = connect(server.url);
    try {
      const body = { metadata: { name }, data: { a: '1' } };
      const made = await client.calls.post(`${namespace}/configmaps`, body, { token });
      if (made.status !== 201) return false;
      const path = `${namespace}/configmaps/${name}`;
      const read = await client.calls.get(path, { token });
      const removed = await client.calls.remove(path, undefined, { token });
      return read.status === 200 && removed.status === 200;
    } catch {
      return false;
    } finally {
      client.close();
    }
  }, 'a normal client served');
}

async function fillStore(server: ServerProcess): Promise<void> {
  const client = connect(server.url);
  for (let at = 0; at < 16; at += 1) {
    const body = { metadata: { name: `large-${at}` }, data: { text: 'x'.repeat(500_000) } };
    const made = await client.calls.post(`${namespace}/configmaps`, body, { token: server.token });
    if (made.status !== 201) throw new Error(`filling the store: ${made.status} ${made.text}`);
  }
  client.close();
}

function session({ server, cleanup }: Attack, settings: http2.Settings = {}) {
  const http2Session = http2.connect(server.url, { rejectUnauthorized: false, settings });
  http2Session.on('error', () => {});
  cleanup.push(() => http2Session.destroy());
  return http2Session;
}

/** Sends a request; settles when it is answered, cut off, or after `patienceMs`. */
function request(
  attack: Attack,
  http2Session: http2.ClientHttp2Session,
  head: http2.OutgoingHttpHeaders,
  body?: Buffer,
): Promise<void> {
  const authorization = `Bearer ${attack.server.token}`;
  if (http2Session.destroyed || http2Session.closed) {
    attack.turnedAway();
    return Promise.resolve();
  }
  const stream = http2Session.request(
    { authorization, ...head },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, patienceMs);
    const settle = (): void => {
      clearTimeout(timer);
      resolve();
    };
    stream.on('response', ({ ':status': status }) => {
      if (Number(status) === 429 || Number(status) === 503) attack.turnedAway();
      settle();
    });
    stream.on('error', settle);
    stream.on('close', () => {
      if (stream.rstCode !== 0) attack.turnedAway();
      settle();
    });
  });
}

const patienceMs = 5000;

async function watchesWithLargeSelectors(attack: Attack): Promise<void> {
  const mark = attack.random.below(1e9);
  for (let connection = 0; connection < 3; connection += 1) {
    const http2Session = session(attack);
    const opened = Array.from({ length: 60 }, (_, at) => {
      const prefix = `${mark}-${connection}-${at}`;
      const terms = Array.from({ length: 1000 }, (_, term) => `k${prefix}-${term}!=v`);
      const query = new URLSearchParams({ watch: 'true', labelSelector: terms.join(',') });
      return request(attack, http2Session, { ':path': `${namespace}/configmaps?${query}` });
    });
    await Promise.all(opened);
  }
}

async function unreadLists(attack: Attack): Promise<void> {
  const all: Promise<void>[] = [];
  for (let connection = 0; connection < 30; connection += 1) {
    const http2Session = session(attack, { initialWindowSize: 0 });
    for (let at = 0; at < 20; at += 1) {
      all.push(request(attack, http2Session, { ':path': `${namespace}/configmaps` }));
    }
  }
  await Promise.all(all);
}

async function halfOpenBodies(attack: Attack): Promise<void> {
  const { hostname, port } = new URL(attack.server.url);
  const piece = Buffer.alloc(64 * 1024, ' ');
  const size = 2 * mebibyte + attack.random.below(mebibyte);
  const closed: Promise<unknown>[] = [];
  for (let at = 0; at < 60; at += 1) {
    const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
    attack.cleanup.push(() => socket.destroy());
    socket.on('error', () => {});
    socket.once('data', (bytes: Buffer) => {
      if (/^HTTP\/1.1 (429|503)/.test(bytes.toString('latin1'))) attack.turnedAway();
    });
    socket.write(
      `POST ${namespace}/configmaps HTTP/1.1\r\nHost: x\r\n` +
        `Authorization: Bearer ${attack.server.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`,
    );
    for (let sent = 0; sent < 2 * mebibyte - piece.length; sent += piece.length) {
      socket.write(piece);
    }
    const over = Promise.race([once(socket, 'drain'), once(socket, 'close'), once(socket, 'data')]);
    closed.push(over.catch(() => {}));
  }
  await Promise.race([Promise.all(closed), pause(patienceMs)]);
}

async function largeObjects(attack: Attack): Promise<void> {
  const keys = 20_000 + attack.random.below(10_000);
  const data = Object.fromEntries(
    Array.from({ length: keys }, (_, at) => [`k${at}`, `value ${at}`]),
  );
  const body = Buffer.from(JSON.stringify({ metadata: { name: 'in-flight' }, data }));
  const all: Promise<void>[] = [];
  const head = {
    ':method': 'POST',
    ':path': `${namespace}/configmaps?dryRun=All`,
    'content-type': 'application/json',
  };
  for (let connection = 0; connection < 5; connection += 1) {
    const http2Session = session(attack);
    for (let at = 0; at < 8; at += 1) all.push(request(attack, http2Session, head, body));
  }
  await Promise.all(all);
}

async function idleConnections(attack: Attack): Promise<void> {
  const { hostname, port } = new URL(attack.server.url);
  const connected: Promise<unknown>[] = [];
  for (let at = 0; at < 500; at += 1) {
    const isTls = attack.random.chance(0.3);
    const to = { host: hostname, port: Number(port) };
    const socket = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connectTcp(to);
    attack.cleanup.push(() => socket.destroy());
    socket.on('error', () => {});
    const event = isTls ? 'secureConnect' : 'connect';
    connected.push(Promise.race([once(socket, event), once(socket, 'close')]).catch(() => {}));
  }
  await Promise.race([Promise.all(connected), pause(patienceMs)]);
  for (const task of attack.cleanup.splice(0)) task();
}

/** A command that runs another command with a limit on open files. */
function withFiles(max: number): readonly string[] {
  return ['/bin/sh', '-c', `ulimit -n ${max} && exec "$@"`, 'sh'];
}

/** Opens more connections than there are file descriptors, and checks that some are served. */
async function fillFiles(
  server: ServerProcess,
  of: { seed: number; round: number },
): Promise<number> {
  const { hostname, port } = new URL(server.url);
  const sockets: Socket[] = [];
  let closed = 0;
  try {
    for (let at = 0; at < 3 * filesMax; at += 1) {
      const socket = connectTcp({ host: hostname, port: Number(port) });
      socket.on('error', () => {});
      socket.on('close', () => {
        closed += 1;
      });
      sockets.push(socket);
    }
    await eventually(
      async () => closed >= filesMax,
      () => `${closed} connections closed`,
    );
    await expectServed(server);
    for (const socket of sockets) socket.destroy();
    await expectServed(server);
  } catch (cause) {
    const at = `seed ${of.seed}, round ${of.round}, files`;
    throw new Error(`${at}: ${String(cause)}\n${server.log().slice(-2000)}`, { cause });
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return closed;
}

async function budgetFigures(server: ServerProcess): Promise<SiegeFigures> {
  const client = connect(server.url);
  const { text } = await client.calls.get('/metrics', { token: server.token });
  client.close();
  return {
    refused: sample(text, 'wheelhouse_memory_budget_refused_total'),
    shed: sample(text, 'wheelhouse_memory_budget_shed_total'),
  };
}

/** The process's peak memory in bytes; 0 if the host does not report it. */
function residentMax({ child }: ServerProcess): number {
  try {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
