// Code that the sessions of command-line programs and of client libraries share: removing variable
// parts from output, and comparing two outputs.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedResult, writeResult } from './results.mjs';

const folder = dirname(fileURLToPath(import.meta.url));

/** The lines of a file of this folder that are neither empty nor comments. */
export function sessionLines(name) {
  const lines = readFileSync(join(folder, name), 'utf8').split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

/** The words of a line; `+` stands for a space inside a word. */
export function wordsOf(line) {
  return line.split(' ').map((word) => word.replaceAll('+', ' ').replace(/^\s$/, '+'));
}

const sorted = (text, start) => {
  const blocks = text.split(start).map((block) => block.trimEnd());
  return `${blocks.sort().join('\n')}\n`;
};

/**
 * Sorts the parts of the output that have no fixed order: causes of a validation error, for which
 * the reference iterates the fields of a schema in random order, and the data that `describe`
 * prints.
 */
const withOrderedParts = (output) =>
  output
    .replace(/(?:^\* .*\n){2,}/gm, (causes) => sorted(causes, /^(?=\* )/m))
    .replace(/(?:^\S+:\n----\n.*\n\n?){2,}/gm, (data) => sorted(data, /^(?=\S+:\n----\n)/m));

/** Removes names, times, addresses, and numbers that differ from run to run from the output. */
export function plain(output, server) {
  return withOrderedParts(output)
    .replaceAll(server.directory, 'DIR')
    .replace(/127\.0\.0\.1:\d+/g, 'HOST')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)/g, 'TIME')
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME')
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, 'TIME')
    .replace(/\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}/g, 'TIME')
    .replace(/(resourceVersion\W+|Resource Version: +)\d+/g, '$1RV')
    .replace(/(Too large resource version: \d+, current: )\d+/g, '$1RV')
    .replace(/(LIVE|MERGED)-\d+/g, '$1')
    .replace(/\d{4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4})?( UTC)?/g, 'TIME')
    .replaceAll(new URL(server.url).port, 'PORT')
    .replace(/\b10\.0\.0\.\d+\b/g, 'CLUSTER-IP')
    .replace(/eyJ[\w.-]+/g, 'TOKEN')
    .replace(/:3\d{4}\//g, ':NODE-PORT/')
    .replace(/(?<=\s)(\d+[smh])+(?=\s|$)/gm, 'AGE')
    .replace(/<unknown>|<invalid>/g, 'AGE')
    .replace(/[IWE]\d{4} [\d:.]+\s+\d+ /g, 'LOG ')
    .replace(/ +/g, ' ')
    .replace(/ \t/g, '\t');
}

/** A value with the members of its objects sorted, and the entries of managers by their names. */
export function ordered(value) {
  const keyOf = ({ manager, subresource = '' }) => `${manager} ${subresource}`;
  const managers = (entries) =>
    entries.map(ordered).sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(
    members.map(([name, member]) => [
      name,
      name === 'managedFields' ? managers(member) : ordered(member),
    ]),
  );
}

function lineDifferences(there, here) {
  const [left, right] = [there, here].map((text) => text.split('\n'));
  const missing = left.filter((line) => !right.includes(line)).map((line) => `  - ${line}`);
  const extra = right.filter((line) => !left.includes(line)).map((line) => `  + ${line}`);
  return [...missing.slice(0, 12), ...extra.slice(0, 12)];
}

function keepOutputs(name, sides) {
  const to = mkdtempSync(join(tmpdir(), `peers-${name}-`));
  for (const [side, outputs] of Object.entries(sides)) {
    const steps = Object.entries(outputs).map(([step, output]) => `## ${step}\n${output}`);
    writeFileSync(join(to, `${side}.txt`), steps.join('\n'));
  }
  console.log(`outputs are in ${to}`);
}

/**
 * Compares the outputs of a session by step, prints the differences, and writes the results.
 *
 * @param options.sides the outputs of `reference` and `wheelhouse`; nothing is compared if one of
 * them is missing
 * @param options.step the plural noun for a step
 */
export function compareSession({ name, program, version, script, what, step, sides }) {
  const { reference, wheelhouse } = sides;
  if (process.env.PEERS_KEEP) keepOutputs(name, sides);
  if (reference === undefined || wheelhouse === undefined) return;
  const all = [...new Set([...Object.keys(reference), ...Object.keys(wheelhouse)])];
  const different = all.filter((key) => wheelhouse[key] !== reference[key]);
  for (const key of different) {
    const [there, here] = [reference[key] ?? 'never run', wheelhouse[key] ?? 'never run'];
    console.log([`${name} ${key}`, ...lineDifferences(there, here)].join('\n'));
  }
  const same = all.length - different.length;
  writeResult(name, {
    program,
    version,
    script,
    what: `${what} of ${all.length} ${step}, their output compared line by line.`,
    reference: `${Object.keys(reference).length} ${step}`,
    wheelhouse: `${same} of ${all.length} ${step} print the same`,
    differences: storedResult(name)?.differences ?? [],
  });
}
