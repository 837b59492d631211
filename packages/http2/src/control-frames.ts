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

/** What a client's SETTINGS frame changes for us; undefined where it says nothing. */
interface PeerSettings {
  headerTableBytes: number | undefined;
  initialWindow: number | undefined;
  frameBytesMax: number | undefined;
}

const entryBytes = 6;
const frameBytesCeiling = 0xffffff;

/** Reads the payload of a SETTINGS frame; throws a ConnectionError for values out of range. */
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
      // The smallest counts: a table that shrinks and grows again in one frame has been emptied.
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

/** Frames that a connection sends beside HEADERS and DATA; they wait in `output.control`. */

/** @param settings identifiers and values */
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
