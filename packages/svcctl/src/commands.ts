import type { Command } from './command.ts';
import type { FlagSpec } from './flags.ts';
import { globalFlags } from './session.ts';

/** The commands in the order of the help text, each loaded on first use. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  create: async () => (await import('./commands/create/create.ts')).createCommand,
  expose: async () => (await import('./commands/expose.ts')).exposeCommand,
  run: async () => (await import('./commands/run.ts')).runCommand,
  set: async () => (await import('./commands/set/set.ts')).setCommand,
  explain: async () => (await import('./commands/explain.ts')).explainCommand,
  get: async () => (await import('./commands/get.ts')).getCommand,
  edit: async () => (await import('./commands/edit.ts')).editCommand,
  delete: async () => (await import('./commands/delete.ts')).deleteCommand,
  rollout: async () => (await import('./commands/rollout/rollout.ts')).rolloutCommand,
  scale: async () => (await import('./commands/scale.ts')).scaleCommand,
  autoscale: async () => (await import('./commands/scale.ts')).autoscaleCommand,
  certificate: async () => (await import('./commands/nodes/certificate.ts')).certificateCommand,
  'cluster-info': async () => (await import('./commands/server-info.ts')).clusterInfoCommand,
  top: async () => (await import('./commands/nodes/top.ts')).topCommand,
  cordon: async () => (await import('./commands/nodes/nodes.ts')).cordonCommand,
  uncordon: async () => (await import('./commands/nodes/nodes.ts')).uncordonCommand,
  drain: async () => (await import('./commands/nodes/nodes.ts')).drainCommand,
  taint: async () => (await import('./commands/nodes/nodes.ts')).taintCommand,
  describe: async () => (await import('./commands/describe.ts')).describeCommand,
  logs: async () => (await import('./commands/logs.ts')).logsCommand,
  attach: async () => (await import('./commands/streams/exec.ts')).attachCommand,
  exec: async () => (await import('./commands/streams/exec.ts')).execCommand,
  'port-forward': async () =>
    (await import('./commands/streams/port-forward.ts')).portForwardCommand,
  proxy: async () => (await import('./commands/proxy.ts')).proxyCommand,
  cp: async () => (await import('./commands/streams/cp.ts')).cpCommand,
  auth: async () => (await import('./commands/rbac/auth.ts')).authCommand,
  debug: async () => (await import('./commands/streams/debug.ts')).debugCommand,
  events: async () => (await import('./commands/events.ts')).eventsCommand,
  diff: async () => (await import('./commands/diff.ts')).diffCommand,
  apply: async () => (await import('./commands/apply.ts')).applyCommand,
  patch: async () => (await import('./commands/patch.ts')).patchCommand,
  replace: async () => (await import('./commands/replace.ts')).replaceCommand,
  wait: async () => (await import('./commands/wait.ts')).waitCommand,
  kustomize: async () => (await import('./kustomize.ts')).kustomizeCommand,
  label: async () => (await import('./commands/label.ts')).labelCommand,
  annotate: async () => (await import('./commands/label.ts')).annotateCommand,
  convert: async () => (await import('./commands/convert.ts')).convertCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  'api-versions': async () => (await import('./commands/server-info.ts')).apiVersionsCommand,
  'api-resources': async () => (await import('./commands/server-info.ts')).apiResourcesCommand,
  config: async () => (await import('./commands/config/config.ts')).configCommand,
  options: async () => optionsCommand,
  plugin: async () => (await import('./plugins.ts')).pluginCommand(loadCommand),
  version: async () => (await import('./commands/server-info.ts')).versionCommand,
};

const optionsCommand: Command = {
  name: 'options',
  summary: 'Print the options that every command takes',
  async run(session) {
    session.io.out(globalOptionsText());
    return 0;
  },
};

/** Loads one command by name. Resolves with a list of one, or an empty list for an unknown name. */
export async function loadCommand(name: string): Promise<readonly Command[]> {
  const load = Object.hasOwn(loaders, name) ? loaders[name] : undefined;
  return load === undefined ? [] : [await load()];
}

/** Loads all commands, for help, completion, and suggestions. */
export function loadCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(loaders).map((load) => load()));
}

/** The help text of a command, or of the program if `command` is undefined. */
export async function helpText(
  path: readonly string[],
  command: Command | undefined,
): Promise<string> {
  const commands = command === undefined ? await loadCommands() : command.subcommands;
  const name = ['svcctl', ...path].join(' ');
  const { aliases = [], flags = [], usage = '[flags]' } = command ?? {};
  const sections = [[`${command?.summary ?? 'svcctl controls an API server'}.`]];
  if (aliases.length > 0) sections.push(['Aliases:', [command?.name, ...aliases].join(', ')]);
  if (commands !== undefined) sections.push(['Available Commands:', ...commandLines(commands)]);
  if (flags.length > 0) sections.push(['Options:', ...flags.map(flagLine)]);
  sections.push(['Usage:', `  ${name} ${usage} [options]`]);
  const tips = [
    'Use "svcctl options" for a list of global command-line options (applies to all commands).',
  ];
  if (commands !== undefined) {
    tips.unshift(`Use "${name} <command> --help" for more information about a given command.`);
  }
  return `${[...sections, tips].map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** A line for each command, by name. */
function commandLines(commands: readonly Command[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [...commands]
    .sort((left, right) => (left.name < right.name ? -1 : 1))
    .map(({ name, summary }) => `  ${name.padEnd(width)} ${summary}`);
}

const globalOptionsText = (): string =>
  `${['Global options:', ...globalFlags.map(flagLine)].join('\n')}\n`;

function flagLine(flag: FlagSpec): string {
  const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
  const value = flag.type === 'boolean' ? '' : '=…';
  return `  ${short}${`--${flag.name}${value}`.padEnd(30)} ${flag.help}`;
}
