import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Command } from './command.ts';
import { CliError, usageError } from './io.ts';
import type { Session } from './session.ts';

export const kustomizeCommand: Command = {
  name: 'kustomize',
  summary: 'Build a kustomization target from a directory (with the program kustomize)',
  usage: '[DIRECTORY]',
  async run(session, args) {
    if (args.length > 1) throw usageError('kustomize', 'specify one path to a kustomization');
    session.io.out(await buildKustomization(session, args[0] ?? '.'));
    return 0;
  },
};

const run = promisify(execFile);

/** Longest output of `kustomize build`, in bytes. */
const outputBytesMax = 256 * 1024 * 1024;

/**
 * Runs `kustomize build` on a folder. Resolves with the objects as YAML. Rejects with CliError if
 * the program is not on PATH, or with its error output.
 */
export async function buildKustomization(session: Session, folder: string): Promise<string> {
  const { env, cwd, signal } = session.io;
  const options = { cwd, env: { ...env }, signal, maxBuffer: outputBytesMax };
  try {
    return (await run('kustomize', ['build', folder], options)).stdout;
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error;
    const code = 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') {
      throw new CliError('-k needs the program kustomize, which is not on PATH');
    }
    const stderr = 'stderr' in error && typeof error.stderr === 'string' ? error.stderr.trim() : '';
    throw new CliError(stderr.replace(/^Error: /, '') || error.message);
  }
}
