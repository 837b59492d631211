import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
/** Time in milliseconds to wait for a line of a log. */
const logTimeoutMs = 50_000;

/** The programs in the form that users install: bundles of the current sources, with launchers. */
export interface Programs {
  readonly wheelhouse: string;
  readonly svcctl: string;
  /** The folder of the web console's files. */
  readonly console: string;
  remove(): void;
}

/** The folder of the programs that `npm test` has built for all test files. */
const shared = process.env['WHEELHOUSE_TEST_PROGRAMS'];

/**
 * Bundles the programs into a new folder, without stored machine code, unless `npm test` has built
 * them. Tests must not change them.
 */
export async function buildPrograms(): Promise<Programs> {
  if (shared !== undefined) return programsIn(shared, () => {});
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, 'programs-'));
  const script = new URL('../../scripts/build.mjs', import.meta.url).href;
  const { build } = (await import(script)) as {
    build(options: { finished: string; keepCode: boolean }): Promise<void>;
  };
  await build({ finished: join(directory, 'dist'), keepCode: false });
  cpSync(join(root, 'bin'), join(directory, 'bin'), { recursive: true });
  cpSync(join(root, 'package.json'), join(directory, 'package.json'));
  return programsIn(directory, () => rmSync(directory, { recursive: true, force: true }));
}

function programsIn(directory: string, remove: () => void): Programs {
  return {
    wheelhouse: join(directory, 'bin', 'wheelhouse.js'),
    svcctl: join(directory, 'bin', 'svcctl.js'),
    console: join(directory, 'dist', 'console'),
    remove,
  };
}

/** A line of the server's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** `wheelhouse serve` as a separate process with its own data directory. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly dataDir: string;
  readonly kubeconfig: string;
  readonly url: string;
  /** The administrator's token. */
  readonly token: string;
  /** The process's standard error so far. */
  log(): string;
  lines(): readonly LogLine[];
  /** Resolves with the first log line of this message; rejects if the process ends without it. */
  logged(message: string): Promise<LogLine>;
  /** Resolves with the exit code or the name of the signal; null if neither is known. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  /** Kills the process if it is still running, and removes its data. */
  remove(): Promise<void>;
}

/** Runs a program until it ends. */
export function run(
  program: string,
  args: readonly string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const stdout = collectText(child.stdout);
  const stderr = collectText(child.stderr);
  return new Promise((resolve) => {
    child.on('close', (code) => resolve({ code, stdout: stdout(), stderr: stderr() }));
  });
}

/**
 * Starts `wheelhouse serve` on a free port of the loopback interface and waits until it is ready.
 *
 * @param options.within a command with arguments that runs the server's command, such as `strace`
 * @param options.program the command of the server; defaults to Node.js with the bundle
 */
export async function startProcess(
  programs: Pick<Programs, 'wheelhouse'>,
  options: {
    readonly flags?: readonly string[];
    readonly program?: readonly string[];
    readonly dataDir?: string;
    readonly within?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<ServerProcess> {
  const { flags = [], within = [], env = {} } = options;
  const { program = [process.execPath, programs.wheelhouse] } = options;
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-process-'));
  const dataDir = options.dataDir ?? join(directory, 'data');
  const args = ['serve', '--secure-port=0', '--bind-address=127.0.0.1', `--data-dir=${dataDir}`];
  const command = [...within, ...program, ...args, ...flags];
  const child = spawn(command[0] as string, command.slice(1), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  const log = collectText(child.stderr);
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  const lines = () => log().split('\n').slice(0, -1).map(parseLine);
  const logged = (message: string) =>
    new Promise<LogLine>((resolve, reject) => {
      const check = () => {
        const line = lines().find(({ msg }) => msg === message);
        if (line === undefined) return;
        clearTimeout(timer);
        resolve(line);
      };
      const fail = () => reject(new Error(`no line ${message} in the log:\n${log()}`));
      const timer = setTimeout(fail, logTimeoutMs);
      child.stderr.on('data', check);
      child.on('close', () => setImmediate(fail));
      check();
    });
  const remove = async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(directory, { recursive: true, force: true });
  };
  const started = logged('listening').then(async (line) => {
    await logged('ready');
    return line;
  });
  const { url } = await started.catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  return {
    child,
    dataDir,
    kubeconfig: join(dataDir, 'admin.kubeconfig'),
    url: String(url),
    token: readFileSync(join(dataDir, 'admin.token'), 'utf8').trim(),
    log,
    lines,
    logged,
    exited,
    remove,
  };
}

function collectText(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { msg: undefined, text: line };
  }
}
