import type { Socket } from 'node:net';
import type { JsonObject } from './json.ts';

/** Handles an exchange. An exception or rejection is a fault, and the response is a 500. */
export type OnExchange = (exchange: Exchange) => unknown;

/**
 * One HTTP request and its response over HTTP/1.1 or HTTP/2, independent of the API.
 * Exactly one of `send` and `stream` must be called, once.
 */
export interface Exchange {
  readonly method: string;
  /** Path and query exactly as received (`/api/v1/pods?limit=1`). */
  readonly url: string;
  readonly httpVersion: '1.1' | '2';
  readonly remoteAddress: string;
  /** The value of a header by lower-case name; repeated headers are joined with `, `. */
  header(name: string): string | undefined;
  /**
   * Alternating names and values as received, for headers that must not be joined or whose names
   * are not known in advance. May contain HTTP/2 pseudo-headers.
   */
  headerLines(): readonly string[];
  /**
   * Reads the whole body. Rejects with BodyTooLarge above `limitBytes`, and with BodyAborted if the
   * client disconnects or exceeds the server's body timeout.
   */
  body(limitBytes: number): Promise<Buffer>;
  /**
   * Streams the body for proxying, without a size limit or timeout. Undefined if the request has no
   * body. Either this or `body` may be called, once.
   */
  bodyStream(): BodyStream | undefined;
  /**
   * Takes over the connection of an `Upgrade` request, which then counts as a response with code
   * 101. Undefined if that is impossible: over HTTP/2, for any other request, or a second time.
   */
  takeOver(): DetachedConnection | undefined;
  /** The connection; the same object for all of its exchanges. */
  readonly connection: Connection;
  /**
   * Registers a callback that runs once when the response is no longer needed: the client has
   * disconnected early, or the response was superseded.
   */
  onAbort(callback: () => void): void;
  readonly aborted: boolean;
  /** Status code of the response; undefined before it is sent. */
  readonly responseCode?: number | undefined;
  /** Size of the body if it was read whole; otherwise undefined. */
  readonly receivedBytes?: number | undefined;
  /** Size of the response body in bytes; undefined until it is known. */
  readonly responseBytes?: number | undefined;
  /** Bytes of a streamed response body that have been written so far. */
  readonly streamedBytes?: number;
  /**
   * Registers a callback that receives the size of a streamed response body when it is complete.
   */
  onResponseEnd?(callback: (bytes: number) => void): void;

  /**
   * Resolves when the last byte of the response is written to the socket or the response is cut
   * off. Undefined if no response has started, or it was small enough
   * to be sent immediately.
   */
  delivered?(): Promise<void> | undefined;
  /** Cuts off a response that was sent whole and is still being written. False if there is none. */
  cutOff?(): boolean;

  /**
   * Set by the handler of a request that has a deadline. Notified if the client ends its side of
   * the connection before the response; it may still read one, which the handler should send now.
   * Without a listener, the exchange is aborted.
   */
  endListener?: { clientEnded(): void } | undefined;

  /** Name of the authenticated user, for reports about the event loop. */
  userName?: string | undefined;
  /**
   * Called when work for this exchange resumes after other work, so that reports about the event
   * loop can name it.
   */
  resumed?(): void;

  /** Adds default headers to any response. Must be called before it starts. */
  addHeaders?(headers: ResponseHeaders): void;
  /**
   * Charges memory that the response holds until its end to the client's account. Returns false if
   * the client exceeds its allowance, in which case the response must be a 429. Absent if memory is
   * not charged.
   */
  chargeMemory?(memory: ChargedMemory): boolean;
  /** Sends a whole response. Pieces of `body` are written in order without being concatenated. */
  send(response: WholeResponse): void;
  /** Starts a streamed response. */
  stream(response: { status: number; headers: ResponseHeaders }): ResponseStream;
  /**
   * Takes the response away from its producer, which is notified like on a disconnect and whose
   * later response has no effect. Returns a function that sends the response instead, to be called
   * once; undefined if a response has started or is no longer needed.
   */
  supersede(): ((response: WholeResponse) => void) | undefined;
}

/** Memory that a response holds until its end. */
export interface ChargedMemory {
  readonly bytes: number;
  /** Objects that several responses may share, each charged once for all of them. */
  readonly shared?: readonly { readonly key: object; readonly bytes: number }[];
}

/** The part of an Exchange that shows whether the client still waits for the response. */
export type WaitingClient = Pick<Exchange, 'aborted' | 'onAbort'>;

/** A response body: a buffer, or pieces that are produced on demand. */
export type ResponseBody = Buffer | Iterable<BodyPiece>;

/**
 * A complete response. Pieces of the body are produced in slices as the reader keeps up; producing
 * one must take at most a few milliseconds. If the reader disconnects, the iterator's `return` is
 * called.
 */
export interface WholeResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: ResponseBody;
}

/** Receives a request body as it arrives. */
export interface BodyReceiver {
  piece(bytes: Buffer): void;
  /** Called when the body is complete. */
  end(): void;
}

/** A request body that is being received. */
export interface BodyStream {
  /** Delivers what has arrived and what will arrive, then the end. Must be called once. */
  deliverTo(receiver: BodyReceiver): void;
  /** Applies backpressure to the client. */
  pause(): void;
  resume(): void;
  /** Discards the rest as it arrives. */
  drop(): void;
}

/** A paused connection that no longer belongs to HTTP. The caller must end it. */
export interface DetachedConnection {
  readonly socket: Socket;
  /** Bytes that the client has already sent after its request. */
  readonly head: Buffer;
}

/** A piece of a body: a buffer, or a run that copies its bytes when they are written. */
export type BodyPiece = Buffer | ByteRun;

/** Bytes from several places that can be read once, in order. */
export interface ByteRun {
  readonly length: number;
  /** Copies the next `bytes` bytes to `target` at `start`. Throws if fewer are left. */
  copyNext(target: Buffer, start: number, bytes: number): void;
}

/** Whether a piece is a run. */
export function isRun(piece: BodyPiece): piece is ByteRun {
  return 'copyNext' in piece;
}

/** Returns the piece as a buffer. Consumes a run. */
export function pieceBytes(piece: BodyPiece): Buffer {
  if (!isRun(piece)) return piece;
  const bytes = Buffer.allocUnsafeSlow(piece.length);
  piece.copyNext(bytes, 0, bytes.length);
  return bytes;
}

/** Whether a body is one buffer, and not in pieces. */
export function isWhole(body: ResponseBody): body is Buffer {
  return body instanceof Buffer;
}

/** Returns all pieces as one buffer. */
export function wholeBytes(pieces: Iterable<BodyPiece>): Buffer {
  return Buffer.concat(Array.from(pieces, pieceBytes));
}

/** Returns the total length of pieces in bytes. */
export function totalBytes(pieces: readonly BodyPiece[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Number of consecutive empty pieces after which a body counts as long, because it is slow. */
const emptyPiecesMax = 8;

/**
 * Produces pieces of a body until it is known to be longer than `bytes`. Returns a list if these
 * are all its pieces; otherwise an iterable of the same pieces.
 */
export function firstPieces(
  body: Iterable<BodyPiece>,
  bytes: number,
): readonly BodyPiece[] | Iterable<BodyPiece> {
  const rest = body[Symbol.iterator]();
  const firsts: BodyPiece[] = [];
  let emptyPieces = 0;
  for (let taken = 0; taken <= bytes && emptyPieces < emptyPiecesMax; ) {
    const next = rest.next();
    if (next.done === true) return firsts;
    const { length } = next.value;
    emptyPieces = length === 0 ? emptyPieces + 1 : 0;
    taken += length;
    if (length > 0) firsts.push(next.value);
  }
  return chainPieces(firsts, rest);
}

function* chainPieces(
  firsts: readonly BodyPiece[],
  rest: Iterator<BodyPiece>,
): Generator<BodyPiece> {
  try {
    yield* firsts;
    for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value;
  } finally {
    rest.return?.();
  }
}

/** Headers by lower-case name. A list sets a header several times (`warning`). */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A streamed response body. */
export interface ResponseStream {
  /**
   * Writes a chunk. Returns false if the reader is behind; `onDrain` reports when it has caught up.
   */
  write(chunk: Buffer): boolean;
  onDrain(callback: () => void): void;
  /** Bytes that `write` accepted and that have not been sent. */
  readonly bufferedBytes: number;
  /** Ends the body. */
  end(): void;
  /** Cuts off the response: the client sees an incomplete body. */
  destroy(): void;
}

/** A client's connection. */
export interface Connection {
  readonly socket: Socket;
  readonly encrypted: boolean;
  /**
   * The client's unverified certificate chain as DER, leaf first; empty if it presented none.
   * Authentication verifies it.
   */
  peerCertificates(): readonly Buffer[];
  /**
   * State that other modules keep per connection, such as an authenticated identity, by a private
   * key.
   */
  readonly memo: Map<symbol, unknown>;
  /** The account that the memory of the connection's requests is charged to. */
  readonly memory?: { transferTo(owner: string): void };
  /** Takes no more requests after the present ones, and tells the client. */
  retire?(): void;
}

/** The body exceeds the limit of its reader. */
export class BodyTooLarge extends Error {}
/** The client disconnected or exceeded the body timeout. */
export class BodyAborted extends Error {}

/** The outcome of a call to a webhook. */
export type WebhookOutcome = 'success' | 'timeout' | 'error' | 'canceled';

/** An external service that is called by posting a JSON object. */
export interface Webhook {
  /**
   * Posts `body`, a JSON text, and returns the result of `read` for the response; an exception in
   * `read` fails the call. Retries temporary failures while `client`, if present, is
   * waiting. Rejects only with WebhookError.
   */
  call<T>(body: string, read: (response: JsonObject) => T, client?: WaitingClient): Promise<T>;
}

/** A webhook could not be called, or its response is unusable. The message contains no address. */
export class WebhookError extends Error {
  readonly outcome: Exclude<WebhookOutcome, 'success'>;

  constructor(message: string, options: ErrorOptions & { outcome: WebhookError['outcome'] }) {
    super(message, options);
    this.name = 'WebhookError';
    this.outcome = options.outcome;
  }
}

const escapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** Returns the body of a review: the object as Go's encoder writes it, and a line feed. */
export function webhookBody(review: JsonObject): string {
  return `${goEscaped(JSON.stringify(review))}\n`;
}

/** Returns a JSON text with the escapes that Go's encoder adds for HTML. */
export function goEscaped(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (character) => escapes[character] ?? character);
}
