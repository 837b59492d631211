// Runs `npm run bench` against kube-apiserver and against Wheelhouse, on the embedded store and on
// etcd, in turn on one machine; writes the medians to bench/comparison/, from which
// `npm run bench:table` makes the second table of bench/RESULTS.md. With the argument `definitions`
// it measures definitions of custom kinds instead, for bench/definitions/ and the third table.
// BENCH_ROUNDS sets the number of rounds (3). Other arguments go to the load generator.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from '../build.mjs';
import { startReference, startWheelhouse } from './servers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const rounds = Number(process.env.BENCH_ROUNDS ?? '3');
const args = process.argv.slice(2);
const [folderName, scenarios] =
  args[0] === 'definitions'
    ? ['definitions', args.shift()]
    : ['comparison', 'list,get,chunked,update,patch,apply,create,delete,watch'];
/** Later arguments win. */
const usual = [
  '--only',
  scenarios,
  '--objects',
  '2000',
  '--clients',
  '1,16',
  '--watchers',
  '1,100',
];

const targets = {
  reference: () => startReference(),
  wheelhouse: () => startWheelhouse(),
  'wheelhouse-on-etcd': () => startWheelhouse({ store: 'etcd' }),
};

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** The median of each figure over the runs of one target, by scenario. */
function mediansOf(runs) {
  return runs[0].map((figure, index) => {
    const of = (name) => median(runs.map((run) => run[index][name]));
    const { name, clients } = figure;
    return {
      name,
      clients,
      perSecond: of('perSecond'),
      p50Ms: of('p50Ms'),
      cpuMsPerOperation: of('cpuMsPerOperation'),
      rssMegabytes: of('rssMegabytes'),
    };
  });
}

/** Runs the load generator against a server; resolves with the machine and its figures. */
async function drive(server, { file }) {
  const to = ['--url', server.url, '--token', server.token, '--pid', server.pids.join(',')];
  const all = ['scripts/bench.mjs', ...to, ...usual, ...args, '--json', file];
  const child = spawn(process.execPath, all, { cwd: root, stdio: 'inherit' });
  const code = await new Promise((resolve) => child.on('exit', resolve));
  if (code !== 0) throw new Error(`the load generator failed against ${server.name}`);
  return JSON.parse(readFileSync(file, 'utf8'));
}

await build();
const target = join(root, 'bench', folderName);
mkdirSync(target, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'bench-peers-'));
const results = {};
let measuredOn = '';
try {
  for (let round = 1; round <= rounds; round += 1) {
    for (const [name, start] of Object.entries(targets)) {
      const server = await start();
      if (server === undefined) throw new Error('a comparison needs all servers');
      const readyMs = Math.round(server.readyMs);
      console.log(`round ${round}: ${name} ${server.version}, ready in ${readyMs} ms`);
      try {
        const { machine, figures } = await drive(server, { file: join(folder, 'run.json') });
        measuredOn = machine;
        const before = results[name] ?? { readyMs: [], runs: [] };
        results[name] = {
          version: server.version,
          readyMs: [...before.readyMs, server.readyMs],
          runs: [...before.runs, figures],
        };
      } finally {
        await server.stop();
      }
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const servers = Object.fromEntries(
  Object.entries(results).map(([name, { version, readyMs, runs }]) => [
    name,
    { version, readyMs: median(readyMs), figures: mediansOf(runs) },
  ]),
);
const day = new Date().toISOString().slice(0, 10);
const text = JSON.stringify({ machine: measuredOn, rounds, servers }, undefined, 2);
writeFileSync(join(target, `${day}.json`), `${text}\n`);
