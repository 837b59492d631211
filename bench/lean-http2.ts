import tls from 'node:tls';
import { keptBytes, type LoadCall, type LoadClient, type LoadTarget } from './client.ts';

/**
 * A minimal HTTP/2 client over one TLS connection for a load generator: Node's own client uses more
 * CPU per request than the server under test, so it would measure itself. It opens the windows wide
 * once, sends headers uncompressed, and reads only the status of a response.
 */
export function leanHttp2Client(target: LoadTarget): LoadClient {
  const connection = new Connection(target);
  return {
    request: (call) =>
      new Promise((resolve, reject) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        connection.open(call, {
          onHead: () => {},
          onData: (chunk) => {
            if (bytes < keptBytes) chunks.push(Buffer.from(chunk));
            bytes += chunk.length;
          },
          onEnd: (status) => resolve({ status, bytes, body: Buffer.concat(chunks) }),
          onError: reject,
        });
      }),
    stream: (path, onChunk) =>
      new Promise((resolve, reject) => {
        const close = connection.open(
          { method: 'GET', path },
          { onHead: () => resolve({ close }), onData: onChunk, onEnd: () => {}, onError: reject },
        );
      }),
    isOpen: () => connection.isOpen,
    close: () => connection.close(),
  };
}

interface Listener {
  readonly onHead: () => void;
  /** The chunk is valid only during the call. */
  readonly onData: (chunk: Buffer) => void;
  readonly onEnd: (status: number) => void;
  readonly onError: (error: Error) => void;
}

const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, window: 8 };
const endStream = 0x1;
const acknowledge = 0x1;
const endHeaders = 0x4;
const frameHeadBytes = 9;
const windowBytes = 0x7fffffff;
const firstWindowBytes = 65_535;
/** Bytes of data after which the connection's window is refilled. */
const refillBytes = 1 << 28;

class Connection {
  readonly #socket: tls.TLSSocket;
  readonly #target: LoadTarget;
  readonly #streams = new Map<number, Listener & { status: number }>();
  #nextStream = 1;
  #rest: Buffer = Buffer.alloc(0);
  #unacknowledged = 0;
  #out: Buffer[] = [];

  constructor(target: LoadTarget) {
    this.#target = target;
    const { hostname, port } = new URL(target.url);
    this.#socket = tls.connect({
      host: hostname,
      port: Number(port),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: false,
    });
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk) => this.#read(chunk));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new Error('the server closed the connection')));
    this.#write(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
    this.#write(frameOf({ type: frame.settings, stream: 0, payload: ourSettings() }));
    this.#openWindow(windowBytes - firstWindowBytes);
  }

  /** Sends a request; returns the function that cancels it. */
  open(call: LoadCall, listener: Listener): () => void {
    if (!this.isOpen) {
      queueMicrotask(() => listener.onError(new Error('the connection is closed')));
      return () => {};
    }
    const stream = this.#nextStream;
    this.#nextStream += 2;
    this.#streams.set(stream, { ...listener, status: 0 });
    const { body } = call;
    const payload = headerBlock(this.#target, call);
    const flags = endHeaders | (body === undefined ? endStream : 0);
    this.#write(frameOf({ type: frame.headers, flags, stream, payload }));
    if (body !== undefined) {
      this.#write(frameOf({ type: frame.data, flags: endStream, stream, payload: body }));
    }
    return () => {
      this.#streams.delete(stream);
      const payload = Buffer.from([0, 0, 0, 8]);
      this.#write(frameOf({ type: frame.reset, stream, payload }));
    };
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  close(): void {
    this.#streams.clear();
    this.#socket.destroy();
  }

  /** Combines everything written in one turn of the event loop into one write. */
  #write(bytes: Buffer): void {
    if (this.#out.length === 0) queueMicrotask(() => this.#flush());
    this.#out.push(bytes);
  }

  #flush(): void {
    const bytes = this.#out.length === 1 ? this.#out[0]! : Buffer.concat(this.#out);
    this.#out = [];
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  #openWindow(by: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(by);
    this.#write(frameOf({ type: frame.window, stream: 0, payload }));
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= frameHeadBytes) {
      const length = bytes.readUIntBE(at, 3);
      const end = at + frameHeadBytes + length;
      if (end > bytes.length) break;
      this.#handle(bytes, { at, length });
      at = end;
    }
    this.#rest = at === bytes.length ? Buffer.alloc(0) : Buffer.from(bytes.subarray(at));
  }

  #handle(bytes: Buffer, place: { at: number; length: number }): void {
    const { at, length } = place;
    const type = bytes[at + 3];
    const flags = bytes[at + 4] ?? 0;
    const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
    const start = at + frameHeadBytes;
    if (type === frame.settings || type === frame.ping) {
      if ((flags & acknowledge) !== 0) return;
      const payload =
        type === frame.ping ? Buffer.from(bytes.subarray(start, start + length)) : none;
      this.#write(frameOf({ type, flags: acknowledge, stream: 0, payload }));
      return;
    }
    const listener = this.#streams.get(stream);
    if (type === frame.data) this.#countData(length);
    if (listener === undefined) return;
    if (type === frame.data) {
      if (length > 0) listener.onData(bytes.subarray(start, start + length));
    } else if (type === frame.headers) {
      listener.status = statusOf(bytes.subarray(start, start + length));
      listener.onHead();
    } else if (type === frame.reset) {
      this.#streams.delete(stream);
      listener.onError(new Error('the server reset the stream'));
      return;
    } else return;
    if ((flags & endStream) === 0) return;
    this.#streams.delete(stream);
    listener.onEnd(listener.status);
  }

  #countData(length: number): void {
    this.#unacknowledged += length;
    if (this.#unacknowledged < refillBytes) return;
    this.#openWindow(this.#unacknowledged);
    this.#unacknowledged = 0;
  }

  #fail(error: Error): void {
    for (const listener of this.#streams.values()) listener.onError(error);
    this.#streams.clear();
  }
}

const none = Buffer.alloc(0);

function frameOf(made: { type: number; flags?: number; stream: number; payload: Buffer }): Buffer {
  const { type, flags = 0, stream, payload } = made;
  const bytes = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  payload.copy(bytes, frameHeadBytes);
  return bytes;
}

/** Disables the header table and push, and sets the largest stream windows. */
function ourSettings(): Buffer {
  const settings: readonly (readonly [number, number])[] = [
    [1, 0],
    [2, 0],
    [4, windowBytes],
  ];
  const bytes = Buffer.alloc(settings.length * 6);
  settings.forEach(([name, value], index) => {
    bytes.writeUInt16BE(name, index * 6);
    bytes.writeUInt32BE(value, index * 6 + 2);
  });
  return bytes;
}

/** Literal headers, never indexed (RFC 7541, 6.2.3). */
function headerBlock(target: LoadTarget, call: LoadCall): Buffer {
  const { method, path, body, contentType, accept } = call;
  const headers: [string, string][] = [
    [':method', method],
    [':scheme', 'https'],
    [':authority', new URL(target.url).host],
    [':path', path],
    ['authorization', `Bearer ${target.token}`],
    ['accept', accept ?? 'application/json'],
  ];
  if (body !== undefined) headers.push(['content-type', contentType ?? 'application/json']);
  return Buffer.concat(headers.flatMap(([name, value]) => [literalMark, text(name), text(value)]));
}

const literalMark = Buffer.from([0x10]);

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const head = [127];
  let left = bytes.length - 127;
  for (; left >= 128; left = Math.floor(left / 128)) head.push((left % 128) + 128);
  head.push(left);
  return Buffer.concat([Buffer.from(head), bytes]);
}

const staticStatus = [200, 204, 206, 304, 400, 404, 500];

/** The status of a response's header block, which is its first field. */
function statusOf(block: Buffer): number {
  let at = 0;
  // Updates of the table size precede the first field.
  while (((block[at] ?? 0) & 0xe0) === 0x20) at += 1;
  const first = block[at] ?? 0;
  if ((first & 0x80) !== 0) return staticStatus[(first & 0x7f) - 8] ?? 0;
  const length = (block[at + 1] ?? 0) & 0x7f;
  const value = block.subarray(at + 2, at + 2 + length);
  const isHuffman = ((block[at + 1] ?? 0) & 0x80) !== 0;
  return Number(isHuffman ? huffmanDigits(value) : value.toString('latin1'));
}

/**
 * Decodes three digits of the code of RFC 7541, appendix B: 0 to 2 take five bits, the others six.
 */
function huffmanDigits(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  let digits = '';
  for (let at = 0; digits.length < 3; ) {
    const short = Number.parseInt(bits.slice(at, at + 5), 2);
    if (short <= 2) {
      digits += short;
      at += 5;
    } else {
      digits += Number.parseInt(bits.slice(at, at + 6), 2) - 0b011001 + 3;
      at += 6;
    }
  }
  return digits;
}
