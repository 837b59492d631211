import { ByteQueue } from './output.ts';
import {
  ConnectionError,
  errorCode,
  flag,
  frameBytesMax,
  frameHeadBytes,
  frameType,
  preface,
} from './protocol.ts';

/** A frame's header and the position of its payload. Valid only during the call. */
export interface Frame {
  type: number;
  flags: number;
  stream: number;
  bytes: Buffer;
  start: number;
  end: number;
}

/** Receives frames. `closed` stops the reader within a chunk. */
export interface FrameSink {
  handleFrame(frame: Frame): void;
  /** Ends the connection because of its peer or of a fault. */
  fail(error: unknown): void;
  readonly closed: boolean;
}

/**
 * Splits a peer's bytes into frames, without copying those within one chunk. The sink fails with a
 * ConnectionError for an invalid preface or an oversized frame, and with what its handler throws.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #frame: Frame = { type: 0, flags: 0, stream: 0, bytes: none, start: 0, end: 0 };
  /** Bytes of the preface received so far. */
  #prefaceBytes = 0;
  /** Start of a frame from an earlier chunk: its first `#partialBytes` bytes. */
  #partial: Buffer = none;
  #partialBytes = 0;

  /** @param from the peer; only a client begins with a preface */
  constructor(sink: FrameSink, from: 'client' | 'server') {
    this.#sink = sink;
    if (from === 'server') this.#prefaceBytes = preface.length;
  }

  /** Reads a chunk unless the sink is closed. */
  read(chunk: Buffer): void {
    if (this.#sink.closed) return;
    try {
      this.#split(chunk);
    } catch (error) {
      this.#sink.fail(error);
    }
  }

  #split(chunk: Buffer): void {
    let at = this.#prefaceBytes < preface.length ? this.#skipPreface(chunk) : 0;
    if (this.#partialBytes > 0) at = this.#complete(chunk, at);
    while (chunk.length - at >= frameHeadBytes) {
      const end = at + frameHeadBytes + payloadBytes(chunk, at);
      if (end > chunk.length) break;
      this.#emit(chunk, at, end);
      if (this.#sink.closed) return;
      at = end;
    }
    if (at < chunk.length) this.#savePartial(chunk, at);
  }

  #skipPreface(chunk: Buffer): number {
    const bytes = Math.min(preface.length - this.#prefaceBytes, chunk.length);
    for (let at = 0; at < bytes; at += 1) {
      if (chunk[at] !== preface[this.#prefaceBytes + at]) {
        throw new ConnectionError(errorCode.protocolError, 'invalid HTTP/2 preface');
      }
    }
    this.#prefaceBytes += bytes;
    return bytes;
  }

  /** Continues the incomplete frame; returns the start of the next one. */
  #complete(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#partialBytes < frameHeadBytes) {
      at += this.#extendPartial(frameHeadBytes, chunk, at);
      if (this.#partialBytes < frameHeadBytes) return at;
    }
    const end = frameHeadBytes + payloadBytes(this.#partial, 0);
    at += this.#extendPartial(end, chunk, at);
    if (this.#partialBytes < end) return at;
    const whole = this.#partial;
    this.#partial = none;
    this.#partialBytes = 0;
    this.#emit(whole, 0, end);
    return this.#sink.closed ? chunk.length : at;
  }

  /** Stores the start of a frame, in a buffer for the whole frame if its length is known. */
  #savePartial(chunk: Buffer, at: number): void {
    const bytes = chunk.length - at;
    const hasLength = bytes >= frameHeadBytes;
    this.#partial = Buffer.allocUnsafe(
      hasLength ? frameHeadBytes + payloadBytes(chunk, at) : frameHeadBytes,
    );
    this.#partialBytes = chunk.copy(this.#partial, 0, at);
  }

  /**
   * Copies bytes to `#partial` until it has `needed` bytes or the chunk ends; returns their number.
   */
  #extendPartial(needed: number, chunk: Buffer, at: number): number {
    if (this.#partial.length < needed) {
      const grown = Buffer.allocUnsafe(needed);
      this.#partial.copy(grown, 0, 0, this.#partialBytes);
      this.#partial = grown;
    }
    const bytes = Math.min(needed - this.#partialBytes, chunk.length - at);
    chunk.copy(this.#partial, this.#partialBytes, at, at + bytes);
    this.#partialBytes += bytes;
    return bytes;
  }

  #emit(bytes: Buffer, at: number, end: number): void {
    const frame = this.#frame;
    frame.type = bytes[at + 3] ?? 0;
    frame.flags = bytes[at + 4] ?? 0;
    frame.stream = uint31(bytes, at + 5);
    frame.bytes = bytes;
    frame.start = at + frameHeadBytes;
    frame.end = end;
    this.#sink.handleFrame(frame);
    frame.bytes = none;
  }
}

const none = Buffer.alloc(0);

function payloadBytes(bytes: Buffer, at: number): number {
  const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
  if (length > frameBytesMax) {
    throw new ConnectionError(errorCode.frameSizeError, `frame of ${length} bytes`);
  }
  return length;
}

/** Reads 31 bits in network order; ignores the reserved bit. */
export function uint31(bytes: Buffer, at: number): number {
  return (
    (((bytes[at] ?? 0) & 0x7f) << 24) |
    ((bytes[at + 1] ?? 0) << 16) |
    ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)
  );
}

/** Reads 32 bits in network order. */
export function uint32(bytes: Buffer, at: number): number {
  return uint31(bytes, at) + ((bytes[at] ?? 0) >= 0x80 ? 0x80000000 : 0);
}

/** Maximum number of frames of one header block; real clients send fewer. */
const continuationsMax = 64;

/**
 * Checks that a frame may come now.
 * @throws ConnectionError for a frame within a header block, and for any before the first SETTINGS
 */
export function checkOrder(
  { type, stream }: Frame,
  reading: { readonly block: HeaderBlock | undefined; readonly hasSettings: boolean },
): void {
  const isContinuation = type === frameType.continuation;
  if (reading.block !== undefined && !isContinuation)
    throw violation('frame within a header block');
  if (!reading.hasSettings && type !== frameType.settings) {
    throw violation('connection does not begin with SETTINGS');
  }
  if (isContinuation && reading.block?.stream !== stream)
    throw violation('unexpected CONTINUATION');
}

/** The error of a peer that breaks a rule of the protocol. */
export function violation(what: string): ConnectionError {
  return new ConnectionError(errorCode.protocolError, what);
}

/** A header block that is being received in several frames. */
export class HeaderBlock {
  readonly stream: number;
  readonly endsStream: boolean;
  readonly #bytesMax: number;
  readonly #bytes = new ByteQueue();
  #continuations = 0;

  constructor(options: { stream: number; endsStream: boolean; bytesMax: number }) {
    this.stream = options.stream;
    this.endsStream = options.endsStream;
    this.#bytesMax = options.bytesMax;
  }

  get bytes(): Buffer {
    return this.#bytes.bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** Adds a fragment. Throws ConnectionError if the block becomes too long. */
  add({ bytes, start, end }: Frame): void {
    this.#continuations += 1;
    const queue = this.#bytes;
    if (queue.length + end - start > this.#bytesMax || this.#continuations > continuationsMax) {
      throw new ConnectionError(errorCode.enhanceYourCalm, 'header block too long');
    }
    queue.reserve(end - start);
    queue.length += bytes.copy(queue.bytes, queue.length, start, end);
  }
}

/**
 * Strips padding and priority from a HEADERS or DATA frame by moving its `start` and `end`. Throws
 * a ConnectionError if they exceed the frame or a stream depends on itself.
 */
export function trimPayload(frame: Frame): void {
  const { bytes, flags } = frame;
  let padding = 0;
  if ((flags & flag.padded) !== 0) {
    if (frame.start >= frame.end) throw tooShort();
    padding = bytes[frame.start] ?? 0;
    frame.start += 1;
  }
  if (frame.type === frameType.headers && (flags & flag.priority) !== 0) {
    if (frame.end - frame.start < priorityBytes) throw tooShort();
    if (uint31(bytes, frame.start) === frame.stream) {
      throw new ConnectionError(errorCode.protocolError, 'stream depends on itself');
    }
    frame.start += priorityBytes;
  }
  if (padding > frame.end - frame.start) {
    throw new ConnectionError(errorCode.protocolError, 'padding exceeds payload');
  }
  frame.end -= padding;
}

/**
 * Size of a priority (RFC 9113, 5.3), which HEADERS and PRIORITY frames carry and which is ignored.
 */
export const priorityBytes = 5;

function tooShort(): ConnectionError {
  return new ConnectionError(errorCode.frameSizeError, 'frame too short for its flags');
}
