import type { Socket } from 'node:net';
import { contained, type MemoryAccount, reportFault } from '@wheelhouse/machinery';
import {
  defaultWindowBytes,
  errorCode,
  flag,
  frameBytesMax,
  frameHeadBytes,
  frameType,
} from './protocol.ts';

/** What the output of a connection sends for a stream, and notes about it. */
export interface OutputStream {
  readonly id: number;
  /** The send window; negative if the peer has reduced its initial window. */
  readonly sendWindow: number;
  readonly pendingBytes: number;
  /** Whether nothing follows the pending bytes. */
  readonly ending: boolean;
  /** Whether this stream's window allows a frame now. */
  readonly canSend: boolean;
  readonly aborted: boolean;
  /** Whether a reset follows the last frame, because the rest of the peer's body is not needed. */
  readonly resetsAtEnd: boolean;
  /** Whether the writer must be notified when nothing is pending. */
  readonly mustNotify: boolean;
  /** Whether it is in the output's list of ready streams. */
  isReady: boolean;
  endSent: boolean;
  finished: boolean;
  /** Moves `bytes` pending bytes to `target` at `at`. */
  take(target: Buffer, at: number, bytes: number): void;
  notifyDrained(): void;
}

/** Receives the progress of a connection's streams from its output. */
export interface OutputOwner<Stream> {
  /** Called when the last frame of the stream has been written, followed by any reset. */
  streamEnded(stream: Stream): void;
  /** Called when the operating system has accepted everything that the stream sent. */
  streamFinished(stream: Stream): void;
}

/** The part of an output to which frames other than DATA are added. */
export interface ControlOutput {
  readonly control: ByteQueue;
  /** Adds a frame header to `control` and makes room for its payload. */
  frame(head: { type: number; flags: number; stream: number; bytes: number }): void;
}

/**
 * Size below which the charge for a request or connection covers its queue of unread bytes.
 */
export const queueBytesMin = 64 * 1024;
/** Maximum bytes of bodies in one write. */
const batchBytes = 256 * 1024;
/** A block in flight exists in plain and in encrypted form. */
const blockCost = 2;
/** Number of frames that a stream may send before the next one. */
const turnFrames = 4;
const resetFrameBytes = frameHeadBytes + 4;
/** Space that a stream needs besides its data: a frame header and a reset. */
const turnOverheadBytes = frameHeadBytes + resetFrameBytes;

/** The content of one write to the socket. */
interface Write<Stream> {
  readonly ended: readonly Stream[];
  /** A block to reuse after the write; undefined for a part of the slab. */
  readonly block: Buffer | undefined;
}

const noStreams: readonly never[] = [];

/**
 * The sending half of a connection. Control frames wait in `control`, bodies in their streams. At
 * the end of a turn of the event loop, everything that the windows allow is sent in one write,
 * round-robin between streams. The next write waits until the previous one is complete, so a client
 * that does not read holds at most one write.
 */
export class Output<Stream extends OutputStream> implements ControlOutput {
  readonly control = new ByteQueue();
  /** The connection's flow control window. */
  sendWindow = defaultWindowBytes;
  /** Maximum payload that the client accepts. */
  frameBytesMax = frameBytesMax;
  /** DATA frames written since the owner last reset this. */
  dataFrames = 0;
  readonly #socket: Socket;
  readonly #owner: OutputOwner<Stream>;
  readonly #memory: Pick<MemoryAccount, 'charge'>;
  #chargedControl = 0;
  #ready: Stream[] = [];
  /** Streams whose last frame is in the next write. */
  #endedStreams: Stream[] = [];
  /** Streams whose writers wait and whose data has been sent. */
  #waiting: Stream[] = [];
  readonly #writes: Write<Stream>[] = [];
  #isScheduled = false;
  #isWriting = false;
  readonly #onWritten: (error?: Error | null) => void;

  constructor(options: {
    socket: Socket;
    owner: OutputOwner<Stream>;
    memory: Pick<MemoryAccount, 'charge'>;
  }) {
    this.#socket = options.socket;
    this.#owner = options.owner;
    this.#memory = options.memory;
    const end = () => options.socket.destroy();
    this.#onWritten = contained({ where: 'http2', end }, (error) => this.#written(error));
  }

  /** Streams whose last frames the operating system has not accepted. */
  get unwritten(): readonly Stream[] {
    return [...this.#writes.flatMap(({ ended }) => ended), ...this.#endedStreams];
  }

  /** Adds a stream whose last frame is in `control`. */
  addEnded(stream: Stream): void {
    this.#endedStreams.push(stream);
  }

  /** Marks a stream as having something to send. */
  wake(stream: Stream): void {
    if (stream.isReady || !stream.canSend) return;
    stream.isReady = true;
    this.#ready.push(stream);
    this.schedule();
  }

  frame(head: { type: number; flags: number; stream: number; bytes: number }): void {
    const { control } = this;
    control.reserve(frameHeadBytes + head.bytes);
    control.length = writeHead(control.bytes, control.length, head);
    this.schedule();
  }

  /** Charges memory for control frames that a client does not read. */
  chargeControl(): void {
    const { length } = this.control;
    const bytes = length < queueBytesMin ? 0 : length;
    if (bytes === this.#chargedControl) return;
    this.#memory.charge('answers', bytes - this.#chargedControl);
    this.#chargedControl = bytes;
  }

  /** Schedules a flush before the next turn of the event loop. */
  schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    scheduleFlush(this);
  }

  /** Writes what the windows allow. An internal error ends the connection. */
  flush(): void {
    this.#isScheduled = false;
    if (this.#isWriting || !this.#socket.writable) return;
    try {
      this.#write();
    } catch (error) {
      this.#socket.destroy();
      reportFault('http2', error);
    }
  }

  /** Writes everything that remains, even to a slow socket. */
  finish(): void {
    this.#isWriting = false;
    this.flush();
  }

  #write(): void {
    const size = this.#sizeOfNext();
    if (size === 0) return;
    const block = size > slabPartMax ? takeBlock(size) : undefined;
    const target = block ?? slabFor(size);
    const start = block === undefined ? slabUsed : 0;
    const end = this.#fill({ target, start, end: start + size });
    if (end === start) return;
    if (block === undefined) slabUsed = end;
    const ended = this.#endedStreams;
    this.#endedStreams = ended.length === 0 ? ended : [];
    this.#writes.push({ ended: ended.length === 0 ? noStreams : ended, block });
    if (block !== undefined) this.#memory.charge('answers', blockCost * block.length);
    if (this.#chargedControl > 0) this.chargeControl();
    this.#isWriting = true;
    this.#socket.write(target.subarray(start, end), this.#onWritten);
    for (const stream of ended) if (!stream.aborted) this.#owner.streamEnded(stream);
    if (this.#waiting.length > 0) this.#notifyWriters();
  }

  #notifyWriters(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const stream of waiting) stream.notifyDrained();
  }

  #written(error?: Error | null): void {
    // The streams of a write that fails end with the connection.
    if (error) return;
    const write = this.#writes.shift();
    if (write === undefined) return;
    if (write.block !== undefined) {
      this.#memory.charge('answers', -blockCost * write.block.length);
      releaseBlock(write.block);
    }
    for (const stream of write.ended) {
      stream.finished = true;
      this.#owner.streamFinished(stream);
    }
    this.#isWriting = this.#writes.length > 0;
    if (this.control.length > 0 || this.#ready.length > 0) this.schedule();
  }

  /** Upper bound of the bytes that `#fill` will write. */
  #sizeOfNext(): number {
    let bodies = 0;
    let heads = 0;
    for (const stream of this.#ready) {
      const bytes = Math.min(stream.pendingBytes, Math.max(0, stream.sendWindow));
      bodies += bytes;
      heads += turnOverheadBytes + Math.floor(bytes / this.frameBytesMax) * frameHeadBytes;
    }
    if (bodies === 0) return this.control.length + heads;
    return this.control.length + heads + Math.min(bodies, batchBytes, Math.max(0, this.sendWindow));
  }

  #fill(to: { target: Buffer; start: number; end: number }): number {
    const { target } = to;
    const { control } = this;
    let at = control.moveTo(target, to.start);
    const start = at;
    while (this.#ready.length > 0) {
      const before = at;
      const turn = this.#ready;
      // A new list is cheaper than emptying and reusing the old one.
      const later: Stream[] = [];
      for (const stream of turn) {
        for (let frames = 0; frames < turnFrames && stream.canSend; frames += 1) {
          const bytes = this.#allowed(stream, to.end - at);
          if (bytes < 0) break;
          at = this.#data({ stream, bytes, target, at });
        }
        if (stream.canSend) later.push(stream);
        else stream.isReady = false;
        if (stream.endSent) this.#endedStreams.push(stream);
        else if (stream.mustNotify && stream.pendingBytes === 0) this.#waiting.push(stream);
      }
      this.#ready = later;
      if (at === before) break;
    }
    // Rotate the list, so that another stream is first in the next round.
    const first = at > start ? this.#ready.shift() : undefined;
    if (first !== undefined) this.#ready.push(first);
    return at;
  }

  /** Bytes of the stream's body that may be sent in a frame now; -1 if no frame may be sent. */
  #allowed(stream: Stream, room: number): number {
    const left = room - turnOverheadBytes;
    if (left < 0) return -1;
    if (stream.pendingBytes === 0) return 0;
    const bytes = Math.min(
      stream.pendingBytes,
      stream.sendWindow,
      this.sendWindow,
      this.frameBytesMax,
      left,
    );
    return bytes > 0 ? bytes : -1;
  }

  #data(frame: { stream: Stream; bytes: number; target: Buffer; at: number }): number {
    const { stream, bytes, target } = frame;
    const isLast = stream.ending && stream.pendingBytes === bytes;
    const flags = isLast ? flag.endStream : 0;
    let at = writeHead(target, frame.at, { type: frameType.data, flags, stream: stream.id, bytes });
    stream.take(target, at, bytes);
    at += bytes;
    this.sendWindow -= bytes;
    this.dataFrames += 1;
    if (!isLast) return at;
    stream.endSent = true;
    if (!stream.resetsAtEnd) return at;
    const reset = { type: frameType.resetStream, flags: 0, stream: stream.id, bytes: 4 };
    return target.writeUInt32BE(errorCode.noError, writeHead(target, at, reset));
  }
}

/** Writes a frame header; returns the start of the payload. */
export function writeHead(
  target: Buffer,
  at: number,
  head: { type: number; flags: number; stream: number; bytes: number },
): number {
  const { type, flags, stream, bytes } = head;
  target[at] = bytes >>> 16;
  target[at + 1] = bytes >>> 8;
  target[at + 2] = bytes;
  target[at + 3] = type;
  target[at + 4] = flags;
  target[at + 5] = stream >>> 24;
  target[at + 6] = stream >>> 16;
  target[at + 7] = stream >>> 8;
  target[at + 8] = stream;
  return at + frameHeadBytes;
}

/** Small writes of all connections share a slab; large ones get their own block. */
const slabBytes = 64 * 1024;
const slabPartMax = 16 * 1024;
let slab: Buffer = Buffer.alloc(0);
let slabUsed = 0;

/** The slab, with at least `size` free bytes from `slabUsed`. */
function slabFor(size: number): Buffer {
  if (slab.length - slabUsed < size) {
    slab = Buffer.allocUnsafeSlow(slabBytes);
    slabUsed = 0;
  }
  return slab;
}

const blockBytes = batchBytes + 8 * 1024;
const freeBlocksMax = 32;
const freeBlocks: Buffer[] = [];

function takeBlock(size: number): Buffer {
  if (size > blockBytes) return Buffer.allocUnsafeSlow(size);
  return freeBlocks.pop() ?? Buffer.allocUnsafeSlow(blockBytes);
}

function releaseBlock(block: Buffer): void {
  if (block.length === blockBytes && freeBlocks.length < freeBlocksMax) freeBlocks.push(block);
}

/** An output that has something to send. */
interface Flushable {
  flush(): void;
}

let dirty: Flushable[] = [];

/**
 * Responses often depend on settled promises, so the flush runs after all microtasks: a `nextTick`
 * that a microtask requests runs when no microtask is left.
 */
function scheduleFlush(output: Flushable): void {
  dirty.push(output);
  if (dirty.length === 1) queueMicrotask(afterMicrotasks);
}

const flushing = { where: 'http2' } as const;
const flushOne = contained(flushing, (output: Flushable) => output.flush());

const flushAll = contained(flushing, () => {
  const turn = dirty;
  dirty = [];
  for (const output of turn) flushOne(output);
});

const afterMicrotasks = contained(flushing, () => process.nextTick(flushAll));

/** A growing buffer of bytes that are appended individually and taken all at once. */
export class ByteQueue {
  bytes: Buffer = none;
  length = 0;

  /** Makes room for `more` bytes after `length`. The caller writes them and advances `length`. */
  reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(firstBytes, 2 * this.bytes.length, needed));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  /** Moves all bytes to `target` at `at`; returns the position after them. */
  moveTo(target: Buffer, at: number): number {
    const { bytes, length } = this;
    if (length > loopBytesMax) bytes.copy(target, at, 0, length);
    else for (let index = 0; index < length; index += 1) target[at + index] = bytes[index] ?? 0;
    this.length = 0;
    if (bytes.length > keptBytesMax) this.bytes = none;
    return at + length;
  }
}

const none = Buffer.alloc(0);
const firstBytes = 256;
const keptBytesMax = 4096;
/** Up to this size a loop is faster than a native copy. */
const loopBytesMax = 256;
