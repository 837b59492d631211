import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { StreamingClient } from '@wheelhouse/client';
import { listen, type UserInfo, whenAborted } from '@wheelhouse/machinery';
import type { ServiceEndpoint } from '../webhooks/service-address.ts';
import { identityHeaders } from './proxy-headers.ts';
import { isRedirect, type RelaySettings, redirected } from './relay.ts';
import { hostPort, type Transport } from './transport.ts';

type Request = Parameters<StreamingClient['stream']>[0];
type Stream = Awaited<ReturnType<StreamingClient['stream']>>;

/** This server's own user, as kube-apiserver identifies itself to itself. */
const ownUser: UserInfo = {
  name: 'system:apiserver',
  uid: '',
  groups: ['system:authenticated', 'system:masters'],
  extra: {},
};

/** An answer of this server itself. */
const answer = (status: number, text: string): Stream => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: Readable.from([Buffer.from(text)]),
});

/** The answer of this server for another one that is unavailable. */
const unavailable = (): Stream => answer(503, 'service unavailable\n');

/** A server that can be reached. */
interface Reached {
  readonly transport: Transport;
  readonly place: ServiceEndpoint;
}

/**
 * A client whose requests this server sends to another one on its own behalf. `reach` resolves to
 * undefined if that server is unavailable. Redirects are passed on or answered with 502.
 */
export function ownClient(options: {
  readonly reach: () => Promise<Reached | undefined>;
  readonly redirects: RelaySettings['redirects'];
}): StreamingClient {
  return {
    async stream(request) {
      const reached = await options.reach();
      if (reached === undefined) return unavailable();
      const fault = await reached.transport.fault();
      if (fault !== undefined) return answer(500, fault);
      const received = await send(request, reached);
      if (options.redirects === 'passed' || !isRedirect(received)) return received;
      received.body.destroy();
      return answer(502, redirected);
    },
  };
}

function send(
  { method, path, headers: explicitHeaders = {}, body, signal }: Request,
  { transport, place }: Reached,
): Promise<Stream> {
  const headers = identityHeaders({ user: ownUser, forwardsUid: false });
  for (const [name, value] of Object.entries(explicitHeaders)) headers[name] = [value].flat();
  headers['host'] = [hostPort(place)];
  if (body !== undefined) headers['content-length'] = [String(Buffer.byteLength(body))];
  return new Promise((resolve, reject) => {
    const outgoing = transport.open(
      { method, ...place, target: path, headers },
      {
        onAnswer: (incoming: IncomingMessage) =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming }),
        onUpgrade(_, socket) {
          socket.destroy();
          resolve(unavailable());
        },
        onFailure: (error) => (signal?.aborted === true ? reject(error) : resolve(unavailable())),
      },
    );
    const where = 'aggregation';
    const close =
      signal === undefined ? () => {} : whenAborted(signal, { where }, () => outgoing.destroy());
    listen(outgoing, { where }, { close });
    outgoing.end(body);
  });
}
