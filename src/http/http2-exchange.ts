import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { ResponseHeaders } from '../base/exchange.ts';
import type { PeerConnection } from './connection.ts';
import { ExchangeBase, type ExchangeHost } from './exchange-base.ts';

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;

/** One HTTP/2 stream. */
export class Http2Exchange extends ExchangeBase {
  readonly httpVersion = '2';
  readonly method: string;
  readonly url: string;
  protected readonly source: ServerHttp2Stream;
  protected readonly target: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #lines: readonly string[];

  constructor(options: {
    stream: ServerHttp2Stream;
    headers: IncomingHttpHeaders;
    /** Names and values in turn. */
    lines: readonly string[];
    connection: PeerConnection;
    core: ExchangeHost;
  }) {
    super(options);
    this.source = options.stream;
    this.target = options.stream;
    this.#headers = options.headers;
    this.#lines = options.lines;
    this.method = options.headers[':method'] as string;
    this.url = (options.headers[':path'] as string | undefined) ?? '';
  }

  header(name: string): string | undefined {
    const value =
      this.#headers[name] ?? (name === 'host' ? this.#headers[':authority'] : undefined);
    return Array.isArray(value) ? value.join(', ') : value;
  }

  headerLines(): readonly string[] {
    return this.#lines;
  }

  protected writeHead(head: {
    status: number;
    headers: ResponseHeaders;
    bodyBytes: number | undefined;
    empty: boolean;
  }): void {
    const { target } = this;
    if (target.destroyed) return;
    const fields: OutgoingHttpHeaders = { ':status': head.status, ...mutable(head.headers) };
    if (head.bodyBytes !== undefined && head.status !== 204 && head.status !== 304) {
      fields['content-length'] = head.bodyBytes;
    }
    target.respond(fields, { endStream: head.empty && !this.bodyRefused });
  }

  protected allowBody(): void {
    if (this.#headers['expect'] === '100-continue' && !this.target.destroyed) {
      this.target.additionalHeaders({ ':status': 100 });
    }
  }

  /** Answers, then closes the stream without error: the client may stop sending (RFC 9113, 8.1). */
  protected endRefused(body: Buffer): void {
    const { target } = this;
    target.once('finish', () => {
      target.close(NGHTTP2_NO_ERROR);
      // What arrived meanwhile must be read by somebody: a stream with unread data never closes.
      target.resume();
    });
    target.end(body);
  }

  /** A reset makes node end the writable, so `writableFinished` would not tell. */
  protected get complete(): boolean {
    return !this.target.aborted && this.target.rstCode === NGHTTP2_NO_ERROR;
  }

  destroy(): void {
    this.target.close(NGHTTP2_CANCEL);
  }
}

function mutable(headers: ResponseHeaders): OutgoingHttpHeaders {
  return headers as OutgoingHttpHeaders;
}
