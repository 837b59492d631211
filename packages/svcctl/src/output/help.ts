import type { Command } from '../command.ts';
import { loadCommands } from '../commands.ts';
import type { FlagSpec } from '../flags.ts';
import { globalFlags } from '../session.ts';

/** The help of a command, or of the program when there is none. */
export async function helpText(
  path: readonly string[],
  command: Command | undefined,
): Promise<string> {
  const commands = command === undefined ? await loadCommands() : command.subcommands;
  const name = ['svcctl', ...path].join(' ');
  const lines = [
    command?.summary ?? 'svcctl controls an API server.',
    '',
    'Usage:',
    commands === undefined
      ? `  ${name} ${command?.usage ?? ''} [options]`
      : `  ${name} <command> [options]`,
  ];
  if (commands !== undefined) {
    lines.push('', 'Commands:');
    for (const one of commands) lines.push(`  ${one.name.padEnd(16)} ${one.summary}`);
  }
  if (command?.flags !== undefined) lines.push('', 'Options:', ...command.flags.map(flagLine));
  lines.push('', 'Global options:', ...globalFlags.map(flagLine));
  return `${lines.join('\n')}\n`;
}

function flagLine(flag: FlagSpec): string {
  const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
  const value = flag.type === 'boolean' ? '' : '=…';
  return `  ${short}${`--${flag.name}${value}`.padEnd(30)} ${flag.help}`;
}
