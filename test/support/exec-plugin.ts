import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A credential plugin for tests: a program whose output the test determines. */
export interface ExecPlugin {
  /** The program's file. */
  readonly command: string;
  readonly folder: string;
  /** Sets the output of later runs: a string is printed unchanged, any other value as JSON. */
  answers(output: unknown): void;
  /** Sets JavaScript that later runs execute first. */
  does(script: string): void;
  /** The input of each run so far. */
  runs(): readonly PluginCall[];
  remove(): void;
}

export interface PluginCall {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const program = `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const call = { args: process.argv.slice(2), env: process.env };
appendFileSync(join(__dirname, 'runs'), JSON.stringify(call) + '\\n');
eval(readFileSync(join(__dirname, 'script'), 'utf8'));
process.stdout.write(readFileSync(join(__dirname, 'answer'), 'utf8'));
`;

/** Writes the program to a new folder. */
export function makeExecPlugin(): ExecPlugin {
  const folder = mkdtempSync(join(tmpdir(), 'exec-plugin-'));
  const file = (name: string) => join(folder, name);
  const command = file('plugin.cjs');
  writeFileSync(command, program);
  chmodSync(command, 0o700);
  for (const name of ['runs', 'script', 'answer']) writeFileSync(file(name), '');
  return {
    command,
    folder,
    answers: (output) =>
      writeFileSync(file('answer'), typeof output === 'string' ? output : JSON.stringify(output)),
    does: (script) => writeFileSync(file('script'), script),
    runs: () =>
      readFileSync(file('runs'), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
