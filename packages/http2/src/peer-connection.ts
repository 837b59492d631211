import type { Socket } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import type { Connection, MemoryAccount, MemoryBudget } from '@wheelhouse/machinery';

/** The facilities of the server that a connection uses. */
export interface ConnectionHost {
  readonly memory: MemoryBudget;
  /** Ends requests of the connection until about `bytes` bytes are released. */
  shed(connection: PeerConnection, bytes: number): void;
}

/**
 * Bytes charged for an open connection (TLS state, parser, buffers), estimated from measurements.
 */
const connectionBytes = 64 * 1024;

/** A client's connection over HTTP/1.1, and the base class of others for the periodic sweep. */
export class PeerConnection implements Connection {
  readonly socket: Socket;
  readonly encrypted: boolean;
  readonly remoteAddress: string;
  readonly memo = new Map<symbol, unknown>();
  /** Account of the memory that the server holds for the client. */
  readonly memory: MemoryAccount;
  /** Number of exchanges in flight. */
  active = 0;
  /** Monotonic milliseconds at the first sweep that found no exchange; undefined while busy. */
  idleSince: number | undefined;
  #certificates: readonly Buffer[] | undefined;

  constructor(options: { socket: Socket; core: ConnectionHost }) {
    const { core } = options;
    this.socket = options.socket;
    this.encrypted = (options.socket as Partial<TLSSocket>).encrypted === true;
    this.remoteAddress = options.socket.remoteAddress ?? '';
    this.memory = core.memory.open({
      owner: `address ${this.remoteAddress}`,
      holder: { shed: (bytes) => core.shed(this, bytes) },
    });
    this.memory.charge('connections', connectionBytes);
  }

  peerCertificates(): readonly Buffer[] {
    this.#certificates ??= this.encrypted ? chainOf(this.socket as TLSSocket) : [];
    return this.#certificates;
  }

  /** Rejects further requests; those in progress continue. */
  retire(): void {
    if (this.active === 0) this.socket.end();
  }

  /** Called by the sweep with monotonic milliseconds; ends the connection after a timeout. */
  expire(_now: number): void {}

  destroy(): void {
    this.socket.destroy();
  }

  /** Ends the connection immediately and releases its memory before the socket has closed. */
  cutOff(): void {
    this.destroy();
    this.memory.close();
  }
}

const chainLengthMax = 16;

function chainOf(socket: TLSSocket): readonly Buffer[] {
  const chain: Buffer[] = [];
  const fingerprints = new Set<string>();
  let certificate: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (certificate?.raw !== undefined && chain.length < chainLengthMax) {
    if (fingerprints.has(certificate.fingerprint256)) break;
    fingerprints.add(certificate.fingerprint256);
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}
