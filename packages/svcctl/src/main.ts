import { spawn } from 'node:child_process';
import { homedir } from 'node:os';
import type { ReadStream, WriteStream } from 'node:tty';
import { editsBetween, listen } from '@wheelhouse/machinery';
import type { Command } from './command.ts';
import { helpText, loadCommand, loadCommands } from './commands.ts';
import { describeError, reportFailures } from './errors.ts';
import { type FlagSpec, parseFlags } from './flags.ts';
import { CliError, type CliIo, CommandLineError, decodeText, usageError } from './io.ts';
import { globalFlags, killedExitCode, Session } from './session.ts';
import { showingControls, terminalIo } from './terminal.ts';

/**
 * Runs a command line. Resolves with the exit code; never rejects.
 * @param args the words after the program's name
 */
export async function runSvcctl(hostIo: CliIo, args: readonly string[]): Promise<number> {
  const terminal = terminalIo(hostIo);
  const io = showingControls(terminal, { isOutputRaw: false });
  let session: Session | undefined;
  if (args[0] === '__complete') {
    const { complete } = await import('./commands/completion.ts');
    return complete(io, args.slice(1), loadCommands);
  }
  try {
    const words = expandHelp(args);
    if (await isUnknownTopic(args)) {
      const topic = args.slice(1).map((word) => ` \`${word}\``);
      io.err(
        `Unknown help topic [${topic.join('').trimStart()}]\n${await helpText([], undefined)}`,
      );
      return 0;
    }
    const pluginExitCode = await runPluginFor(io, words);
    if (pluginExitCode !== undefined) return pluginExitCode;
    const { path, command, rest } = await findCommand(words);
    const specs: readonly FlagSpec[] = [...globalFlags, ...(command?.flags ?? [])];
    const parsed = parseCommandFlags(rest, specs, { path, command });
    const help = () => helpText(path, command);
    if (command === undefined || parsed.flags.boolean('help')) {
      io.out(await help());
      return 0;
    }
    if (command.run === undefined) return await runGroup(io, { path, command, words: parsed.rest });
    for (const { name, deprecated } of specs) {
      if (deprecated === undefined || !parsed.flags.has(name)) continue;
      io.err(`Flag --${name} has been deprecated, ${deprecated}\n`);
    }
    session = new Session({
      io: showingControls(terminal, { isOutputRaw: usesTemplate(parsed.flags) }),
      flags: parsed.flags,
      ownFlags: command.flags ?? [],
      words: [...path, ...parsed.rest],
      help,
    });
    await session.prepare();
    checkFlagValues(session, command);
    const ownExitCode = await command.run(session, parsed.rest);
    const exitCode = Math.max(ownExitCode, reportFailures(io, session.takeDeferred()));
    const { warnings } = session;
    if (exitCode !== 0 || warnings === 0 || !parsed.flags.boolean('warnings-as-errors')) {
      return exitCode;
    }
    throw new CliError(`${warnings} warning${warnings === 1 ? '' : 's'} received`);
  } catch (error) {
    if (io.signal.aborted) return session?.interruptExitCode ?? killedExitCode;
    const { text, exitCode } = describeError(error);
    io.err(text);
    reportFailures(io, session?.takeDeferred() ?? []);
    return exitCode;
  } finally {
    session?.close();
  }
}

/** Whether the output is that of a template, which prints what it reads. */
const usesTemplate = (flags: ReturnType<typeof parseFlags>['flags']): boolean =>
  /^(?:go-template|template|jsonpath)/.test(flags.text('output') ?? '') || flags.has('template');

/** Separates the flags of a command. Throws a CliError that refers to its help. */
function parseCommandFlags(
  args: readonly string[],
  specs: readonly FlagSpec[],
  { path, command }: { readonly path: readonly string[]; readonly command: Command | undefined },
): ReturnType<typeof parseFlags> {
  try {
    return parseFlags(args, specs);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const code = command?.flagErrorCode;
    if (code !== undefined) throw usageError(path.join(' '), error.message, code);
    const name = ['svcctl', ...path].join(' ');
    throw new CommandLineError(`${error.message}\nSee '${name} --help' for usage.`);
  }
}

/** Checks the values of a command's own flags. Throws CliError. */
function checkFlagValues(session: Session, { flags = [], flagErrorCode }: Command): void {
  try {
    for (const { name, check } of flags) if (session.flags.has(name)) check?.(session);
  } catch (error) {
    if (flagErrorCode === undefined || !(error instanceof CliError)) throw error;
    throw new CliError(error.message, flagErrorCode);
  }
}

/** Runs a group without a subcommand. Resolves with the exit code. Rejects with CliError. */
async function runGroup(
  io: CliIo,
  line: {
    readonly path: readonly string[];
    readonly command: Command;
    readonly words: readonly string[];
  },
): Promise<number> {
  const { path, command, words } = line;
  const { alone = 'fails' } = command;
  if (words.length > 0 && alone !== 'succeeds') {
    const message = `unknown command ${JSON.stringify(words.join(' '))}`;
    throw usageError(path.join(' '), message);
  }
  const help = await helpText(path, command);
  if (alone === 'fails') io.err(help);
  else io.out(help);
  return alone === 'succeeds' ? 0 : 1;
}

/** Rewrites `help get` to `get --help`. */
const expandHelp = (args: readonly string[]): readonly string[] =>
  args[0] === 'help' ? [...args.slice(1), '--help'] : args;

/** Whether a line is `help` with words, of which the first names no command. */
async function isUnknownTopic([name, ...topic]: readonly string[]): Promise<boolean> {
  if (name !== 'help') return false;
  const [word] = topic.filter((candidate) => !candidate.startsWith('-'));
  return word !== undefined && (await loadCommand(word)).length === 0;
}

/**
 * Runs the plugin for a line that names no command, or that names no subcommand of `create`.
 * Resolves with its exit code, or with undefined for any other line.
 */
async function runPluginFor(io: CliIo, args: readonly string[]): Promise<number | undefined> {
  const at = firstWord(args, undefined);
  const word = args[at];
  if (word === undefined) return undefined;
  const [command] = await loadCommand(word);
  const subcommand = at === 0 ? args[1] : undefined;
  const extendsCreate =
    word === 'create' &&
    subcommand !== undefined &&
    !subcommand.startsWith('-') &&
    !command?.subcommands?.some(
      (candidate) => candidate.name === subcommand || candidate.aliases?.includes(subcommand),
    );
  if (command !== undefined && !extendsCreate) return undefined;
  if (args[0]?.startsWith('-')) {
    io.err(`Error: flags cannot be placed before plugin name: ${args[0]}\n`);
    return 1;
  }
  const { runPlugin } = await import('./plugins.ts');
  return runPlugin(io, args, { wordsMin: command === undefined ? 1 : 2 });
}

/** Finds the command that the first words name; flags may come between them. */
async function findCommand(args: readonly string[]): Promise<{
  readonly path: readonly string[];
  readonly command: Command | undefined;
  readonly rest: readonly string[];
}> {
  const rest = [...args];
  const path: string[] = [];
  let command: Command | undefined;
  for (;;) {
    const at = firstWord(rest, command);
    if (at < 0) break;
    const word = rest[at]!;
    const candidates: readonly Command[] | undefined =
      command === undefined ? await loadCommand(word) : command.subcommands;
    if (candidates === undefined) break;
    const next: Command | undefined = candidates.find(
      (candidate) => candidate.name === word || candidate.aliases?.includes(word),
    );
    if (next === undefined) {
      if (command !== undefined) break;
      throw new CommandLineError(unknownCommand(word, await loadCommands()));
    }
    rest.splice(at, 1);
    path.push(next.name);
    command = next;
  }
  return { path, command, rest };
}

/** Maximum number of edits between a mistyped command and one that is suggested for it. */
const editsMax = 2;

/** The message for an unknown command, with kubectl's suggestions in its format. */
function unknownCommand(word: string, commands: readonly Command[]): string {
  const message = `unknown command ${JSON.stringify(word)} for "svcctl"`;
  const suggestions = commands.filter(
    ({ name, suggestedFor }) =>
      name.startsWith(word) ||
      suggestedFor?.includes(word) ||
      (Math.abs(name.length - word.length) <= editsMax && editsBetween(name, word) <= editsMax),
  );
  if (suggestions.length === 0) return message;
  const lines = suggestions.map(({ name }) => `\t${name}`);
  return `${message}\n\nDid you mean this?\n${lines.join('\n')}`;
}

/** Index of the first argument that is neither a flag nor a flag's value, or -1. */
function firstWord(args: readonly string[], command: Command | undefined): number {
  const specs = [...globalFlags, ...(command?.flags ?? [])];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (arg === '--') return -1;
    if (!arg.startsWith('-') || arg === '-') return at;
    const spec = specs.find(
      (candidate) => arg === `--${candidate.name}` || arg === `-${candidate.short}`,
    );
    if (spec !== undefined && spec.type !== 'boolean' && spec.bare === undefined) at += 1;
  }
  return -1;
}

async function readStdin(): Promise<string> {
  const input: AsyncIterable<Buffer> = process.stdin;
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(chunk);
  return decodeText(Buffer.concat(chunks));
}

async function readLine(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.includes('\n')) break;
  }
  return text;
}

function runProgram(command: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

function terminalOf(input: ReadStream, output: WriteStream): NonNullable<CliIo['terminal']> {
  return {
    size: () => ({ columns: output.columns ?? 80, rows: output.rows ?? 24 }),
    setRaw: (isRaw) => void input.setRawMode(isRaw),
    onResize: (run) => listen(output, { where: 'client', end: () => {} }, { resize: run }),
  };
}

/** Runs the command line of this process, and sets its exit code. */
export async function main(): Promise<void> {
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  process.stdout.on('error', () => interrupt.abort());
  const io: CliIo = {
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    stdinIsTerminal: process.stdin.isTTY === true,
    outIsTerminal: process.stdout.isTTY === true,
    errIsTerminal: process.stderr.isTTY === true,
    stdin: readStdin,
    line: readLine,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    streams: { input: process.stdin, output: process.stdout, error: process.stderr },
    ...(process.stdin.isTTY ? { terminal: terminalOf(process.stdin, process.stdout) } : {}),
    run: runProgram,
    signal: interrupt.signal,
  };
  process.exitCode = await runSvcctl(io, process.argv.slice(2));
}
