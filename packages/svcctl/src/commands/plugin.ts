import { errorText } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { isProgram, type PluginFile, pluginFiles } from '../plugins.ts';

/** Finds the command of a name: a list of it alone, or an empty one. */
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

/** Why a plugin never runs. */
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

/** The built-in command that words lead to, as far as they lead; empty where they lead nowhere. */
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

/** `plugin`. Finds the built-in commands that plugins have the names of by `load`. */
export const pluginCommand = (load: CommandLoader): Command => ({
  name: 'plugin',
  summary: 'Tell which plugins there are',
  subcommands: [listCommand(load)],
});
