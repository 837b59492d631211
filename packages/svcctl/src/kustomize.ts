import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Command } from './command.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import type { Session } from './session.ts';

/** Flags of `kustomize build` that kubectl also has; they are forwarded unchanged. */
const kustomizeFlags: readonly FlagSpec[] = [
  { name: 'enable-helm', type: 'boolean', help: 'Enable the Helm chart inflator' },
  { name: 'helm-command', type: 'text', help: 'Path of the helm program' },
  { name: 'helm-api-versions', type: 'list', help: 'API versions that Helm assumes' },
  { name: 'helm-kube-version', type: 'text', help: 'Kubernetes version that Helm assumes' },
  { name: 'helm-debug', type: 'boolean', help: 'Print the debug output of Helm' },
  {
    name: 'load-restrictor',
    type: 'text',
    help: 'LoadRestrictionsNone lets kustomizations load files outside their root',
  },
  { name: 'enable-alpha-plugins', type: 'boolean', help: 'Enable kustomize plugins' },
  { name: 'env', short: 'e', type: 'list', help: 'Environment variables for functions' },
  { name: 'mount', type: 'list', help: 'Storage options for functions' },
  { name: 'network', type: 'boolean', help: 'Enable the network for functions that declare it' },
  { name: 'network-name', type: 'text', help: 'Network for the containers of functions' },
  { name: 'as-current-user', type: 'boolean', help: 'Run functions as the current user' },
];

/** Prints what `kustomize build` makes of a folder. Fails if the program is not on PATH. */
export const kustomizeCommand: Command = {
  name: 'kustomize',
  summary: 'Build a kustomization target from a directory (with the kustomize program)',
  usage: '[DIRECTORY]',
  flags: [
    ...kustomizeFlags,
    { name: 'output', short: 'o', type: 'text', help: 'Write the objects to this file' },
  ],
  async run(session, args) {
    if (args.length > 1) throw new CliError('specify one path to kustomization.yaml');
    const forwarded = kustomizeFlags.flatMap(({ name }) =>
      session.flags.list(name).map((value) => `--${name}=${value}`),
    );
    const built = await buildKustomization(session, args[0] ?? '.', forwarded);
    const file = session.flags.text('output') ?? '';
    if (file === '') session.io.out(built);
    else writeFileSync(session.path(file), built);
    return 0;
  },
};

const run = promisify(execFile);

/** Maximum output of `kustomize build`, in bytes. */
const outputBytesMax = 256 * 1024 * 1024;

/**
 * Runs `kustomize build` on a folder. Resolves with the objects as YAML. Rejects with CliError if
 * the program is not on PATH or fails.
 */
export async function buildKustomization(
  session: Session,
  folder: string,
  options: readonly string[] = [],
): Promise<string> {
  const { env, cwd, signal } = session.io;
  try {
    return (
      await run('kustomize', ['build', folder, ...options], {
        cwd,
        env: { ...env },
        signal,
        maxBuffer: outputBytesMax,
      })
    ).stdout;
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error;
    const code = 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') {
      throw new CliError('-k requires the kustomize program, which is not on PATH');
    }
    const stderr = 'stderr' in error && typeof error.stderr === 'string' ? error.stderr.trim() : '';
    throw new CliError(stderr.replace(/^Error: /, '') || error.message);
  }
}
