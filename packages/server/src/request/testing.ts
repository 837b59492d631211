import { Socket } from 'node:net';
import type {
  Connection,
  DetachedConnection,
  Exchange,
  ResponseStream,
  WholeResponse,
} from '@wheelhouse/machinery';

/** Helpers for tests of request handling; not for the server. */

/** A client's request in a test. */
interface RequestFixture {
  readonly method?: string;
  readonly url?: string;
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** An exchange without a socket, which keeps its answer. */
interface FakeExchange extends Exchange {
  /** The complete answer; undefined before it is sent. */
  readonly sent: WholeResponse | undefined;
  responseCode: number | undefined;
  /** Simulates a disconnecting client. */
  leave(): void;
}

/** Creates the exchange of a request. Streams, incomplete bodies, and upgrades throw. */
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
    responseCode: undefined,
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
    takeOver: (): DetachedConnection => unavailable(),
    onAbort: (callback) => void callbacks.push(callback),
    send(response) {
      sent = response;
      exchange.responseCode = response.status;
    },
    stream: (): ResponseStream => unavailable(),
    supersede() {
      if (hasLeft || exchange.responseCode !== undefined) return undefined;
      leave();
      return exchange.send;
    },
  };
  return exchange;
}

function unavailable(): never {
  throw new Error('a fake exchange has no streams');
}
