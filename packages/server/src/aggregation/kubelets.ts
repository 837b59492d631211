import type { IncomingMessage } from 'node:http';
import {
  badRequest,
  internalError,
  listen,
  StatusError,
  type StatusReason,
  serviceUnavailable,
} from '@wheelhouse/machinery';
import { answerHeaders } from '../answer/respond.ts';
import type { ApiCall, KubeletPort, KubeletRequest, ProxiedRequest } from '../endpoints/call.ts';
import type { ClientCertificate } from '../files/followed-files.ts';
import { anonymousHeaders, wantedProtocol } from './proxy-headers.ts';
import { escapedPath, Relay, type RelayPlan } from './relay.ts';
import { proxiedAnswer } from './rewritten-links.ts';
import { createTransport, hostPort, type Transport } from './transport.ts';

const connectTimeoutMs = 30_000;
/** Maximum bytes of a kubelet's error text. */
const refusalBytesMax = 50_000;

/** Mutual trust between this server and kubelets; both may change while the server runs. */
export interface KubeletTrust {
  /** The CA bundle for kubelets' certificates in PEM; certificates are not verified without one. */
  readonly caPem: () => string | undefined;
  readonly certificate: () => ClientCertificate | undefined;
  /** Maps the proxied address to the one to connect to; identity when absent. */
  readonly connectTo?: ((host: string) => string) | undefined;
}

/**
 * Proxies streams into containers, and their logs, to the kubelets of nodes over HTTPS. Streams use
 * the protocol of the client (SPDY or WebSocket), byte by byte.
 */
export class Kubelets implements Pick<KubeletPort, 'stream' | 'log' | 'proxy'> {
  readonly #trust: KubeletTrust;
  /** The default transport, and the one without verification for requests that disable it. */
  readonly #transports = new Map<string, Transport>();
  /** Transports to Pods and to other ports of nodes, by scheme. */
  readonly #proxying = new Map<ProxiedRequest['scheme'], Transport>();

  constructor(trust: KubeletTrust) {
    this.#trust = trust;
  }

  /** Connects the client's stream to the kubelet's. Rejects with a StatusError. */
  async stream(call: ApiCall, request: KubeletRequest): Promise<void> {
    if (wantedProtocol(call.exchange) === undefined) throw badRequest('Upgrade request required');
    const { place, target } = request;
    await this.#relay(call, request, {
      place,
      target,
      passes: 'everything',
      redirects: 'passed',
      connectTimeoutMs,
      headers: () => anonymousHeaders(call.exchange, { host: hostPort(place) }),
      answered: () => answerHeaders(call, 'text/plain; charset=utf-8'),
      refuse: ({ text, reached }) => failure(reached ? text : `error dialing backend: ${text}`),
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
      passes: 'nothing',
      redirects: 'passed',
      connectTimeoutMs,
      headers: () => ({ host: [hostPort(place)] }),
      answered: () => answerHeaders(call, 'text/plain'),
      refuse({ text }) {
        if (text.includes('x509: ')) call.context.metrics.podLogs.countRejectedCertificate();
        return failure(`Get ${JSON.stringify(url)}: ${text}`);
      },
      replace: (incoming) => refusalOf(incoming, { name: call.target.name, url }),
    });
  }

  /**
   * Proxies a request with its headers, and rewrites links in the response to lead through here.
   */
  async proxy(call: ApiCall, request: ProxiedRequest): Promise<void> {
    const { host, port, path, prefix, trust, scheme } = request;
    const query = call.exchange.url.indexOf('?');
    const escaped = escapedPath(path);
    const isUpgrade = wantedProtocol(call.exchange) !== undefined;
    const shownHost = call.exchange.header('host') ?? call.exchange.header(':authority') ?? '';
    const links = { prefix: escapedPath(prefix), host: hostPort({ host, port }), shownHost };
    const failed = isUpgrade ? 'error dialing backend' : 'error trying to reach service';
    const plan: RelayPlan = {
      place: { host: this.#trust.connectTo?.(host) ?? host, port },
      target: escaped + (query < 0 ? '' : call.exchange.url.slice(query)),
      passes: 'everything',
      redirects: 'passed',
      connectTimeoutMs,
      headers: () => ({
        ...anonymousHeaders(call.exchange, { host: shownHost || hostPort({ host, port }) }),
        ...(isUpgrade ? {} : { 'x-forwarded-uri': [links.prefix + escaped] }),
      }),
      ...proxiedAnswer(call, links),
      refuse({ text, reached }) {
        if (isUpgrade) return failure(reached ? text : `${failed}: ${text}`);
        return serviceUnavailable(`${failed}: ${text}`);
      },
    };
    if (trust === 'kubelet') {
      await this.#relay(call, { verification: 'as configured' }, plan);
      return;
    }
    await new Relay({ call, transport: this.#proxyTransport(scheme), plan }).run();
  }

  close(): void {
    this.#closeKubelets();
    for (const transport of this.#proxying.values()) transport.retire();
    this.#proxying.clear();
  }

  #closeKubelets(): void {
    for (const transport of this.#transports.values()) transport.retire();
    this.#transports.clear();
  }

  /** Pods are reached by address, which their certificates need not contain. */
  #proxyTransport(scheme: ProxiedRequest['scheme']): Transport {
    const cached = this.#proxying.get(scheme);
    if (cached !== undefined) return cached;
    const trust = { caPem: undefined, verifies: false, certificate: undefined };
    const made = createTransport({ scheme, ...trust });
    this.#proxying.set(scheme, made);
    return made;
  }

  async #relay(
    call: ApiCall,
    request: Pick<KubeletRequest, 'verification'>,
    plan: RelayPlan,
  ): Promise<void> {
    const transport = this.#transport(request.verification);
    if (transport.fault !== undefined) throw failure(transport.fault);
    await new Relay({ call, transport, plan }).run();
  }

  #transport(verification: KubeletRequest['verification']): Transport {
    const caPem = verification === 'skipped' ? undefined : this.#trust.caPem();
    const certificate = this.#trust.certificate();
    const key = JSON.stringify([caPem, certificate?.certificatePem]);
    const cached = this.#transports.get(key);
    if (cached !== undefined) return cached;
    const made = createTransport({ caPem, verifies: caPem !== undefined, certificate });
    // The oldest of three belongs to a previous certificate or CA bundle.
    if (this.#transports.size >= 2) this.#closeKubelets();
    this.#transports.set(key, made);
    return made;
  }
}

const failure = (message: string) => new StatusError({ code: 500, reason: '', message });

/** Converts a kubelet's error response for a log; undefined for a log. */
function refusalOf(
  incoming: IncomingMessage,
  { name, url }: { readonly name: string; readonly url: string },
): Promise<StatusError> | undefined {
  const status = incoming.statusCode ?? 0;
  if (status >= 200 && status <= 206) return undefined;
  return refusalText(incoming).then((text) => {
    if (status >= 300 && status < 400) {
      return failure(`Get ${JSON.stringify(url)}: redirects forbidden`);
    }
    if (status === 500) return internalError(text);
    if (status === 400) return badRequest(text);
    return otherRefusal({ status, text, name });
  });
}

const refusals: Readonly<Record<number, readonly [StatusReason, string]>> = {
  401: ['Unauthorized', 'the server has asked for the client to provide credentials'],
  404: ['NotFound', 'the server could not find the requested resource'],
  503: ['ServiceUnavailable', 'the server is currently unable to handle the request'],
};

function otherRefusal({
  status,
  text,
  name,
}: {
  readonly status: number;
  readonly text: string;
  readonly name: string;
}): StatusError {
  const [reason, message] = refusals[status] ?? unnamedRefusal(status, text);
  const details = { kind: 'pods/log', name };
  return new StatusError({
    code: status,
    reason,
    message: `${message} ( pods/log ${name})`,
    details,
  });
}

function unnamedRefusal(status: number, text: string): readonly [StatusReason | '', string] {
  if (status === 403) return ['Forbidden', text];
  if (status > 500) {
    const shown = JSON.stringify(text);
    const message = `an error on the server (${shown}) has prevented the request from succeeding`;
    return ['InternalError', message];
  }
  const message = `the server responded with the status code ${status} but did not return more information`;
  return ['', message];
}

/** The first bytes of a response. */
function refusalText(incoming: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let length = 0;
    const done = () => resolve(Buffer.concat(pieces).toString('utf8', 0, refusalBytesMax));
    listen(
      incoming,
      { where: 'aggregation', end: done },
      {
        data(piece: Buffer) {
          pieces.push(piece);
          length += piece.length;
          if (length >= refusalBytesMax) done();
        },
        end: done,
        close: done,
      },
    );
  });
}
