import type { IncomingMessage } from 'node:http';
import { goNetworkError } from '@wheelhouse/client';
import {
  ByteCollector,
  type Clock,
  concatSteps,
  listen,
  type MaybePromise,
  runInSlices,
  type UserInfo,
  whenAborted,
} from '@wheelhouse/machinery';
import { identityHeaders } from './proxy-headers.ts';
import { hostPort, type Transport } from './transport.ts';

/** A request for a document, independent of the server that it is sent to. */
export interface DocumentQuery {
  readonly path: string;
  readonly accept: string;
  /** The user to act as. */
  readonly user: UserInfo;
  /** The ETag of the cached document, for revalidation. */
  readonly etag?: string | undefined;
  readonly timeoutMs: number;
  /** Maximum size of the body, bytes; undefined to read only the status. */
  readonly bytesMax: number | undefined;
}

/** A request that this server sends to another on its own behalf. */
interface DocumentRequest extends DocumentQuery {
  readonly transport: Transport;
  readonly place: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  /** Cancels the request. */
  readonly signal: AbortSignal;
}

/** An answer; `contentType` and `etag` are empty if the server did not send them. */
export interface FetchedDocument {
  readonly status: number;
  readonly contentType: string;
  readonly etag: string;
  readonly body: Buffer;
}

/** Fetches a document. Rejects with kube-apiserver's messages on failure, timeout, and abort. */
export function fetchDocument(request: DocumentRequest): Promise<FetchedDocument> {
  const { transport, place, path, signal, clock } = request;
  return new Promise((resolve, reject) => {
    let isOver = false;
    const settle = (act: () => void) => {
      if (isOver) return;
      isOver = true;
      timer.stop();
      release();
      act();
    };
    const fail = (why: string) =>
      settle(() => {
        reject(new Error(why));
        outgoing.destroy();
      });
    const timer = clock.after(request.timeoutMs, () => fail(timeoutText));
    const onBody = (incoming: IncomingMessage, pieces: readonly Buffer[]) =>
      settle(() => resolve(documentOf(incoming, runInSlices(concatSteps(pieces), clock))));
    const outgoing = transport.open(
      { method: 'GET', ...place, target: path, headers: headersOf(request) },
      {
        onAnswer(incoming) {
          const { bytesMax } = request;
          if (bytesMax !== undefined) readBody(incoming, { bytesMax, onBody, fail });
          else discardBody(incoming, onBody);
        },
        onUpgrade(_, socket) {
          socket.destroy();
          fail('the server switched protocols');
        },
        onFailure: (error) => fail(goNetworkError(error)),
      },
    );
    const canceled = () => fail('context canceled');
    const release = whenAborted(signal, { where: 'aggregation' }, canceled);
    outgoing.end();
  });
}

const timeoutText = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

function headersOf({ user, place, accept, etag }: DocumentRequest) {
  const headers = identityHeaders({ user, forwardsUid: false });
  headers['host'] = [hostPort(place)];
  headers['accept'] = [accept];
  if (etag !== undefined && etag !== '') headers['if-none-match'] = [etag];
  return headers;
}

async function documentOf(
  incoming: IncomingMessage,
  body: MaybePromise<Buffer>,
): Promise<FetchedDocument> {
  const { statusCode = 0, headers } = incoming;
  const contentType = headers['content-type'] ?? '';
  return { status: statusCode, contentType, etag: headers.etag ?? '', body: await body };
}

function readBody(
  incoming: IncomingMessage,
  to: {
    readonly bytesMax: number;
    onBody(incoming: IncomingMessage, pieces: readonly Buffer[]): void;
    fail(why: string): void;
  },
): void {
  const bytes = new ByteCollector();
  listen(
    incoming,
    { where: 'aggregation' },
    {
      data(piece: Buffer) {
        bytes.add(piece);
        if (bytes.length > to.bytesMax) to.fail(`the answer exceeds ${to.bytesMax} bytes`);
      },
      end() {
        if (incoming.complete) to.onBody(incoming, bytes.takePieces());
      },
      close: () => to.fail('unexpected EOF'),
    },
  );
}

/** Maximum size of a discarded body, bytes; the connection of a larger one is closed. */
const discardedBytesMax = 256 * 1024;

function discardBody(
  incoming: IncomingMessage,
  onBody: (incoming: IncomingMessage, pieces: readonly Buffer[]) => void,
): void {
  let left = discardedBytesMax;
  listen(
    incoming,
    { where: 'aggregation' },
    {
      data(piece: Buffer) {
        left -= piece.length;
        if (left < 0) incoming.destroy();
      },
    },
  );
  onBody(incoming, []);
}
