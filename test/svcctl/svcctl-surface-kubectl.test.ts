import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Command, type FlagSpec, globalFlags, loadCommands } from '@wheelhouse/svcctl/testing';
import { describe, expect, test } from 'vitest';
import { kubectlIsHere } from '../support/kubectl.ts';

const execute = promisify(execFile);
const kubectl = async (...words: readonly string[]): Promise<string> =>
  (await execute('kubectl', [...words])).stdout;
const version = kubectlIsHere ? await kubectl('version', '--client') : '';

/** Flags that svcctl leaves out, by command; `docs/decisions/svcctl-commands.md` says why. */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  'global options': [
    'disable-compression',
    'log-flush-frequency',
    'match-server-version',
    'profile',
    'profile-output',
    'vmodule',
  ],
  create: ['windows-line-endings'],
  edit: ['windows-line-endings'],
  'apply edit-last-applied': ['windows-line-endings'],
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

/** The flags among kubectl's that svcctl lacks, or has under another letter. */
function lacking(where: string, theirs: readonly NamedFlag[], own: readonly FlagSpec[]): string[] {
  return theirs
    .filter(({ name, letter }) => {
      if (leftOut[where]?.includes(name)) return false;
      const flag = own.find((one) => one.name === name);
      return flag === undefined || (letter !== undefined && flag.short !== letter);
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

/** Compares a command and all below it; returns what svcctl lacks. */
async function missing(path: readonly string[], command: Command | undefined): Promise<string[]> {
  const where = path.join(' ');
  if (command === undefined) return [`${where}: no such command`];
  const help = await kubectl(...path, '--help');
  const own = [...(command.flags ?? []), ...globalFlags];
  const below = command.subcommands ?? [];
  const deeper = await Promise.all(
    commandsOf(help).map((name) =>
      missing(
        [...path, name],
        below.find((one) => one.name === name || one.aliases?.includes(name)),
      ),
    ),
  );
  return [...lacking(where, flagsOf(help), own), ...deeper.flat()];
}

describe.skipIf(!version.includes('v1.32.'))('the commands and flags of kubectl 1.32', () => {
  const tops = ['completion', 'options'];

  test('CLIENT-1: svcctl has them, except for those that it lists', async () => {
    const commands = await loadCommands();
    const names = commandsOf(await kubectl('--help')).filter((name) => !tops.includes(name));
    expect(names.length).toBeGreaterThan(35);
    const found: string[] = [];
    for (const name of names) {
      const command = commands.find((one) => one.name === name);
      found.push(...(await missing([name], command)));
    }
    expect(found).toEqual([]);
  }, 120_000);

  test('CLIENT-1: svcctl has the global options, except for those that it lists', async () => {
    const theirs = flagsOf(await kubectl('options'));
    expect(theirs.length).toBeGreaterThan(20);
    expect(lacking('global options', theirs, globalFlags)).toEqual([]);
  });
});
