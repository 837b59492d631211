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

/** The serving certificate and TLS settings. */
export interface ServingTls extends CertificatePair {
  /** OpenSSL cipher list; modern suites when absent. */
  readonly ciphers?: string;
  /** TLS 1.2 when absent. */
  readonly minVersion?: SecureVersion;
  /** Certificates by requested server name, in lower case; the first label may be `*`. */
  readonly named?: ReadonlyMap<string, CertificatePair>;
  /** PEM bundles whose subjects are sent to clients, so that they choose a suitable certificate. */
  readonly clientAuthorities?: readonly string[];
}

/** A version of TLS, as Node's options name it. */
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
 * Answers are sent without delay. TCP keep-alive detects clients that vanished with open watches
 * after three minutes, as in kube-apiserver.
 */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 180_000 } as const;

/** Creates a server of HTTP/1.1 without TLS. */
export function plainServer(limits: HttpLimits): Server {
  const maxHeaderSize = limits.headerBytesMax;
  // `http1-server.ts` rejects requests without Host, after earlier pipelined requests.
  const requireHostHeader = false;
  return createServer({
    ...socketOptions,
    ...http1Timeouts(limits),
    maxHeaderSize,
    requireHostHeader,
  });
}

/** The `replaceCertificate` of a plain server. */
export function noCertificate(): void {
  throw new Error('a plain server has no certificate');
}

/** Creates a server with TLS; `replaceCertificate` applies to later handshakes. */
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
  const { named } = tls;
  if (named === undefined) return (_name, answer) => answer(null);
  const contextOf = (pair: CertificatePair) =>
    createSecureContext(secureContext({ ...tls, ...pair }));
  return createNameChoice({ named, usual: tls, contextOf });
}

/**
 * A context without authorities loads those of the public web, which takes longer than the rest of
 * the server's start. The given ones are only announced to clients; Node's verdict is not used.
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
    // OpenSSL supports the old versions only at its lowest security level.
    ciphers: isOld ? `${ciphers}:@SECLEVEL=0` : ciphers,
  };
}

/** Only forward secrecy and authenticated encryption, like kube-apiserver's default list. */
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

/** Forward-secret suites of TLS versions before 1.2. */
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

/** Passes the certificate of a handshake to Node, or the error that ends the handshake. */
type NameAnswer = (error: Error | null, context?: SecureContext) => void;

/**
 * Chooses the certificate for a requested server name (SNI): the one configured for the name or for
 * its domain (`*.example.com`), the default one if it is valid for the name, any other that is
 * valid for it, or else the default one.
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
      kept.find((candidate) => candidate.pair === pair)?.context,
    ]),
  );
  const usual = new X509Certificate(options.usual.certificate);
  return (serverName, answer) => {
    const name = serverName.toLowerCase();
    const own = contexts.get(name) ?? contexts.get(name.replace(/^[^.]*/, '*'));
    if (own !== undefined || usual.checkHost(name) !== undefined) answer(null, own);
    else
      answer(
        null,
        kept.find(({ certificate }) => certificate.checkHost(name) !== undefined)?.context,
      );
  };
}

const notACertificate = Buffer.alloc(1);

/**
 * Keeps connections usable whose client certificate the handshake could not verify. OpenSSL leaves
 * the error of a wrong signature in a thread-local queue, where Node mistakes it for an error of
 * the next read and fails the connection. The authenticator decides about the certificate.
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

/** Clears OpenSSL's error queue, which parsing a certificate does. */
function clearErrors(): void {
  try {
    new X509Certificate(notACertificate);
  } catch {
    // Expected: one byte is not a certificate.
  }
}
