// Writes docs/CONFORMANCE.md: which requirement is proved by which test over HTTP. A test proves
// the rows at the start of its title (`LIST-1, LIST-2: …`); a row's `missing` in requirements.json
// lists what no test can prove because it is not implemented. With --check, writes nothing and only
// reports whether the page is current.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const page = join(root, 'docs', 'CONFORMANCE.md');

function testFiles(folder) {
  return readdirSync(join(root, folder))
    .sort()
    .flatMap((name) => {
      const path = `${folder}/${name}`;
      if (statSync(join(root, path)).isDirectory()) return testFiles(path);
      return path.endsWith('.test.ts') ? [path] : [];
    });
}

/** Matches a title in a call of test or test.each(…), but not in skipped ones or in describe. */
const titled = /(?<!describe|skip|todo)\(\s*(['"`])([A-Z]+-\d+(?:,\s*[A-Z]+-\d+)*):\s/g;

function proofs() {
  const found = new Map();
  for (const path of testFiles('test')) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, , ids] of text.matchAll(titled)) {
      for (const id of ids.split(/,\s*/)) {
        const files = found.get(id) ?? new Map();
        files.set(path, (files.get(path) ?? 0) + 1);
        found.set(id, files);
      }
    }
  }
  return found;
}

/** What each kind omits of upstream's rules, from docs/kinds-left-out.json. */
function leftOut() {
  const kinds = JSON.parse(readFileSync(join(root, 'docs', 'kinds-left-out.json'), 'utf8'));
  const nameOf = ({ kind, group }) => (group === '' ? kind : `${kind}.${group}`);
  const names = kinds.map(nameOf);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  if (twice.length > 0) throw new Error(`kinds-left-out.json has twice: ${twice.join(', ')}`);
  return kinds.map((entry) => `| ${nameOf(entry)} | ${entry.leftOut.join('. ')}. |`);
}

/** The text that the page must have. Throws if a test names a row that does not exist. */
function conformancePage() {
  const rows = JSON.parse(readFileSync(join(root, 'docs', 'requirements.json'), 'utf8'));
  const found = proofs();
  const unknown = [...found.keys()].filter((id) => !rows.some((row) => row.id === id));
  if (unknown.length > 0) throw new Error(`tests name unknown rows: ${unknown.join(', ')}`);
  const lines = rows.map(({ id, summary, missing }) => {
    const files = found.get(id);
    const state =
      files === undefined
        ? 'not done'
        : [...files].map(([path, count]) => `[${count}](../${path})`).join(' ');
    const rest = missing === undefined || files === undefined ? '' : `; not done: ${missing}`;
    return `| ${id} | ${summary} | ${state}${rest} |`;
  });
  return `# Conformance

The requirements, and the tests over HTTP that prove them. \`npm run conformance\` writes this page from
the titles of the tests; a test fails if the page is outdated.

${found.size} of ${rows.length} rows have a test. Each number counts a file's tests for the row.

| row | requirement | tests |
|---|---|---|
${lines.join('\n')}

## Omissions in built-in kinds

Defaults, validation rules, and warnings of kube-apiserver 1.32, with default feature gates, that are known to
be missing. The list is \`kinds-left-out.json\`.
[decisions/values-in-errors.md](decisions/values-in-errors.md) describes how errors show values and
differences.

| kind | missing |
|---|---|
${leftOut().join('\n')}
`;
}

/** Whether the committed page matches the tests. */
function conformanceIsTrue() {
  try {
    return readFileSync(page, 'utf8') === conformancePage();
  } catch (error) {
    if (error.code === 'ENOENT') return false;
    throw error;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv.includes('--check')) writeFileSync(page, conformancePage());
  else if (!conformanceIsTrue()) {
    console.error('docs/CONFORMANCE.md is out of date: run npm run conformance');
    process.exitCode = 1;
  }
}
