import http2 from 'node:http2';
import type { ResponseBody } from '../../support/harness.ts';

/** The current address of a server. */
export interface Endpoint {
  readonly url: string;
  readonly token: string;
  /** Identifies the server's process; changes with each start. */
  readonly process: string;
}

/** A line of a watch's body. */
export interface WatchLine {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: ResponseBody;
}

/** A complete answer, or how far the request got without one. */
export type Reply =
  | { readonly type: 'answer'; readonly status: number; readonly body: ResponseBody }
  /** The request was not sent at all. */
  | { readonly type: 'unsent' }
  | { readonly type: 'lost' };

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export interface Stream {
  /** Status of the response when the stream has ended; 0 without a response. */
  readonly ended: Promise<number>;
  close(): void;
}

/** The connections of one client: one per server process, opened on first use. */
export class Connections {
  readonly #sessions = new Map<string, { session: http2.ClientHttp2Session; isOpen: boolean }>();

  /**
   * Sends one request and resolves with the answer, or with `lost` after `patienceMs` or when the
   * connection was cut.
   */
  send(
    endpoint: Endpoint,
    request: {
      readonly method: string;
      readonly path: string;
      readonly body?: unknown;
      readonly type?: string;
      readonly patienceMs: number;
    },
  ): Promise<Reply> {
    const { body, method, path, type = 'application/json' } = request;
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const connection = this.#connection(endpoint);
    const stream = connection.session.request(
      {
        ...headersOf(endpoint, { method, path }),
        ...(bytes === undefined ? {} : { 'content-type': type }),
      },
      { endStream: bytes === undefined },
    );
    const chunks: Buffer[] = [];
    let status = 0;
    let isWhole = false;
    const timer = setTimeout(() => {
      stream.close(http2.constants.NGHTTP2_CANCEL);
      // A suspended process never acknowledges the cancellation.
      stream.destroy();
    }, request.patienceMs);
    stream.on('response', (head) => {
      status = Number(head[':status']);
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      isWhole = stream.rstCode === 0;
    });
    stream.on('error', () => {});
    if (bytes !== undefined) stream.end(bytes);
    return new Promise((resolve) => {
      stream.on('close', () => {
        clearTimeout(timer);
        const answer = isWhole && status > 0 ? parsed(Buffer.concat(chunks)) : undefined;
        if (answer !== undefined) resolve({ type: 'answer', status, body: answer });
        else resolve({ type: connection.isOpen ? 'lost' : 'unsent' });
      });
    });
  }

  /** Opens a watch; `onLine` receives each complete line of its body, unless it is rejected. */
  watch(endpoint: Endpoint, path: string, onLine: (line: WatchLine) => void): Stream {
    const { session } = this.#connection(endpoint);
    const stream = session.request(headersOf(endpoint, { method: 'GET', path }));
    let status = 0;
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('response', (head) => {
      status = Number(head[':status']);
    });
    stream.on('data', (chunk: string) => {
      if (status !== 200) return;
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) onLine(JSON.parse(line));
    });
    stream.on('error', () => {});
    const ended = new Promise<number>((resolve) => stream.on('close', () => resolve(status)));
    return { ended, close: () => stream.destroy() };
  }

  /** Cuts all connections, regardless of requests in progress. */
  cut(): void {
    for (const { session } of this.#sessions.values()) session.destroy();
    this.#sessions.clear();
  }

  #connection(endpoint: Endpoint): { session: http2.ClientHttp2Session; isOpen: boolean } {
    const found = this.#sessions.get(endpoint.process);
    if (found !== undefined && !found.session.closed && !found.session.destroyed) return found;
    const session = http2.connect(endpoint.url, { rejectUnauthorized: false });
    const made = { session, isOpen: false };
    session.on('connect', () => {
      made.isOpen = true;
    });
    session.on('error', () => {});
    session.setMaxListeners(0);
    this.#sessions.set(endpoint.process, made);
    return made;
  }
}

function headersOf(
  { token }: Endpoint,
  { method, path }: { readonly method: string; readonly path: string },
): http2.OutgoingHttpHeaders {
  const authorization = `Bearer ${token}`;
  return { ':method': method, ':path': path, authorization, accept: 'application/json' };
}

function parsed(bytes: Buffer): ResponseBody | undefined {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
