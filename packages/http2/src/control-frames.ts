import type { Clock } from '@wheelhouse/machinery';
import { type Frame, uint31, uint32, violation } from './frame-reader.ts';
import type { ControlOutput } from './output.ts';
import {
  ConnectionError,
  errorCode,
  flag,
  frameBytesMax,
  frameType,
  setting,
  windowBytesMax,
} from './protocol.ts';

/** The settings in a peer's SETTINGS frame; undefined if absent. */
interface PeerSettings {
  headerTableBytes: number | undefined;
  initialWindow: number | undefined;
  frameBytesMax: number | undefined;
  streamsMax: number | undefined;
}

const entryBytes = 6;
const frameBytesCeiling = 0xffffff;

/**
 * Parses a SETTINGS frame; undefined for an acknowledgment. Throws ConnectionError for an invalid
 * frame and for values out of range.
 */
export function readSettings({
  bytes,
  start,
  end,
  stream,
  flags,
}: Frame): PeerSettings | undefined {
  if (stream !== 0) throw violation('SETTINGS on a stream');
  if ((flags & flag.ack) !== 0) {
    if (end !== start) throw wrongSize('SETTINGS acknowledgment');
    return undefined;
  }
  if ((end - start) % entryBytes !== 0) {
    throw new ConnectionError(errorCode.frameSizeError, 'SETTINGS frame with invalid length');
  }
  const read: PeerSettings = {
    headerTableBytes: undefined,
    initialWindow: undefined,
    frameBytesMax: undefined,
    streamsMax: undefined,
  };
  for (let at = start; at < end; at += entryBytes) {
    const name = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
    const value = uint32(bytes, at + 2);
    if (name === setting.headerTableSize) {
      // The smallest value counts: shrinking the table evicts entries even if it grows again.
      read.headerTableBytes = Math.min(read.headerTableBytes ?? value, value);
    } else if (name === setting.enablePush && value > 1) throw outOfRange('ENABLE_PUSH');
    else if (name === setting.initialWindowSize) {
      if (value > windowBytesMax) {
        throw new ConnectionError(errorCode.flowControlError, 'INITIAL_WINDOW_SIZE out of range');
      }
      read.initialWindow = value;
    } else if (name === setting.maxFrameSize) {
      if (value < frameBytesMax || value > frameBytesCeiling) throw outOfRange('MAX_FRAME_SIZE');
      read.frameBytesMax = value;
    } else if (name === setting.maxConcurrentStreams) read.streamsMax = value;
  }
  return read;
}

/** The error for a frame whose length its type does not allow. */
export function wrongSize(what: string): ConnectionError {
  return new ConnectionError(errorCode.frameSizeError, `${what} with invalid length`);
}

/** The error for an update that makes a flow control window too large. */
export function windowOutOfRange(): ConnectionError {
  return new ConnectionError(errorCode.flowControlError, 'window out of range');
}

/** Widens the send window of a connection by the increment of a WINDOW_UPDATE. */
export function widenConnection(
  output: { sendWindow: number; schedule(): void },
  by: number,
): void {
  if (by === 0) throw violation('WINDOW_UPDATE by 0');
  if (output.sendWindow + by > windowBytesMax) throw windowOutOfRange();
  output.sendWindow += by;
  output.schedule();
}

/** Reads the only word of a frame, such as the increment of a WINDOW_UPDATE. */
export function onlyWord({ bytes, start, end }: Frame, what: string): number {
  if (end - start !== 4) throw wrongSize(what);
  return uint31(bytes, start);
}

/** Returns the payload of a PING. Throws ConnectionError for an invalid one. */
export function readPing({ bytes, start, end, stream }: Frame): Buffer {
  if (stream !== 0) throw violation('PING on a stream');
  if (end - start !== pingBytes) throw wrongSize('PING');
  return bytes.subarray(start, end);
}

const pingBytes = 8;

/** Returns the last stream that a GOAWAY names. Throws ConnectionError for an invalid frame. */
export function readGoAway({ bytes, start, end, stream }: Frame): number {
  if (stream !== 0) throw violation('GOAWAY on a stream');
  if (end - start < goAwayBytesMin) throw wrongSize('GOAWAY');
  return uint31(bytes, start);
}

const goAwayBytesMin = 8;

function outOfRange(name: string): ConnectionError {
  return new ConnectionError(errorCode.protocolError, `${name} out of range`);
}

/**
 * Queues a SETTINGS frame. Like all frames but DATA, it waits in `output.control`.
 * @param settings pairs of identifiers and values
 */
export function sendSettings(
  output: ControlOutput,
  settings: readonly (readonly [name: number, value: number])[],
): void {
  const bytes = 6 * settings.length;
  output.frame({ type: frameType.settings, flags: 0, stream: 0, bytes });
  const { control } = output;
  for (const [name, value] of settings) {
    control.length = control.bytes.writeUInt16BE(name, control.length);
    control.length = control.bytes.writeUInt32BE(value, control.length);
  }
}

/** Queues the acknowledgment of a client's SETTINGS. */
export function acknowledgeSettings(output: ControlOutput): void {
  output.frame({ type: frameType.settings, flags: flag.ack, stream: 0, bytes: 0 });
}

/** Queues a WINDOW_UPDATE frame of a stream, or of the connection for stream 0. */
export function sendWindowUpdate(
  output: ControlOutput,
  { stream, by }: { stream: number; by: number },
) {
  sendWords(output, { type: frameType.windowUpdate, stream, words: [by] });
}

/** Queues a RST_STREAM frame. */
export function sendReset(
  output: ControlOutput,
  { stream, code }: { stream: number; code: number },
) {
  sendWords(output, { type: frameType.resetStream, stream, words: [code] });
}

/** Queues a GOAWAY frame. */
export function sendGoAway(
  output: ControlOutput,
  { lastStream, code }: { lastStream: number; code: number },
): void {
  sendWords(output, { type: frameType.goAway, stream: 0, words: [lastStream, code] });
}

/** Queues a PING frame; `flags` is `flag.ack` for the response to a client's ping. */
export function sendPing(
  output: ControlOutput,
  { payload, flags }: { payload: Buffer; flags: number },
): void {
  output.frame({ type: frameType.ping, flags, stream: 0, bytes: payload.length });
  const { control } = output;
  control.length += payload.copy(control.bytes, control.length);
}

function sendWords(
  output: ControlOutput,
  frame: { type: number; stream: number; words: readonly number[] },
): void {
  const { type, stream, words } = frame;
  output.frame({ type, flags: 0, stream, bytes: 4 * words.length });
  const { control } = output;
  for (const word of words) control.length = control.bytes.writeUInt32BE(word, control.length);
}

/**
 * Budget of frames that cause work but carry no request or body. Each DATA frame that the server
 * sends earns the client some window updates.
 */
const idleFrameBudget = { burst: 5000, perSecond: 1000 };
const earnedByData = 2;
/** Number of streams that a frame may affect at the price of another frame. */
const affectedPerFrame = 64;
/**
 * Budget of streams that are reset before their response is complete. Each complete response earns
 * one reset.
 */
const resetBudget = { burst: 2000, perSecond: 100 };

/**
 * Limits the wasted work of one connection. The `charge` methods throw a ConnectionError with
 * ENHANCE_YOUR_CALM if the budget is exhausted.
 */
export class FloodGuard {
  readonly #idleFrames: Budget;
  readonly #resets: Budget;

  constructor(clock: Clock) {
    this.#idleFrames = new Budget(clock, idleFrameBudget);
    this.#resets = new Budget(clock, resetBudget);
  }

  /** Charges a frame of the client without a request or body. */
  chargeIdleFrame(): void {
    if (!this.#idleFrames.spend()) throw tooMany('frames without a request or body');
  }

  /** Charges a frame that affects streams, besides the frame itself. */
  chargeAffected(streams: number): void {
    const frames = Math.floor(streams / affectedPerFrame);
    if (!this.#idleFrames.spend(frames)) throw tooMany('changes of all streams');
  }

  /** Charges a stream that the client reset, or that was reset because of its error. */
  chargeReset(): void {
    if (!this.#resets.spend()) throw tooMany('reset streams');
  }

  /** Credits a complete response. */
  creditResponse(): void {
    this.#resets.earn(1);
  }

  /** Credits sent DATA frames. */
  creditData(frames: number): void {
    this.#idleFrames.earn(frames * earnedByData);
  }
}

function tooMany(what: string): ConnectionError {
  return new ConnectionError(errorCode.enhanceYourCalm, `too many ${what}`);
}

/** A token bucket with additional earnings. Reads the clock only when it is empty. */
class Budget {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #filledAt: number;

  constructor(clock: Clock, { burst, perSecond }: { burst: number; perSecond: number }) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#left = burst;
    this.#filledAt = clock.monotonic();
  }

  spend(amount = 1): boolean {
    if (this.#left < amount) this.#refill();
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }

  earn(amount: number): void {
    this.#left = Math.min(this.#burst, this.#left + amount);
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.earn(((now - this.#filledAt) * this.#perSecond) / 1000);
    this.#filledAt = now;
  }
}
