import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Command, type FlagSpec, globalFlags, loadCommands } from '@wheelhouse/svcctl/testing';
import { expect, test } from 'vitest';
import { isRecording, readRecorded, writeRecorded } from '../clients/kubectl-outcomes.ts';

/** Flags that svcctl omits, by command; `docs/decisions/svcctl-commands.md` says why. */
const omittedFlags: Readonly<Record<string, readonly string[]>> = {
  'global options': ['match-server-version', 'profile', 'profile-output', 'vmodule'],
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
  proxy: ['append-server-path'],
  wait: ['local'],
};

/** Flags that kubectl lacks, by command; `docs/decisions/svcctl-commands.md` lists them. */
const ownFlags: Readonly<Record<string, readonly string[]>> = {
  apply: ['client-side'],
  'apply set-last-applied': ['kustomize', 'recursive', 'field-manager', 'validate'],
  diff: ['validate', 'client-side'],
  scale: ['field-manager'],
  'set selector': ['kustomize'],
  wait: ['kustomize'],
};

/** Flags of kubectl that its help omits. */
const hiddenFlags = ['record'];

interface NamedFlag {
  readonly name: string;
  readonly letter?: string;
}

/** What kubectl 1.32 lists in the help of its commands. */
interface Surface {
  readonly options: readonly NamedFlag[];
  readonly commands: readonly KubectlCommand[];
}

interface KubectlCommand {
  readonly name: string;
  readonly flags: readonly NamedFlag[];
  readonly subcommands: readonly KubectlCommand[];
}

const execute = promisify(execFile);
const kubectl = async (...words: readonly string[]): Promise<string> =>
  (await execute('kubectl', [...words])).stdout;

/** The flags that a help text of kubectl lists, as `--name` or `-n, --name`. */
const flagsOf = (help: string): NamedFlag[] =>
  [...help.matchAll(/^ {4}(?:-(\w), )?--([\w-]+)=/gm)].map(([, letter, name = '']) => ({
    name,
    ...(letter === undefined ? {} : { letter }),
  }));

/** The names of commands that a help text of kubectl lists. */
function commandsOf(help: string): string[] {
  const lists = help.matchAll(/^[^\n]*Commands[^\n]*:\n((?: {2}[^\n]*\n)+)/gm);
  return [...lists].flatMap(([, list = '']) =>
    [...list.matchAll(/^ {2}([a-z][\w-]*) /gm)].map(([, name = '']) => name),
  );
}

async function kubectlCommand(path: readonly string[]): Promise<KubectlCommand> {
  const help = await kubectl(...path, '--help');
  const subcommands: KubectlCommand[] = [];
  for (const name of commandsOf(help)) subcommands.push(await kubectlCommand([...path, name]));
  return { name: path.join(' '), flags: flagsOf(help), subcommands };
}

async function recordSurface(): Promise<Surface> {
  expect(await kubectl('version', '--client')).toContain(' v1.32.');
  const commands: KubectlCommand[] = [];
  for (const name of commandsOf(await kubectl('--help'))) {
    commands.push(await kubectlCommand([name]));
  }
  return { options: flagsOf(await kubectl('options')), commands };
}

if (isRecording) writeRecorded('surface', await recordSurface());
const surface = readRecorded<Surface>('surface');

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

/** The flags of a command and its subcommands that kubectl lacks, by command. */
function furtherFlags(
  { name: path, flags, subcommands }: KubectlCommand,
  among: readonly Command[],
): [command: string, names: string[]][] {
  const command = commandAt(path, among);
  const names = (command?.flags ?? [])
    .map(({ name }) => name)
    .filter((name) => !hiddenFlags.includes(name) && !flags.some((flag) => flag.name === name));
  const below = subcommands.flatMap((each) => furtherFlags(each, command?.subcommands ?? []));
  return names.length === 0 ? below : [[path, names], ...below];
}

/** The command of svcctl at the end of a path of kubectl's commands. */
function commandAt(path: string, among: readonly Command[]): Command | undefined {
  const last = path.split(' ').at(-1) ?? '';
  return among.find(({ name, aliases }) => name === last || aliases?.includes(last));
}

/** Compares a command and its subcommands; returns the commands and flags that svcctl lacks. */
function missingParts(
  { name: path, flags, subcommands }: KubectlCommand,
  among: readonly Command[],
): string[] {
  const command = commandAt(path, among);
  if (command === undefined) return [`${path}: no such command`];
  const own = [...(command.flags ?? []), ...globalFlags];
  const found = missingFlags(path, flags, own);
  for (const below of subcommands) found.push(...missingParts(below, command.subcommands ?? []));
  return found;
}

const omittedCommands = ['completion', 'options'];

test('CLIENT-1: svcctl has all commands and flags of kubectl but the listed ones', async () => {
  const own = await loadCommands();
  const theirs = surface.commands.filter(({ name }) => !omittedCommands.includes(name));
  expect(theirs.length).toBeGreaterThan(35);
  expect(theirs.flatMap((command) => missingParts(command, own))).toEqual([]);
});

test('CLIENT-1: svcctl has no further flags but the listed ones', async () => {
  const own = await loadCommands();
  const further = surface.commands.flatMap((command) => furtherFlags(command, own));
  expect(Object.fromEntries(further)).toEqual(ownFlags);
});

test('CLIENT-1: svcctl has all global options of kubectl but the listed ones', () => {
  expect(surface.options.length).toBeGreaterThan(20);
  expect(missingFlags('global options', surface.options, globalFlags)).toEqual([]);
});
