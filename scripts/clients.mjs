// Writes docs/CLIENTS.md from the results of scripts/peers. With --check it writes nothing, and
// only reports whether the page is current.
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

function differencesOf({ program, differences }) {
  if (differences.length === 0) return [];
  const entries = differences.map(({ what, reason }) => `- ${what} ${reason}`);
  return ['', `### ${program}`, '', ...entries];
}

/** The page as it should be. */
export function clientsPage() {
  const results = storedResults();
  const left = results.flatMap(differencesOf);
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
