import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { errorText } from '@wheelhouse/machinery';
import type { Command } from './command.ts';
import { CliError, type CliIo } from './io.ts';

/** Loads the command with a name: a list of one, or an empty one. */
type CommandLoader = (name: string) => Promise<readonly Command[]>;

const listCommand = (load: CommandLoader): Command => ({
  name: 'list',
  summary: 'List the plugins on PATH',
  flags: [{ name: 'name-only', type: 'boolean', help: 'Names instead of paths' }],
  async run(session) {
    const { flags, io } = session;
    const found = pluginFiles(io);
    if (found.length === 0) throw new CliError('unable to find any svcctl plugins in your PATH');
    io.out('The following compatible plugins are available:\n\n');
    const first = new Map<string, string>();
    let count = 0;
    for (const plugin of found) {
      io.out(`${flags.boolean('name-only') ? plugin.name : plugin.file}\n`);
      for (const warning of await warningsOf(plugin, { first, load })) {
        io.err(`  - ${warning}\n`);
        count += 1;
      }
      if (!first.has(plugin.name)) first.set(plugin.name, plugin.file);
    }
    if (count === 0) return 0;
    throw new CliError(
      count === 1 ? 'one plugin warning was found' : `${count} plugin warnings were found`,
    );
  },
});

/** The reasons why a plugin never runs. */
async function warningsOf(
  { file, name }: PluginFile,
  { first, load }: { readonly first: ReadonlyMap<string, string>; readonly load: CommandLoader },
): Promise<string[]> {
  const warnings: string[] = [];
  try {
    if (!isProgram(file)) {
      warnings.push(`warning: ${file} identified as a svcctl plugin, but it is not executable`);
    }
  } catch (error) {
    warnings.push(`error: unable to identify ${file} as an executable file: ${errorText(error)}`);
  }
  const other = first.get(name);
  if (other !== undefined) {
    warnings.push(`warning: ${file} is overshadowed by a similarly named plugin: ${other}`);
  }
  const path = await builtInPath(load, name.split('-').slice(1));
  if (path !== '') {
    warnings.push(`warning: ${name} overwrites existing command: ${JSON.stringify(path)}`);
  }
  return warnings;
}

/** The longest built-in command that the words name; empty if there is none. */
async function builtInPath(load: CommandLoader, words: readonly string[]): Promise<string> {
  const path: string[] = [];
  let candidates: readonly Command[] | undefined = await load(words[0] ?? '');
  for (const word of words) {
    const found: Command | undefined = candidates?.find(
      (one) => one.name === word || one.aliases?.includes(word),
    );
    if (found === undefined) break;
    path.push(found.name);
    candidates = found.subcommands;
  }
  return path.length === 0 ? '' : ['svcctl', ...path].join(' ');
}

/** `svcctl plugin`; `load` finds the built-in commands that plugins cannot replace. */
export const pluginCommand = (load: CommandLoader): Command => ({
  name: 'plugin',
  summary: 'List the installed plugins',
  subcommands: [listCommand(load)],
});

/** Prefixes of plugin names; svcctl's own takes precedence. */
const prefixes = ['svcctl-', 'kubectl-'] as const;

/** The absolute folders of `PATH`, without repetitions. */
function pathFolders({ env }: CliIo): string[] {
  const folders = (env['PATH'] ?? '').split(path.delimiter);
  return [...new Set(folders)].filter((folder) => path.isAbsolute(folder));
}

/** Whether a file is executable. Throws if it cannot be examined. */
function isProgram(file: string): boolean {
  const found = statSync(file);
  return found.isFile() && (found.mode & 0o111) !== 0;
}

function isStartable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return isProgram(file);
  } catch {
    return false;
  }
}

/** A file that may be a plugin. */
export interface PluginFile {
  readonly file: string;
  readonly name: string;
}

/** The files on `PATH` that are named like plugins, in order; reports unreadable folders. */
function pluginFiles(io: CliIo): PluginFile[] {
  return pathFolders(io).flatMap((folder) => {
    try {
      return readdirSync(folder, { withFileTypes: true })
        .filter((one) => !one.isDirectory() && prefixes.some((start) => one.name.startsWith(start)))
        .map(({ name }) => ({ name, file: path.join(folder, name) }))
        .sort((one, other) => (one.name < other.name ? -1 : 1));
    } catch (error) {
      const place = JSON.stringify(folder);
      io.err(
        `Unable to read directory ${place} from your PATH: ${errorText(error)}. Skipping...\n`,
      );
      return [];
    }
  });
}

/**
 * Runs the plugin that a command line names: the longest match of `svcctl-a-b` and `svcctl-a` on
 * `PATH`, and after these the plugins of kubectl. A hyphen in a word is an underscore in the
 * plugin's name. The plugin gets the remaining words and the environment. Resolves with its exit
 * code, or with undefined if there is no plugin.
 * @param options.wordsMin minimum number of words in the name
 */
export async function runPlugin(
  io: CliIo,
  args: readonly string[],
  { wordsMin }: { readonly wordsMin: number },
): Promise<number | undefined> {
  const flagAt = args.findIndex((arg) => arg.startsWith('-'));
  const words = flagAt < 0 ? args : args.slice(0, flagAt);
  for (let count = words.length; count >= wordsMin; count -= 1) {
    const parts = words.slice(0, count).map((word) => word.replaceAll('-', '_'));
    // A word with a slash would leave the folder.
    if (parts.some((part) => part.includes('/'))) continue;
    const names = prefixes.map((start) => start + parts.join('-'));
    const candidates = names.flatMap((name) => pathFolders(io).map((one) => path.join(one, name)));
    const program = candidates.find(isStartable);
    if (program !== undefined) return io.run(program, args.slice(count));
  }
  return undefined;
}
