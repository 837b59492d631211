import type { Socket } from 'node:net';

/** Answers an exchange; what it throws or rejects with is a fault, and is answered 500. */
export type OnExchange = (exchange: Exchange) => unknown;

/**
 * One HTTP exchange, the same over HTTP/1.1 and HTTP/2. `http/` makes them and knows nothing of the
 * API; the pipeline answers them. Exactly one of `send` and `stream` is called, once.
 */
export interface Exchange {
  readonly method: string;
  /** Path and query exactly as received (`/api/v1/pods?limit=1`). */
  readonly url: string;
  readonly httpVersion: '1.1' | '2';
  readonly remoteAddress: string;
  /** A header by lower-case name; several of one name are joined with `, `. */
  header(name: string): string | undefined;
  /**
   * Names and values in turn, as received: for headers whose several values must not be joined, or
   * whose names are not known beforehand. HTTP/2's pseudo-headers may be among them.
   */
  headerLines(): readonly string[];
  /**
   * The whole body. Rejects with BodyTooLarge above `limitBytes`, with BodyAborted when the client
   * goes away or is slower than the server's body timeout.
   */
  body(limitBytes: number): Promise<Buffer>;
  /**
   * The body as it arrives, for who passes it on: without a limit, and with no time of its own.
   * Undefined when the request has none. Either this is called or `body`, once.
   */
  bodyStream(): BodyStream | undefined;
  /**
   * Takes the connection from HTTP, for a request that asks to (`Upgrade`); it then counts as
   * answered with 101. Undefined where that cannot be: over HTTP/2, or while the server leaves such
   * wishes aside.
   */
  takeOver(): TakenConnection | undefined;
  /** The connection, the key for per-connection memos; same object for all its exchanges. */
  readonly connection: Connection;
  /**
   * Runs once when nobody waits for the answer any more: the client has gone before it was complete,
   * or somebody else answers.
   */
  onAbort(callback: () => void): void;
  readonly aborted: boolean;
  /** The status it was answered with; undefined before that. */
  readonly answeredStatus?: number | undefined;
  /** Bytes of a body that has been read whole; undefined where none has. */
  readonly receivedBytes?: number | undefined;
  /** Bytes of the answer's body; undefined before it is known how many there are. */
  readonly answeredBytes?: number | undefined;
  /** For an answer that is still written: tells its bytes when the last is. */
  onAnswered?(callback: (bytes: number) => void): void;

  /**
   * Resolves when the answer's last byte is in the socket, or the answer is cut off. Undefined when
   * there is nothing to wait for: none has begun, or it was so small that it went out at once.
   */
  delivered?(): Promise<void> | undefined;
  /** Cuts off an answer that was sent whole and is still on its way. False when there is none. */
  cutOff?(): boolean;

  /** Name of the user it comes from, for reports about the event loop; set once it is known. */
  userName?: string | undefined;
  /** Work for this exchange resumes after others had the thread: see `LoopOccupancy`. */
  resumed?(): void;

  /** Headers that the answer is to have unless it has its own, whatever it will be. Before it begins. */
  addHeaders?(headers: ResponseHeaders): void;
  /**
   * Charges memory that the answer holds until its end to the client's account. False: the client
   * may not have that much now, and is to be answered 429. Absent where nothing is charged.
   */
  hold?(memory: HeldMemory): boolean;
  /** Answers whole. `body` pieces are written in order without being copied together. */
  send(response: WholeResponse): void;
  /** Begins a streamed answer. */
  stream(response: { status: number; headers: ResponseHeaders }): ResponseStream;
  /**
   * Takes the answer from whoever was to give it, who is told as when the client goes and may answer
   * without effect from here on. Gives what answers instead, to be called once; undefined where an
   * answer has begun, or nobody waits for one.
   */
  supersede(): ((response: WholeResponse) => void) | undefined;
}

/** What an answer holds in memory for as long as it lasts. */
export interface HeldMemory {
  readonly bytes: number;
  /** What others may hold too, which is charged once for all of them. */
  readonly shared?: readonly { readonly key: object; readonly bytes: number }[];
}

/** Who waits for an answer, for those who only want to know whether anybody does. */
export type Waiting = Pick<Exchange, 'aborted' | 'onAbort'>;

/** The body of an answer, whole or in pieces that are made as they are taken. */
export type ResponseBody = Buffer | Iterable<BodyPiece>;

/**
 * An answer that is sent in one go. Pieces are taken as the reader keeps up, in slices: taking one
 * must not take longer than a few milliseconds. When nobody reads any more, their iterator is told to
 * return.
 */
export interface WholeResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: ResponseBody;
}

/** What collects a request's body as it arrives. */
export interface BodyReceiver {
  piece(bytes: Buffer): void;
  /** The body is whole. */
  end(): void;
}

/** A request's body on its way. */
export interface BodyStream {
  /** Gives what has arrived and what will, then the end. Call once. */
  deliverTo(receiver: BodyReceiver): void;
  /** Nothing more is wanted for a while: the client is made to wait. */
  pause(): void;
  resume(): void;
  /** Nobody wants the rest: it is thrown away as it comes. */
  drop(): void;
}

/** A connection that is no longer HTTP's, paused. Who has it ends it. */
export interface TakenConnection {
  readonly socket: Socket;
  /** What the client has sent already behind its request. */
  readonly head: Buffer;
}

/** A piece of a body: bytes, or something that gives them when they are written. */
export type BodyPiece = Buffer | ByteRun;

/** Bytes that stand in many places, read once from the first to the last. */
export interface ByteRun {
  readonly length: number;
  /** Copies the next `bytes` to `target`, from `start` on; throws when fewer are left. */
  copyNext(target: Buffer, start: number, bytes: number): void;
}

/** Tells runs from buffers. */
export function isRun(piece: BodyPiece): piece is ByteRun {
  return 'copyNext' in piece;
}

/** The piece as a buffer. A run is used up by it. */
export function pieceBytes(piece: BodyPiece): Buffer {
  if (!isRun(piece)) return piece;
  const bytes = Buffer.allocUnsafeSlow(piece.length);
  piece.copyNext(bytes, 0, bytes.length);
  return bytes;
}

/** All pieces as one buffer. */
export function wholeBytes(pieces: Iterable<BodyPiece>): Buffer {
  return Buffer.concat(Array.from(pieces, pieceBytes));
}

/** How long pieces are together. */
export function totalBytes(pieces: readonly BodyPiece[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** A body that has so many empty pieces in a row takes its time to be made: it counts as long. */
const emptyPiecesMax = 8;

/**
 * Looks into a body until it is known to be longer than `bytes`. A list when these are all its pieces;
 * otherwise the same pieces, of which the first have been made.
 */
export function firstPieces(
  body: Iterable<BodyPiece>,
  bytes: number,
): readonly BodyPiece[] | Iterable<BodyPiece> {
  const rest = body[Symbol.iterator]();
  const seen: BodyPiece[] = [];
  let emptyPieces = 0;
  for (let taken = 0; taken <= bytes && emptyPieces < emptyPiecesMax; ) {
    const next = rest.next();
    if (next.done === true) return seen;
    const { length } = next.value;
    emptyPieces = length === 0 ? emptyPieces + 1 : 0;
    taken += length;
    if (length > 0) seen.push(next.value);
  }
  return chained(seen, rest);
}

function* chained(seen: readonly BodyPiece[], rest: Iterator<BodyPiece>): Generator<BodyPiece> {
  try {
    yield* seen;
    for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value;
  } finally {
    rest.return?.();
  }
}

/** Lower-case names. A list gives several headers of one name (`warning`). */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface ResponseStream {
  /** Writes now. False: the reader is behind; `onDrain` tells when it has caught up. */
  write(chunk: Buffer): boolean;
  onDrain(callback: () => void): void;
  /** Bytes accepted by `write` but not yet by the network. */
  readonly bufferedBytes: number;
  /** Ends the body cleanly. */
  end(): void;
  /** Cuts it off: the client sees an incomplete body. */
  destroy(): void;
}

export interface Connection {
  readonly socket: Socket;
  readonly encrypted: boolean;
  /**
   * The client's verified-by-nobody certificate chain, leaf first, as DER; empty when it gave none.
   * Verification belongs to `authn/`.
   */
  peerCertificates(): readonly Buffer[];
  /** For memos of other rooms (an authenticated identity, say), by a key of theirs. */
  readonly memo: Map<symbol, unknown>;
  /** Whose memory the connection's requests are charged to. */
  readonly memory?: { belongTo(owner: string): void };
}

export class BodyTooLarge extends Error {}
export class BodyAborted extends Error {}
