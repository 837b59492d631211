import type { BodyPiece, BodyStream, ResponseHeaders } from '@wheelhouse/machinery';

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
