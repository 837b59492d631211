import { describe, expect, test } from 'vitest';
import type { Command } from './command.ts';
import { loadCommand, loadCommands } from './commands.ts';
import { globalFlags } from './session.ts';

/** A command and its subcommands, each with the words that select it. */
function* walk(command: Command, path: readonly string[] = []): Generator<[string, Command]> {
  const words = [...path, command.name];
  yield [words.join(' '), command];
  for (const subcommand of command.subcommands ?? []) yield* walk(subcommand, words);
}

describe('CLIENT-1: the commands', () => {
  test('CLIENT-1: each is found only by its name', async () => {
    for (const { name } of await loadCommands()) {
      expect((await loadCommand(name)).map((command) => command.name)).toEqual([name]);
    }
    for (const name of ['nope', '', 'constructor', '__proto__']) {
      expect(await loadCommand(name)).toEqual([]);
    }
  });

  test('CLIENT-1: names and flags are unique, and each command has a summary', async () => {
    for (const top of await loadCommands()) {
      for (const [words, { subcommands = [], flags = [], summary, run }] of walk(top)) {
        const names = subcommands.flatMap((subcommand) => [
          subcommand.name,
          ...(subcommand.aliases ?? []),
        ]);
        expect(new Set(names).size, `subcommands of ${words}`).toBe(names.length);
        const own = flags.map((flag) => flag.name);
        expect(new Set(own).size, `flags of ${words}`).toBe(own.length);
        const letters = [...flags, ...globalFlags].flatMap((flag) => flag.short ?? []);
        expect(new Set(letters).size, `letters of ${words}`).toBe(letters.length);
        expect(summary, words).not.toBe('');
        expect(run !== undefined || subcommands.length > 0, words).toBe(true);
      }
    }
  });
});
