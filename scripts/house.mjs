// `npm run house`: measures the sources and writes the table of docs/ARCHITECTURE.md: sizes, what
// the rules of style count, and how many files and functions a request of each kind executes.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { executedBy } from './executed.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const page = join(root, 'docs', 'ARCHITECTURE.md');
const [begin, end] = ['<!-- house:begin -->', '<!-- house:end -->'];

function filesUnder(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory())
      return ['node_modules', 'dist'].includes(entry.name) ? [] : filesUnder(path);
    return /\.tsx?$/.test(path) ? [path] : [];
  });
}

const isTest = (path) =>
  /(\.(test|fuzz|bench|fixture)|suite|testing|harness)\.ts$/.test(path) || path.startsWith('test/');

const textOf = (path) => readFileSync(join(root, path), 'utf8');

const read = (path) => {
  const text = textOf(path);
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
  return { path, text, counts: countsOf({ path, tree }) };
};

function visit(node, look) {
  look(node);
  ts.forEachChild(node, (child) => visit(child, look));
}

/** Names that say nothing of a value. */
const vague = new Set(['told', 'known', 'asked', 'held', 'given']);

/** Counts what the table sums in one file. */
export function countsOf({ path, tree }) {
  const counts = { casts: 0, doubleCasts: 0, vague: 0, imports: [] };
  visit(tree, (node) => {
    if (ts.isAsExpression(node) && node.type.getText(tree) !== 'const') {
      counts.casts += 1;
      if (ts.isAsExpression(node.expression)) counts.doubleCasts += 1;
    }
    const declares = ts.isVariableDeclaration(node) || ts.isParameter(node);
    const named = declares || ts.isBindingElement(node) || ts.isFunctionDeclaration(node);
    if (named && node.name !== undefined && ts.isIdentifier(node.name)) {
      if (vague.has(node.name.text)) counts.vague += 1;
    }
    const from = ts.isImportDeclaration(node) || ts.isExportDeclaration(node);
    const target = from ? node.moduleSpecifier : undefined;
    if (target?.text.startsWith('.')) {
      counts.imports.push(join(dirname(path), target.text));
    }
  });
  return counts;
}

/**
 * `[what, value, goal]` of each size of the sources.
 * @param options.sourceOf returns the path, the text, and the result of `countsOf` of a file
 */
export function measuredSizes({ sourceOf = read } = {}) {
  const code = filesUnder('packages').filter((path) => !isTest(path) && !path.includes('/gen/'));
  const sources = code.map(sourceOf);
  const sum = (name) => sources.reduce((total, { counts }) => total + counts[name], 0);
  const importers = new Map();
  for (const { path, counts } of sources) {
    if (/\/(index|testing|browser|lazy)\.ts$/.test(path)) continue;
    for (const target of new Set(counts.imports)) {
      importers.set(target, (importers.get(target) ?? 0) + 1);
    }
  }
  const folders = new Map();
  for (const path of code) folders.set(dirname(path), (folders.get(dirname(path)) ?? 0) + 1);
  const [largest, files] = [...folders].sort((left, right) => right[1] - left[1])[0];
  const tests = filesUnder('packages').concat(filesUnder('test')).filter(isTest);
  const loose = tests.reduce(
    (total, path) => total + textOf(path).split(/\bLoose\b/).length - 1,
    0,
  );
  const lines = sources.reduce((total, { text }) => total + text.split('\n').length - 1, 0);
  return [
    ['source files, written by hand, without tests', code.length, 650],
    ['their lines', lines, 110_000],
    [
      'files that exactly one other file imports',
      [...importers.values()].filter((n) => n === 1).length,
      150,
    ],
    [`files of the largest folder (\`${largest.replace('packages/', '')}\`)`, files, 25],
    ['casts', sum('casts'), 300],
    ['double casts', sum('doubleCasts'), 0],
    ['mentions of `Loose` in tests', loose, 0],
    ['declarations named `told`, `known`, `asked`, `held`, or `given`', sum('vague'), 0],
  ];
}

const goals = { GET: '40 files', create: '80 files', apply: '85 files' };

const number = (value) => value.toLocaleString('en-US');

function tableOf(rows, executed) {
  return [
    '| measure | current | goal |',
    '|---|---|---|',
    ...rows.map(([what, value, goal]) => `| ${what} | ${number(value)} | ${number(goal)} |`),
    ...executed.map(({ request, files, functions }) => {
      const goal = goals[request] ?? '';
      return `| executed by a warm ${request} | ${files} files, ${functions} functions | ${goal} |`;
    }),
  ].join('\n');
}

async function writeTable() {
  const text = readFileSync(page, 'utf8');
  const [before, rest = ''] = text.split(begin);
  const [, after = ''] = rest.split(end);
  const table = tableOf(measuredSizes(), await executedBy(root));
  writeFileSync(page, `${before}${begin}\n${table}\n${end}${after}`);
  console.log(table);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeTable();
