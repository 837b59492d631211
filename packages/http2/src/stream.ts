import {
  type BodyPiece,
  type BodyReceiver,
  type BodyStream,
  ByteCollector,
  isRun,
  type MemoryAccount,
} from '@wheelhouse/machinery';
import type { RequestHead, ResponseHead } from './message-heads.ts';
import type { OutputStream } from './output.ts';
import { errorCode } from './protocol.ts';

/** The source of a request body: a Node stream for HTTP/1.1, an Http2Stream for HTTP/2. */
export interface BodySource extends BodyStream {
  /** Discards the rest and asks the client to stop sending. */
  stop(): void;
}

/** The destination of a response body. */
export interface BodySink {
  /** Whether the body has ended or was cut off. */
  readonly closed: boolean;
  /** Number of bytes that were accepted but not sent yet. */
  readonly bufferedBytes: number;
  /**
   * Writes bytes. Returns false if the reader is behind, in which case the `onDrain` callback will
   * be called.
   */
  write(chunk: Buffer): boolean;
  /**
   * Writes several pieces at once. A sink that copies pieces into its own buffers needs neither
   * joined pieces nor runs converted to buffers.
   */
  writeAll(chunks: readonly BodyPiece[]): boolean;
  readonly copies: boolean;
  /** Ends the body, optionally after a last piece. */
  end(last?: Buffer): void;
  /** Sets the callback for when the reader has caught up. A later callback replaces it. */
  onDrain(callback: () => void): void;
}

/**
 * A receive window: the bytes that the peer may still send, and the consumed bytes by which the
 * window has not been updated. An update is sent when it at least doubles what is left, which is
 * half of the window unless other bytes wait to be consumed.
 */
export class ReceiveWindow {
  #left: number;
  #used = 0;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** Subtracts received bytes; returns false if they exceed the window. */
  spend(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** Adds consumed bytes; returns the increment of a window update, or 0 for none. */
  restore(bytes: number): number {
    this.#used += bytes;
    const by = this.#used;
    if (by < this.#left) return 0;
    this.#used = 0;
    this.#left += by;
    return by;
  }
}

/** The facilities of the connection that a stream uses. */
export interface StreamHost {
  /** The account that is charged for bytes waiting in the stream. */
  readonly memory: Pick<MemoryAccount, 'charge'>;
  /** Called when the stream has something to send or has ended. */
  wake(stream: Http2Stream): void;
  sendHead(stream: Http2Stream, head: ResponseHead): void;
  sendContinue(stream: Http2Stream): void;
  /** Resets and removes the stream. */
  reset(stream: Http2Stream, code: number): void;
  /** Called when bytes of the stream's body were consumed or discarded. */
  consumed(stream: Http2Stream, bytes: number): void;
}

/** Receives the end of a stream. */
export interface StreamOwner {
  /** Called when the whole response has been sent (`stream.finished`) or the stream was cut off. */
  streamClosed(): void;
}

/** Number of waiting bytes above which writers must wait. */
const bufferedBytesHigh = 64 * 1024;

/**
 * One stream of a connection: the received part of its body, data waiting to be sent, its
 * flow-control windows, and its state. The response goes `open` → `ending` (the application has
 * provided all of it) → `endSent` (its last frame is in the socket) → `finished` (the operating
 * system has accepted it), or `aborted` at any point. A watch occupies a stream for hours, so a
 * stream holds little memory and emits no events.
 */
export class Http2Stream implements BodySink, BodySource, OutputStream {
  readonly id: number;
  readonly head: RequestHead;
  readonly host: StreamHost;
  readonly copies = true;
  owner: StreamOwner | undefined;

  /** The send window; negative if the client has reduced its initial window. */
  sendWindow: number;
  readonly #windowBytes: number;
  #window: ReceiveWindow | undefined;
  /** Whether the client has sent its last frame. */
  remoteEnded: boolean;
  /** Received bytes of the body, for comparison with `content-length`. */
  receivedBytes = 0;

  headSent = false;
  ending = false;
  endSent = false;
  finished = false;
  aborted = false;
  /** Whether it is in the connection's list of ready streams. */
  isReady = false;
  /** The next stream of its bucket in the connection's table. */
  nextInTable: Http2Stream | undefined;

  /** Data to be sent: `#chunks` from index `#first`, of which the first starts at `#offset`. */
  #chunks: BodyPiece[] = [];
  #first = 0;
  #offset = 0;
  pendingBytes = 0;
  /** Whether the writer must be notified when it can continue. */
  mustNotify = false;
  #drained: (() => void) | undefined;

  #inbox: ByteCollector | undefined;
  #receiver: BodyReceiver | undefined;
  /** Whether the receiver is paused: received data waits, and its window is not returned. */
  #isPaused = false;
  /** Whether the rest of the body is discarded. */
  discards = false;

  constructor(options: {
    id: number;
    head: RequestHead;
    host: StreamHost;
    sendWindow: number;
    receiveWindowBytes: number;
    remoteEnded: boolean;
  }) {
    this.id = options.id;
    this.head = options.head;
    this.host = options.host;
    this.sendWindow = options.sendWindow;
    this.#windowBytes = options.receiveWindowBytes;
    this.remoteEnded = options.remoteEnded;
  }

  /** The receive window, created on first use because most requests have no body. */
  get window(): ReceiveWindow {
    this.#window ??= new ReceiveWindow(this.#windowBytes);
    return this.#window;
  }

  get closed(): boolean {
    return this.ending || this.aborted;
  }

  get bufferedBytes(): number {
    return this.pendingBytes;
  }

  get canSend(): boolean {
    if (this.aborted || this.endSent) return false;
    return this.pendingBytes > 0 ? this.sendWindow > 0 : this.ending;
  }

  /** A response that is complete needs no more of the request (RFC 9113, 8.1). */
  get resetsAtEnd(): boolean {
    return !this.remoteEnded;
  }

  respond(head: ResponseHead): void {
    if (this.closed || this.headSent) return;
    this.headSent = true;
    this.host.sendHead(this, head);
  }

  write(chunk: BodyPiece): boolean {
    if (this.closed) return true;
    if (chunk.length > 0) {
      this.#chunks.push(chunk);
      this.#pend(chunk.length);
      if (!this.isReady) this.host.wake(this);
    }
    if (this.pendingBytes < bufferedBytesHigh) return true;
    this.mustNotify = true;
    return false;
  }

  writeAll(chunks: readonly BodyPiece[]): boolean {
    let more = true;
    for (const chunk of chunks) more = this.write(chunk);
    return more;
  }

  end(last?: Buffer): void {
    if (this.closed) return;
    if (last !== undefined && last.length > 0) {
      this.#chunks.push(last);
      this.#pend(last.length);
    }
    this.ending = true;
    if (!this.isReady) this.host.wake(this);
  }

  onDrain(callback: () => void): void {
    this.#drained = callback;
  }

  /** Resets the stream unless its response has been sent. */
  cancel(): void {
    if (!this.aborted && !this.endSent) this.host.reset(this, errorCode.cancel);
  }

  take(target: Buffer, at: number, bytes: number): void {
    let to = at;
    let left = bytes;
    while (left > 0) {
      const chunk = this.#chunks[this.#first];
      if (chunk === undefined) throw new RangeError(`${left} more bytes requested than pending`);
      const rest = chunk.length - this.#offset;
      const now = Math.min(rest, left);
      if (isRun(chunk)) chunk.copyNext(target, to, now);
      else chunk.copy(target, to, this.#offset, this.#offset + now);
      if (now < rest) {
        this.#offset += now;
        break;
      }
      this.#offset = 0;
      this.#first += 1;
      to += rest;
      left -= rest;
    }
    this.#pend(-bytes);
    this.sendWindow -= bytes;
    if (this.pendingBytes === 0) {
      this.#chunks = [];
      this.#first = 0;
    } else if (this.#first > sentChunksMax) {
      this.#chunks.splice(0, this.#first);
      this.#first = 0;
    }
  }

  /** Notifies a waiting writer once nothing is pending. */
  notifyDrained(): void {
    if (!this.mustNotify || this.pendingBytes > 0 || this.closed) return;
    this.mustNotify = false;
    this.#drained?.();
  }

  /** Stops sending and receiving. The caller notifies the owner. */
  abort(): void {
    this.aborted = true;
    this.#chunks = [];
    this.#first = 0;
    this.#pend(-this.pendingBytes);
  }

  #pend(bytes: number): void {
    this.pendingBytes += bytes;
    this.host.memory.charge('answers', bytes);
  }

  /** Receives a piece of the body from a frame that took `frameBytes` of the windows. */
  receive(piece: Buffer, frameBytes: number): void {
    this.receivedBytes += piece.length;
    const receiver = this.#isPaused ? undefined : this.#receiver;
    if (receiver === undefined && !this.discards) {
      if (piece.length > 0) {
        this.#inbox ??= new ByteCollector();
        this.#inbox.add(piece);
        this.host.memory.charge('bodies', piece.length);
      }
      if (frameBytes > piece.length) this.host.consumed(this, frameBytes - piece.length);
      return;
    }
    if (piece.length > 0) receiver?.piece(piece);
    this.host.consumed(this, frameBytes);
  }

  receiveEnd(): void {
    this.remoteEnded = true;
    if (!this.#isPaused) this.#receiver?.end();
  }

  /** Bytes of the body that wait for a receiver. */
  get unreadBytes(): number {
    return this.#inbox?.length ?? 0;
  }

  /** Discards undelivered data; returns the number of bytes. */
  discard(): number {
    const bytes = this.unreadBytes;
    this.#inbox = undefined;
    if (bytes > 0) this.host.memory.charge('bodies', -bytes);
    return bytes;
  }

  deliverTo(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    const inbox = this.#inbox;
    this.#inbox = undefined;
    if (inbox !== undefined) {
      const bytes = inbox.length;
      this.host.memory.charge('bodies', -bytes);
      receiver.piece(inbox.take());
      this.host.consumed(this, bytes);
    }
    // If the receiver has paused the stream, it learns of the end when it resumes.
    if (this.remoteEnded && !this.#isPaused) receiver.end();
  }

  stop(): void {
    this.#receiver = undefined;
    this.discards = true;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#receiver !== undefined) this.deliverTo(this.#receiver);
  }

  drop(): void {
    this.stop();
    this.#isPaused = false;
    const unread = this.discard();
    if (unread > 0) this.host.consumed(this, unread);
  }

  /** Sends `100 Continue` to a client that sent `Expect: 100-continue`. */
  allowBody(): void {
    const { head } = this;
    const isWaiting = head.waitsForContinue && this.receivedBytes === 0 && !this.remoteEnded;
    if (isWaiting && !this.closed && !this.headSent) this.host.sendContinue(this);
  }
}

/** Number of sent chunks after which they are removed from the front of the list. */
const sentChunksMax = 64;

const bucketsMin = 8;

/** A stream that a table links to the next one of its bucket. */
interface TableEntry<Stream> {
  readonly id: number;
  nextInTable: Stream | undefined;
}

/**
 * The open streams of a connection by ID. A Map that contains each stream only during its exchange
 * resizes its table with each one, which costs more than the rest of the bookkeeping. Buckets are
 * linked through the streams themselves.
 */
export class StreamTable<Stream extends TableEntry<Stream>> {
  #buckets: (Stream | undefined)[] = new Array<undefined>(bucketsMin).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    let stream = this.#buckets[this.#bucketOf(id)];
    while (stream !== undefined && stream.id !== id) stream = stream.nextInTable;
    return stream;
  }

  /** Adds a stream whose ID is not in the table. */
  add(stream: Stream): void {
    if (this.#size >= 2 * this.#buckets.length) this.#grow();
    this.#put(stream);
    this.#size += 1;
  }

  /** Does nothing if the stream is not in the table. */
  delete(stream: Stream): void {
    const bucket = this.#bucketOf(stream.id);
    let before: Stream | undefined;
    let at = this.#buckets[bucket];
    while (at !== undefined && at !== stream) {
      before = at;
      at = at.nextInTable;
    }
    if (at === undefined) return;
    if (before === undefined) this.#buckets[bucket] = stream.nextInTable;
    else before.nextInTable = stream.nextInTable;
    stream.nextInTable = undefined;
    this.#size -= 1;
  }

  /** Returns a new list of all streams in arbitrary order. */
  all(): Stream[] {
    const streams: Stream[] = [];
    for (const first of this.#buckets) {
      for (let at = first; at !== undefined; at = at.nextInTable) streams.push(at);
    }
    return streams;
  }

  #put(stream: Stream): void {
    const bucket = this.#bucketOf(stream.id);
    stream.nextInTable = this.#buckets[bucket];
    this.#buckets[bucket] = stream;
  }

  #grow(): void {
    const streams = this.all();
    this.#buckets = new Array<undefined>(4 * this.#buckets.length).fill(undefined);
    for (const stream of streams) this.#put(stream);
  }

  /** A client's IDs are odd and ascending, so consecutive ones fall into different buckets. */
  #bucketOf(id: number): number {
    return (id >>> 1) & (this.#buckets.length - 1);
  }
}

/** How a stream ended, which determines the handling of later frames. */
export const ending = {
  /** Never opened, or no longer recorded. */
  unknown: 0,
  /** Both sides had finished. */
  finished: 1,
  /** The client reset it. */
  resetByClient: 2,
  /** The server reset it; frames that the client sent before it received the reset are valid. */
  resetByServer: 3,
} as const;

const closedStreamsMax = 128;

/** The most recently ended streams of a connection. */
export class ClosedStreams {
  readonly #ids = new Int32Array(closedStreamsMax);
  readonly #endings = new Uint8Array(closedStreamsMax);
  #next = 0;

  add(id: number, how: number): void {
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = how;
    this.#next = (this.#next + 1) % closedStreamsMax;
  }

  /** Returns how a stream ended last, as one of `ending`. */
  endingOf(id: number): number {
    // The newest entries are before `#next`, older ones from there on.
    const recent = this.#ids.lastIndexOf(id, this.#next - 1);
    const index = recent < 0 ? this.#ids.lastIndexOf(id) : recent;
    return this.#endings[index] ?? ending.unknown;
  }
}
