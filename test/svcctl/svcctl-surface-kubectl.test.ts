import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Command, type FlagSpec, globalFlags, loadCommands } from '@wheelhouse/svcctl/testing';
import { describe, expect, test } from 'vitest';
import { kubectlIsHere } from '../support/kubectl.ts';

const execute = promisify(execFile);
const kubectl = async (...words: readonly string[]): Promise<string> =>
  (await execute('kubectl', [...words])).stdout;
const version = kubectlIsHere ? await kubectl('version', '--client') : '';

/** Flags that svcctl omits, by command; `docs/decisions/svcctl-commands.md` says why. */
const omittedFlags: Readonly<Record<string, readonly string[]>> = {
  'global options': [
    'disable-compression',
    'log-flush-frequency',
    'match-server-version',
    'profile',
    'profile-output',
    'vmodule',
  ],
  apply: ['openapi-patch'],
  run: [
    'cascade',
    'filename',
    'force',
    'grace-period',
    'kustomize',
    'recursive',
    'timeout',
    'wait',
  ],
  'cluster-info dump': ['pod-running-timeout'],
  'top node': ['use-protocol-buffers'],
  'top pod': ['use-protocol-buffers'],
  proxy: ['append-server-path'],
  diff: ['concurrency'],
  wait: ['local'],
};

interface NamedFlag {
  readonly name: string;
  readonly letter: string | undefined;
}

/** The flags that a help text of kubectl lists, as `--name` or `-n, --name`. */
const flagsOf = (help: string): NamedFlag[] =>
  [...help.matchAll(/^ {4}(?:-(\w), )?--([\w-]+)=/gm)].map(([, letter, name = '']) => ({
    name,
    letter,
  }));

/** The flags of kubectl that svcctl lacks or has under another letter. */
function missingFlags(
  where: string,
  kubectlFlags: readonly NamedFlag[],
  own: readonly FlagSpec[],
): string[] {
  return kubectlFlags
    .filter(({ name, letter }) => {
      if (omittedFlags[where]?.includes(name)) return false;
      const ownFlag = own.find((flag) => flag.name === name);
      return ownFlag === undefined || (letter !== undefined && ownFlag.short !== letter);
    })
    .map(({ name }) => `${where}: --${name}`);
}

/** The names of commands that a help text of kubectl lists. */
function commandsOf(help: string): string[] {
  const lists = help.matchAll(/^[^\n]*Commands[^\n]*:\n((?: {2}[^\n]*\n)+)/gm);
  return [...lists].flatMap(([, list = '']) =>
    [...list.matchAll(/^ {2}([a-z][\w-]*) /gm)].map(([, name = '']) => name),
  );
}

/** Compares a command and its subcommands; returns the commands and flags that svcctl lacks. */
async function missingParts(
  path: readonly string[],
  command: Command | undefined,
): Promise<string[]> {
  const where = path.join(' ');
  if (command === undefined) return [`${where}: no such command`];
  const help = await kubectl(...path, '--help');
  const own = [...(command.flags ?? []), ...globalFlags];
  const below = command.subcommands ?? [];
  const deeper = await Promise.all(
    commandsOf(help).map((name) =>
      missingParts(
        [...path, name],
        below.find((child) => child.name === name || child.aliases?.includes(name)),
      ),
    ),
  );
  return [...missingFlags(where, flagsOf(help), own), ...deeper.flat()];
}

describe.skipIf(!version.includes('v1.32.'))('the commands and flags of kubectl 1.32', () => {
  const omittedCommands = ['completion', 'options'];

  test('CLIENT-1: svcctl has all but the listed omissions', async () => {
    const commands = await loadCommands();
    const names = commandsOf(await kubectl('--help')).filter(
      (name) => !omittedCommands.includes(name),
    );
    expect(names.length).toBeGreaterThan(35);
    const found: string[] = [];
    for (const name of names) {
      const command = commands.find((candidate) => candidate.name === name);
      found.push(...(await missingParts([name], command)));
    }
    expect(found).toEqual([]);
  }, 120_000);

  test('CLIENT-1: svcctl has all global options but the listed omissions', async () => {
    const kubectlFlags = flagsOf(await kubectl('options'));
    expect(kubectlFlags.length).toBeGreaterThan(20);
    expect(missingFlags('global options', kubectlFlags, globalFlags)).toEqual([]);
  });
});
