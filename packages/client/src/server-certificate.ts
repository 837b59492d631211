import https from 'node:https';
import type { Duplex } from 'node:stream';
import {
  type ConnectionOptions,
  connect,
  type DetailedPeerCertificate,
  type PeerCertificate,
  TLSSocket,
} from 'node:tls';
import { indexRoots, parseCertificate, parseChain, verifyChain } from '@wheelhouse/codec';
import { checkServerNames, contained, returningErrors, systemClock } from '@wheelhouse/machinery';
import { SharedTrust, trustedCertificates } from './shared-trust.ts';

/**
 * OpenSSL's verdicts on a certificate that it takes for self-signed, because it has the name of its
 * issuer and no authority key identifier. The webhooks of all operators that are built with
 * Knative's library have such certificates; Go verifies their signature.
 */
const mistakenForSelfSigned = new Set(['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN']);

/** The callback that Node passes to an agent for a connection. */
export type AgentCallback = (error: Error | null, stream: Duplex) => void;

/** An agent whose connections trust the servers that `connectVerified` trusts. */
export class VerifyingAgent extends https.Agent {
  readonly #trust = new SharedTrust();

  override createConnection(
    options: https.RequestOptions,
    callback?: AgentCallback,
  ): Duplex | null | undefined {
    const complete = this.#trust.optionsFor(options as ConnectionOptions);
    if (!(complete instanceof Promise)) return this.#connect(complete, callback);
    const connected = (error: Error | null, stream?: Duplex | null) =>
      callback?.(error, stream as Duplex);
    complete
      .then((loaded) => this.#connect(loaded, callback))
      .then(
        (stream) => connected(null, stream),
        (error: Error) => connected(error),
      );
    return undefined;
  }

  #connect(options: ConnectionOptions, callback?: AgentCallback): Duplex | null | undefined {
    const check = new ServerCheck(options);
    const verified = { ...options, ...check.options };
    const socket = super.createConnection(verified as https.RequestOptions, callback);
    if (socket instanceof TLSSocket) check.destroyIfUntrusted(socket);
    return socket;
  }
}

/**
 * Opens a TLS connection. A certificate that OpenSSL takes for self-signed is verified as Go does
 * (ADM-2). If the server is not trusted, the socket is destroyed before it emits `secureConnect` to
 * other listeners, which must look at `destroyed`.
 */
export function connectVerified(options: ConnectionOptions): TLSSocket {
  const check = new ServerCheck(options);
  const socket = connect({ ...options, ...check.options });
  check.destroyIfUntrusted(socket);
  return socket;
}

/** The decision whether one connection trusts its server. */
class ServerCheck {
  readonly options: Pick<ConnectionOptions, 'rejectUnauthorized' | 'checkServerIdentity'>;
  readonly #connection: ConnectionOptions;
  readonly #checkNames: (host: string, certificate: PeerCertificate) => Error | undefined;
  #nameFault: Error | undefined;

  constructor(connection: ConnectionOptions) {
    this.#connection = connection;
    this.#checkNames = connection.checkServerIdentity ?? returningErrors(checkServerNames);
    this.options = {
      rejectUnauthorized: false,
      checkServerIdentity: returningErrors((host: string, certificate: PeerCertificate) => {
        this.#nameFault = this.#checkNames(host, certificate);
        return this.#nameFault;
      }),
    };
  }

  /** Decides within the handshake, as Node itself does: nothing has been sent yet. */
  destroyIfUntrusted(socket: TLSSocket): void {
    if (this.#connection.rejectUnauthorized === false) return;
    const decide = contained({ where: 'client', end: () => socket.destroy() }, () => {
      const fault = socket.authorized ? undefined : this.#faultOf(socket);
      if (fault !== undefined) socket.destroy(fault);
    });
    socket.prependOnceListener('secureConnect', decide);
  }

  /** Why not to trust a server that OpenSSL or the check of its names has refused. */
  #faultOf(socket: TLSSocket): Error | undefined {
    if (this.#nameFault !== undefined) return this.#nameFault;
    const code = String(socket.authorizationError);
    const { servername, host } = this.#connection;
    const shown = socket.getPeerCertificate(true);
    if (!mistakenForSelfSigned.has(code) || !isTrusted(shown, this.#connection)) {
      return Object.assign(new Error(`the server's certificate is not trusted: ${code}`), { code });
    }
    return this.#checkNames(servername || host || 'localhost', shown);
  }
}

/** Whether a server's certificate has a valid chain to one of those that a connection trusts. */
function isTrusted(shown: DetailedPeerCertificate, connection: ConnectionOptions): boolean {
  try {
    const chain = parseChain(chainOf(shown));
    const [leaf, ...intermediates] = chain;
    if (leaf === undefined) return false;
    // A bundle may have thousands of others, which take long to parse (TRUST-2).
    const roots = trustedCertificates(connection)
      .filter((der) => chain.some(({ issuerDer }) => der.includes(issuerDer)))
      .map((der) => parseCertificate(der));
    const nowMs = systemClock.now();
    verifyChain({ leaf, intermediates, roots: indexRoots(roots), nowMs, usage: 'server' });
    return true;
  } catch {
    // OpenSSL's verdict stands.
    return false;
  }
}

/** The DER of the certificates that a server has presented, its own first. */
function chainOf(shown: DetailedPeerCertificate): readonly Buffer[] {
  const chain: Buffer[] = [];
  const found = new Set<string>();
  let next: DetailedPeerCertificate | undefined = shown;
  // The issuer of a self-signed certificate is that certificate.
  for (
    ;
    next?.raw !== undefined && !found.has(next.fingerprint256);
    next = next.issuerCertificate
  ) {
    found.add(next.fingerprint256);
    chain.push(next.raw);
  }
  return chain;
}
