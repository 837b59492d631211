import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import { rsaKeyPair } from '../support/rsa-keys.ts';

/** A signing key of a provider. */
export interface SigningPair {
  readonly algorithm: string;
  readonly keyId: string | undefined;
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

/**
 * Creates a pair; without a key ID if `keyId` is undefined. RSA pairs have the key of a number,
 * which the pairs of providers share; ECDSA pairs have a new key.
 */
export async function signingPair(
  algorithm: string,
  keyId?: string,
  rsaNumber = 0,
): Promise<SigningPair> {
  const { privateKey, jwk } = await (algorithm.startsWith('ES')
    ? newKey(algorithm)
    : rsaKey(algorithm, rsaNumber));
  const publicJwk = { ...jwk, use: 'sig', ...(keyId === undefined ? {} : { kid: keyId }) };
  return { algorithm, keyId, privateKey, publicJwk };
}

async function newKey(algorithm: string) {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { privateKey, jwk: await exportJWK(publicKey) };
}

async function rsaKey(algorithm: string, number: number) {
  const pair = rsaKeyPair(number);
  const privateKey = (await importJWK(await exportJWK(pair.privateKey), algorithm)) as CryptoKey;
  return { privateKey, jwk: await exportJWK(pair.publicKey) };
}

/** Answers a request instead of the provider; returns false for the usual answer. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** A real OpenID provider over TLS on loopback. */
export interface TestProvider {
  readonly url: string;
  readonly caPem: string;
  /** The provider's own certificate, without that of its authority. */
  readonly leafPem: string;
  readonly certificate: ReturnType<typeof makeCertificate>;
  /** The currently published keys. */
  keys: readonly SigningPair[];
  /** Called first for every request; returns true if it has answered or will never answer. */
  handler: Handler | undefined;
  /** The issuer in the discovery document. */
  issuer: string;
  /** Paths of all requests so far. */
  readonly requests: string[];
  /** A token of the first key with these claims in addition to `iss`, `aud`, and `exp`. */
  token(claims?: Record<string, unknown>, options?: TokenOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface TokenOptions {
  readonly by?: SigningPair;
  readonly header?: Record<string, unknown>;
}

export const clientId = 'wheelhouse';

/**
 * Starts a provider; `port` and `certificateOf` restart it at a previous address. Without
 * `certificateOf`, providers share their authority.
 */
export async function startProvider(
  options: {
    readonly keys?: readonly SigningPair[];
    readonly port?: number;
    readonly certificateOf?: Pick<TestProvider, 'certificate'>;
  } = {},
): Promise<TestProvider> {
  const made = options.certificateOf?.certificate ?? sharedCertificate();
  const requests: string[] = [];
  const server = https.createServer(
    { cert: made.certificatePem, key: made.keyPem },
    (request, response) => {
      requests.push(request.url ?? '');
      if (provider.handler?.(request, response) === true) return;
      answer(provider, request, response);
    },
  );
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider: TestProvider = {
    url,
    caPem: made.caPem,
    leafPem: made.certificatePem.split(/(?<=-----END CERTIFICATE-----\n)/)[0] ?? '',
    certificate: made,
    keys: options.keys ?? [await signingPair('RS256', 'first')],
    handler: undefined,
    issuer: url,
    requests,
    async token(claims = {}, { by, header } = {}) {
      const pair = by ?? provider.keys[0]!;
      const kid = pair.keyId === undefined ? {} : { kid: pair.keyId };
      const payload = { iss: provider.issuer, aud: clientId, exp: inSeconds(600), ...claims };
      return new SignJWT(payload)
        .setProtectedHeader({ alg: pair.algorithm, ...kid, ...header })
        .sign(pair.privateKey);
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return provider;
}

let ownCertificate: ReturnType<typeof makeCertificate> | undefined;

/** The certificate of all providers of the process, because making one takes longer than a test. */
function sharedCertificate() {
  ownCertificate ??= makeCertificate();
  return ownCertificate;
}

/** Issues a certificate by a new authority. */
export function makeCertificate() {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-oidc-'));
  const hosts = ['localhost', '127.0.0.1'];
  const made = ensureServingCertificates({ certDir: directory, hosts, clock: systemClock });
  rmSync(directory, { recursive: true, force: true });
  return made;
}

export const inSeconds = (seconds: number) => Math.floor(systemClock.now() / 1000) + seconds;

function answer(provider: TestProvider, request: IncomingMessage, response: ServerResponse): void {
  const json = (body: unknown) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body));
  };
  if (request.url === '/.well-known/openid-configuration') {
    json({ issuer: provider.issuer, jwks_uri: `${provider.url}/keys` });
  } else if (request.url === '/keys') {
    json({ keys: provider.keys.map(({ publicJwk }) => publicJwk) });
  } else {
    response.statusCode = 404;
    response.end();
  }
}

/** A logger at the highest verbosity that collects its lines. */
export function collecting(lines: string[]): Logger {
  const write = (message: string, fields?: object) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const debug = (_: number, message: string, fields?: object) => write(message, fields);
  return { verbosity: 10, info: write, warn: write, error: write, debug };
}
