// `npm run bench:table`: writes the figures of the newest files in bench/results/,
// bench/comparison/, and bench/definitions/ into bench/RESULTS.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const page = join(root, 'bench', 'RESULTS.md');
/** Formats three significant digits; an absent figure or 0 becomes empty. */
const digits = (value) =>
  value === undefined || value === 0 ? '' : Number(value.toPrecision(3)).toLocaleString('en-US');

/** The rate of repeated operations; an operation that runs once has none. */
const rate = ({ operations, perSecond }) => (operations > 1 ? digits(perSecond) : '');

/** The table of one file of results, with the machine on which it was measured. */
function tableOf({ machine, figures }) {
  const head = [
    `Measured on ${machine} (\`npm run bench\`).`,
    '',
    '| what | clients | per second | median, ms | 99th percentile, ms | server CPU per operation, ms | RSS, MB |',
    '|---|---:|---:|---:|---:|---:|---:|',
  ];
  const rows = figures.map((figure) => {
    const { name, clients, p50Ms, p99Ms, cpuMsPerOperation, rssMegabytes } = figure;
    const cells = [p50Ms, p99Ms, cpuMsPerOperation, rssMegabytes].map(digits);
    return `| ${name} | ${clients} | ${rate(figure)} | ${cells.join(' | ')} |`;
  });
  return [...head, ...rows].join('\n');
}

/** The table that compares servers, in the order of their columns. */
function comparisonOf({ machine, rounds, servers }) {
  const { reference, wheelhouse, 'wheelhouse-on-etcd': onEtcd } = servers;
  const columns = [reference, wheelhouse, onEtcd];
  const starts = columns.map(({ readyMs }) => `${digits(readyMs)} ms | `);
  const rows = reference.figures.map(({ name, clients }, index) => {
    const cells = columns.map(({ figures }) => {
      const { perSecond, cpuMsPerOperation } = figures[index];
      return `${digits(perSecond)} | ${digits(cpuMsPerOperation)}`;
    });
    return `| ${name} | ${clients} | ${cells.join(' | ')} |`;
  });
  const memory = columns.map(({ figures }) => `${digits(figures.at(-1).rssMegabytes)} MB | `);
  return [
    `Measured on ${machine}: medians of ${rounds} rounds against kube-apiserver ${reference.version}`,
    'on etcd 3.5 (`node scripts/peers/bench.mjs`). Each server starts on fresh data with the same flags.',
    '',
    '| what | clients | kube-apiserver, per second | CPU, ms | Wheelhouse, per second | CPU, ms | Wheelhouse on etcd, per second | CPU, ms |',
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    `| exec to readyz 200 | 1 | ${starts.join(' | ')} |`,
    ...rows,
    `| resident memory at the end |  | ${memory.join(' | ')} |`,
  ].join('\n');
}

/** The table that compares servers with many definitions of custom kinds. */
function definitionsOf({ machine, rounds, servers }) {
  const { reference, wheelhouse, 'wheelhouse-on-etcd': onEtcd } = servers;
  const columns = [reference, wheelhouse, onEtcd];
  const rows = reference.figures.map(({ name, clients }, index) => {
    const cells = columns.map(({ figures }) => {
      const { p50Ms, cpuMsPerOperation } = figures[index];
      return `${digits(p50Ms)} | ${digits(cpuMsPerOperation)}`;
    });
    return `| ${name} | ${clients} | ${cells.join(' | ')} |`;
  });
  const memory = columns.map(({ figures }) => `${digits(figures.at(-1).rssMegabytes)} MB | `);
  return [
    `Measured on ${machine}: medians of ${rounds} rounds against kube-apiserver ${reference.version}`,
    'on etcd 3.5 (`node scripts/peers/bench.mjs definitions`). Times are medians in milliseconds.',
    '',
    '| what | clients | kube-apiserver, ms | CPU, ms | Wheelhouse, ms | CPU, ms | Wheelhouse on etcd, ms | CPU, ms |',
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    ...rows,
    `| resident memory at the end |  | ${memory.join(' | ')} |`,
  ].join('\n');
}

/** Replaces what is between two markers of the page by a table of the newest file of a folder. */
function withTable(text, { marker, folder, table }) {
  const path = join(root, 'bench', folder);
  const newest = readdirSync(path).sort().at(-1);
  const [begin, end] = [`<!-- ${marker}:begin -->`, `<!-- ${marker}:end -->`];
  const [before, rest] = text.split(begin);
  const [, after] = rest.split(end);
  const made = table(JSON.parse(readFileSync(join(path, newest), 'utf8')));
  return `${before}${begin}\n${made}\n${end}${after}`;
}

/** The page with the tables of the newest results. */
export function pageWithFigures(text) {
  const figures = withTable(text, { marker: 'figures', folder: 'results', table: tableOf });
  const comparison = { marker: 'comparison', folder: 'comparison', table: comparisonOf };
  const definitions = { marker: 'definitions', folder: 'definitions', table: definitionsOf };
  return withTable(withTable(figures, comparison), definitions);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(page, pageWithFigures(readFileSync(page, 'utf8')));
}
