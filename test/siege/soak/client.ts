import http2 from 'node:http2';
import type { JsonObject } from '@wheelhouse/machinery';

/** One answer; the body is decoded if it is JSON. */
export interface SoakAnswer {
  readonly status: number;
  readonly body: JsonObject | undefined;
}

/** A watch that counts its events and discards them. */
export interface SoakWatch {
  readonly ended: Promise<void>;
  close(): void;
}

const patienceMs = 60_000;

/** A pool of HTTP/2 connections, which are replaced one after the other as clients come and go. */
export class SoakClient {
  readonly #url: string;
  readonly #token: string;
  readonly #sessions: http2.ClientHttp2Session[] = [];
  readonly #size: number;
  #next = 0;
  connections = 0;

  constructor(options: { readonly url: string; readonly token: string; readonly size: number }) {
    this.#url = options.url;
    this.#token = options.token;
    this.#size = options.size;
  }

  /** Sends one request; status 0 means a stream without a response. */
  send(request: {
    readonly method: string;
    readonly path: string;
    readonly body?: unknown;
    readonly type?: string;
    readonly accept?: string;
  }): Promise<SoakAnswer> {
    const bytes =
      request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const headers = {
      ':method': request.method,
      ':path': request.path,
      authorization: `Bearer ${this.#token}`,
      accept: request.accept ?? 'application/json',
      ...(bytes === undefined ? {} : { 'content-type': request.type ?? 'application/json' }),
    };
    return new Promise((resolve) => {
      const stream = this.#session().request(headers, { endStream: bytes === undefined });
      const chunks: Buffer[] = [];
      let status = 0;
      stream.setTimeout(patienceMs, () => stream.close(http2.constants.NGHTTP2_CANCEL));
      stream.on('response', (head) => {
        status = Number(head[':status']);
      });
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('error', () => {});
      stream.on('close', () => resolve({ status, body: decoded(Buffer.concat(chunks)) }));
      if (bytes !== undefined) stream.end(bytes);
    });
  }

  /** The body of a GET as text. */
  text(path: string): Promise<string> {
    const stream = this.#session().request({
      ':path': path,
      authorization: `Bearer ${this.#token}`,
    });
    let text = '';
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      text += chunk;
    });
    stream.on('error', () => {});
    return new Promise((resolve) => stream.on('close', () => resolve(text)));
  }

  /** Opens a watch; `onBytes` receives the size of each chunk. */
  watch(path: string, onBytes: (bytes: number) => void): SoakWatch {
    const stream = this.#session().request({
      ':method': 'GET',
      ':path': path,
      authorization: `Bearer ${this.#token}`,
      accept: 'application/json',
    });
    stream.on('data', (chunk: Buffer) => onBytes(chunk.length));
    stream.on('error', () => {});
    const ended = new Promise<void>((resolve) => stream.on('close', resolve));
    return { ended, close: () => stream.close(http2.constants.NGHTTP2_CANCEL) };
  }

  /** Lets the oldest connection finish its streams and close; a new one replaces it. */
  replaceOldest(): void {
    this.#sessions.shift()?.close();
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
  }

  #session(): http2.ClientHttp2Session {
    const open = this.#sessions.filter((session) => !session.closed && !session.destroyed);
    this.#sessions.splice(0, this.#sessions.length, ...open);
    if (open.length < this.#size) {
      const session = http2.connect(this.#url, { rejectUnauthorized: false });
      session.on('error', () => {});
      session.setMaxListeners(0);
      this.#sessions.push(session);
      this.connections += 1;
      return session;
    }
    this.#next += 1;
    return open[this.#next % open.length] as http2.ClientHttp2Session;
  }
}

function decoded(bytes: Buffer): JsonObject | undefined {
  try {
    return JSON.parse(bytes.toString('utf8')) as JsonObject;
  } catch {
    return undefined;
  }
}
