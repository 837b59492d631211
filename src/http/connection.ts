import type { Socket } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import type { Connection } from '../base/exchange.ts';

/** A client's connection over HTTP/1.1, and what the sweep needs to know of any. */
export class PeerConnection implements Connection {
  readonly socket: Socket;
  readonly encrypted: boolean;
  readonly remoteAddress: string;
  readonly memo = new Map<symbol, unknown>();
  /** Exchanges in flight. */
  active = 0;
  /** Monotonic milliseconds since which the sweep has seen no exchange; undefined while busy. */
  idleSince: number | undefined;
  #certificates: readonly Buffer[] | undefined;

  constructor(options: { socket: Socket }) {
    this.socket = options.socket;
    this.encrypted = (options.socket as Partial<TLSSocket>).encrypted === true;
    this.remoteAddress = options.socket.remoteAddress ?? '';
  }

  peerCertificates(): readonly Buffer[] {
    this.#certificates ??= this.encrypted ? chainOf(this.socket as TLSSocket) : [];
    return this.#certificates;
  }

  /** Refuses further requests; those in flight go on. */
  retire(): void {
    if (this.active === 0) this.socket.end();
  }

  /** Called by the sweep, with monotonic milliseconds: gives up on what takes too long. */
  expire(_now: number): void {}

  destroy(): void {
    this.socket.destroy();
  }
}

const chainLengthMax = 16;

function chainOf(socket: TLSSocket): readonly Buffer[] {
  const chain: Buffer[] = [];
  const seen = new Set<string>();
  let certificate: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (certificate?.raw !== undefined && chain.length < chainLengthMax) {
    if (seen.has(certificate.fingerprint256)) break;
    seen.add(certificate.fingerprint256);
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}
