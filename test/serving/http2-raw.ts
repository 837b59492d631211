import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import {
  type Clock,
  type Exchange,
  type MemoryBudget,
  silentLogger,
  systemClock,
} from '@wheelhouse/machinery';
import {
  type HttpLimits,
  type HttpServer,
  issueCertificate,
  startHttpServer,
} from '@wheelhouse/server/testing';

/** HTTP/2 frames, for requests that no client library would send. */

export const type = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  window: 8,
  continuation: 9,
} as const;

export const flags = {
  none: 0,
  ack: 1,
  endStream: 1,
  endHeaders: 4,
  padded: 8,
  priority: 0x20,
  whole: 5,
} as const;

export const code = {
  none: 0,
  protocol: 1,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refused: 7,
  cancel: 8,
  compression: 9,
  calm: 11,
} as const;

export const prefaceBytes = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function frame(kind: number, flag: number, stream: number, payload: Buffer | string = '') {
  const body = typeof payload === 'string' ? Buffer.from(payload, 'latin1') : payload;
  const bytes = Buffer.alloc(9 + body.length);
  bytes.writeUIntBE(body.length, 0, 3);
  bytes[3] = kind;
  bytes[4] = flag;
  bytes.writeUInt32BE(stream, 5);
  body.copy(bytes, 9);
  return bytes;
}

/** 32-bit integers in network order. */
export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => void bytes.writeUInt32BE(value >>> 0, 4 * index));
  return bytes;
}

export function settings(...pairs: readonly (readonly [name: number, value: number])[]): Buffer {
  const bytes = Buffer.alloc(6 * pairs.length);
  pairs.forEach(([name, value], index) => {
    bytes.writeUInt16BE(name, 6 * index);
    bytes.writeUInt32BE(value, 6 * index + 2);
  });
  return frame(type.settings, flags.none, 0, bytes);
}

export type Fields = readonly (readonly [name: string, value: string])[];

/** A header block of literals that do not enter the dynamic table. */
export function block(fields: Fields): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value, 'latin1');
    if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    const rest = bytes.length - 127;
    const head = [127, (rest & 0x7f) | 0x80, ((rest >> 7) & 0x7f) | 0x80, rest >> 14];
    return Buffer.concat([Buffer.from(head), bytes]);
  };
  const parts = fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  return Buffer.concat(parts);
}

export const getFields: Fields = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/'],
  [':authority', 'a'],
];
export const postFields: Fields = [[':method', 'POST'], ...getFields.slice(1)];

/** The blocks of fields that tests send thousands of times. */
const blocks = new WeakMap<Fields, Buffer>();

export function headers(stream: number, fields: Fields, flag: number = flags.whole): Buffer {
  const encoded = blocks.get(fields) ?? block(fields);
  blocks.set(fields, encoded);
  return frame(type.headers, flag, stream, encoded);
}

export interface Received {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A connection whose frames a test writes and reads directly. */
export class RawClient {
  readonly received: Received[] = [];
  closed = false;
  readonly #socket: TLSSocket;
  readonly #waiting = new Set<() => void>();
  #rest = Buffer.alloc(0);

  constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#notify();
    });
  }

  send(...parts: readonly Buffer[]): void {
    this.#socket.write(Buffer.concat(parts));
  }

  /** Sends the preface and empty settings. */
  greet(): void {
    this.send(prefaceBytes, settings());
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** The first received or future frame for which `wanted` holds. */
  async frame(wanted: (received: Received) => boolean): Promise<Received> {
    let seen = 0;
    await this.until(() => {
      // A frame is tested once, because thousands arrive and each arrival checks the condition.
      while (seen < this.received.length && !wanted(this.received[seen] as Received)) seen += 1;
      return seen < this.received.length;
    });
    return this.received[seen] as Received;
  }

  of(kind: number, stream: number): Promise<Received> {
    return this.frame((received) => received.type === kind && received.stream === stream);
  }

  async until(done: () => boolean, timeoutMs = 10_000): Promise<void> {
    if (done()) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`not in ${timeoutMs} ms; closed ${this.closed}, got ${this.#seen()}`));
      }, timeoutMs);
      const look = () => {
        const isDone = done();
        if (!isDone && !this.closed) return;
        this.#waiting.delete(look);
        clearTimeout(timer);
        if (isDone) resolve();
        else reject(new Error(`the server closed; got ${this.#seen()}`));
      };
      this.#waiting.add(look);
    });
  }

  /** Sends a ping and waits for its answer, so that everything sent before has been processed. */
  async ping(): Promise<void> {
    const payload = Buffer.alloc(8, Math.floor(Math.random() * 256));
    const before = this.received.length;
    this.send(frame(type.ping, flags.none, 0, payload));
    const isAnswer = (received: Received) =>
      received.type === type.ping && received.flags === flags.ack;
    await this.until(() => this.received.slice(before).some(isAnswer));
  }

  #read(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= 9) {
      const end = 9 + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      this.received.push({
        type: bytes[3] as number,
        flags: bytes[4] as number,
        stream: bytes.readUInt32BE(5),
        payload: bytes.subarray(9, end),
      });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    this.#notify();
  }

  #notify(): void {
    for (const look of [...this.#waiting]) look();
  }

  #seen(): string {
    return this.received
      .slice(-20)
      .map((received) => `${received.type}/${received.flags}@${received.stream}`)
      .join(' ');
  }
}

export interface RawServer {
  readonly server: HttpServer;
  readonly caPem: string;
  connect(): Promise<RawClient>;
  close(): Promise<void>;
}

const dayMs = 24 * 60 * 60 * 1000;
const now = systemClock.now();
const life = { notBefore: now - dayMs, notAfter: now + dayMs };
const ca = issueCertificate({ commonName: 'ca', usage: 'ca', ...life });
const serving = issueCertificate({
  commonName: 'test',
  usage: 'server',
  hosts: ['127.0.0.1'],
  issuer: ca,
  ...life,
});

/** A plain HTTP server with the test's own handler. */
export async function startRawServer(
  onExchange: (exchange: Exchange) => unknown,
  options: { limits?: Partial<HttpLimits>; clock?: Clock; memory?: MemoryBudget } = {},
): Promise<RawServer> {
  const server = await startHttpServer({
    listen: {
      host: '127.0.0.1',
      port: 0,
      tls: { certificate: serving.certificatePem, key: serving.keyPem },
    },
    onExchange: onExchange as (exchange: Exchange) => void,
    logger: silentLogger,
    clock: options.clock ?? systemClock,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.memory === undefined ? {} : { memory: options.memory }),
  });
  const clients: RawClient[] = [];
  return {
    server,
    caPem: ca.certificatePem,
    async connect() {
      const socket = connect({
        host: '127.0.0.1',
        port: server.address.port,
        ca: ca.certificatePem,
        ALPNProtocols: ['h2'],
      });
      const client = new RawClient(socket);
      clients.push(client);
      await once(socket, 'secureConnect');
      return client;
    },
    async close() {
      for (const client of clients) client.destroy();
      await server.close();
    },
  };
}
