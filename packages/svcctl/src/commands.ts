import type { Command } from './command.ts';
import type { FlagSpec } from './flags.ts';
import { globalFlags } from './session.ts';

/** The commands in the order of the help text, each loaded on first use. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  get: async () => (await import('./commands/get.ts')).getCommand,
  describe: async () => (await import('./commands/describe.ts')).describeCommand,
  create: async () => (await import('./commands/create/create.ts')).createCommand,
  delete: async () => (await import('./commands/delete.ts')).deleteCommand,
  patch: async () => (await import('./commands/patch.ts')).patchCommand,
  replace: async () => (await import('./commands/replace.ts')).replaceCommand,
  apply: async () => (await import('./commands/apply.ts')).applyCommand,
  diff: async () => (await import('./commands/diff.ts')).diffCommand,
  edit: async () => (await import('./commands/edit.ts')).editCommand,
  label: async () => (await import('./commands/label.ts')).labelCommand,
  annotate: async () => (await import('./commands/label.ts')).annotateCommand,
  scale: async () => (await import('./commands/scale.ts')).scaleCommand,
  set: async () => (await import('./commands/set/set.ts')).setCommand,
  run: async () => (await import('./commands/run.ts')).runCommand,
  expose: async () => (await import('./commands/expose.ts')).exposeCommand,
  autoscale: async () => (await import('./commands/scale.ts')).autoscaleCommand,
  rollout: async () => (await import('./commands/rollout/rollout.ts')).rolloutCommand,
  events: async () => (await import('./commands/events.ts')).eventsCommand,
  wait: async () => (await import('./commands/wait.ts')).waitCommand,
  taint: async () => (await import('./commands/nodes/nodes.ts')).taintCommand,
  cordon: async () => (await import('./commands/nodes/nodes.ts')).cordonCommand,
  uncordon: async () => (await import('./commands/nodes/nodes.ts')).uncordonCommand,
  drain: async () => (await import('./commands/nodes/nodes.ts')).drainCommand,
  top: async () => (await import('./commands/nodes/top.ts')).topCommand,
  logs: async () => (await import('./commands/logs.ts')).logsCommand,
  exec: async () => (await import('./commands/streams/exec.ts')).execCommand,
  attach: async () => (await import('./commands/streams/exec.ts')).attachCommand,
  'port-forward': async () =>
    (await import('./commands/streams/port-forward.ts')).portForwardCommand,
  cp: async () => (await import('./commands/streams/cp.ts')).cpCommand,
  debug: async () => (await import('./commands/streams/debug.ts')).debugCommand,
  certificate: async () => (await import('./commands/nodes/certificate.ts')).certificateCommand,
  kustomize: async () => (await import('./kustomize.ts')).kustomizeCommand,
  explain: async () => (await import('./commands/explain.ts')).explainCommand,
  convert: async () => (await import('./commands/convert.ts')).convertCommand,
  auth: async () => (await import('./commands/rbac/auth.ts')).authCommand,
  config: async () => (await import('./commands/config/config.ts')).configCommand,
  plugin: async () => (await import('./plugins.ts')).pluginCommand(loadCommand),
  proxy: async () => (await import('./commands/proxy.ts')).proxyCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  'cluster-info': async () => (await import('./commands/server-info.ts')).clusterInfoCommand,
  'api-resources': async () => (await import('./commands/server-info.ts')).apiResourcesCommand,
  'api-versions': async () => (await import('./commands/server-info.ts')).apiVersionsCommand,
  options: async () => optionsCommand,
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

/** The names of all commands. */
export const commandNames: readonly string[] = Object.keys(loaders);

/** Loads all commands, for help and completion. */
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
    for (const listed of commands) lines.push(`  ${listed.name.padEnd(16)} ${listed.summary}`);
  }
  if (command?.flags !== undefined) lines.push('', 'Options:', ...command.flags.map(flagLine));
  lines.push('', globalOptionsText());
  return lines.join('\n');
}

const globalOptionsText = (): string =>
  `${['Global options:', ...globalFlags.map(flagLine)].join('\n')}\n`;

function flagLine(flag: FlagSpec): string {
  const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
  const value = flag.type === 'boolean' ? '' : '=…';
  return `  ${short}${`--${flag.name}${value}`.padEnd(30)} ${flag.help}`;
}
