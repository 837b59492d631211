import type { Output } from './output.ts';
import { flag, frameType } from './protocol.ts';

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
