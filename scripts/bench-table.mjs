// `npm run bench:table`: writes the figures of the newest file in bench/results/ into bench/RESULTS.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const page = join(root, 'bench', 'RESULTS.md');
const [begin, end] = ['<!-- figures:begin -->', '<!-- figures:end -->'];

/** Formats three significant digits; an absent figure or 0 becomes empty. */
const digits = (value) =>
  value === undefined || value === 0 ? '' : Number(value.toPrecision(3)).toLocaleString('en-US');

/** The rate of repeated operations; an operation that runs once has none. */
const rate = ({ operations, perSecond }) => (operations > 1 ? digits(perSecond) : '');

/** The table of one file of results, with the machine on which it was measured. */
export function tableOf({ machine, figures }) {
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

/** The page with the table of the newest results. */
export function pageWithFigures(text) {
  const folder = join(root, 'bench', 'results');
  const newest = readdirSync(folder).sort().at(-1);
  const table = tableOf(JSON.parse(readFileSync(join(folder, newest), 'utf8')));
  const [before, rest] = text.split(begin);
  const [, after] = rest.split(end);
  return `${before}${begin}\n${table}\n${end}${after}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(page, pageWithFigures(readFileSync(page, 'utf8')));
}
