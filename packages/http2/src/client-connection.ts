import type { Socket } from 'node:net';
import { listen, reportFault } from '@wheelhouse/machinery';
import {
  acknowledgeSettings,
  onlyWord,
  readGoAway,
  readPing,
  readSettings,
  sendGoAway,
  sendPing,
  sendReset,
  sendSettings,
  sendWindowUpdate,
  widenConnection,
  windowOutOfRange,
} from './control-frames.ts';
import {
  checkOrder,
  type Frame,
  FrameReader,
  type FrameSink,
  HeaderBlock,
  trimPayload,
  violation,
} from './frame-reader.ts';
import { type FieldSink, HpackDecoder } from './hpack-decoder.ts';
import { addField, addNoTable } from './message-heads.ts';
import { ByteQueue, Output, type OutputOwner, type OutputStream } from './output.ts';
import {
  ConnectionError,
  defaultWindowBytes,
  errorCode,
  flag,
  frameBytesMax,
  frameType,
  preface,
  setting,
  streamIdMax,
  windowBytesMax,
} from './protocol.ts';
import { ReceiveWindow, StreamTable } from './stream.ts';

const headerTableBytes = 4096;
/** Maximum size of the headers of an answer. */
const headerBytesMax = 64 * 1024;
/** Maximum size of control frames that wait for a server that does not read. */
const controlBytesMax = 1024 * 1024;
const pingPayload = Buffer.from('keepaliv', 'latin1');

/** Receives the progress of a client's connection. */
export interface ClientConnectionHost {
  /** Called once, when the server has sent its settings. */
  ready(): void;
  /** Called once, when the socket has closed and every stream has ended. */
  closed(reason: Error): void;
}

/** Memory that a server makes its own clients hold is not charged to anyone. */
const uncharged = { charge: () => {} };

/**
 * Encodes the headers of a request, which are the same for all requests to one path.
 * @throws TypeError for an invalid name or value, RangeError for more than 16 KiB
 */
export function requestHead(fields: Readonly<Record<string, string>>): Buffer {
  const queue = new ByteQueue();
  for (const [name, value] of Object.entries(fields)) addField(queue, name, value);
  if (queue.length >= frameBytesMax) throw new RangeError('the headers of a request are too large');
  return Buffer.from(queue.bytes.subarray(0, queue.length));
}

/**
 * The client side of one HTTP/2 connection (RFC 9113) for programs that call a service: a request
 * has a body that is known when it is sent, and the answer is delivered as it arrives. An error of
 * the server ends the connection. A connection that the server retires (GOAWAY), or whose stream
 * identifiers are used up, takes no more requests, and closes when the last answer has arrived.
 */
export class ClientConnection implements FrameSink, OutputOwner<ClientStream> {
  /** Whether frames are no longer accepted. */
  closed = false;
  readonly #socket: Socket;
  readonly #host: ClientConnectionHost;
  readonly #reader = new FrameReader(this, 'server');
  readonly #decoder = new HpackDecoder(headerTableBytes);
  readonly #output: Output<ClientStream>;
  readonly #streams = new StreamTable<ClientStream>();
  /** Requests that wait until the server accepts another stream. */
  #waiting: ClientStream[] = [];
  readonly #windowBytes: number;
  readonly #window: ReceiveWindow;
  #nextId = 1;
  #streamsMax = Number.POSITIVE_INFINITY;
  #peerStreamWindow = defaultWindowBytes;
  #hasSettings = false;
  #owesTableUpdate = false;
  #isRetired = false;
  #block: HeaderBlock | undefined;
  #pings: (() => void)[] = [];
  #reason = new Error('the connection was closed');

  /**
   * Sends the preface at once.
   * @param options.windows receive windows of each stream and of the connection in bytes
   */
  constructor(options: {
    readonly socket: Socket;
    readonly windows: { readonly stream: number; readonly connection: number };
    readonly host: ClientConnectionHost;
  }) {
    const { socket, windows } = options;
    this.#socket = socket;
    this.#host = options.host;
    this.#windowBytes = windows.stream;
    this.#window = new ReceiveWindow(windows.connection);
    this.#output = new Output({ socket, owner: this, memory: uncharged });
    const { control } = this.#output;
    control.reserve(preface.length);
    control.length += preface.copy(control.bytes, control.length);
    sendSettings(this.#output, [
      [setting.enablePush, 0],
      [setting.initialWindowSize, windows.stream],
      [setting.maxHeaderListSize, headerBytesMax],
    ]);
    const by = windows.connection - defaultWindowBytes;
    if (by > 0) sendWindowUpdate(this.#output, { stream: 0, by });
    listen(
      socket,
      { where: 'http2' },
      {
        data: (chunk: Buffer) => this.#reader.read(chunk),
        end: () => socket.destroy(),
        error: (error: Error) => {
          this.#reason = error;
        },
        close: () => this.#onClose(),
      },
    );
  }

  /** Whether it takes requests. */
  get isUsable(): boolean {
    return !this.closed && !this.#isRetired;
  }

  /**
   * Sends a request. `ends: false` keeps the client's side open after the body.
   * @param request.head from `requestHead`
   */
  request(
    request: { readonly head: Buffer; readonly body: Buffer; readonly ends: boolean },
    receiver: AnswerReceiver,
  ): ClientStream {
    const stream = new ClientStream({ ...request, windowBytes: this.#windowBytes, receiver });
    if (!this.isUsable) throw new Error('the connection takes no more requests');
    if (this.#streams.size >= this.#streamsMax) this.#waiting.push(stream);
    else this.#open(stream);
    return stream;
  }

  /** Ends a stream whose answer is no longer wanted. Its receiver is not called again. */
  cancel(stream: ClientStream): void {
    if (stream.aborted) return;
    if (stream.id === 0) {
      this.#waiting = this.#waiting.filter((other) => other !== stream);
      stream.abort();
      return;
    }
    sendReset(this.#output, { stream: stream.id, code: errorCode.cancel });
    this.#remove(stream);
  }

  /** Calls `answered` when the server answers a ping. */
  ping(answered: () => void): void {
    this.#pings.push(answered);
    sendPing(this.#output, { payload: pingPayload, flags: 0 });
  }

  /** Closes the connection at once. */
  destroy(): void {
    this.closed = true;
    this.#socket.destroy();
  }

  streamEnded(): void {}

  streamFinished(): void {}

  #open(stream: ClientStream): void {
    stream.id = this.#nextId;
    this.#nextId += 2;
    stream.sendWindow = this.#peerStreamWindow;
    this.#streams.add(stream);
    const { head } = stream;
    const table = this.#owesTableUpdate ? 1 : 0;
    const type = frameType.headers;
    const bytes = head.length + table;
    this.#output.frame({ type, flags: flag.endHeaders, stream: stream.id, bytes });
    const { control } = this.#output;
    if (table > 0) addNoTable(control);
    this.#owesTableUpdate = false;
    control.length += head.copy(control.bytes, control.length);
    this.#output.wake(stream);
    if (this.#nextId <= streamIdMax) return;
    this.#isRetired = true;
    this.#refuseWaiting();
  }

  handleFrame(frame: Frame): void {
    const { type } = frame;
    checkOrder(frame, { block: this.#block, hasSettings: this.#hasSettings });
    if (type === frameType.data) this.#handleData(frame);
    else if (type === frameType.headers) this.#handleHeaders(frame);
    else if (type === frameType.continuation) this.#handleContinuation(frame);
    else if (type === frameType.windowUpdate) this.#handleWindowUpdate(frame);
    else if (type === frameType.settings) this.#handleSettings(frame);
    else if (type === frameType.resetStream) this.#handleReset(frame);
    else if (type === frameType.ping) this.#handlePing(frame);
    else if (type === frameType.goAway) this.#handleGoAway(frame);
    else if (type === frameType.pushPromise) throw violation('PUSH_PROMISE without permission');
    if (this.#output.control.length > controlBytesMax) this.#socket.destroy();
  }

  #handleHeaders(frame: Frame): void {
    if (frame.stream % 2 === 0 || frame.stream >= this.#nextId) {
      throw violation('HEADERS on an idle stream');
    }
    trimPayload(frame);
    const endsStream = (frame.flags & flag.endStream) !== 0;
    if ((frame.flags & flag.endHeaders) !== 0) {
      this.#handleFields(frame.bytes, frame, { stream: frame.stream, endsStream });
      return;
    }
    this.#block = new HeaderBlock({ stream: frame.stream, endsStream, bytesMax: headerBytesMax });
    this.#block.add(frame);
  }

  #handleContinuation(frame: Frame): void {
    const block = this.#block;
    if (block === undefined) return;
    block.add(frame);
    if ((frame.flags & flag.endHeaders) === 0) return;
    this.#block = undefined;
    this.#handleFields(block.bytes, { start: 0, end: block.length }, block);
  }

  #handleFields(
    bytes: Buffer,
    place: { readonly start: number; readonly end: number },
    to: { readonly stream: number; readonly endsStream: boolean },
  ): void {
    const fields = new AnswerFields();
    // The block of a stream that has ended changes the table, too.
    this.#decoder.decode(bytes, place, fields);
    const stream = this.#streams.get(to.stream);
    if (stream === undefined) return;
    stream.receiver.fields(fields.values);
    if (to.endsStream) this.#end(stream);
  }

  #handleData(frame: Frame): void {
    const frameBytes = frame.end - frame.start;
    if (frame.stream === 0 || frame.stream >= this.#nextId) {
      throw violation('DATA on an idle stream');
    }
    const stream = this.#streams.get(frame.stream);
    const isWithin = this.#window.spend(frameBytes) && stream?.window.spend(frameBytes) !== false;
    if (!isWithin) {
      throw new ConnectionError(errorCode.flowControlError, 'data exceeds the window');
    }
    trimPayload(frame);
    const by = this.#window.restore(frameBytes);
    if (by > 0) sendWindowUpdate(this.#output, { stream: 0, by });
    if (stream === undefined) return;
    if (frame.end > frame.start) {
      stream.receiver.piece(frame.bytes.subarray(frame.start, frame.end));
    }
    if (stream.aborted) return;
    if ((frame.flags & flag.endStream) !== 0) this.#end(stream);
    else {
      const more = stream.window.restore(frameBytes);
      if (more > 0) sendWindowUpdate(this.#output, { stream: stream.id, by: more });
    }
  }

  /** Ends a stream whose answer is complete, and its request if that is not. */
  #end(stream: ClientStream): void {
    if (stream.aborted) return;
    if (!stream.endSent) {
      sendReset(this.#output, { stream: stream.id, code: errorCode.cancel });
    }
    this.#remove(stream);
    stream.receiver.end();
  }

  #handleSettings(frame: Frame): void {
    const settings = readSettings(frame);
    if (settings === undefined) return;
    if ((settings.headerTableBytes ?? headerTableBytes) < headerTableBytes) {
      this.#owesTableUpdate = true;
    }
    this.#output.frameBytesMax = settings.frameBytesMax ?? this.#output.frameBytesMax;
    this.#streamsMax = settings.streamsMax ?? this.#streamsMax;
    if (settings.initialWindow !== undefined) this.#adjustSendWindows(settings.initialWindow);
    acknowledgeSettings(this.#output);
    if (!this.#hasSettings) {
      this.#hasSettings = true;
      this.#host.ready();
    }
    this.#openWaiting();
  }

  #adjustSendWindows(initialWindow: number): void {
    const by = initialWindow - this.#peerStreamWindow;
    this.#peerStreamWindow = initialWindow;
    for (const stream of this.#streams.all()) this.#widen(stream, by);
  }

  #handleWindowUpdate(frame: Frame): void {
    const by = onlyWord(frame, 'WINDOW_UPDATE');
    if (frame.stream === 0) {
      widenConnection(this.#output, by);
      return;
    }
    if (by === 0) throw violation('WINDOW_UPDATE by 0');
    const stream = this.#streams.get(frame.stream);
    if (stream !== undefined) this.#widen(stream, by);
  }

  #widen(stream: ClientStream, by: number): void {
    if (stream.sendWindow + by > windowBytesMax) throw windowOutOfRange();
    stream.sendWindow += by;
    this.#output.wake(stream);
  }

  #handleReset(frame: Frame): void {
    const code = onlyWord(frame, 'RST_STREAM');
    const stream = this.#streams.get(frame.stream);
    if (stream !== undefined) this.#cut(stream, code);
  }

  #handlePing(frame: Frame): void {
    const payload = readPing(frame);
    if ((frame.flags & flag.ack) === 0) sendPing(this.#output, { payload, flags: flag.ack });
    else this.#pings.shift()?.();
  }

  /** The server has not processed streams after the last one that it names. */
  #handleGoAway(frame: Frame): void {
    const last = readGoAway(frame);
    this.#isRetired = true;
    const later = this.#streams.all().filter(({ id }) => id > last);
    for (const unprocessed of later) this.#cut(unprocessed, errorCode.refusedStream);
    this.#refuseWaiting();
    this.#closeWhenIdle();
  }

  #cut(stream: ClientStream, code: number): void {
    // The receiver of an earlier stream may have canceled this one.
    if (stream.aborted) return;
    this.#remove(stream);
    stream.receiver.cut(code);
  }

  #remove(stream: ClientStream): void {
    this.#streams.delete(stream);
    stream.abort();
    this.#openWaiting();
    this.#closeWhenIdle();
  }

  #openWaiting(): void {
    while (this.isUsable && this.#streams.size < this.#streamsMax) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#open(next);
    }
  }

  #refuseWaiting(): void {
    const refused = this.#waiting;
    this.#waiting = [];
    for (const stream of refused) this.#cut(stream, errorCode.refusedStream);
  }

  #closeWhenIdle(): void {
    if (!this.#isRetired || this.closed || this.#streams.size > 0) return;
    this.closed = true;
    this.#output.finish();
    this.#socket.destroySoon();
  }

  fail(error: unknown): void {
    if (this.closed) return;
    this.closed = true;
    const isProtocolError = error instanceof ConnectionError;
    if (isProtocolError) this.#reason = error;
    else reportFault('http2', error);
    const code = isProtocolError ? error.code : errorCode.internalError;
    sendGoAway(this.#output, { lastStream: 0, code });
    this.#output.finish();
    this.#socket.destroySoon();
  }

  #onClose(): void {
    this.closed = true;
    this.#refuseWaiting();
    for (const stream of this.#streams.all()) this.#cut(stream, errorCode.internalError);
    this.#host.closed(this.#reason);
  }
}

/** The fields of an answer by name; the last value of each counts. */
class AnswerFields implements FieldSink {
  readonly values = new Map<string, string>();
  #bytes = 0;

  field(name: string, value: string): void {
    this.#bytes += name.length + value.length;
    if (this.#bytes > headerBytesMax) {
      throw new ConnectionError(
        errorCode.enhanceYourCalm,
        'the headers of an answer are too large',
      );
    }
    this.values.set(name, value);
  }
}

/** Receives the answer to a request. Nothing follows `end` or `cut`. */
export interface AnswerReceiver {
  /** Called with the headers of the answer, and with its trailers. */
  fields(fields: ReadonlyMap<string, string>): void;
  piece(bytes: Buffer): void;
  /** Called when the whole answer has arrived. */
  end(): void;
  /**
   * Called when the stream is reset or the connection is lost.
   * @param code of RFC 9113, section 7: REFUSED_STREAM if the server has not processed the request
   */
  cut(code: number): void;
}

/** A stream of a client's connection: the request's body that is left, and the state of both sides. */
export class ClientStream implements OutputStream {
  /** Set when the request is sent; 0 while it waits for another one to end. */
  id = 0;
  readonly receiver: AnswerReceiver;
  /** The encoded headers of the request. */
  readonly head: Buffer;
  readonly window: ReceiveWindow;
  readonly ending: boolean;
  readonly mustNotify = false;
  readonly resetsAtEnd = false;
  sendWindow = 0;
  isReady = false;
  endSent = false;
  finished = false;
  aborted = false;
  nextInTable: ClientStream | undefined;
  #body: Buffer;
  #sent = 0;

  constructor(options: {
    readonly head: Buffer;
    readonly body: Buffer;
    readonly ends: boolean;
    readonly windowBytes: number;
    readonly receiver: AnswerReceiver;
  }) {
    this.head = options.head;
    this.#body = options.body;
    this.ending = options.ends;
    this.window = new ReceiveWindow(options.windowBytes);
    this.receiver = options.receiver;
  }

  get pendingBytes(): number {
    return this.#body.length - this.#sent;
  }

  get canSend(): boolean {
    if (this.aborted || this.endSent) return false;
    return this.pendingBytes > 0 ? this.sendWindow > 0 : this.ending;
  }

  take(target: Buffer, at: number, bytes: number): void {
    this.#body.copy(target, at, this.#sent, this.#sent + bytes);
    this.#sent += bytes;
    this.sendWindow -= bytes;
  }

  /** Releases the rest of the body. */
  abort(): void {
    this.aborted = true;
    this.#body = none;
    this.#sent = 0;
  }

  notifyDrained(): void {}
}

const none = Buffer.alloc(0);
