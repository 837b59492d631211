import {
  type BodyPiece,
  type BodyReceiver,
  type BodyStream,
  isRun,
  type MemoryAccount,
  type ResponseHeaders,
} from '@wheelhouse/machinery';
import { ByteCollector } from './byte-buffers.ts';
import { errorCode } from './protocol.ts';
import type { RequestHead } from './request-head.ts';

/** Where a request's body comes from: a node stream over HTTP/1.1, a stream of ours over HTTP/2. */
export interface BodySource extends BodyStream {
  /** Nobody wants the rest: the client need not send more. */
  stop(): void;
}

/** Where an answer's body goes. */
export interface BodySink {
  /** Ended or cut off: takes nothing more. */
  readonly closed: boolean;
  /** Bytes taken but not yet on their way. */
  readonly bufferedBytes: number;
  /** Takes bytes; false when the reader is behind and the callback of `onDrain` will be called. */
  write(chunk: Buffer): boolean;
  /**
   * Takes several pieces at once. Where a sink copies pieces into writes of its own, they need not
   * be joined for it however small they are, nor runs be made buffers.
   */
  writeAll(chunks: readonly BodyPiece[]): boolean;
  readonly copies: boolean;
  /** Ends the body, after one more piece when given. */
  end(last?: Buffer): void;
  /** Called whenever the reader has caught up; there is one callback, the one given last. */
  onDrain(callback: () => void): void;
}

/** Status and headers of an answer. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** For the header `content-length`; undefined when it is not known or not to be told. */
  readonly contentLength: number | undefined;
  /** No body follows. */
  readonly empty: boolean;
}

/**
 * A window that we grant: what the client may send yet, and what has been used up but not given
 * back, since windows are given back in portions of half of them.
 */
export class ReceiveWindow {
  readonly #portion: number;
  #left: number;
  #used = 0;

  constructor(bytes: number) {
    this.#left = bytes;
    this.#portion = bytes / 2;
  }

  /** @returns false when the client had no right to send so much */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** @returns by how much to update the window; 0 for not now */
  giveBack(bytes: number): number {
    this.#used += bytes;
    const by = this.#used;
    if (by < this.#portion) return 0;
    this.#used = 0;
    this.#left += by;
    return by;
  }
}

/** What a stream needs of its connection. */
export interface StreamHost {
  /** What is charged for bytes that wait in the stream. */
  readonly memory: Pick<MemoryAccount, 'charge'>;
  /** The stream has something to send, or has ended. */
  wake(stream: Http2Stream): void;
  sendHead(stream: Http2Stream, head: ResponseHead): void;
  sendContinue(stream: Http2Stream): void;
  /** Resets the stream and forgets it. */
  reset(stream: Http2Stream, code: number): void;
  /** Bytes of the stream's body have been used up, or thrown away. */
  consumed(stream: Http2Stream, bytes: number): void;
}

/** Who is told of a stream's end. */
export interface StreamOwner {
  /** The whole answer has gone out (`stream.finished`), or the stream has been cut off. */
  streamClosed(): void;
}

/** Above this many bytes waiting, a writer is told to wait. */
const bufferedBytesHigh = 64 * 1024;

/**
 * One stream of a connection: what has arrived of its body, what is waiting to be sent, its flow
 * control windows and how far it has come. The answer's side goes `open` → `ending` (the
 * application has given all of it) → `endSent` (its last frame is in the socket) → `finished` (the
 * host has taken it); `dead` comes in place of any of them. A watch lives in one of these for hours,
 * so it holds little and costs nobody an event.
 */
export class Http2Stream implements BodySink, BodySource {
  readonly id: number;
  readonly head: RequestHead;
  readonly host: StreamHost;
  readonly copies = true;
  owner: StreamOwner | undefined;

  /** What we may send yet; below 0 when the client has made its windows smaller. */
  sendWindow: number;
  readonly #windowBytes: number;
  #window: ReceiveWindow | undefined;
  /** The client has sent its last frame. */
  remoteEnded: boolean;
  /** Of the body, for the comparison with `content-length`. */
  receivedBytes = 0;

  headSent = false;
  ending = false;
  endSent = false;
  finished = false;
  dead = false;
  /** Stands in the connection's list of streams that can send. */
  isReady = false;
  /** The next stream of its bucket in the connection's table. */
  nextInTable: Http2Stream | undefined;

  /** Waiting to be sent: `#chunks` from `#first`, of that one what is after `#offset`. */
  #chunks: BodyPiece[] = [];
  #first = 0;
  #offset = 0;
  pendingBytes = 0;
  /** The writer has been told to wait. */
  mustTell = false;
  #drained: (() => void) | undefined;

  #inbox: ByteCollector | undefined;
  #receiver: BodyReceiver | undefined;
  /** The receiver takes nothing for now: what comes waits, and is not given back to the windows. */
  #isPaused = false;
  /** Nobody wants what else may come of the body. */
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

  /** What the client may send yet; made when it sends something, as most send nothing. */
  get window(): ReceiveWindow {
    this.#window ??= new ReceiveWindow(this.#windowBytes);
    return this.#window;
  }

  get closed(): boolean {
    return this.ending || this.dead;
  }

  get bufferedBytes(): number {
    return this.pendingBytes;
  }

  /** Whether a frame could be written now, as far as this stream's window goes. */
  get canSend(): boolean {
    if (this.dead || this.endSent) return false;
    return this.pendingBytes > 0 ? this.sendWindow > 0 : this.ending;
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
    this.mustTell = true;
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

  /** Cuts the stream off. */
  cancel(): void {
    if (!this.dead && !this.endSent) this.host.reset(this, errorCode.cancel);
  }

  /** Moves `bytes` of what is pending to `target` at `at`. */
  take(target: Buffer, at: number, bytes: number): void {
    let to = at;
    let left = bytes;
    while (left > 0) {
      const chunk = this.#chunks[this.#first];
      if (chunk === undefined) throw new RangeError(`${left} bytes more than are pending`);
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
    } else if (this.#first > forgottenChunksMax) {
      this.#chunks.splice(0, this.#first);
      this.#first = 0;
    }
  }

  /** Tells the writer to go on, once nothing is pending, if it was told to wait. */
  tellDrained(): void {
    if (!this.mustTell || this.pendingBytes > 0 || this.closed) return;
    this.mustTell = false;
    this.#drained?.();
  }

  /** Nothing more is sent or received. The owner is told by whoever calls this. */
  die(): void {
    this.dead = true;
    this.#chunks = [];
    this.#first = 0;
    this.#pend(-this.pendingBytes);
  }

  #pend(bytes: number): void {
    this.pendingBytes += bytes;
    this.host.memory.charge('answers', bytes);
  }

  /** A piece of the body, of a frame that took `frameBytes` of the windows. */
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

  /** Throws away what nobody has asked for yet; returns how many bytes that was. */
  discard(): number {
    const bytes = this.#inbox?.length ?? 0;
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
    if (this.remoteEnded) receiver.end();
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

  /** Tells a client that waits with `Expect: 100-continue` to go on. */
  allowBody(): void {
    const { head } = this;
    const isWaiting = head.waitsForContinue && this.receivedBytes === 0 && !this.remoteEnded;
    if (isWaiting && !this.closed && !this.headSent) this.host.sendContinue(this);
  }
}

/** Sent chunks are dropped from the list's front only now and then. */
const forgottenChunksMax = 64;

const bucketsMin = 8;

/**
 * The open streams of a connection by their ids. A Map would be the plain choice, but one that holds
 * a stream for the time of one exchange shrinks and grows its table with each of them, which costs
 * more than the rest of the bookkeeping. Buckets are chained through the streams themselves.
 */
export class StreamTable {
  #buckets: (Http2Stream | undefined)[] = new Array<undefined>(bucketsMin).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Http2Stream | undefined {
    let stream = this.#buckets[this.#bucketOf(id)];
    while (stream !== undefined && stream.id !== id) stream = stream.nextInTable;
    return stream;
  }

  /** Adds a stream whose id is not there yet. */
  add(stream: Http2Stream): void {
    if (this.#size >= 2 * this.#buckets.length) this.#grow();
    this.#put(stream);
    this.#size += 1;
  }

  /** Harmless when the stream is not there. */
  delete(stream: Http2Stream): void {
    const bucket = this.#bucketOf(stream.id);
    let before: Http2Stream | undefined;
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

  /** All streams, in no order; a list of its own. */
  all(): Http2Stream[] {
    const streams: Http2Stream[] = [];
    for (const first of this.#buckets) {
      for (let at = first; at !== undefined; at = at.nextInTable) streams.push(at);
    }
    return streams;
  }

  #put(stream: Http2Stream): void {
    const bucket = this.#bucketOf(stream.id);
    stream.nextInTable = this.#buckets[bucket];
    this.#buckets[bucket] = stream;
  }

  #grow(): void {
    const streams = this.all();
    this.#buckets = new Array<undefined>(4 * this.#buckets.length).fill(undefined);
    for (const stream of streams) this.#put(stream);
  }

  /** A client's ids are odd and count up, so neighbours fall into different buckets. */
  #bucketOf(id: number): number {
    return (id >>> 1) & (this.#buckets.length - 1);
  }
}

/** How a stream came to its end, so far as it matters for frames that come after it. */
export const ending = {
  /** Not known any more, or never opened. */
  unknown: 0,
  /** Both sides had finished. */
  finished: 1,
  /** The client reset it. */
  resetByClient: 2,
  /** We did; what the client sent before it heard of that is no fault. */
  resetByUs: 3,
} as const;

const remembered = 128;

/** The streams of a connection that ended last. */
export class ClosedStreams {
  readonly #ids = new Int32Array(remembered);
  readonly #endings = new Uint8Array(remembered);
  #next = 0;

  add(id: number, how: number): void {
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = how;
    this.#next = (this.#next + 1) % remembered;
  }

  /** One of `ending`. */
  endingOf(id: number): number {
    const index = this.#ids.lastIndexOf(id);
    return this.#endings[index] ?? ending.unknown;
  }
}
