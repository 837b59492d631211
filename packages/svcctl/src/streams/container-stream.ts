import type { Duplex, Readable, Writable } from 'node:stream';
import { channelProtocols, errorText, isObject, type JsonObject } from '@wheelhouse/machinery';
import { CliError, type CliIo, CommandExit } from '../io.ts';
import { listAt, textAt } from '../objects.ts';
import type { Session } from '../session.ts';

/** Channels; the first byte of every message. */
const channels = { input: 0, output: 1, error: 2, status: 3, size: 4, close: 255 } as const;

/** In order of preference; only the newer protocol can signal the end of standard input. */
const protocols = [channelProtocols.newest, channelProtocols.older];

/** The streams of a process in a container. */
interface ContainerStreams {
  /** Read to its end; destroyed if the process ends first. */
  readonly input?: Readable | undefined;
  readonly output: (bytes: Buffer) => Promise<void>;
  readonly error: (bytes: Buffer) => Promise<void>;
  /** The user's terminal; the process follows its size. */
  readonly terminal?: CliIo['terminal'] | undefined;
  /** Whether the process redraws the screen at the start, as after a change of its size. */
  readonly redraws?: boolean;
}

/**
 * Connects streams to a process in a container until it ends. Rejects with CommandExit if the
 * process fails, with ApiError if the server refuses, and with CliError if the connection is lost.
 * @param path the path of `exec` or `attach`, with its query
 */
export async function connectStreams(
  session: Session,
  path: string,
  streams: ContainerStreams,
): Promise<void> {
  const { clock, io } = session;
  const { signal } = io;
  const connection = await session.client.webSocket({ path, protocols, signal, clock });
  const { messages, protocol } = connection;
  const stopFollowing = followSize(messages, streams);
  const sending = sendInput(messages, {
    input: streams.input,
    signalsEnd: protocol === protocols[0],
  });
  let status: JsonObject | undefined;
  try {
    const received: AsyncIterable<Buffer> = messages;
    for await (const message of received) {
      const bytes = message.subarray(1);
      if (bytes.length === 0) continue;
      if (message[0] === channels.output) await streams.output(bytes);
      else if (message[0] === channels.error) await streams.error(bytes);
      else if (message[0] === channels.status) status = parseStatus(bytes);
      // The status is the last message.
      if (status !== undefined) break;
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new CliError(`the connection to the container was lost: ${errorText(error)}`);
  } finally {
    stopFollowing();
    streams.input?.destroy();
    await sending;
  }
  if (status === undefined) {
    throw new CliError('the connection to the container ended before the command did');
  }
  checkStatus(status);
}

/**
 * Sends the input until either side ends. Never rejects, since the receiving side reports failures.
 */
async function sendInput(
  messages: Duplex,
  { input, signalsEnd }: { readonly input: Readable | undefined; readonly signalsEnd: boolean },
): Promise<void> {
  if (input === undefined) return;
  try {
    for await (const chunk of input) {
      const bytes = Buffer.from(chunk);
      await writeAll(messages, Buffer.concat([Buffer.of(channels.input), bytes]));
    }
    if (signalsEnd) await writeAll(messages, Buffer.of(channels.close, channels.input));
  } catch {
    // Close the connection, so that the process does not wait for more input.
    messages.destroy(input.errored ?? undefined);
  }
}

/** Writes bytes. Resolves when the stream has accepted them. */
export function writeAll(stream: Writable, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function followSize(
  messages: Duplex,
  { terminal, redraws }: Pick<ContainerStreams, 'terminal' | 'redraws'>,
): () => void {
  if (terminal === undefined) return () => {};
  const send = (change: number): void => {
    const { columns, rows } = terminal.size();
    const text = JSON.stringify({ Width: columns + change, Height: rows + change });
    if (messages.writable)
      messages.write(Buffer.concat([Buffer.of(channels.size), Buffer.from(text)]));
  };
  if (redraws === true) send(1);
  send(0);
  terminal.setRaw(true);
  const stop = terminal.onResize(() => send(0));
  return () => {
    stop();
    terminal.setRaw(false);
  };
}

function parseStatus(bytes: Buffer): JsonObject {
  const text = bytes.toString();
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Reported below.
  }
  throw new CliError(`error stream protocol error: ${JSON.stringify(text)} is not a status`);
}

function checkStatus(status: JsonObject): void {
  if (status['status'] === 'Success') return;
  if (status['status'] !== 'Failure') {
    throw new CliError('error stream protocol error: unknown error');
  }
  if (status['reason'] !== 'NonZeroExitCode') throw new CliError(textAt(status, 'message'));
  const cause = listAt(status, 'details', 'causes').find(
    (candidate) => candidate['reason'] === 'ExitCode',
  );
  if (cause === undefined) {
    throw new CliError('error stream protocol error: no ExitCode cause given');
  }
  const code = textAt(cause, 'message');
  if (!/^\d{1,3}$/.test(code) || Number(code) > 255) {
    throw new CliError(
      `error stream protocol error: invalid exit code value ${JSON.stringify(code)}`,
    );
  }
  throw new CommandExit(Number(code));
}
