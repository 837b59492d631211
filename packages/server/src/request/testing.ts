import { Socket } from 'node:net';
import type {
  Connection,
  Exchange,
  ResponseStream,
  TakenConnection,
  WholeResponse,
} from '@wheelhouse/machinery';

/** Helpers of tests of what handles requests; not for the server. */

/** What a client sends, as a test states it. */
export interface RequestFixture {
  readonly method?: string;
  readonly url?: string;
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** An exchange without a socket, which keeps what it is answered with. */
export interface FakeExchange extends Exchange {
  /** The answer that was sent whole; undefined before that. */
  readonly sent: WholeResponse | undefined;
  answeredStatus: number | undefined;
  /** The client goes away. */
  leave(): void;
}

/** Makes an exchange of a request. Streams, bodies on their way, and upgrades throw. */
export function fakeExchange(request: RequestFixture = {}): FakeExchange {
  const { method = 'GET', url = '/', headers = {}, body = '' } = request;
  const callbacks: (() => void)[] = [];
  const connection: Connection = {
    socket: new Socket(),
    encrypted: true,
    peerCertificates: () => [],
    memo: new Map(),
  };
  let sent: WholeResponse | undefined;
  let hasLeft = false;
  const leave = () => {
    hasLeft = true;
    for (const callback of callbacks.splice(0)) callback();
  };
  const exchange: FakeExchange = {
    method,
    url,
    httpVersion: '2',
    remoteAddress: '192.0.2.7',
    connection,
    answeredStatus: undefined,
    get aborted() {
      return hasLeft;
    },
    get sent() {
      return sent;
    },
    leave,
    header: (name) => headers[name],
    headerLines: () => Object.entries(headers).flat(),
    body: async () => Buffer.from(body),
    bodyStream: () => unavailable(),
    takeOver: (): TakenConnection => unavailable(),
    onAbort: (callback) => void callbacks.push(callback),
    send(response) {
      sent = response;
      exchange.answeredStatus = response.status;
    },
    stream: (): ResponseStream => unavailable(),
    supersede() {
      if (hasLeft || exchange.answeredStatus !== undefined) return undefined;
      leave();
      return exchange.send;
    },
  };
  return exchange;
}

function unavailable(): never {
  throw new Error('a fake exchange has no streams');
}
