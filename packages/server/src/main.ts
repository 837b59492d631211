import {
  errorText,
  holdProcess,
  type Logger,
  silentLogger,
  systemClock,
} from '@wheelhouse/machinery';
import { loadConvertProgram } from '@wheelhouse/svcctl';
import { readOptions, type ServerOptions, serverFlags } from './compose/command-line.ts';
import type { LogStreams } from './compose/observability/settings.ts';
import type { RunningServer } from './compose/server.ts';
import { apiRelease, versionDocument } from './documents/version.ts';
import {
  ensureAdminToken,
  ensureDataDirectory,
  refuseBrokenRestore,
  refuseIdleStore,
  writeAdminKubeconfig,
} from './files/data-directory.ts';
import { describeFlags, FlagError } from './flags/flags.ts';
import { surviveFaults } from './observe/faults.ts';
import { createBufferedSink, createLogger, type LogSink } from './observe/logging.ts';

const usage = `Wheelhouse: a control-plane API server.

Usage:
  wheelhouse serve [flags]    start the server
  wheelhouse backup [flags]   write all objects of a running or stopped server to a file
  wheelhouse restore [flags]  create a data directory from such a file
  wheelhouse convert [flags]  convert objects from standard input to another format or version
  wheelhouse envtest-assets DIR
                              write drop-in kube-apiserver, etcd, and kubectl for envtest
  wheelhouse version          print the version

`;

/** Callbacks of the program that runs `main`. */
interface Launcher {
  /** Called once when the server is ready; must not throw. */
  readonly onReady?: () => void;
}

/** Runs a command line and resolves to the exit code. */
export async function main(args: readonly string[], launcher: Launcher = {}): Promise<number> {
  const [command, ...rest] = args;
  try {
    if (command === 'serve') return await serve(rest, launcher);
    if (command === 'backup') return await backup(rest);
    if (command === 'restore') return await restore(rest);
    if (command === 'convert') return await convert(rest);
    if (command === 'envtest-assets') return await envtestAssets(rest);
    if (command === 'envtest') return await envtestProgram(rest);
    if (command === 'version' || command === '--version') return printVersion();
    if (command === undefined || command === 'help' || command === '--help' || command === '-h') {
      process.stdout.write(usage);
      return 0;
    }
    throw new FlagError(`unknown command: ${JSON.stringify(command)}`);
  } catch (error) {
    process.stderr.write(`error: ${firstLine(error)}\n`);
    return 1;
  }
}

async function serve(args: readonly string[], launcher: Launcher = {}): Promise<number> {
  const outcome = readOptions(args);
  if (outcome.kind === 'version') return printVersion(outcome.form);
  if (outcome.kind === 'help') {
    process.stdout.write(`${usage}${describeFlags(serverFlags)}`);
    return 0;
  }
  const { options } = outcome;
  const { verbosity, logFormat: format, logStreams } = options;
  const infoSink = logStreams && openInfoSink(logStreams);
  const sink = process.stderr;
  const logger = createLogger({ verbosity, format, sink, infoSink, clock: systemClock });
  for (const warning of options.warnings) logger.warn(warning);
  const stopSignal = signalled(logger);
  const running = await keptAlive(start(options, logger));
  // Installed only now, so that a failed start still ends with its error.
  surviveFaults();
  await Promise.race([running.ready, stopSignal]);
  logger.info('ready', { url: running.url, uptimeMs: Math.round(process.uptime() * 1000) });
  launcher.onReady?.();
  await stopSignal;
  await running.stop();
  logger.info('stopped');
  return 0;
}

/** Standard output as a log sink; buffered lines are flushed when the process exits. */
function openInfoSink({ bufferBytes: bytesMax, flushMs }: LogStreams): LogSink {
  if (bytesMax === 0) return process.stdout;
  const buffered = createBufferedSink(process.stdout, { bytesMax, flushMs, clock: systemClock });
  process.on('exit', buffered.flush);
  return buffered;
}

async function envtestAssets(args: readonly string[]): Promise<number> {
  const { ownLauncher, writeEnvtestAssets } = await import('./plane/envtest/programs.ts');
  process.stdout.write(writeEnvtestAssets(args, ownLauncher()));
  return 0;
}

/** Runs the programs that `envtest-assets` writes wrappers for. */
async function envtestProgram([program, ...args]: readonly string[]): Promise<number> {
  const { apiServerFlags, etcdAnswer, startEtcdStandIn } = await import(
    './plane/envtest/programs.ts'
  );
  if (program === 'kube-apiserver') {
    const { flags, discard } = await apiServerFlags(args);
    try {
      return await serve(flags);
    } finally {
      discard();
    }
  }
  if (program !== 'etcd') throw new FlagError(`unknown program: ${JSON.stringify(program)}`);
  const answer = etcdAnswer(args);
  if (answer !== undefined) {
    process.stdout.write(answer);
    return 0;
  }
  const stopSignal = signalled(silentLogger);
  const standIn = await keptAlive(startEtcdStandIn(args));
  process.stderr.write(`listening at ${standIn.url}; objects are kept by the API server\n`);
  await keptAlive(stopSignal);
  await standIn.stop();
  return 0;
}

async function backup(args: readonly string[]): Promise<number> {
  const { runBackup } = await import('./backup-command.ts');
  process.stdout.write(await runBackup(args));
  return 0;
}

async function restore(args: readonly string[]): Promise<number> {
  const { runRestore } = await import('./backup-command.ts');
  process.stdout.write(await runRestore(args));
  return 0;
}

async function convert(args: readonly string[]): Promise<number> {
  const { runConvert } = await loadConvertProgram();
  const write = (bytes: Buffer | string): Promise<void> =>
    new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  return runConvert({ input: process.stdin, write: write }, args);
}

async function start(options: ServerOptions, logger: Logger): Promise<RunningServer> {
  const { dataDir, adminKubeconfig, config, files } = options;
  if (files.length > 0) (await import('./flags/flag-files.ts')).checkFiles(files);
  if (config.store.type === 'etcd') refuseIdleStore(dataDir);
  if (config.store.type === 'embedded') refuseBrokenRestore(dataDir);
  if (ensureDataDirectory(dataDir).tightened) {
    logger.warn('tightened the permissions of the data directory to its owner', { dataDir });
  }
  const token = ensureAdminToken(dataDir);
  const { startServer } = await import('./compose/server.ts');
  const running = await startServer({
    ...config,
    authentication: { ...config.authentication, adminToken: token },
    clock: systemClock,
    logger,
  });
  try {
    writeAdminKubeconfig({
      path: adminKubeconfig,
      server: running.url,
      ...(running.caPem === undefined ? {} : { caPem: running.caPem }),
      credential: { token },
      context: 'wheelhouse',
    });
  } catch (error) {
    // A full disk must not keep the server from serving the objects on it.
    logger.error('cannot write the kubeconfig', { adminKubeconfig, error: String(error) });
  }
  logger.info('listening', { url: running.url, adminKubeconfig });
  return running;
}

/** Keeps the process alive until a task ends. */
async function keptAlive<T>(task: Promise<T>): Promise<T> {
  const release = holdProcess();
  try {
    return await task;
  } finally {
    release();
  }
}

/** Resolves at the first stop signal; a second one ends the process at once. */
function signalled(logger: Logger): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(130);
      isStopping = true;
      logger.info('stopping', { signal });
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}

function printVersion(form: 'line' | 'raw' = 'line'): number {
  if (form === 'raw') {
    process.stdout.write(`${JSON.stringify(versionDocument())}\n`);
    return 0;
  }
  const { major, minor, patch } = apiRelease;
  process.stdout.write(`Wheelhouse, serving the API of v${major}.${minor}.${patch}\n`);
  return 0;
}

function firstLine(error: unknown): string {
  const text = errorText(error);
  return text.split('\n', 1)[0] ?? '';
}
