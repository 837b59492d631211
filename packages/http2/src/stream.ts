import {
  type BodyPiece,
  type BodyReceiver,
  isRun,
  type MemoryAccount,
} from '@wheelhouse/machinery';
import type { BodySink, BodySource, ResponseHead } from './body-seams.ts';
import { ByteCollector } from './byte-buffers.ts';
import { errorCode } from './protocol.ts';
import type { RequestHead } from './request-head.ts';

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
