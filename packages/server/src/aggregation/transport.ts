import { X509Certificate } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ConnectionError, expireIdle, retireAgent, VerifyingAgent } from '@wheelhouse/client';
import { certificatesIn } from '@wheelhouse/codec';
import {
  checkServerNames,
  hostInUrl,
  ignoreErrors,
  ipVersion,
  listen,
  type MaybePromise,
  returningErrors,
  runInSlices,
  systemClock,
  trustOptions,
} from '@wheelhouse/machinery';
import type { ClientCertificate } from '../files/followed-files.ts';
import { type RemoteServer, serverNameOf } from './api-service.ts';
import type { OutgoingHeaders } from './proxy-headers.ts';

/** Trust settings and client certificate of connections. */
interface TransportSettings {
  /** Defaults to `https`. */
  readonly scheme?: 'http' | 'https';
  /** The name that certificates must match; defaults to the host of each request. */
  readonly serverName?: string;
  /** The trusted CAs; undefined for the host's. */
  readonly caPem: string | undefined;
  /** Whether certificates are verified. */
  readonly verifies: boolean;
  /** The client certificate; undefined for none. */
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

/** Receives the outcome of a request to another server. */
export interface RemoteAnswer {
  /** Called with the answer, whose body has not been read. */
  onAnswer(answer: IncomingMessage): void;
  /** Called if the server switches protocols; `head` is what was received after its answer. */
  onUpgrade(answer: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Called if the request fails before an answer. The error's message is for the client. */
  onFailure(error: Error): void;
}

/** Connections to other servers with the same settings. */
export interface Transport {
  /**
   * Why the settings allow no connection; undefined if they are valid. A promise while a large CA
   * bundle is checked (TRUST-2).
   */
  fault(): MaybePromise<string | undefined>;
  /** Begins a request, which the caller ends. Calls exactly one function of `answer`. */
  open(request: RemoteRequest, answer: RemoteAnswer): ClientRequest;
  /** Closes idle connections now, and the others when they become idle. */
  retire(): void;
}

/** Maximum size of response headers, bytes. */
const headBytesMax = 128 * 1024;
const idleConnectionsMax = 25;
/** Timeout of idle connections, milliseconds; servers usually close theirs after 90 seconds. */
const idleMs = 60_000;
/** Time without data after which TCP probes a connection, milliseconds; kube-apiserver's. */
const probeMs = 30_000;

/** Creates an agent, and a function that it needs to be called with each response. */
function createAgent(settings: TransportSettings): {
  readonly agent: http.Agent;
  readonly onResponse: (response: IncomingMessage) => void;
} {
  const options = {
    keepAlive: true,
    keepAliveMsecs: probeMs,
    maxFreeSockets: idleConnectionsMax,
    timeout: idleMs,
    scheduling: 'lifo',
  } as const;
  const agent =
    settings.scheme === 'http'
      ? new http.Agent(options)
      : new VerifyingAgent({ ...tlsOptions(settings), ...options });
  return { agent, onResponse: expireIdle(agent, idleMs) };
}

/** Creates a transport without opening a connection. */
export function createTransport(settings: TransportSettings): Transport {
  const { agent, onResponse } = createAgent(settings);
  const isPlain = settings.scheme === 'http';
  // A protocol switch uses a new connection, as in kube-apiserver.
  const single = isPlain
    ? new http.Agent({ keepAlive: false })
    : new VerifyingAgent({ ...tlsOptions(settings), keepAlive: false });
  const send = isPlain ? http.request : https.request;
  let fault: MaybePromise<string | undefined>;
  let isChecked = false;
  return {
    fault() {
      if (!isChecked) fault = runInSlices(faultSteps(settings), systemClock);
      isChecked = true;
      return fault;
    },
    open(request, answer) {
      const { headers, target, ...rest } = request;
      // SNI excludes addresses; the certificate is still verified against them.
      const ofHost = { servername: ipVersion(request.host) === 0 ? request.host : '' };
      const outgoing = send({
        ...rest,
        ...(settings.serverName === undefined ? ofHost : {}),
        agent: headers['upgrade'] === undefined ? agent : single,
        path: target,
        headers,
        maxHeaderSize: headBytesMax,
      });
      // Otherwise the stream of a node that has lost power never ends.
      const socket = (connection: Socket) => connection.setKeepAlive(true, probeMs);
      listen(outgoing, { where: 'aggregation' }, { response: onResponse, socket });
      listenForAnswer(outgoing, request, answer);
      return outgoing;
    },
    retire: () => retireAgent(agent),
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
        // Whoever reads the answer notices its interruption.
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

/** The reason why a CA bundle is invalid; Node.js silently ignores CAs that it cannot parse. */
function* faultSteps({ caPem, verifies }: TransportSettings): Generator<void, string | undefined> {
  if (!verifies || caPem === undefined) return undefined;
  const fault = 'unable to load root certificates';
  try {
    let isEmpty = true;
    for (const der of certificatesIn(caPem)) {
      new X509Certificate(der);
      isEmpty = false;
      yield;
    }
    if (!isEmpty) return undefined;
    return `${fault}: unable to parse bytes as PEM block`;
  } catch {
    return `${fault}: failed to parse certificate`;
  }
}

/** Formats an address: `10.0.0.1:443`, `[::1]:443`. */
export function hostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${hostInUrl(host)}:${port}`;
}

/** Connections to other servers, shared by APIServices with the same settings. */
export interface Transports {
  /** Returns the transport for client requests, which verifies if the APIService says so. */
  of(remote: RemoteServer): Transport;
  /** Returns the transport for availability probes, which does not verify. */
  forProbes(remote: RemoteServer): Transport;
  /** Retires transports with an old client certificate, and those of servers not listed. */
  keepOnly(remotes: readonly RemoteServer[]): void;
  close(): void;
}

/** Creates a cache of transports, which are created on first use. */
export function createTransports(options: {
  /** Returns the current client certificate. */
  readonly certificate: () => ClientCertificate | undefined;
  /** Returns the CAs that the host trusts, in PEM; undefined if there are none. */
  readonly hostRoots: () => string | undefined;
}): Transports {
  const transports = new Map<string, Transport>();
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
    const cached = transports.get(key);
    if (cached !== undefined) return cached;
    const trusted = remote.caPem === '' ? hostRoots() : remote.caPem;
    const transport = createTransport({
      serverName: serverNameOf(remote.service),
      caPem: verifies ? trusted : undefined,
      verifies,
      certificate: options.certificate(),
    });
    transports.set(key, transport);
    return transport;
  };
  const keep = (keys: ReadonlySet<string>) => {
    for (const [key, transport] of transports) {
      if (keys.has(key)) continue;
      transports.delete(key);
      transport.retire();
    }
  };
  return {
    of: (remote) => find(remote, remote.verifies),
    forProbes: (remote) => find(remote, false),
    keepOnly(remotes) {
      keep(
        new Set(
          remotes.flatMap((remote) => [keyOf(remote, remote.verifies), keyOf(remote, false)]),
        ),
      );
    },
    close: () => keep(new Set()),
  };
}
