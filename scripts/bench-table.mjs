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

const rates = { unit: 'per second', of: ({ perSecond }) => perSecond };
const medians = { unit: 'ms', of: ({ p50Ms }) => p50Ms };

/** A table that compares servers by one figure and the CPU time of each scenario. */
function comparedBy({ unit, of }, { servers, head, first = [] }) {
  const { reference, wheelhouse, 'wheelhouse-on-etcd': onEtcd } = servers;
  const columns = [reference, wheelhouse, onEtcd];
  const rows = reference.figures.map(({ name, clients }, index) => {
    const cells = columns.map(({ figures }) => {
      const figure = figures[index];
      return `${digits(of(figure))} | ${digits(figure.cpuMsPerOperation)}`;
    });
    return `| ${name} | ${clients} | ${cells.join(' | ')} |`;
  });
  const memory = columns.map(({ figures }) => `${digits(figures.at(-1).rssMegabytes)} MB | `);
  const names = ['kube-apiserver', 'Wheelhouse', 'Wheelhouse on etcd'];
  return [
    ...head,
    '',
    `| what | clients | ${names.map((name) => `${name}, ${unit} | CPU, ms`).join(' | ')} |`,
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    ...first.map((row) => row(columns)),
    ...rows,
    `| resident memory at the end |  | ${memory.join(' | ')} |`,
  ].join('\n');
}

const measuredOn = ({ machine, rounds, servers }) =>
  `Measured on ${machine}: medians of ${rounds} rounds against kube-apiserver ${servers.reference.version}`;

/** The table that compares servers in requests of single objects, lists, and watches. */
function comparisonOf(results) {
  const starts = (columns) =>
    `| exec to readyz 200 | 1 | ${columns.map(({ readyMs }) => `${digits(readyMs)} ms | `).join(' | ')} |`;
  const how =
    'on etcd 3.5 (`node scripts/peers/bench.mjs`). Each server starts on fresh data with the same flags.';
  const head = [measuredOn(results), how];
  return comparedBy(rates, { servers: results.servers, head, first: [starts] });
}

/** The table that compares servers with many definitions of custom kinds. */
function definitionsOf(results) {
  const how =
    'on etcd 3.5 (`node scripts/peers/bench.mjs definitions`). Times are medians in milliseconds.';
  return comparedBy(medians, { servers: results.servers, head: [measuredOn(results), how] });
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
