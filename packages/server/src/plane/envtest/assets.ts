import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isSea } from 'node:sea';
import { FlagError } from '../../compose/flags/flags.ts';

/** How this program is started again. */
export interface Launcher {
  /** The words ahead of `serve`. */
  readonly wheelhouse: readonly string[];
  /** The words ahead of the arguments of `svcctl`. */
  readonly svcctl: readonly string[];
}

const mark = '# Written by `wheelhouse envtest-assets`.';

const usage = `Writes kube-apiserver, etcd, and kubectl for test environments that start them as programs.

Usage:
  wheelhouse envtest-assets DIR
`;

/**
 * Writes the executables that envtest looks for (PLANE-1) and returns what to tell the user. They
 * start this very installation. Throws FlagError without a directory, and where a file that is in
 * the way was not written by this command.
 */
export function writeEnvtestAssets(args: readonly string[], launcher: Launcher): string {
  const [directory, ...rest] = args;
  if (directory === '--help' || directory === '-h') return usage;
  if (directory === undefined || directory === '' || directory.startsWith('-') || rest.length > 0) {
    throw new FlagError('envtest-assets takes one argument, the directory to write to');
  }
  const path = resolve(directory);
  const programs = {
    'kube-apiserver': [...launcher.wheelhouse, 'envtest', 'kube-apiserver'],
    etcd: [...launcher.wheelhouse, 'envtest', 'etcd'],
    kubectl: launcher.svcctl,
  };
  mkdirSync(path, { recursive: true });
  const files = Object.entries(programs).map(([name, words]) => [join(path, name), words] as const);
  for (const [file] of files) refuseForeign(file);
  for (const [file, words] of files) {
    const line = [...words.map(quoted), '"$@"'].join(' ');
    writeFileSync(file, `#!/bin/sh\n${mark}\nexec ${line}\n`);
    chmodSync(file, 0o755);
  }
  return `export KUBEBUILDER_ASSETS=${quoted(path)}\n`;
}

/** How the running program was started: by node with a script, or as one executable. */
export function ownLauncher(): Launcher {
  if (isSea()) return { wheelhouse: [process.execPath], svcctl: [process.execPath, 'svcctl'] };
  const script = realpathSync(process.argv[1] ?? '');
  const svcctl = join(dirname(script), 'svcctl.js');
  return { wheelhouse: [process.execPath, script], svcctl: [process.execPath, svcctl] };
}

function refuseForeign(file: string): void {
  if (!existsSync(file) || readFileSync(file, 'utf8').includes(mark)) return;
  throw new FlagError(`${file} is there and was not written by envtest-assets: it is left alone`);
}

/** One word of a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
