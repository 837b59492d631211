import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { http1Client, type LoadClient } from './client.ts';
import { definitions } from './definitions.ts';
import { documents, encodings } from './encodings.ts';
import { leanHttp2Client } from './lean-http2.ts';
import { type Figure, rssMegabytes } from './measure.ts';
import { measurePlanes } from './planes.ts';
import { type Bench, fill, scenarios } from './scenarios.ts';
import { fanOut, fanOutLatency } from './watch.ts';

const usage = `npm run bench -- [options]
  --url URL --token TOKEN   drive this server; without them one of our own is started
  --pid PID,PID             the server's processes, for CPU and memory
  --only NAME,NAME          start documents create get list chunked update patch apply delete
                            encodings watch latency definitions planes
  --seconds N               time for each scenario (3)
  --objects N               objects for lists (10000)
  --protocols LIST          h2,h1 (h2)
  --clients LIST            1,32
  --watchers LIST           1,100,1000
  --definitions N           custom kinds that are defined together (200)
  --json FILE               write every figure there too
`;

interface Options {
  readonly url: string | undefined;
  readonly token: string;
  readonly pids: readonly number[];
  readonly only: ReadonlySet<string>;
  readonly seconds: number;
  readonly objects: number;
  readonly protocols: readonly ('h1' | 'h2')[];
  readonly clients: readonly number[];
  readonly watchers: readonly number[];
  readonly definitions: number;
  readonly json: string | undefined;
}

const everything =
  'start,documents,create,get,list,chunked,update,patch,apply,delete,encodings,watch,latency,definitions,planes';

function readOptions(): Options {
  const text = (value: string) => ({ type: 'string' as const, default: value });
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      token: text(process.env.BENCH_TOKEN ?? ''),
      pid: text(''),
      only: text(everything),
      seconds: text('3'),
      objects: text('10000'),
      protocols: text('h2'),
      clients: text('1,32'),
      watchers: text('1,100,1000'),
      definitions: text('200'),
      json: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    process.exit(0);
  }
  const numbers = (list: string) => list.split(',').map(Number);
  return {
    url: values.url,
    token: values.token,
    pids: values.pid === '' ? [] : numbers(values.pid),
    only: new Set(values.only.split(',')),
    seconds: Number(values.seconds),
    objects: Number(values.objects),
    protocols: values.protocols.split(',').map((protocol) => (protocol === 'h1' ? 'h1' : 'h2')),
    clients: numbers(values.clients),
    watchers: numbers(values.watchers),
    definitions: Number(values.definitions),
    json: values.json,
  };
}

interface Running {
  readonly url: string;
  readonly token: string;
  readonly pids: readonly number[];
  readonly readyMs: number | undefined;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/**
 * Starts the built server on fresh data; `readyMs` is the time from exec to the first 200 of
 * /readyz.
 */
async function startOwn(): Promise<Running> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-bench-'));
  const dataDir = join(directory, 'data');
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const flags = [
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    `--data-dir=${dataDir}`,
    `--cert-dir=${join(directory, 'certs')}`,
    '--authorization-mode=RBAC',
    // The reference's names, so that requests work against any server.
    '--dialect=kubernetes',
  ];
  // With additional authorities, Node reads all that it knows before it runs anything, which adds
  // 40 ms to a start.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const before = performance.now();
  const child = spawn(process.execPath, ['bin/wheelhouse.js', 'serve', ...flags], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  });
  await untilReady(url, child);
  const readyMs = performance.now() - before;
  const token = readFileSync(join(dataDir, 'admin.token'), 'utf8').trim();
  return {
    url,
    token,
    pids: child.pid === undefined ? [] : [child.pid],
    readyMs,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => {
          rmSync(directory, { recursive: true, force: true });
          resolve();
        });
        child.kill('SIGTERM');
      }),
  };
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const end = performance.now() + 30_000;
  while (performance.now() < end) {
    if (child.exitCode !== null) throw new Error(`the server exited with ${child.exitCode}`);
    const client = http1Client({ url, token: '' });
    try {
      const answer = await client.request({ method: 'GET', path: '/readyz' });
      if (answer.status === 200) return;
    } catch {
      // not listening yet
    } finally {
      client.close();
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  throw new Error('the server was not ready in 30 s');
}

/**
 * Creates clients once, replaces those whose connection was closed, and closes all of them at the
 * end.
 */
function clientPool(target: { url: string; token: string }, protocol: 'h1' | 'h2') {
  const made: LoadClient[] = [];
  const make = protocol === 'h1' ? http1Client : leanHttp2Client;
  return {
    clientsOf(count: number): readonly LoadClient[] {
      for (let at = 0; at < count; at += 1) {
        if (made[at]?.isOpen() !== true) made[at] = make(target);
      }
      return made.slice(0, count);
    },
    close: () => {
      for (const client of made) client.close();
    },
  };
}

async function main(): Promise<void> {
  const options = readOptions();
  const running: Running =
    options.url === undefined
      ? await startOwn()
      : { ...options, url: options.url, readyMs: undefined, stop: async () => {} };
  const figures: Figure[] = [];
  const report = (figure: Figure) => {
    figures.push(figure);
    process.stdout.write(`${row(figure)}\n`);
  };
  process.stdout.write(`${machine()}\n${header}\n`);
  if (running.readyMs !== undefined && options.only.has('start')) reportStart(running, report);
  try {
    for (const protocol of options.protocols) {
      await runProtocol(running, protocol, options, async (bench) => {
        await runRequests(bench, options, report);
        await runWatches(bench, options, report);
      });
    }
    if (options.only.has('definitions')) {
      // Definitions are larger than a frame that the client for HTTP/2 sends.
      await runProtocol(running, 'h1', options, (bench) =>
        definitions(bench, { count: options.definitions, report }),
      );
    }
  } finally {
    await running.stop();
  }
  if (options.url === undefined && options.only.has('planes')) await measurePlanes(report);
  if (options.json !== undefined) {
    writeFileSync(options.json, `${JSON.stringify({ machine: machine(), figures }, null, 2)}\n`);
  }
}

function reportStart(running: Running, report: (figure: Figure) => void): void {
  const ms = running.readyMs ?? 0;
  report({
    name: 'exec to readyz 200, fresh data',
    protocol: 'h1',
    clients: 1,
    operations: 1,
    seconds: ms / 1000,
    perSecond: 0,
    p50Ms: ms,
    p99Ms: ms,
    cpuMsPerOperation: undefined,
    megabytesPerSecond: undefined,
    rssMegabytes: rssMegabytes(running.pids),
  });
}

async function runProtocol(
  running: Running,
  protocol: 'h1' | 'h2',
  options: Options,
  run: (bench: Bench) => Promise<void>,
): Promise<void> {
  const pool = clientPool(running, protocol);
  const namespace = `bench-${protocol}-${Date.now().toString(36)}`;
  const bench: Bench = {
    clientsOf: pool.clientsOf,
    protocol,
    pids: running.pids,
    seconds: options.seconds,
    namespace,
    path: `/api/v1/namespaces/${namespace}/configmaps`,
  };
  const body = Buffer.from(
    JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }),
  );
  try {
    await pool.clientsOf(1)[0]!.request({ method: 'POST', path: '/api/v1/namespaces', body });
    await run(bench);
  } finally {
    pool.close();
  }
}

async function runRequests(
  bench: Bench,
  options: Options,
  report: (figure: Figure) => void,
): Promise<void> {
  const { only, objects } = options;
  const needsObjects = ['get', 'list', 'chunked', 'update', 'patch', 'apply', 'encodings'];
  if (only.has('documents')) await documents(bench, { report });
  if (only.has('list')) {
    await fill(bench, 1000);
    for (const clients of options.clients) {
      report(await scenarios(bench, 'l', 1000).list(clients));
    }
  }
  if (needsObjects.some((name) => only.has(name))) await fill(bench, objects);
  if (only.has('encodings')) await encodings(bench, { objects, report });
  for (const clients of options.clients) {
    const all = scenarios(bench, `r${clients}`, objects);
    if (only.has('get')) report(await all.get(clients));
    if (only.has('list')) report(await all.list(clients));
    if (only.has('chunked')) report(await all.chunkedList(clients));
    if (only.has('update')) report(await all.update(clients));
    if (only.has('patch')) report(await all.mergePatch(clients));
    if (only.has('patch')) report(await all.jsonPatch(clients));
    if (only.has('apply')) report(await all.apply(clients));
    if (!only.has('create')) continue;
    const created = await all.create(clients);
    report(created);
    if (only.has('delete')) report(await all.remove(clients, created.operations));
  }
}

async function runWatches(
  bench: Bench,
  options: Options,
  report: (figure: Figure) => void,
): Promise<void> {
  const connections = 16;
  for (const watchers of options.watchers) {
    const run = `${watchers}-${bench.protocol}`;
    const some = { watchers, run, connections: Math.min(watchers, connections) };
    if (options.only.has('watch')) report(await fanOut(bench, { ...some, writers: 8 }));
    if (options.only.has('latency')) {
      report(await fanOutLatency(bench, { ...some, writesPerSecond: 5 }));
    }
  }
}

function machine(): string {
  const model = cpus()[0]?.model ?? 'unknown';
  const memory = /MemTotal:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? '0';
  const gigabytes = Math.round(Number(memory) / 1024 / 1024);
  const date = new Date().toISOString().slice(0, 10);
  return `${cpus().length} x ${model}, ${gigabytes} GiB, Node ${process.version}, ${date}`;
}

const columns = [54, 4, 4, 10, 9, 9, 11, 8, 7];
const header = line([
  'what',
  'http',
  'cl',
  'per s',
  'p50 ms',
  'p99 ms',
  'CPU ms/op',
  'MB/s',
  'RSS',
]);

function line(cells: readonly string[]): string {
  const pad = (cell: string, index: number) =>
    index === 0 ? cell.padEnd(columns[0] ?? 0) : cell.padStart(columns[index] ?? 0);
  return cells.map(pad).join(' ');
}

function row(figure: Figure): string {
  const shown = (value: number | undefined, digits: number) =>
    value === undefined ? '-' : value.toFixed(digits);
  return line([
    figure.note === undefined ? figure.name : `${figure.name} (${figure.note})`,
    figure.protocol,
    String(figure.clients),
    shown(figure.perSecond, 1),
    shown(figure.p50Ms, 2),
    shown(figure.p99Ms, 2),
    shown(figure.cpuMsPerOperation, 4),
    shown(figure.megabytesPerSecond, 1),
    shown(figure.rssMegabytes, 0),
  ]);
}

await main();
