import { X509Certificate } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import { isIP, isIPv6 } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ConnectionError } from '@wheelhouse/client';
import {
  checkServerNames,
  ignoreErrors,
  listen,
  returningErrors,
  trustOptions,
} from '@wheelhouse/machinery';
import type { ClientCertificate } from '../files/followed-files.ts';
import { bundleCertificates } from '../gates/authn/certificate.ts';
import { type RemoteServer, serverNameOf } from './api-service.ts';
import type { OutgoingHeaders } from './proxy-headers.ts';

/**
 * Trust settings and client certificate of connections; undefined certificates mean none, or the
 * host's own.
 */
interface TransportSettings {
  /** `https` when absent. */
  readonly scheme?: 'http' | 'https';
  /** The name that certificates must match; the host of each request when absent. */
  readonly serverName?: string;
  readonly caPem: string | undefined;
  readonly verifies: boolean;
  readonly certificate: ClientCertificate | undefined;
}

/** One request to another server. */
export interface RemoteRequest {
  readonly method: string;
  readonly host: string;
  readonly port: number;
  /** Escaped path and query. */
  readonly target: string;
  readonly headers: OutgoingHeaders;
}

/** Receives another server's answer. */
export interface RemoteAnswer {
  onAnswer(answer: IncomingMessage): void;
  /** The server switches protocols; `head` contains bytes received after its answer. */
  onUpgrade(answer: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** The request failed before an answer. The error's text is for the client. */
  onFailure(error: Error): void;
}

/** Connections to other servers with common settings. */
export interface Transport {
  /** Why no connection can be made; undefined if they can. */
  readonly fault: string | undefined;
  /** Begins a request, which the caller ends. Calls exactly one function of `answer`. */
  open(request: RemoteRequest, answer: RemoteAnswer): ClientRequest;
  /** Closes idle connections now, and the others when they become idle. */
  retire(): void;
}

/** Maximum size of response headers in bytes. */
const headBytesMax = 128 * 1024;
const idleConnectionsMax = 25;
/** How long idle connections are kept; servers usually close theirs after 90 seconds. */
const idleMs = 60_000;

/** A server may close a connection just at its announced timeout. */
const closingMarginMs = 1_000;

/** Drops connections before the timeout that their servers announce. */
interface CarefulAgent {
  readonly agent: http.Agent;
  /** Reads the keep-alive header of an answer. */
  responded(socket: Duplex, keepAlive: string): void;
}

function createCarefulAgent(settings: TransportSettings): CarefulAgent {
  const keptFor = new WeakMap<Duplex, number>();
  const options = {
    keepAlive: true,
    maxFreeSockets: idleConnectionsMax,
    timeout: idleMs,
    scheduling: 'lifo',
  } as const;
  const agent =
    settings.scheme === 'http'
      ? new http.Agent(options)
      : new https.Agent({ ...tlsOptions(settings), ...options });
  const keepSocketAlive = agent.keepSocketAlive.bind(agent);
  agent.keepSocketAlive = (socket: Duplex) => {
    const keptMs = Math.min(idleMs, keptFor.get(socket) ?? idleMs);
    // Its declared type has no result.
    const isKept: unknown = keepSocketAlive(socket);
    if (keptMs <= 0 || isKept === false) return false;
    (socket as TLSSocket).setTimeout(keptMs);
    return true;
  };
  return {
    agent,
    responded(socket, keepAlive) {
      const seconds = /^timeout=(\d{1,6})/.exec(keepAlive)?.[1];
      if (seconds !== undefined) keptFor.set(socket, Number(seconds) * 1000 - closingMarginMs);
    },
  };
}

/** Creates a transport without opening a connection. */
export function createTransport(settings: TransportSettings): Transport {
  const { agent, responded } = createCarefulAgent(settings);
  const isPlain = settings.scheme === 'http';
  // A protocol switch uses a new connection, as in kube-apiserver.
  const single = isPlain
    ? new http.Agent({ keepAlive: false })
    : new https.Agent({ ...tlsOptions(settings), keepAlive: false });
  const send = isPlain ? http.request : https.request;
  return {
    fault: faultOf(settings),
    open(request, answer) {
      const { headers, target, ...rest } = request;
      // SNI carries only host names; the certificate is still verified against the address.
      const ofHost = { servername: isIP(request.host) === 0 ? request.host : '' };
      const outgoing = send({
        ...rest,
        ...(settings.serverName === undefined ? ofHost : {}),
        agent: headers['upgrade'] === undefined ? agent : single,
        path: target,
        headers,
        maxHeaderSize: headBytesMax,
      });
      const where = 'aggregation';
      listen(
        outgoing,
        { where },
        {
          response({ socket, headers: responseHeaders }: IncomingMessage) {
            responded(socket, String(responseHeaders['keep-alive'] ?? ''));
          },
        },
      );
      listenForAnswer(outgoing, request, answer);
      return outgoing;
    },
    retire() {
      agent.maxFreeSockets = 0;
      for (const sockets of Object.values(agent.freeSockets)) {
        for (const socket of sockets ?? []) socket.destroy();
      }
    },
  };
}

function listenForAnswer(
  outgoing: ClientRequest,
  { host, port }: RemoteRequest,
  answer: RemoteAnswer,
): void {
  let isSettled = false;
  const once = (act: () => void) => {
    if (isSettled) return;
    isSettled = true;
    act();
  };
  const fail = (error: NodeJS.ErrnoException) =>
    once(() => answer.onFailure(new ConnectionError(hostPort({ host, port }), error)));
  listen(
    outgoing,
    { where: 'aggregation' },
    {
      response(incoming: IncomingMessage) {
        // Readers of the answer notice the interruption.
        ignoreErrors(incoming);
        once(() => answer.onAnswer(incoming));
      },
      upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer) {
        ignoreErrors(socket);
        once(() => answer.onUpgrade(incoming, socket, head));
      },
      error: fail,
      close: () => fail(Object.assign(new Error('EOF'), { code: 'ECONNRESET' })),
    },
  );
}

function tlsOptions(settings: TransportSettings): https.AgentOptions {
  const { caPem, certificate, serverName, verifies } = settings;
  return {
    ...(serverName === undefined ? {} : { servername: serverName }),
    minVersion: 'TLSv1.2',
    ...trustOptions(caPem),
    ...(certificate === undefined
      ? {}
      : { cert: certificate.certificatePem, key: certificate.keyPem }),
    ...(verifies
      ? { checkServerIdentity: returningErrors(checkServerNames) }
      : { rejectUnauthorized: false }),
  };
}

/** Node.js silently ignores CAs that it cannot parse. */
function faultOf({ caPem, verifies }: TransportSettings): string | undefined {
  if (!verifies || caPem === undefined) return undefined;
  const fault = 'unable to load root certificates';
  try {
    const certificates = bundleCertificates(caPem);
    for (const der of certificates) new X509Certificate(der);
    if (certificates.length > 0) return undefined;
    return `${fault}: unable to parse bytes as PEM block`;
  } catch {
    return `${fault}: failed to parse certificate`;
  }
}

/** `10.0.0.1:443`, `[::1]:443`. */
export function hostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Connections to other servers, shared by APIServices with the same settings. */
export interface Transports {
  /** For client requests: verified as the APIService says. */
  of(remote: RemoteServer): Transport;
  /** For availability probes, without verification. */
  forLook(remote: RemoteServer): Transport;
  /** Closes transports that none of these servers uses, and those with an outdated certificate. */
  keepOnly(remotes: readonly RemoteServer[]): void;
  close(): void;
}

/** Creates transports on first use. */
export function createTransports(options: {
  /** The current client certificate. */
  readonly certificate: () => ClientCertificate | undefined;
  /** The CAs that the host trusts, in PEM. */
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
