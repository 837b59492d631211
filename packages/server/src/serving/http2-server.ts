import type { Server as SecureServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import {
  Http2Connection,
  type Http2Stream,
  type PeerConnection,
  type ResponseHead,
  type StreamOwner,
} from '@wheelhouse/http2';
import {
  ignoreErrors,
  listenEach,
  listen as listenOn,
  random,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { ExchangeBase, type ExchangeHost } from './exchange-base.ts';
import { readAsStream } from './http1-server.ts';
import type { ServerCore } from './server-core.ts';

/** One HTTP/2 stream. */
export class Http2Exchange extends ExchangeBase implements StreamOwner {
  readonly httpVersion = '2';
  readonly method: string;
  readonly url: string;
  protected readonly source: Http2Stream;
  protected readonly sink: Http2Stream;
  readonly #onClosed: (exchange: Http2Exchange) => void;

  constructor(options: {
    stream: Http2Stream;
    connection: PeerConnection;
    core: ExchangeHost;
    onClosed: (exchange: Http2Exchange) => void;
  }) {
    super(options);
    const { stream } = options;
    this.source = stream;
    this.sink = stream;
    this.method = stream.head.method ?? '';
    this.url = stream.head.path ?? '';
    this.#onClosed = options.onClosed;
    stream.owner = this;
  }

  header(name: string): string | undefined {
    return this.source.head.header(name);
  }

  headerLines(): readonly string[] {
    return this.source.head.lines;
  }

  streamClosed(): void {
    this.#onClosed(this);
  }

  protected writeHead(head: ResponseHead): void {
    this.sink.respond(head);
  }

  protected get hasBody(): boolean {
    return !this.source.remoteEnded || this.source.receivedBytes > 0;
  }

  protected allowBody(): void {
    this.source.allowBody();
  }

  /** The end of the answer asks the client to stop sending (RFC 9113, section 8.1). */
  protected endRefused(body: Buffer): void {
    this.sink.end(body);
  }

  protected get complete(): boolean {
    return this.sink.finished;
  }

  destroy(): void {
    this.sink.cancel();
  }

  override get heldBytes(): number {
    return super.heldBytes + this.source.unreadBytes;
  }

  override shed(refusal: WholeResponse): void {
    super.shed(refusal);
    this.source.drop();
  }
}

/**
 * Serves connections that negotiated HTTP/2, before Node's HTTP/1.1 server sees them.
 */
export function acceptHttp2(
  server: SecureServer,
  core: ServerCore,
  options: {
    readonly goAwayChance?: number | undefined;
    readonly onHandshakeFailed?: (() => void) | undefined;
  },
): void {
  const { onHandshakeFailed = ignore, goAwayChance = 0 } = options;
  const listeners = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  // Node would answer a failed handshake like a malformed request.
  server.removeAllListeners('tlsClientError');
  listenOn(server, { where: 'tls', end: ignore }, { tlsClientError: onHandshakeFailed });
  const begin = (stream: Http2Stream, connection: Http2Connection): void => {
    core.begin(new Http2Exchange({ stream, connection, core, onClosed }));
  };
  const beginAndMayLeave: typeof begin = (stream, connection) => {
    begin(stream, connection);
    if (random() < goAwayChance) connection.retire();
  };
  const onRequest = goAwayChance > 0 ? beginAndMayLeave : begin;
  const onClosed = (exchange: Http2Exchange): void => core.end(exchange);
  const accept = (socket: TLSSocket): void => {
    if (socket.alpnProtocol !== 'h2') {
      for (const listener of listeners) listener.call(server, socket);
      readAsStream(socket);
      return;
    }
    ignoreErrors(socket);
    const connection = new Http2Connection({ socket, core, onRequest });
    core.connected(connection);
    listenOn(socket, { where: 'http2' }, { close: () => core.disconnected(connection) });
    if (core.draining) connection.retire();
  };
  const end = (socket: TLSSocket) => socket.destroy();
  listenEach(server, 'secureConnection', { where: 'tls', run: accept, end });
}

function ignore(): void {}
