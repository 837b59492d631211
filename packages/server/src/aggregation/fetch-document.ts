import type { IncomingMessage } from 'node:http';
import { goNetworkError } from '@wheelhouse/client';
import {
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

/** A request for a document, independent of the server. */
export interface DocumentQuery {
  readonly path: string;
  readonly accept: string;
  /** The user to act as. */
  readonly user: UserInfo;
  /** The ETag of the cached document. */
  readonly etag?: string | undefined;
  readonly timeoutMs: number;
  /** Maximum bytes to read; undefined reads only the status. */
  readonly bytesMax: number | undefined;
}

/** A request of this server itself to another. */
interface DocumentRequest extends DocumentQuery {
  readonly transport: Transport;
  readonly place: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  /** Cancels the request. */
  readonly signal: AbortSignal;
}

export interface FetchedDocument {
  readonly status: number;
  readonly contentType: string;
  readonly etag: string;
  readonly body: Buffer;
}

/** Fetches a document. Rejects in kube-apiserver's wording on failure and timeout. */
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
    const timer = clock.after(request.timeoutMs, () => fail(late));
    const whole = (incoming: IncomingMessage, pieces: readonly Buffer[]) =>
      settle(() => resolve(documentOf(incoming, runInSlices(concatSteps(pieces), clock))));
    const outgoing = transport.open(
      { method: 'GET', ...place, target: path, headers: headersOf(request) },
      {
        onAnswer(incoming) {
          const { bytesMax } = request;
          if (bytesMax !== undefined) collect(incoming, { bytesMax, whole, fail });
          else passOver(incoming, whole);
        },
        onUpgrade(_, socket) {
          socket.destroy();
          fail('the server changed the protocol');
        },
        onFailure: (error) => fail(goNetworkError(error)),
      },
    );
    const canceled = () => fail('context canceled');
    const release = whenAborted(signal, { where: 'aggregation' }, canceled);
    outgoing.end();
  });
}

const late = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

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

function collect(
  incoming: IncomingMessage,
  to: {
    readonly bytesMax: number;
    whole(incoming: IncomingMessage, pieces: readonly Buffer[]): void;
    fail(why: string): void;
  },
): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  listen(
    incoming,
    { where: 'aggregation' },
    {
      data(piece: Buffer) {
        bytes += piece.length;
        if (bytes <= to.bytesMax) pieces.push(piece);
        else to.fail(`the answer is longer than ${to.bytesMax} bytes`);
      },
      end() {
        if (incoming.complete) to.whole(incoming, pieces);
      },
      close: () => to.fail('unexpected EOF'),
    },
  );
}

/** Maximum bytes of an unneeded body that are read to keep the connection. */
const spareBytesMax = 256 * 1024;

function passOver(
  incoming: IncomingMessage,
  whole: (incoming: IncomingMessage, pieces: readonly Buffer[]) => void,
): void {
  let left = spareBytesMax;
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
  whole(incoming, []);
}
