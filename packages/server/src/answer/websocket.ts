import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import {
  type Clock,
  type Exchange,
  ignoreErrors,
  listen,
  parseWebSocketProtocols,
  type ResponseStream,
  type Timer,
} from '@wheelhouse/machinery';

/**
 * The server side of a WebSocket (RFC 6455) on which only the server sends data: the transport of a
 * watch for clients that request it, such as browsers (WATCH-1).
 */

const keySuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const controlMax = 125;
const opcode = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const normalClosure = 1000;
const protocolError = 1002;
/** Milliseconds for the client to read the rest after the watch has ended. */
const partingMs = 10_000;

/** Returns the end of the message that begins at `start` in bytes written to a stream. */
type MessageEnd = (bytes: Buffer, start: number) => number;

/** How bytes are sent over a WebSocket. */
interface WebSocketOptions {
  readonly form: 'text' | 'binary';
  readonly messageEnd: MessageEnd;
  /** Bytes to omit at the start of each message. */
  readonly leadingBytes: number;
  /** Called once when the client has closed or broken the connection. */
  readonly onGone: () => void;
  readonly clock: Clock;
}

/** Whether the request asks for a WebSocket. */
export function wantsWebSocket(exchange: Pick<Exchange, 'header'>): boolean {
  return (
    exchange.header('upgrade')?.toLowerCase() === 'websocket' &&
    exchange.header('connection')?.toLowerCase().includes('upgrade') === true
  );
}

/**
 * Rejects an invalid opening handshake, with the answers of kube-apiserver's library. Returns
 * whether it did. A request without an origin is invalid too.
 */
export function refusesHandshake(exchange: Exchange): boolean {
  const refuse = (status: number, body = '', headers: Record<string, string> = {}): boolean => {
    exchange.send({ status, headers, body: Buffer.from(body) });
    return true;
  };
  if ((exchange.header('sec-websocket-key') ?? '') === '') {
    return refuse(400, 'mismatch challenge/response');
  }
  if (exchange.header('sec-websocket-version') !== '13') {
    const spoken = { 'sec-websocket-version': '13' };
    return refuse(400, 'missing or bad WebSocket Version', spoken);
  }
  if (!URL.canParse(exchange.header('origin') ?? '')) return refuse(403);
  return requestedProtocols(exchange).length > 1 ? refuse(400) : false;
}

/**
 * Takes over the connection to send messages, divided by `messageEnd`. Data from the client is read
 * and discarded. The handshake must be valid (`refusesHandshake`). Undefined if the connection
 * cannot be taken over.
 */
export function acceptWebSocket(
  exchange: Exchange,
  options: WebSocketOptions,
): ResponseStream | undefined {
  const taken = exchange.takeOver();
  if (taken === undefined) return undefined;
  const key = `${exchange.header('sec-websocket-key')}${keySuffix}`;
  const [protocol] = requestedProtocols(exchange);
  const head = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    '\r\n',
  ];
  const { socket } = taken;
  socket.write(head.join('\r\n'));
  const stream = new WebSocketStream(socket, options);
  ignoreErrors(socket);
  listen(
    socket,
    { where: 'websocket' },
    { data: (bytes: Buffer) => stream.receive(bytes), close: () => stream.gone() },
  );
  if (taken.head.length > 0) stream.receive(taken.head);
  socket.resume();
  return stream;
}

const requestedProtocols = (exchange: Pick<Exchange, 'header'>): readonly string[] =>
  parseWebSocketProtocols(exchange.header('sec-websocket-protocol')).names;

/** The header of a frame from the server, which is final and unmasked. */
function frameHead(kind: number, bytes: number): Buffer {
  const first = 0x80 | kind;
  if (bytes <= controlMax) return Buffer.from([first, bytes]);
  if (bytes < 2 ** 16) return Buffer.from([first, 126, bytes >> 8, bytes & 0xff]);
  const head = Buffer.alloc(10);
  head.writeUInt16BE((first << 8) | 127);
  head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

class WebSocketStream implements ResponseStream {
  readonly #socket: Socket;
  readonly #form: number;
  readonly #messageEnd: MessageEnd;
  readonly #leadingBytes: number;
  readonly #frames: ClientFrames;
  readonly #clock: Clock;
  #onGone: (() => void) | undefined;
  #drained: (() => void) | undefined;
  #parting: Timer | undefined;
  #isClosing = false;

  constructor(socket: Socket, options: WebSocketOptions) {
    this.#socket = socket;
    this.#form = opcode[options.form];
    this.#messageEnd = options.messageEnd;
    this.#leadingBytes = options.leadingBytes;
    this.#onGone = options.onGone;
    this.#clock = options.clock;
    this.#frames = new ClientFrames({
      ping: (payload) => this.#answer(payload),
      close: (code) => this.#close(code),
    });
  }

  receive(bytes: Buffer): void {
    if (!this.#isClosing) this.#frames.take(bytes);
  }

  gone(): void {
    this.#parting?.stop();
    const onGone = this.#onGone;
    this.#onGone = undefined;
    this.#isClosing = true;
    onGone?.();
  }

  write(chunk: Buffer): boolean {
    if (this.#isClosing) return true;
    this.#socket.cork();
    let more = true;
    for (let start = 0; start < chunk.length; ) {
      const end = this.#messageEnd(chunk, start);
      more = this.#send(this.#form, chunk.subarray(start + this.#leadingBytes, end));
      start = end;
    }
    this.#socket.uncork();
    return more;
  }

  onDrain(callback: () => void): void {
    if (this.#drained === undefined) {
      listen(this.#socket, { where: 'websocket' }, { drain: () => this.#drained?.() });
    }
    this.#drained = callback;
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  end(): void {
    this.#onGone = undefined;
    this.#close(normalClosure);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Answers a ping, unless the client does not read: only the last ping needs a pong. */
  #answer(payload: Buffer): void {
    if (!this.#socket.writableNeedDrain) this.#send(opcode.pong, payload);
  }

  #send(kind: number, payload: Buffer): boolean {
    if (this.#socket.destroyed || this.#socket.writableEnded) return true;
    this.#socket.write(frameHead(kind, payload.length));
    return this.#socket.write(payload);
  }

  #close(code: number): void {
    if (this.#isClosing) return;
    this.#send(opcode.close, Buffer.from([code >> 8, code & 0xff]));
    this.#isClosing = true;
    this.#socket.destroySoon();
    // A client that does not read the rest would keep the connection open.
    this.#parting = this.#clock.after(partingMs, () => this.#socket.destroy());
  }
}

const noBytes: Buffer = Buffer.alloc(0);

/** Header size of a client's frame; undefined if too few bytes have arrived. */
function headSize([, second]: Buffer): number | undefined {
  if (second === undefined) return undefined;
  if (second < 0x80) return 2;
  const length = second & 0x7f;
  const more = length === 127 ? 8 : length === 126 ? 2 : 0;
  return 2 + more + 4;
}

/** Reads the client's frames; keeps nothing of a message and at most 125 bytes of a ping. */
class ClientFrames {
  readonly #handlers: { ping(payload: Buffer): void; close(code: number): void };
  /** An incomplete header. */
  #begun: Buffer = noBytes;
  #kind = 0;
  #left = 0;
  #mask = Buffer.alloc(4);
  #control: Buffer[] | undefined;
  #isInPayload = false;

  constructor(handlers: { ping(payload: Buffer): void; close(code: number): void }) {
    this.#handlers = handlers;
  }

  take(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 || (this.#isInPayload && this.#left === 0)) {
      if (this.#isInPayload) rest = this.#payload(rest);
      else {
        const all = this.#begun.length === 0 ? rest : Buffer.concat([this.#begun, rest]);
        const size = headSize(all);
        if (size === undefined || all.length < size) {
          this.#begun = all;
          return;
        }
        this.#begun = noBytes;
        rest = all.subarray(size);
        if (!this.#begin(all.subarray(0, size))) return;
      }
    }
  }

  /** Returns false if a client must not send this frame. */
  #begin(head: Buffer): boolean {
    const [first = 0, second = 0] = head;
    const length = second & 0x7f;
    this.#kind = first & 0x0f;
    const isControl = this.#kind >= opcode.close;
    if (second < 0x80 || (isControl && length > controlMax)) {
      this.#handlers.close(protocolError);
      return false;
    }
    if (length === 127) this.#left = Number(head.readBigUInt64BE(2));
    else this.#left = length === 126 ? head.readUInt16BE(2) : length;
    this.#mask = Buffer.from(head.subarray(head.length - 4));
    this.#control = isControl ? [] : undefined;
    this.#isInPayload = true;
    return true;
  }

  #payload(bytes: Buffer): Buffer {
    const taken = bytes.subarray(0, this.#left);
    this.#left -= taken.length;
    this.#control?.push(taken);
    if (this.#left === 0) this.#finish();
    return bytes.subarray(taken.length);
  }

  #finish(): void {
    this.#isInPayload = false;
    if (this.#control === undefined) return;
    const payload = Buffer.concat(this.#control);
    for (let at = 0; at < payload.length; at += 1) {
      payload[at] = (payload[at] ?? 0) ^ (this.#mask[at % 4] ?? 0);
    }
    if (this.#kind === opcode.ping) this.#handlers.ping(payload);
    else if (this.#kind === opcode.close) this.#handlers.close(normalClosure);
  }
}
