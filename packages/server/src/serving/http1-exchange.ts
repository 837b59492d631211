import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import {
  type BodySink,
  type BodySource,
  type PeerConnection,
  queueBytesMin,
  type ResponseHead,
} from '@wheelhouse/http2';
import {
  type BodyPiece,
  type BodyReceiver,
  type DetachedConnection,
  defer,
  listen,
  type MemoryAccount,
  pieceBytes,
} from '@wheelhouse/machinery';
import { ExchangeBase, type ExchangeHost, noBytes } from './exchange-base.ts';

/** Pieces of a body that one turn of the event loop delivers: a piece may have one byte (TRUST-2). */
const piecesPerTurn = 250;

/** The body of an HTTP/1.1 request, which Node reads. */
class NodeBodySource implements BodySource {
  readonly #readable: Readable;
  #receiver: BodyReceiver | undefined;
  #unlisten: (() => void) | undefined;
  #isPaused = false;
  /** Pieces delivered since the last pause between turns. */
  #pieces = 0;

  constructor(readable: Readable) {
    this.#readable = readable;
  }

  deliverTo(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    this.#unlisten = listen(
      this.#readable,
      { where: 'http1' },
      { data: this.#onData, end: this.#onEnd },
    );
    // An unread body may already have ended, and `end` is emitted only once.
    if (this.#readable.readableEnded) this.#onEnd();
  }

  stop(): void {
    this.#receiver = undefined;
    this.#unlisten?.();
    this.#readable.pause();
  }

  pause(): void {
    this.#isPaused = true;
    this.#readable.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#readable.resume();
  }

  /** Discards the rest, so that the connection's next request can be read. */
  drop(): void {
    this.stop();
    this.#readable.resume();
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#receiver?.piece(bytes);
    this.#pieces += 1;
    if (this.#pieces >= piecesPerTurn) this.#pauseUntilNextTurn();
  };

  #pauseUntilNextTurn(): void {
    this.#pieces = 0;
    if (this.#receiver === undefined || this.#isPaused) return;
    this.#readable.pause();
    defer({ where: 'http1', end: () => this.#readable.destroy() }, () => {
      if (this.#receiver !== undefined && !this.#isPaused) this.#readable.resume();
    });
  }

  readonly #onEnd = (): void => {
    const receiver = this.#receiver;
    this.stop();
    receiver?.end();
  };
}

/** The body of an answer that node writes for us (HTTP/1.1). */
export class NodeBodySink implements BodySink {
  readonly copies = false;
  readonly #writable: Writable;
  readonly #memory: Pick<MemoryAccount, 'charge'>;
  /** Undefined until the reader has been behind. */
  #charged: number | undefined;
  #drained: (() => void) | undefined;

  constructor(writable: Writable, memory: Pick<MemoryAccount, 'charge'>) {
    this.#writable = writable;
    this.#memory = memory;
  }

  get closed(): boolean {
    return this.#writable.destroyed || this.#writable.writableEnded;
  }

  get bufferedBytes(): number {
    return this.#writable.writableLength;
  }

  write(chunk: Buffer): boolean {
    return this.closed || this.#writable.write(chunk) || this.#behind();
  }

  writeAll(chunks: readonly BodyPiece[]): boolean {
    if (this.closed) return true;
    const writable = this.#writable;
    writable.cork();
    let more = true;
    for (const chunk of chunks) more = writable.write(pieceBytes(chunk));
    writable.uncork();
    return more || this.#behind();
  }

  end(last?: Buffer): void {
    if (this.closed) return;
    if (last === undefined) this.#writable.end();
    else this.#writable.end(last);
    if (this.#writable.writableLength > queueBytesMin) this.#behind();
  }

  onDrain(callback: () => void): void {
    if (this.#drained === undefined) {
      listen(this.#writable, { where: 'http1' }, { drain: () => this.#drained?.() });
    }
    this.#drained = callback;
  }

  /** Charges bytes that wait for the reader, until they have been written or abandoned. */
  #behind(): false {
    if (this.#charged === undefined) {
      this.#charged = 0;
      const settle = this.#settle;
      listen(this.#writable, { where: 'http1' }, { drain: settle, close: settle });
    }
    this.#settle();
    return false;
  }

  readonly #settle = (): void => {
    const waiting = this.#writable.destroyed ? 0 : this.#writable.writableLength;
    this.#memory.charge('answers', waiting - (this.#charged ?? 0));
    this.#charged = waiting;
  };
}

/** One HTTP/1.1 request and its response. */
export class Http1Exchange extends ExchangeBase {
  readonly httpVersion = '1.1';
  readonly method: string;
  readonly url: string;
  protected readonly source: NodeBodySource;
  protected readonly sink: NodeBodySink;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #waitsForContinue: boolean;
  readonly #release: (() => DetachedConnection) | undefined;
  #isTaken = false;

  constructor(options: {
    request: IncomingMessage;
    response: ServerResponse;
    waitsForContinue: boolean;
    connection: PeerConnection;
    core: ExchangeHost;
    /** The body, if Node does not read it. */
    body?: Readable;
    /** For an upgrade request: releases the connection. */
    release?: () => DetachedConnection;
  }) {
    super(options);
    this.#request = options.request;
    this.#response = options.response;
    this.source = new NodeBodySource(options.body ?? options.request);
    this.sink = new NodeBodySink(options.response, options.connection.memory);
    this.#waitsForContinue = options.waitsForContinue;
    this.#release = options.release;
    this.method = options.request.method ?? 'GET';
    this.url = originForm(options.request.url ?? '/');
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  headerLines(): readonly string[] {
    return this.#request.rawHeaders;
  }

  protected writeHead(head: ResponseHead): void {
    const fields = { ...head.headers } as OutgoingHttpHeaders;
    if (head.contentLength !== undefined) fields['content-length'] = head.contentLength;
    const unread = this.#waitsForContinue && !this.#request.complete;
    if (this.bodyRefused || this.core.draining || unread) fields['connection'] = 'close';
    this.#response.writeHead(head.status, fields);
    if (head.empty && !this.bodyRefused) this.#response.end();
    else if (head.contentLength === undefined) this.#sendHead();
  }

  /** `flushHeaders` would encode text that is not ASCII, as in a warning, once more as UTF-8. */
  #sendHead(): void {
    if (this.method === 'HEAD') this.#response.flushHeaders();
    else this.#response.write(noBytes);
  }

  protected get hasBody(): boolean {
    const { headers } = this.#request;
    return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
  }

  protected override release(): DetachedConnection | undefined {
    const taken = this.#release?.();
    this.#isTaken = taken !== undefined;
    return taken;
  }

  protected allowBody(): void {
    if (this.#waitsForContinue) this.#response.writeContinue();
  }

  /**
   * Answers immediately, but continues to read for a while: closing a socket with unread bytes
   * resets the connection, and the client would lose the answer.
   */
  protected endRefused(body: Buffer): void {
    const source = this.#request;
    const target = this.#response;
    const { clock, limits } = this.core;
    if (body.length > 0) target.write(body);
    else target.flushHeaders();
    const finish = (): void => {
      timer.stop();
      if (!target.writableEnded) target.end();
    };
    const timer = clock.after(limits.discardTimeoutMs, finish);
    let discarded = 0;
    listen(
      source,
      { where: 'http1' },
      {
        data(chunk: Buffer) {
          discarded += chunk.length;
          if (discarded > limits.discardBytesMax) finish();
        },
        end: finish,
        close: finish,
      },
    );
    source.resume();
    if (source.complete || this.#waitsForContinue) finish();
  }

  protected get complete(): boolean {
    return this.#isTaken || this.#response.writableFinished;
  }

  destroy(): void {
    this.connection.socket.destroy();
  }
}

/** Path and query of a request target, which may be an absolute URL. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const scheme = target.indexOf('://');
  if (scheme < 0) return target;
  const path = target.indexOf('/', scheme + 3);
  if (path >= 0) return target.slice(path);
  const query = target.indexOf('?', scheme + 3);
  return query < 0 ? '/' : `/${target.slice(query)}`;
}
