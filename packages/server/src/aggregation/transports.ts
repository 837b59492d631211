import { type RemoteServer, serverNameOf } from './api-service.ts';
import { type ClientCertificate, createTransport, type Transport } from './transport.ts';

/** The connections to other servers, one set for all APIServices that ask for the same. */
export interface Transports {
  /** For requests of clients: trusts as the APIService says. */
  of(remote: RemoteServer): Transport;
  /** For the look at whether a server is there, which trusts whoever answers. */
  forLook(remote: RemoteServer): Transport;
  /** Lets go of those that none of these uses, and of those with another certificate than now. */
  keepOnly(remotes: readonly RemoteServer[]): void;
  close(): void;
}

/** Makes transports as they are asked for. */
export function createTransports(options: {
  /** Who this server is; may change. */
  readonly certificate: () => ClientCertificate | undefined;
  /** The authorities that the host trusts, in PEM. */
  readonly hostRoots: () => string | undefined;
}): Transports {
  const made = new Map<string, Transport>();
  const roots: { pem?: string | undefined } = {};
  const hostRoots = () => {
    if (!('pem' in roots)) roots.pem = options.hostRoots();
    return roots.pem;
  };
  const keyOf = (remote: RemoteServer, verifies: boolean) =>
    JSON.stringify([
      serverNameOf(remote.service),
      verifies,
      verifies ? remote.caPem : '',
      options.certificate()?.certificatePem,
    ]);
  const find = (remote: RemoteServer, verifies: boolean) => {
    const key = keyOf(remote, verifies);
    const cached = made.get(key);
    if (cached !== undefined) return cached;
    const trusted = remote.caPem === '' ? hostRoots() : remote.caPem;
    const transport = createTransport({
      serverName: serverNameOf(remote.service),
      caPem: verifies ? trusted : undefined,
      verifies,
      certificate: options.certificate(),
    });
    made.set(key, transport);
    return transport;
  };
  const keep = (keys: ReadonlySet<string>) => {
    for (const [key, transport] of made) {
      if (keys.has(key)) continue;
      made.delete(key);
      transport.retire();
    }
  };
  return {
    of: (remote) => find(remote, remote.verifies),
    forLook: (remote) => find(remote, false),
    keepOnly(remotes) {
      keep(new Set(remotes.flatMap((one) => [keyOf(one, one.verifies), keyOf(one, false)])));
    },
    close: () => keep(new Set()),
  };
}
