import type { ResponseHeaders } from '@wheelhouse/machinery';
import { entryOverheadBytes, type FieldSink } from './hpack-decoder.ts';
import { staticFields, staticIndexOfName } from './hpack-static.ts';
import { type ByteQueue, writeHead } from './output.ts';
import { flag, frameHeadBytes, frameType } from './protocol.ts';

const colon = 0x3a;

/** Headers of which only the first value is used, because several cannot be joined. */
const singletons = new Set([
  'authorization',
  'content-length',
  'content-type',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'user-agent',
]);

/**
 * The decoded header block of a request or of trailers. It records the first violation of RFC 9113,
 * 8.1 to 8.3, and continues, because the decoder must read the whole block. Above `bytesMax` it
 * drops further fields and sets `tooLarge`.
 */
export class RequestHead implements FieldSink {
  method: string | undefined;
  path: string | undefined;
  scheme: string | undefined;
  authority: string | undefined;
  /** Alternating names and values without pseudo-headers. */
  readonly lines: string[] = [];
  /** The value of `content-length`; undefined if absent. */
  contentLength: number | undefined;
  waitsForContinue = false;
  tooLarge = false;
  malformed: string | undefined;
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds a decoded field. */
  field(name: string, value: string, faults: number): void {
    this.#bytes += name.length + value.length + entryOverheadBytes;
    if (this.#bytes > this.#bytesMax) {
      this.tooLarge = true;
      return;
    }
    if (faults !== 0) this.malformed ??= 'field with forbidden characters';
    else if (name.charCodeAt(0) === colon) this.#pseudo(name, value);
    else this.#regular(name, value);
  }

  /** The joined values of a header by lower-case name. */
  header(name: string): string | undefined {
    const { lines } = this;
    let joined: string | undefined;
    for (let index = 0; index < lines.length; index += 2) {
      if (lines[index] !== name) continue;
      const value = lines[index + 1] ?? '';
      if (joined === undefined) {
        joined = value;
        if (singletons.has(name)) break;
      } else joined = `${joined}${name === 'cookie' ? '; ' : ', '}${value}`;
    }
    return name === 'host' ? (this.authority ?? joined) : joined;
  }

  /** Must be called after the last field of a request. */
  check({ hasBody }: { hasBody: boolean }): void {
    if (this.tooLarge || this.malformed !== undefined) return;
    const { method, path, scheme } = this;
    if (!hasBody && (this.contentLength ?? 0) > 0) this.malformed = 'missing body';
    else if (method === undefined) this.malformed = 'no :method';
    else if (method === 'CONNECT') {
      const isPlain = scheme === undefined && path === undefined && this.authority !== undefined;
      if (!isPlain) this.malformed = 'CONNECT with :scheme or :path, or without :authority';
    } else if (scheme === undefined) this.malformed = 'no :scheme';
    else if (path === undefined || !isPath(path, method)) this.malformed = 'invalid :path';
  }

  /** Must be called after the last field of trailers, which have no pseudo-headers. */
  checkTrailers(): void {
    const { method, path, scheme, authority } = this;
    if ((method ?? path ?? scheme ?? authority) !== undefined) {
      this.malformed ??= 'pseudo-header in trailers';
    }
  }

  #pseudo(name: string, value: string): void {
    if (this.lines.length > 0) this.malformed ??= 'pseudo-header after a regular one';
    else if (name === ':path') this.path = this.#once(this.path, value);
    else if (name === ':method') {
      this.method = this.#once(this.method, value);
      if (!isToken(value)) this.malformed ??= 'invalid :method';
    } else if (name === ':scheme') this.scheme = this.#once(this.scheme, value);
    else if (name === ':authority') this.authority = this.#once(this.authority, value);
    else this.malformed ??= 'unknown pseudo-header';
  }

  #once(before: string | undefined, value: string): string {
    if (before !== undefined) this.malformed ??= 'duplicate pseudo-header';
    return value;
  }

  #regular(name: string, value: string): void {
    this.lines.push(name, value);
    switch (name) {
      case 'content-length':
        this.#setContentLength(value);
        break;
      case 'expect':
        this.waitsForContinue = value.toLowerCase() === '100-continue';
        break;
      case 'te':
        if (value.toLowerCase() !== 'trailers') this.malformed ??= 'te other than trailers';
        break;
      case 'connection':
      case 'keep-alive':
      case 'proxy-connection':
      case 'transfer-encoding':
      case 'upgrade':
        this.malformed ??= 'connection-specific header';
        break;
    }
  }

  #setContentLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : undefined;
    if (length === undefined || (this.contentLength ?? length) !== length) {
      this.malformed ??= 'invalid content-length';
    }
    this.contentLength = length;
  }
}

function isToken(text: string): boolean {
  return text === 'GET' || /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}

const slash = 0x2f;

/** Whether a path is `/…` without spaces and control characters, or the asterisk of OPTIONS. */
function isPath(path: string, method: string): boolean {
  if (path === '*') return method === 'OPTIONS';
  if (path.charCodeAt(0) !== slash) return false;
  for (let at = 1; at < path.length; at += 1) {
    const unit = path.charCodeAt(at);
    if (unit <= 0x20 || unit === 0x7f) return false;
  }
  return true;
}

/** Status and headers of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** The `content-length` header; undefined if the length is unknown or must not be sent. */
  readonly contentLength: number | undefined;
  /** Whether the response has no body. */
  readonly empty: boolean;
}

/**
 * The encoding of a name and of a recent value, because most headers rarely change. It uses only
 * the static table (RFC 7541, 6.2.2), so that all connections share it. The dynamic table would
 * save about sixty bytes per response.
 */
class FieldCode {
  readonly head: Buffer;
  /** The value that `bytes` encodes together with the name. */
  value: string | undefined;
  bytes: Buffer = Buffer.alloc(0);
  /** The header's last value. */
  last: string | undefined;

  constructor(name: string) {
    this.head = encodeName(name);
  }
}

const literalIndexMax = 15;
const fieldCodes = new Map<string, FieldCode>();
/** Names come from the application, which uses few; the limit is a safeguard. */
const fieldCodesMax = 512;
/** Longer values are not cached. */
const keptValueBytesMax = 256;

const forbidden = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

function encodeName(name: string): Buffer {
  const index = forbidden.has(name) ? undefined : staticIndexOfName.get(name);
  if (index !== undefined) {
    if (index < literalIndexMax) return Buffer.from([index]);
    return Buffer.from([literalIndexMax, index - literalIndexMax]);
  }
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]{1,126}$/.test(name) || forbidden.has(name)) {
    throw new TypeError(`invalid HTTP/2 header name: ${JSON.stringify(name)}`);
  }
  return Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name, 'latin1')]);
}

function fieldCodeOf(name: string): FieldCode {
  let code = fieldCodes.get(name);
  if (code === undefined) {
    code = new FieldCode(name);
    if (fieldCodes.size < fieldCodesMax) fieldCodes.set(name, code);
  }
  return code;
}

/** Maximum size of an encoded length besides the first byte. */
const lengthBytesMax = 6;

/** Adds a length with a seven-bit prefix, for text without Huffman coding. */
function addLength(to: ByteQueue, length: number): void {
  const { bytes } = to;
  if (length < 127) {
    bytes[to.length++] = length;
    return;
  }
  bytes[to.length++] = 127;
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[to.length++] = (rest % 128) + 128;
  bytes[to.length++] = rest;
}

/** Texts up to this length are written by a loop, which is faster than a native call. */
const loopBytesMax = 64;

function addText(to: ByteQueue, text: string): void {
  const { length } = text;
  to.reserve(length + lengthBytesMax);
  addLength(to, length);
  const { bytes } = to;
  const start = to.length;
  let invalid = 0;
  for (let at = 0; at < length; at += 1) {
    const unit = text.charCodeAt(at);
    if (length <= loopBytesMax) bytes[start + at] = unit;
    if (unit > 255 || unit === 0 || unit === 10 || unit === 13) invalid = 1;
  }
  if (invalid === 1)
    throw new TypeError('a header value contains characters that HTTP/2 does not allow');
  if (length > loopBytesMax) bytes.write(text, start, 'latin1');
  to.length = start + length;
}

/** Adds a field. Throws a TypeError for an invalid name or value. */
export function addField(to: ByteQueue, name: string, value: string): void {
  const code = fieldCodeOf(name);
  if (code.value === value) {
    addBytes(to, code.bytes);
    return;
  }
  const start = to.length;
  addBytes(to, code.head);
  addText(to, value);
  if (value.length > keptValueBytesMax) return;
  // A value that occurs twice in a row is cached; IDs and dates are not.
  if (code.value === undefined || code.last === value) {
    code.value = value;
    code.bytes = Buffer.from(to.bytes.subarray(start, to.length));
  }
  code.last = value;
}

function addBytes(to: ByteQueue, source: Buffer): void {
  to.reserve(source.length);
  const { bytes } = to;
  let { length } = to;
  for (let at = 0; at < source.length; at += 1) bytes[length++] = source[at] ?? 0;
  to.length = length;
}

const statusIndexes = new Map(
  staticFields.flatMap(([name, value], index) =>
    name === ':status' ? [[Number(value), index + 1] as const] : [],
  ),
);

const indexedField = 0x80;

/** Adds `:status`, which must be the first field. */
export function addStatus(to: ByteQueue, status: number): void {
  const index = statusIndexes.get(status);
  if (index === undefined) {
    addField(to, ':status', String(status));
    return;
  }
  to.reserve(1);
  to.bytes[to.length++] = indexedField | index;
}

/** Adds all fields of a response. */
export function addFields(to: ByteQueue, headers: ResponseHeaders): void {
  for (const name in headers) {
    if (!Object.hasOwn(headers, name)) continue;
    const value = headers[name] as string | readonly string[];
    if (typeof value === 'string') addField(to, name, value);
    else for (const fieldValue of value) addField(to, name, fieldValue);
  }
}

/**
 * Adds a dynamic table size update to 0 (RFC 7541, 6.3), which is required when the peer shrinks
 * it.
 */
export function addNoTable(to: ByteQueue): void {
  to.reserve(1);
  to.bytes[to.length++] = 0x20;
}

let dateSecond = 0;
let date = '';

/** Returns the text of the `date` header, cached for a second. */
function dateText(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new Date(nowMs).toUTCString();
  }
  return date;
}

/**
 * Adds a response's HEADERS frame, followed by CONTINUATION frames if the block is long. Throws a
 * TypeError for invalid headers, in which case the caller must truncate the queue.
 */
export function addResponseHead(
  to: ByteQueue,
  response: {
    stream: number;
    head: ResponseHead;
    tableUpdate: boolean;
    /** Wall time, milliseconds. */
    now: number;
    frameBytesMax: number;
  },
): void {
  const { stream, head, frameBytesMax } = response;
  const start = to.length;
  to.reserve(frameHeadBytes);
  to.length += frameHeadBytes;
  if (response.tableUpdate) addNoTable(to);
  addStatus(to, head.status);
  addFields(to, head.headers);
  if (head.contentLength !== undefined) {
    addField(to, 'content-length', String(head.contentLength));
  }
  if (head.headers['date'] === undefined) addField(to, 'date', dateText(response.now));
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

/** Adds the HEADERS frame of `100 Continue`. */
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
