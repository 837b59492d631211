import { ByteQueue } from './byte-queue.ts';
import { type Frame, uint31 } from './frame-reader.ts';
import { ConnectionError, errorCode, flag, frameType } from './protocol.ts';

/** More frames than this for one block are no honest client's. */
const continuationsMax = 64;

/** A header block that comes in several frames, until it is whole. */
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

  /** Adds a fragment; throws a ConnectionError when the block gets too long. */
  add({ bytes, start, end }: Frame): void {
    this.#continuations += 1;
    const queue = this.#bytes;
    if (queue.length + end - start > this.#bytesMax || this.#continuations > continuationsMax) {
      throw new ConnectionError(errorCode.enhanceYourCalm, 'a header block without an end');
    }
    queue.reserve(end - start);
    queue.length += bytes.copy(queue.bytes, queue.length, start, end);
  }
}

/**
 * Leaves padding and priority out of a HEADERS or DATA frame, by moving its `start` and `end`.
 * Throws a ConnectionError when they do not fit, or when a stream depends on itself.
 */
export function trimPayload(frame: Frame): void {
  const { bytes, flags } = frame;
  let padding = 0;
  if ((flags & flag.padded) !== 0) {
    if (frame.start >= frame.end) throw tooShort();
    padding = bytes[frame.start] as number;
    frame.start += 1;
  }
  if (frame.type === frameType.headers && (flags & flag.priority) !== 0) {
    if (frame.end - frame.start < priorityBytes) throw tooShort();
    if (uint31(bytes, frame.start) === frame.stream) {
      throw new ConnectionError(errorCode.protocolError, 'a stream that depends on itself');
    }
    frame.start += priorityBytes;
  }
  if (padding > frame.end - frame.start) {
    throw new ConnectionError(errorCode.protocolError, 'more padding than payload');
  }
  frame.end -= padding;
}

export const priorityBytes = 5;

function tooShort(): ConnectionError {
  return new ConnectionError(errorCode.frameSizeError, 'a frame too short for its flags');
}
