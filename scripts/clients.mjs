// Writes docs/CLIENTS.md from the results of scripts/peers. With --check, writes nothing and only
// reports whether the page is current.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedResults } from './peers/results.mjs';

const page = join(dirname(fileURLToPath(import.meta.url)), '..', 'docs', 'CLIENTS.md');

const introduction = `# Clients

Other people's programs, run unmodified against the reference, kube-apiserver 1.32, and against
Wheelhouse with \`--dialect=kubernetes\`. The scripts are in [scripts/peers](../scripts/peers); this
page is generated from their results by \`npm run clients\`. It lists only what was run.
`;

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function row({ program, version, what, reference, wheelhouse }) {
  return `| ${[program, version, what, reference, wheelhouse].map(cell).join(' | ')} |`;
}

/** The differences of one program, each once, with the versions that have it unless all do. */
function differencesOf(results) {
  const versionsByEntry = new Map();
  for (const { version, differences } of results) {
    for (const { what, reason } of differences) {
      const entry = `${what} ${reason}`;
      versionsByEntry.set(entry, [...(versionsByEntry.get(entry) ?? []), version]);
    }
  }
  return [...versionsByEntry].map(([entry, versions]) =>
    versions.length === results.length ? `- ${entry}` : `- With ${versions.join(', ')}: ${entry}`,
  );
}

function section([program, results]) {
  const entries = differencesOf(results);
  return entries.length === 0 ? [] : ['', `### ${program}`, '', ...entries];
}

function byProgram(results) {
  const groups = new Map();
  for (const result of results) {
    groups.set(result.program, [...(groups.get(result.program) ?? []), result]);
  }
  return [...groups];
}

/** The text that the page must have. */
function clientsPage() {
  const results = storedResults();
  const left = byProgram(results).flatMap(section);
  return [
    introduction,
    '| Program | Version | What ran | Reference | Wheelhouse |',
    '|---|---|---|---|---|',
    ...results.map(row),
    '',
    '## Differences',
    ...(left.length === 0 ? ['', 'None.'] : left),
    '',
  ].join('\n');
}

const wanted = clientsPage();
if (!process.argv.includes('--check')) {
  writeFileSync(page, wanted);
} else if (readFileSync(page, 'utf8') !== wanted) {
  console.error('docs/CLIENTS.md is not current: run `npm run clients`');
  process.exitCode = 1;
}
