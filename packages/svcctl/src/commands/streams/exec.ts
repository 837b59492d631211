import type { Readable } from 'node:stream';
import type { ApiRequest } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { ContextError } from '../../errors.ts';
import { CliError, type CliIo, usageError } from '../../io.ts';
import { hasManifests, loadManifests, manifestFlags } from '../../manifests.ts';
import { listAt, nameOf, textAt, withGroup } from '../../objects.ts';
import { resourceOfObject } from '../../selection.ts';
import type { Session } from '../../session.ts';
import { connectStreams, writeAll } from '../../streams/container-stream.ts';
import {
  containerFlag,
  containerName,
  hasEnded,
  podTimeoutFlag,
  type QueryPairs,
  selectContainer,
  selectPod,
  streamPath,
} from '../../streams/pods.ts';

const streamFlags = [
  containerFlag,
  podTimeoutFlag('1m'),
  { name: 'stdin', short: 'i', type: 'boolean', help: 'Pass standard input to the container' },
  { name: 'tty', short: 't', type: 'boolean', help: 'Allocate a terminal' },
  { name: 'quiet', short: 'q', type: 'boolean', help: 'Print only what the container prints' },
] as const;

/** Runs a program in a container of a Pod that has not ended. The exit code is the program's. */
export const execCommand: Command = {
  name: 'exec',
  completes: 'pods',
  summary: 'Execute a command in a container',
  usage: '(POD | TYPE/NAME | -f FILENAME) [-c CONTAINER] -- COMMAND [ARGUMENTS...]',
  flags: [...streamFlags, ...manifestFlags.filter(({ name }) => name === 'filename')],
  async run(session, args) {
    const isFile = hasManifests(session);
    const [word, ...command] = isFile ? [await labelFromFile(session), ...args] : args;
    const before = session.flags.wordsBeforeDash;
    if (word === undefined || (before === 0 && !isFile)) {
      throw new CliError('pod, type/name or --filename must be specified');
    }
    if (before === undefined && command.length > 0) {
      throw usageError(
        'exec',
        'exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead',
      );
    }
    if (command.length === 0) {
      throw new CliError('you must specify at least one command for the container');
    }
    const pod = await selectPod(session, word);
    checkRunning(pod, 'exec into');
    const container = await containerName(session, pod);
    const words = command.map((argument) => ['command', argument] as const);
    await connect(session, {
      pod,
      container,
      subresource: 'exec',
      words,
      isTerminal: hasTerminal(session),
    });
    return 0;
  },
};

/** `TYPE.GROUP/NAME` of the object in the files of `--filename`. Rejects if they have several. */
async function labelFromFile(session: Session): Promise<string> {
  const [first, second] = await loadManifests(session);
  if (second !== undefined) throw new CliError('cannot exec into multiple objects at a time');
  const { resource, group } = await resourceOfObject(session, first?.object ?? {});
  return `${withGroup(resource, group)}/${nameOf(first?.object ?? {})}`;
}

/** Connects to the program of a container until it ends. */
export const attachCommand: Command = {
  name: 'attach',
  completes: 'pods',
  summary: 'Attach to a running container',
  usage: '(POD | TYPE/NAME) [-c CONTAINER]',
  flags: streamFlags,
  async run(session, args) {
    const [word, ...more] = args;
    if (word === undefined) throw new CliError('at least 1 argument is required for attach');
    if (more.length > 0) {
      throw usageError(
        'attach',
        `expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw ${args.length}`,
      );
    }
    await attachTo(session, await selectPod(session, word));
    return 0;
  },
};

/**
 * Attaches the user's streams to a container until it ends.
 * @param name name of the container; the default one if absent
 */
export async function attachTo(session: Session, pod: JsonObject, name?: string): Promise<void> {
  const { flags, io } = session;
  checkRunning(pod, 'attach');
  const container = name ?? (await containerToAttach(session, pod));
  const spec = ['containers', 'initContainers', 'ephemeralContainers']
    .flatMap((list) => listAt(pod, 'spec', list))
    .find((candidate) => candidate['name'] === container);
  const hasTty = spec?.['tty'] === true;
  if (flags.boolean('tty') && !hasTty && !flags.boolean('quiet')) {
    io.err(`error: Unable to use a TTY - container ${container} did not allocate one\n`);
  }
  // The specification of the container, not the flag, decides whether the process has a terminal.
  const isTerminal = hasTerminal(session, hasTty);
  if (!flags.boolean('quiet')) io.err("If you don't see a command prompt, try pressing enter.\n");
  await connect(session, { pod, container, subresource: 'attach', words: [], isTerminal });
}

async function containerToAttach(session: Session, pod: JsonObject): Promise<string> {
  try {
    return await selectContainer(session, pod);
  } catch (error) {
    throw new ContextError('cannot attach to the container', error);
  }
}

function checkRunning(pod: JsonObject, action: 'attach' | 'exec into'): void {
  if (!hasEnded(pod)) return;
  const phase = textAt(pod, 'status', 'phase');
  throw new CliError(`cannot ${action} a container in a completed pod; current phase is ${phase}`);
}

/** Whether the process gets a terminal: if requested, with `--stdin`, and if the user has one. */
function hasTerminal({ flags, io }: Session, isRequested = flags.boolean('tty')): boolean {
  if (!isRequested || !flags.boolean('stdin')) return false;
  if (io.terminal !== undefined) return true;
  io.err('Unable to use a TTY - input is not a terminal or the right kind of file\n');
  return false;
}

/** Connects the user's streams to a process until it ends. */
async function connect(
  session: Session,
  stream: {
    readonly pod: JsonObject;
    readonly container: string;
    readonly subresource: string;
    readonly words: QueryPairs;
    readonly isTerminal: boolean;
  },
): Promise<void> {
  const { flags, io } = session;
  const { pod, container, subresource, words, isTerminal } = stream;
  const passesInput = flags.boolean('stdin');
  const query: QueryPairs = [
    ['container', container],
    ...words,
    ...(passesInput ? [['stdin', 'true'] as const] : []),
    ['stdout', 'true'],
    // A terminal combines both output streams.
    isTerminal ? ['tty', 'true'] : ['stderr', 'true'],
  ];
  const path = await streamPath(session, pod, { subresource, query });
  await connectStreams(session, path, {
    input: passesInput ? await openInput(io) : undefined,
    output: createWriter(io, 'output'),
    error: createWriter(io, 'error'),
    terminal: isTerminal && passesInput ? io.terminal : undefined,
    redraws: subresource === 'attach',
  });
  if (isTerminal && passesInput && subresource === 'attach' && !flags.boolean('quiet')) {
    if (textAt(pod, 'spec', 'restartPolicy') !== 'Always') return;
    const command = `'svcctl attach ${nameOf(pod)} -c ${container} -i -t'`;
    const ephemeral = listAt(pod, 'spec', 'ephemeralContainers');
    const advice = ephemeral.some((candidate) => candidate['name'] === container)
      ? `the ephemeral container will not be restarted but may be reattached using ${command} ` +
        'if it is still running'
      : `resume using ${command} command when the pod is running`;
    io.out(`Session ended, ${advice}\n`);
  }
}

async function openInput(io: CliIo): Promise<Readable> {
  if (io.streams !== undefined) return io.streams.input;
  const { Readable: Input } = await import('node:stream');
  return Input.from([Buffer.from(await io.stdin())]);
}

/** Prints the body of a response as it arrives, byte by byte. */
export async function printBody(session: Session, request: ApiRequest): Promise<void> {
  const { body } = await session.client.stream(request);
  const print = createWriter(session.io, 'output');
  for await (const chunk of body) await print(Buffer.from(chunk));
}

/**
 * Returns a function that writes bytes to a standard stream, and resolves when it accepted them.
 */
export function createWriter(
  io: CliIo,
  name: 'output' | 'error',
): (bytes: Buffer) => Promise<void> {
  const { streams } = io;
  if (streams !== undefined) return (bytes) => writeAll(streams[name], bytes);
  const decoder = new TextDecoder();
  const print = name === 'output' ? io.out : io.err;
  return async (bytes) => print(decoder.decode(bytes, { stream: true }));
}
