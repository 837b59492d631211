import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { errorText } from '@wheelhouse/machinery';
import type { CliIo } from './io.ts';

/** The beginnings of the names of plugins; one that is svcctl's own goes first. */
const prefixes = ['svcctl-', 'kubectl-'] as const;

/** Folders of `PATH`, each once. A plugin in a folder that depends on where one is does not count. */
export function pathFolders({ env }: CliIo): string[] {
  const folders = (env['PATH'] ?? '').split(path.delimiter);
  return [...new Set(folders)].filter((folder) => path.isAbsolute(folder));
}

/** Whether a file is a program. Throws when it cannot be looked at. */
export function isProgram(file: string): boolean {
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

/** The files on `PATH` with the names of plugins, in its order; says which folders it cannot read. */
export function pluginFiles(io: CliIo): PluginFile[] {
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
 * Runs the plugin that a command line names: the longest of `svcctl-a-b` and `svcctl-a` that is on
 * `PATH`, then those of kubectl. Words' own hyphens are underscores in names. The plugin gets the
 * words that its name leaves, and the environment. Returns its exit code, or undefined where there is
 * none.
 *
 * @param options.wordsMin how many words the name has at least
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
    // A word that is a path would lead out of the folder.
    if (parts.some((part) => part.includes('/'))) continue;
    const names = prefixes.map((start) => start + parts.join('-'));
    const candidates = names.flatMap((name) => pathFolders(io).map((one) => path.join(one, name)));
    const program = candidates.find(isStartable);
    if (program !== undefined) return io.run(program, args.slice(count));
  }
  return undefined;
}
