// The files of results from which docs/CLIENTS.md is generated.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'results');

/**
 * One program's results:
 *
 * - `program`, `version`: what was run
 * - `what`: what it was made to do, in one or two sentences
 * - `script`: the script of this folder that ran it
 * - `reference`, `wheelhouse`: the outcome on each server, a short text
 * - `differences`: entries of `{ what, reason }`, one for every difference that is left
 */
export function writeResult(name, result) {
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
}

/** The stored result of one name; undefined if absent. */
export function storedResult(name) {
  return storedResults().find((result) => result.name === name);
}

/** All stored results, by name. */
export function storedResults() {
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return files.sort().map((file) => ({
    name: file.slice(0, -'.json'.length),
    ...JSON.parse(readFileSync(join(folder, file), 'utf8')),
  }));
}
