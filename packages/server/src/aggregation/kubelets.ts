import type { IncomingMessage } from 'node:http';
import { goResponseError } from '@wheelhouse/client';
import {
  badRequest,
  internalError,
  listen,
  StatusError,
  serviceUnavailable,
} from '@wheelhouse/machinery';
import { answerHeaders } from '../answer/respond.ts';
import type { ApiCall, KubeletPort, KubeletRequest, ProxiedRequest } from '../endpoints/call.ts';
import type { ClientCertificate } from '../files/followed-files.ts';
import {
  anonymousHeaders,
  type IdentityHeaders,
  type IdentityTest,
  identityTest,
  type OutgoingHeaders,
  requestedProtocol,
} from './proxy-headers.ts';
import { escapedPath, Relay, type RelayPlan, unreached } from './relay.ts';
import { proxiedAnswer } from './rewritten-links.ts';
import { createTransport, hostPort, type Transport } from './transport.ts';

/** Maximum size of a kubelet's error text, bytes. */
const errorBytesMax = 50_000;

/** Mutual trust between this server and kubelets. Both sides may change at runtime. */
export interface KubeletTrust {
  /** Returns the CAs of kubelets in PEM; undefined if their certificates are not verified. */
  readonly caPem: () => string | undefined;
  /** Returns the current client certificate. */
  readonly certificate: () => ClientCertificate | undefined;
  /** Maps a proxied host to the one to connect to; defaults to the host itself. */
  readonly connectTo?: ((host: string) => string) | undefined;
  /** The headers of this server's authenticating proxy, which are not forwarded. */
  readonly requestHeader?: IdentityHeaders | undefined;
}

/**
 * Proxies container streams and logs to kubelets over HTTPS. The bytes of a stream, SPDY or
 * WebSocket, pass unchanged.
 */
export class Kubelets implements Pick<KubeletPort, 'stream' | 'log' | 'proxy'> {
  readonly #trust: KubeletTrust;
  readonly #isIdentity: IdentityTest;
  /** The transport with verification and the one without it, by certificate and CAs. */
  readonly #transports = new Map<string, Transport>();
  /** Transports to Pods and to other ports of nodes, by scheme. */
  readonly #proxyTransports = new Map<ProxiedRequest['scheme'], Transport>();

  constructor(trust: KubeletTrust) {
    this.#trust = trust;
    this.#isIdentity = identityTest(trust.requestHeader);
  }

  /** Connects the client's stream to the kubelet's. Rejects with a StatusError. */
  async stream(call: ApiCall, request: KubeletRequest): Promise<void> {
    if (requestedProtocol(call.exchange) === undefined)
      throw badRequest('Upgrade request required');
    const { place, target } = request;
    await this.#relay(call, request, {
      place,
      target,
      forwards: 'everything',
      redirects: 'passed',
      headers: () => this.#headers(call, hostPort(place)),
      responseHeaders: () => answerHeaders(call, 'text/plain; charset=utf-8'),
      errorFor: (problem) => failure(unreached(call, problem)),
    });
  }

  /** Streams a log. Rejects with a StatusError. */
  async log(call: ApiCall, request: KubeletRequest): Promise<void> {
    const { place, target } = request;
    const url = `https://${hostPort(place)}${target}`;
    await this.#relay(call, request, {
      place,
      target,
      method: 'GET',
      forwards: 'nothing',
      redirects: 'passed',
      headers: () => ({ host: [hostPort(place)] }),
      responseHeaders: () => answerHeaders(call, 'text/plain'),
      errorFor({ text }) {
        if (text.includes('x509: ')) call.context.metrics.podLogs.countRejectedCertificate();
        return failure(`Get ${JSON.stringify(url)}: ${text}`);
      },
      replace: (incoming) => errorOf(incoming, { name: call.target.name, url }),
    });
  }

  /**
   * Proxies a request with its headers, and rewrites links in the response so that they lead
   * through this server. Rejects with a StatusError.
   */
  async proxy(call: ApiCall, request: ProxiedRequest): Promise<void> {
    const { host, port, path, prefix, trust, scheme } = request;
    const query = call.exchange.url.indexOf('?');
    const escaped = escapedPath(path);
    const isUpgrade = requestedProtocol(call.exchange) !== undefined;
    const clientHost = call.exchange.header('host') ?? call.exchange.header(':authority') ?? '';
    const links = { prefix: escapedPath(prefix), host: hostPort({ host, port }), clientHost };
    const plan: RelayPlan = {
      place: { host: this.#trust.connectTo?.(host) ?? host, port },
      target: escaped + (query < 0 ? '' : call.exchange.url.slice(query)),
      forwards: 'everything',
      redirects: 'passed',
      headers: () => ({
        ...this.#headers(call, clientHost || hostPort({ host, port })),
        ...(isUpgrade ? {} : { 'x-forwarded-uri': [links.prefix + escaped] }),
      }),
      ...proxiedAnswer(call, links),
      errorFor(problem) {
        const message = unreached(call, problem);
        const isAnswer = isUpgrade || problem.isReached;
        return isAnswer ? failure(message) : serviceUnavailable(message);
      },
    };
    if (trust === 'kubelet') {
      await this.#relay(call, { verification: 'as configured' }, plan);
      return;
    }
    await new Relay({ call, transport: this.#proxyTransport(scheme), plan }).run();
  }

  /** Closes idle connections now, and the others when they become idle. */
  close(): void {
    this.#retireTransports();
    for (const transport of this.#proxyTransports.values()) transport.retire();
    this.#proxyTransports.clear();
  }

  #retireTransports(): void {
    for (const transport of this.#transports.values()) transport.retire();
    this.#transports.clear();
  }

  /** Certificates are not verified: requests use the address of a Pod, which few contain. */
  #proxyTransport(scheme: ProxiedRequest['scheme']): Transport {
    const cached = this.#proxyTransports.get(scheme);
    if (cached !== undefined) return cached;
    const trust = { caPem: undefined, verifies: false, certificate: undefined };
    const transport = createTransport({ scheme, ...trust });
    this.#proxyTransports.set(scheme, transport);
    return transport;
  }

  #headers({ exchange }: ApiCall, host: string): OutgoingHeaders {
    return anonymousHeaders(exchange, { host, isIdentity: this.#isIdentity });
  }

  async #relay(
    call: ApiCall,
    request: Pick<KubeletRequest, 'verification'>,
    plan: RelayPlan,
  ): Promise<void> {
    const transport = this.#transport(request.verification);
    const fault = await transport.fault();
    if (fault !== undefined) throw failure(fault);
    await new Relay({ call, transport, plan }).run();
  }

  #transport(verification: KubeletRequest['verification']): Transport {
    const caPem = verification === 'skipped' ? undefined : this.#trust.caPem();
    const certificate = this.#trust.certificate();
    const key = JSON.stringify([caPem, certificate?.certificatePem]);
    const cached = this.#transports.get(key);
    if (cached !== undefined) return cached;
    const transport = createTransport({ caPem, verifies: caPem !== undefined, certificate });
    // Of three transports, the oldest has a previous certificate or CA bundle.
    if (this.#transports.size >= 2) this.#retireTransports();
    this.#transports.set(key, transport);
    return transport;
  }
}

const failure = (message: string) => new StatusError({ code: 500, reason: '', message });

/** Converts an error response to a request for a log; undefined if the response is a log. */
function errorOf(
  incoming: IncomingMessage,
  { name, url }: { readonly name: string; readonly url: string },
): Promise<StatusError> | undefined {
  const status = incoming.statusCode ?? 0;
  if (status >= 200 && status <= 206) return undefined;
  return errorTextOf(incoming).then((text) => {
    if (status >= 300 && status < 400) {
      return failure(`Get ${JSON.stringify(url)}: redirects forbidden`);
    }
    if (status === 500) return internalError(text);
    if (status === 400) return badRequest(text);
    const { reason, message } = goResponseError(status, text);
    return new StatusError({
      code: status,
      reason,
      message: `${message} ( pods/log ${name})`,
      details: { kind: 'pods/log', name },
    });
  });
}

/** Reads the start of a response as text. */
function errorTextOf(incoming: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let length = 0;
    const done = () => resolve(Buffer.concat(pieces).toString('utf8', 0, errorBytesMax));
    listen(
      incoming,
      { where: 'aggregation', end: done },
      {
        data(piece: Buffer) {
          pieces.push(piece);
          length += piece.length;
          if (length >= errorBytesMax) done();
        },
        end: done,
        close: done,
      },
    );
  });
}
