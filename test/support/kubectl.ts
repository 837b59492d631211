import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeAdminKubeconfig } from '@wheelhouse/server/testing';
import { adminToken, type TestServer } from './harness.ts';

/** Whether kubectl is installed. Tests that run kubectl are skipped without it. */
export const kubectlIsHere = spawnSync('kubectl', ['version', '--client']).status === 0;

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly stdin?: string;
  readonly editor?: string;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** kubectl as the administrator of a server with the Kubernetes dialect. */
export interface Kubectl {
  /** The home directory, which tests may use for files. */
  readonly directory: string;
  /** Starts a command; `output` grows while it runs. */
  begin(
    args: readonly string[],
    options?: RunOptions,
  ): {
    readonly output: { readonly stdout: string; readonly stderr: string };
    readonly done: Promise<Outcome>;
    readonly kill: () => void;
  };
  run(args: readonly string[], options?: RunOptions): Promise<Outcome>;
  /** Removes the home directory. */
  remove(): void;
}

/** Sets up kubectl with a home directory and a kubeconfig for a server. */
export function kubectlOf({ server }: TestServer): Kubectl {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-kubectl-'));
  const { url, caPem } = server;
  const config = join(directory, 'config');
  writeAdminKubeconfig({
    path: config,
    server: url,
    ...(caPem === undefined ? {} : { caPem }),
    credential: { token: adminToken },
    context: 'admin',
  });
  const cache = join(directory, 'cache');
  const home = {
    HOME: directory,
    KUBECONFIG: config,
    KUBECACHEDIR: cache,
    // A failed edit leaves its file, which is removed with the home.
    TMPDIR: directory,
    // A run is too short for garbage collection to pay off.
    GOGC: 'off',
  };
  const begin: Kubectl['begin'] = (args, { stdin = '', editor, env = {} } = {}) => {
    const editing = editor === undefined ? {} : { KUBE_EDITOR: editor };
    const child = spawn('kubectl', [...args], {
      env: { ...process.env, ...home, ...editing, ...env },
    });
    child.stdin.end(stdin);
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (chunk: string) => {
        output[stream] += chunk;
      });
    }
    const done = new Promise<Outcome>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, ...output }));
    });
    return { output, done, kill: () => child.kill() };
  };
  return {
    directory,
    begin,
    run: (args, options) => begin(args, options).done,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
