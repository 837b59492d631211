import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { errorText } from '@wheelhouse/machinery';
import type { Command } from './command.ts';
import { CliError, type CliIo } from './io.ts';

/** Loads one command by name. Resolves with a list of one, or an empty list for an unknown name. */
type CommandLoader = (name: string) => Promise<readonly Command[]>;

const listCommand = (load: CommandLoader): Command => ({
  name: 'list',
  summary: 'List the plugins on PATH',
  flags: [{ name: 'name-only', type: 'boolean', help: 'Names instead of paths' }],
  async run(session) {
    const { flags, io } = session;
    const files = pluginFiles(io);
    if (files.length === 0) throw new CliError('unable to find any svcctl plugins in your PATH');
    io.out('The following compatible plugins are available:\n\n');
    const firstFiles = new Map<string, string>();
    let count = 0;
    for (const plugin of files) {
      io.out(`${flags.boolean('name-only') ? plugin.name : plugin.file}\n`);
      for (const warning of await warningsOf(plugin, { firstFiles, load })) {
        io.err(`  - ${warning}\n`);
        count += 1;
      }
      if (!firstFiles.has(plugin.name)) firstFiles.set(plugin.name, plugin.file);
    }
    if (count === 0) return 0;
    throw new CliError(
      count === 1 ? 'one plugin warning was found' : `${count} plugin warnings were found`,
    );
  },
});

/** The reasons why a plugin cannot run. */
async function warningsOf(
  { file, name }: PluginFile,
  {
    firstFiles,
    load,
  }: { readonly firstFiles: ReadonlyMap<string, string>; readonly load: CommandLoader },
): Promise<string[]> {
  const warnings: string[] = [];
  try {
    if (!isProgram(file)) {
      warnings.push(`warning: ${file} identified as a svcctl plugin, but it is not executable`);
    }
  } catch (error) {
    warnings.push(`error: unable to identify ${file} as an executable file: ${errorText(error)}`);
  }
  const firstFile = firstFiles.get(name);
  if (firstFile !== undefined) {
    warnings.push(`warning: ${file} is overshadowed by a similarly named plugin: ${firstFile}`);
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
    const candidate: Command | undefined = candidates?.find(
      (candidate) => candidate.name === word || candidate.aliases?.includes(word),
    );
    if (candidate === undefined) break;
    path.push(candidate.name);
    candidates = candidate.subcommands;
  }
  return path.length === 0 ? '' : ['svcctl', ...path].join(' ');
}

/**
 * Creates `svcctl plugin`.
 * @param load finds the built-in commands, which plugins cannot replace
 */
export const pluginCommand = (load: CommandLoader): Command => ({
  name: 'plugin',
  summary: 'List the installed plugins',
  subcommands: [listCommand(load)],
});

/** Prefixes of plugin names; svcctl's own takes precedence. */
const prefixes = ['svcctl-', 'kubectl-'] as const;

/** The distinct absolute folders of `PATH`. */
function pathFolders({ env }: CliIo): string[] {
  const folders = (env['PATH'] ?? '').split(path.delimiter);
  return [...new Set(folders)].filter((folder) => path.isAbsolute(folder));
}

/** Whether a file is executable. Throws if it cannot be examined. */
function isProgram(file: string): boolean {
  const stats = statSync(file);
  return stats.isFile() && (stats.mode & 0o111) !== 0;
}

function isRunnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return isProgram(file);
  } catch {
    return false;
  }
}

/** A file that is named like a plugin. */
interface PluginFile {
  readonly file: string;
  readonly name: string;
}

/** Finds the files on `PATH` that are named like plugins, in order. Reports unreadable folders. */
function pluginFiles(io: CliIo): PluginFile[] {
  return pathFolders(io).flatMap((folder) => {
    try {
      return readdirSync(folder, { withFileTypes: true })
        .filter(
          (entry) => !entry.isDirectory() && prefixes.some((start) => entry.name.startsWith(start)),
        )
        .map(({ name }) => ({ name, file: path.join(folder, name) }))
        .sort((left, right) => (left.name < right.name ? -1 : 1));
    } catch (error) {
      const quotedFolder = JSON.stringify(folder);
      io.err(
        `Unable to read directory ${quotedFolder} from your PATH: ${errorText(error)}. Skipping...\n`,
      );
      return [];
    }
  });
}

/**
 * Runs the plugin on `PATH` that matches most words of a command line, such as `svcctl-a-b` before
 * `svcctl-a`. A plugin of kubectl runs if svcctl has none with the same words. A hyphen in a word
 * is an underscore in the plugin's name. The plugin receives the remaining words and the
 * environment. Resolves with its exit code, or with undefined if there is no plugin.
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
    // A slash would lead out of the folder.
    if (parts.some((part) => part.includes('/'))) continue;
    const names = prefixes.map((start) => start + parts.join('-'));
    const candidates = names.flatMap((name) =>
      pathFolders(io).map((folder) => path.join(folder, name)),
    );
    const program = candidates.find(isRunnable);
    if (program !== undefined) return io.run(program, args.slice(count));
  }
  return undefined;
}
