import type { Http2Stream, PeerConnection, ResponseHead, StreamOwner } from '@wheelhouse/http2';
import { ExchangeBase, type ExchangeHost } from './exchange-base.ts';

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

  /** The client is told to stop sending with the answer's end (RFC 9113, 8.1). */
  protected endRefused(body: Buffer): void {
    this.sink.end(body);
  }

  protected get complete(): boolean {
    return this.sink.finished;
  }

  destroy(): void {
    this.sink.cancel();
  }
}
