import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { Server } from 'node:net';
import {
  createSecureContext,
  type SecureContext,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls';
import { containedEach, listenEach } from '@wheelhouse/machinery';
import type { HttpLimits } from './limits.ts';

/** The serving certificate, and how TLS is spoken. */
export interface ServingTls extends CertificatePair {
  /** OpenSSL's list of suites; the modern ones when absent. */
  readonly ciphers?: string;
  /** TLS 1.2 when absent. */
  readonly minVersion?: SecureVersion;
  /** Certificates for clients that ask for these names, in lower case; `*` for a first label. */
  readonly named?: ReadonlyMap<string, CertificatePair>;
  /** PEM bundles whose subjects a client is told, so that it picks the certificate that counts. */
  readonly clientAuthorities?: readonly string[];
}

export type SecureVersion = 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';

function http1Timeouts(limits: HttpLimits): {
  headersTimeout: number;
  requestTimeout: number;
  keepAliveTimeout: number;
  connectionsCheckingInterval: number;
} {
  return {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: limits.sweepPeriodMs,
  };
}

/**
 * Answers go out at once; a client that vanished without a word, its watches still open, is found
 * out by the host after upstream's three minutes of silence.
 */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 180_000 } as const;

export function plainServer(limits: HttpLimits): Server {
  const maxHeaderSize = limits.headerBytesMax;
  // A request without Host is refused in its turn (`http1-server.ts`), not at once.
  const requireHostHeader = false;
  return createServer({
    ...socketOptions,
    ...http1Timeouts(limits),
    maxHeaderSize,
    requireHostHeader,
  });
}

export function noCertificate(): void {
  throw new Error('a plain server has no certificate');
}

export function secureServer(
  tls: ServingTls,
  { http2 }: { readonly http2?: 'on' | 'off' },
  limits: HttpLimits,
): { server: SecureServer; replaceCertificate(tls: ServingTls): void } {
  let choose = nameChoice(tls);
  const end = (error: unknown, _name: string, answer: NameAnswer) => answer(error as Error);
  const byName = (name: string, answer: NameAnswer) => choose(name, answer);
  const server = createSecureServer({
    ...secureContext(tls),
    ...(tls.named === undefined
      ? {}
      : { SNICallback: containedEach({ where: 'tls', end }, byName) }),
    ...socketOptions,
    ...http1Timeouts(limits),
    ALPNProtocols: http2 === 'off' ? ['http/1.1'] : ['h2', 'http/1.1'],
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: limits.tlsHandshakeTimeoutMs,
    maxHeaderSize: limits.headerBytesMax,
    requireHostHeader: false,
  });
  return {
    server,
    replaceCertificate(changed) {
      const choice = nameChoice(changed);
      server.setSecureContext(secureContext(changed));
      choose = choice;
    },
  };
}

function nameChoice(tls: ServingTls): (name: string, answer: NameAnswer) => void {
  const contextOf = (pair: CertificatePair) =>
    createSecureContext(secureContext({ ...tls, ...pair }));
  return createNameChoice({ named: tls.named ?? new Map(), usual: tls, contextOf });
}

/**
 * Without authorities of its own a context gets those of the public web, which takes longer to read
 * than all the rest of a start. Those it has are named to clients; what they say is not relied on.
 */
function secureContext(tls: ServingTls): {
  ca: string[];
  cert: string | Buffer;
  key: string | Buffer;
  minVersion: SecureVersion;
  ciphers: string;
} {
  const { minVersion = 'TLSv1.2' } = tls;
  const isOld = minVersion === 'TLSv1' || minVersion === 'TLSv1.1';
  const ciphers = tls.ciphers ?? (isOld ? `${modernCiphers}:${oldCiphers}` : modernCiphers);
  return {
    ca: [...(tls.clientAuthorities ?? [])],
    cert: tls.certificate,
    key: tls.key,
    minVersion,
    // The library speaks the old versions at its lowest level alone.
    ciphers: isOld ? `${ciphers}:@SECLEVEL=0` : ciphers,
  };
}

/** Forward secrecy and authenticated encryption only, as upstream's default list. */
const modernCiphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** What versions before 1.2 have of forward secrecy. */
const oldCiphers = [
  'ECDHE-ECDSA-AES128-SHA',
  'ECDHE-RSA-AES128-SHA',
  'ECDHE-ECDSA-AES256-SHA',
  'ECDHE-RSA-AES256-SHA',
].join(':');

/** PEM texts of a certificate (with its chain) and its key. */
export interface CertificatePair {
  readonly certificate: string | Buffer;
  readonly key: string | Buffer;
}

/** Gives node the certificate of a handshake, or the error that ends it. */
type NameAnswer = (error: Error | null, context?: SecureContext) => void;

/**
 * Picks the certificate that a client gets by the name it asks for (SNI): the one kept for the
 * name, for all of its domain (`*.example.com`), the usual one when it is good for the name, one
 * that is good for it although not kept for it, or else the usual one.
 */
function createNameChoice(options: {
  readonly named: ReadonlyMap<string, CertificatePair>;
  readonly usual: CertificatePair;
  readonly contextOf: (pair: CertificatePair) => SecureContext;
}): (serverName: string, answer: NameAnswer) => void {
  const pairs = new Set(options.named.values());
  const kept = [...pairs].map((pair) => ({
    pair,
    certificate: new X509Certificate(pair.certificate),
    context: options.contextOf(pair),
  }));
  const contexts = new Map(
    [...options.named].map(([name, pair]) => [
      name,
      kept.find((one) => one.pair === pair)?.context,
    ]),
  );
  const usual = new X509Certificate(options.usual.certificate);
  return (serverName, answer) => {
    const name = serverName.toLowerCase();
    const own = contexts.get(name) ?? contexts.get(name.replace(/^[^.]*/, '*'));
    if (own !== undefined || usual.checkHost(name) !== undefined) answer(null, own);
    else answer(null, kept.find((one) => one.certificate.checkHost(name) !== undefined)?.context);
  };
}

const notACertificate = Buffer.alloc(1);

/**
 * Keeps connections sound whose client certificate the handshake could not verify. OpenSSL keeps
 * the error of a wrong signature in a queue of the thread, from which node takes it for an error of
 * the next read and fails the connection. What a certificate is worth is for the authenticator to
 * say.
 */
export function forgetCertificateErrors(server: TlsServer): void {
  listenEach(server, 'secureConnection', {
    where: 'tls',
    run: (socket: TLSSocket) => {
      if (socket.authorizationError) clearErrors();
    },
    end: (socket) => socket.destroy(),
  });
}

/** Reading a certificate empties the queue when it is done. */
function clearErrors(): void {
  try {
    new X509Certificate(notACertificate);
  } catch {
    // One byte is no certificate.
  }
}
