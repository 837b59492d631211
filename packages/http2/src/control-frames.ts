import type { Clock } from '@wheelhouse/machinery';
import { type Frame, uint32 } from './frame-reader.ts';
import type { Output } from './output.ts';
import {
  ConnectionError,
  errorCode,
  flag,
  frameBytesMax,
  frameType,
  setting,
  windowBytesMax,
} from './protocol.ts';

/** The settings in a client's SETTINGS frame; undefined if absent. */
interface PeerSettings {
  headerTableBytes: number | undefined;
  initialWindow: number | undefined;
  frameBytesMax: number | undefined;
}

const entryBytes = 6;
const frameBytesCeiling = 0xffffff;

/** Parses the payload of a SETTINGS frame. Throws a ConnectionError for values out of range. */
export function readSettings({ bytes, start, end }: Frame): PeerSettings {
  if ((end - start) % entryBytes !== 0) {
    throw new ConnectionError(errorCode.frameSizeError, 'SETTINGS of a wrong length');
  }
  const read: PeerSettings = {
    headerTableBytes: undefined,
    initialWindow: undefined,
    frameBytesMax: undefined,
  };
  for (let at = start; at < end; at += entryBytes) {
    const name = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
    const value = uint32(bytes, at + 2);
    if (name === setting.headerTableSize) {
      // The smallest value counts: a table that shrinks and grows again in one frame was emptied.
      read.headerTableBytes = Math.min(read.headerTableBytes ?? value, value);
    } else if (name === setting.enablePush && value > 1) throw badSetting('ENABLE_PUSH');
    else if (name === setting.initialWindowSize) {
      if (value > windowBytesMax) {
        throw new ConnectionError(errorCode.flowControlError, 'INITIAL_WINDOW_SIZE out of range');
      }
      read.initialWindow = value;
    } else if (name === setting.maxFrameSize) {
      if (value < frameBytesMax || value > frameBytesCeiling) throw badSetting('MAX_FRAME_SIZE');
      read.frameBytesMax = value;
    }
  }
  return read;
}

function badSetting(name: string): ConnectionError {
  return new ConnectionError(errorCode.protocolError, `${name} out of range`);
}

/** Frames other than HEADERS and DATA, which wait in `output.control`. */

/** @param settings alternating identifiers and values */
export function sendSettings(
  output: Output,
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

export function acknowledgeSettings(output: Output): void {
  output.frame({ type: frameType.settings, flags: flag.ack, stream: 0, bytes: 0 });
}

/** @param stream 0 for the connection's window */
export function sendWindowUpdate(output: Output, { stream, by }: { stream: number; by: number }) {
  sendWords(output, { type: frameType.windowUpdate, stream, words: [by] });
}

export function sendReset(output: Output, { stream, code }: { stream: number; code: number }) {
  sendWords(output, { type: frameType.resetStream, stream, words: [code] });
}

export function sendGoAway(
  output: Output,
  { lastStream, code }: { lastStream: number; code: number },
): void {
  sendWords(output, { type: frameType.goAway, stream: 0, words: [lastStream, code] });
}

/** @param flags `flag.ack` for the answer to a client's ping */
export function sendPing(
  output: Output,
  { payload, flags }: { payload: Buffer; flags: number },
): void {
  output.frame({ type: frameType.ping, flags, stream: 0, bytes: payload.length });
  const { control } = output;
  control.length += payload.copy(control.bytes, control.length);
}

function sendWords(
  output: Output,
  frame: { type: number; stream: number; words: readonly number[] },
): void {
  const { type, stream, words } = frame;
  output.frame({ type, flags: 0, stream, bytes: 4 * words.length });
  const { control } = output;
  for (const word of words) control.length = control.bytes.writeUInt32BE(word, control.length);
}

/**
 * Budget of frames that cause work and carry nothing. Each DATA frame that the server sends allows
 * the client some updates in response.
 */
const idleFrames = { burst: 5000, perSecond: 1000 };
const earnedByData = 2;
/**
 * Budget of streams that are reset before their response. Each complete response earns one back.
 */
const resets = { burst: 2000, perSecond: 100 };

/**
 * Limits wasted work of one connection. The methods that spend throw a ConnectionError with
 * ENHANCE_YOUR_CALM if the budget is exhausted.
 */
export class FloodGuard {
  readonly #idleFrames: Budget;
  readonly #resets: Budget;

  constructor(clock: Clock) {
    this.#idleFrames = new Budget(clock, idleFrames);
    this.#resets = new Budget(clock, resets);
  }

  /** The client has sent a frame without a request or body. */
  idleFrame(): void {
    if (!this.#idleFrames.spend()) throw calm('frames that do nothing');
  }

  /** The client has reset a stream or caused a reset. */
  reset(): void {
    if (!this.#resets.spend()) throw calm('streams opened and reset');
  }

  answered(): void {
    this.#resets.earn(1);
  }

  sentData(frames: number): void {
    this.#idleFrames.earn(frames * earnedByData);
  }
}

function calm(what: string): ConnectionError {
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

  spend(): boolean {
    if (this.#left < 1) this.#refill();
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  earn(some: number): void {
    this.#left = Math.min(this.#burst, this.#left + some);
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.earn(((now - this.#filledAt) * this.#perSecond) / 1000);
    this.#filledAt = now;
  }
}
