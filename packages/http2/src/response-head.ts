import type { ResponseHead } from './body-seams.ts';
import type { ByteQueue } from './byte-queue.ts';
import { addField, addFields, addNoTable, addStatus } from './hpack-encoder.ts';
import { writeHead } from './output.ts';
import { flag, frameHeadBytes, frameType } from './protocol.ts';

let dateSecond = 0;
let date = '';

/** The `date` header's text, made once a second. */
function dateText(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new Date(nowMs).toUTCString();
  }
  return date;
}

/**
 * Adds an answer's HEADERS frame, and CONTINUATION frames behind it when the block is long. Throws a
 * TypeError for headers that cannot be sent; the queue then has bytes to be cut off again.
 */
export function addResponseHead(
  to: ByteQueue,
  answer: {
    stream: number;
    head: ResponseHead;
    tableUpdate: boolean;
    /** Wall time, milliseconds. */
    now: number;
    frameBytesMax: number;
  },
): void {
  const { stream, head, frameBytesMax } = answer;
  const start = to.length;
  to.reserve(frameHeadBytes);
  to.length += frameHeadBytes;
  if (answer.tableUpdate) addNoTable(to);
  addStatus(to, head.status);
  addFields(to, head.headers);
  if (head.contentLength !== undefined) {
    addField(to, 'content-length', String(head.contentLength));
  }
  if (head.headers['date'] === undefined) addField(to, 'date', dateText(answer.now));
  const bytes = to.length - start - frameHeadBytes;
  const endStream = head.empty ? flag.endStream : 0;
  const type = frameType.headers;
  if (bytes <= frameBytesMax) {
    writeHead(to.bytes, start, { type, flags: endStream | flag.endHeaders, stream, bytes });
    return;
  }
  const block = Buffer.from(to.bytes.subarray(start + frameHeadBytes, to.length));
  writeHead(to.bytes, start, { type, flags: endStream, stream, bytes: frameBytesMax });
  to.length = start + frameHeadBytes + frameBytesMax;
  addContinuations(to, { stream, block: block.subarray(frameBytesMax), frameBytesMax });
}

function addContinuations(
  to: ByteQueue,
  rest: { stream: number; block: Buffer; frameBytesMax: number },
): void {
  const { stream, block, frameBytesMax } = rest;
  for (let at = 0; at < block.length; at += frameBytesMax) {
    const part = block.subarray(at, at + frameBytesMax);
    const flags = at + part.length === block.length ? flag.endHeaders : 0;
    to.reserve(frameHeadBytes + part.length);
    const head = { type: frameType.continuation, flags, stream, bytes: part.length };
    to.length = writeHead(to.bytes, to.length, head);
    to.length += part.copy(to.bytes, to.length);
  }
}

/** Adds `100 Continue`. */
export function addContinue(
  to: ByteQueue,
  { stream, tableUpdate }: { stream: number; tableUpdate: boolean },
): void {
  const start = to.length;
  to.reserve(frameHeadBytes);
  to.length += frameHeadBytes;
  if (tableUpdate) addNoTable(to);
  addStatus(to, 100);
  const bytes = to.length - start - frameHeadBytes;
  writeHead(to.bytes, start, { type: frameType.headers, flags: flag.endHeaders, stream, bytes });
}
