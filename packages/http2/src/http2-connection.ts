import type { Socket } from 'node:net';
import { type Clock, listen, reportFault, type Timer } from '@wheelhouse/machinery';
import {
  acknowledgeSettings,
  FloodGuard,
  readSettings,
  sendGoAway,
  sendPing,
  sendReset,
  sendSettings,
  sendWindowUpdate,
} from './control-frames.ts';
import {
  type Frame,
  FrameReader,
  type FrameTaker,
  HeaderBlock,
  priorityBytes,
  trimPayload,
  uint31,
} from './frame-reader.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { Output, type OutputOwner } from './output.ts';
import { type ConnectionHost, PeerConnection } from './peer-connection.ts';
import {
  ConnectionError,
  defaultWindowBytes,
  errorCode,
  flag,
  frameType,
  setting,
  streamIdMax,
  windowBytesMax,
} from './protocol.ts';
import { RequestHead } from './request-head.ts';
import { addContinue, addResponseHead } from './response-head.ts';
import {
  ClosedStreams,
  ending,
  Http2Stream,
  ReceiveWindow,
  type ResponseHead,
  type StreamHost,
  StreamTable,
} from './stream.ts';

/** kube-apiserver's receive window of a stream, in which most objects fit without an update. */
const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 4 * 1024 * 1024;
/** Size of the dynamic table for the client's headers: the default of the protocol. */
const headerTableBytes = 4096;
/** Maximum size of control frames that wait for a client that does not read. */
const controlBytesMax = 4 * 1024 * 1024;

/** How long a client has to answer the ping after the first GOAWAY, milliseconds. */
const farewellMs = 1000;
/** How long a client has to close the connection after the server, milliseconds. */
const lingerMs = 1000;
const farewellPing = Buffer.from('farewell', 'latin1');

/** What a connection needs from its server. Sizes are in bytes, times in milliseconds. */
export interface Http2Host extends ConnectionHost {
  readonly clock: Clock;
  readonly limits: {
    /** Maximum size of the headers of a request. */
    readonly headerBytesMax: number;
    /** Maximum time from the first byte of a header block to its last. */
    readonly headersTimeoutMs: number;
    readonly streamsPerConnectionMax: number;
  };
}

/**
 * The server side of one HTTP/2 connection (RFC 9113): reads frames from the socket, manages the
 * streams, and passes every request to `onRequest`. An error of the client ends the stream if
 * possible, otherwise the connection. No exception leaves this class.
 */
export class Http2Connection extends PeerConnection implements FrameTaker, StreamHost, OutputOwner {
  /** Whether frames are no longer accepted. */
  closed = false;
  readonly #core: Http2Host;
  readonly #onRequest: (stream: Http2Stream, connection: Http2Connection) => void;
  readonly #reader = new FrameReader(this);
  readonly #decoder = new HpackDecoder(headerTableBytes);
  readonly #output: Output;
  readonly #guard: FloodGuard;
  readonly #streams = new StreamTable();
  readonly #closedStreams = new ClosedStreams();
  readonly #window = new ReceiveWindow(connectionWindowBytes);
  #lastStream = 0;
  #sawSettings = false;
  /** The incomplete header block. No other frame may arrive before its end. */
  #block: HeaderBlock | undefined;
  #blockSince = 0;
  #peerStreamWindow = defaultWindowBytes;
  /**
   * Whether the client has shrunk its header table and must receive an update that the server does
   * not use one.
   */
  #owesTableUpdate = false;
  #farewell: 'none' | 'announced' | 'final' = 'none';
  #timer: Timer | undefined;

  constructor(options: {
    socket: Socket;
    core: Http2Host;
    onRequest: (stream: Http2Stream, connection: Http2Connection) => void;
  }) {
    super(options);
    const { socket, core } = options;
    this.#core = core;
    this.#onRequest = options.onRequest;
    this.#output = new Output({ socket, owner: this, memory: this.memory });
    this.#guard = new FloodGuard(core.clock);
    listen(
      socket,
      { where: 'http2' },
      {
        data: this.#onData,
        // A client that has closed its side counts as disconnected, as in kube-apiserver.
        end: () => socket.destroy(),
        close: this.#onClose,
      },
    );
    sendSettings(this.#output, [
      [setting.maxConcurrentStreams, core.limits.streamsPerConnectionMax],
      [setting.initialWindowSize, streamWindowBytes],
      [setting.maxHeaderListSize, core.limits.headerBytesMax],
    ]);
    const by = connectionWindowBytes - defaultWindowBytes;
    sendWindowUpdate(this.#output, { stream: 0, by });
  }

  // What the server asks of it.

  /**
   * Announces that the connection will close, but serves requests that the client sends before it
   * knows. The final GOAWAY with the last stream follows when the client has answered a ping (RFC
   * 9113, 6.8).
   */
  override retire(): void {
    if (this.closed || this.#farewell !== 'none') return;
    this.#farewell = 'announced';
    sendGoAway(this.#output, { lastStream: streamIdMax, code: errorCode.noError });
    sendPing(this.#output, { payload: farewellPing, flags: 0 });
    this.#timer = this.#core.clock.after(farewellMs, () => this.#sendFinalGoAway());
  }

  override expire(now: number): void {
    if (this.#block === undefined) return;
    if (now - this.#blockSince > this.#core.limits.headersTimeoutMs) {
      this.#fail(new ConnectionError(errorCode.enhanceYourCalm, 'headers took too long'));
    }
  }

  // What its streams ask of it.

  wake(stream: Http2Stream): void {
    this.#output.wake(stream);
  }

  sendHead(stream: Http2Stream, head: ResponseHead): void {
    const output = this.#output;
    const { control } = output;
    const before = control.length;
    try {
      addResponseHead(control, {
        stream: stream.id,
        head,
        tableUpdate: this.#owesTableUpdate,
        now: this.#core.clock.now(),
        frameBytesMax: output.frameBytesMax,
      });
    } catch (error) {
      control.length = before;
      throw error;
    }
    this.#owesTableUpdate = false;
    this.#boundControl();
    output.schedule();
    if (!head.empty) return;
    stream.ending = true;
    stream.endSent = true;
    if (!stream.remoteEnded) this.#reset(stream.id, errorCode.noError);
    output.ended(stream);
  }

  sendContinue(stream: Http2Stream): void {
    addContinue(this.#output.control, { stream: stream.id, tableUpdate: this.#owesTableUpdate });
    this.#owesTableUpdate = false;
    this.#output.schedule();
  }

  reset(stream: Http2Stream, code: number): void {
    this.#reset(stream.id, code);
    this.#cutOff(stream, ending.resetByUs);
  }

  consumed(stream: Http2Stream, bytes: number): void {
    this.#giveBack(bytes);
    if (stream.dead || stream.remoteEnded || stream.discards) return;
    const by = stream.window.giveBack(bytes);
    if (by > 0) sendWindowUpdate(this.#output, { stream: stream.id, by });
  }

  // Called by the output.

  streamEnded(stream: Http2Stream): void {
    this.#forget(stream, stream.remoteEnded ? ending.finished : ending.resetByUs);
    this.#guard.answered();
  }

  streamFinished(stream: Http2Stream): void {
    stream.owner?.streamClosed();
    this.#leaveWhenDone();
  }

  // What the client sends.

  readonly #onData = (chunk: Buffer): void => {
    if (this.closed) return;
    try {
      this.#reader.read(chunk);
    } catch (error) {
      this.#fail(error);
    }
  };

  takeFrame(frame: Frame): void {
    const { type } = frame;
    if (this.#block !== undefined && type !== frameType.continuation) {
      throw violation('a frame within a header block');
    }
    if (!this.#sawSettings && type !== frameType.settings) {
      throw violation('a connection that does not begin with SETTINGS');
    }
    if (type === frameType.data) this.#takeData(frame);
    else if (type === frameType.headers) this.#takeHeaders(frame);
    else if (type === frameType.continuation) this.#takeContinuation(frame);
    else {
      // All other frames carry neither a request nor a body.
      if (this.#output.dataFrames > 0) this.#guard.sentData(this.#output.dataFrames);
      this.#output.dataFrames = 0;
      this.#guard.idleFrame();
      this.#takeControl(frame);
    }
  }

  /** Unknown types are extensions, which must be ignored (RFC 9113, 5.5). */
  #takeControl(frame: Frame): void {
    const { type, stream } = frame;
    const bytes = frame.end - frame.start;
    if (type === frameType.windowUpdate) this.#takeWindowUpdate(frame);
    else if (type === frameType.settings) this.#takeSettings(frame);
    else if (type === frameType.resetStream) this.#takeReset(frame);
    else if (type === frameType.ping) this.#takePing(frame);
    else if (type === frameType.pushPromise) throw violation('PUSH_PROMISE from a client');
    else if (type === frameType.priority) {
      if (stream === 0) throw violation('PRIORITY of no stream');
      if (bytes !== priorityBytes) throw wrongSize('PRIORITY');
      if (uint31(frame.bytes, frame.start) === stream) throw violation('a stream behind itself');
    } else if (type === frameType.goAway) {
      if (stream !== 0) throw violation('GOAWAY of a stream');
      if (bytes < goAwayBytesMin) throw wrongSize('GOAWAY');
    }
  }

  #takeHeaders(frame: Frame): void {
    const { stream, flags } = frame;
    if (stream % 2 === 0) throw violation('HEADERS of a stream that no client opens');
    trimPayload(frame);
    const endsStream = (flags & flag.endStream) !== 0;
    if ((flags & flag.endHeaders) !== 0) {
      const head = this.#decoded(frame.bytes, frame);
      this.#takeHead(head, { id: stream, endsStream });
      return;
    }
    const bytesMax = this.#core.limits.headerBytesMax;
    this.#block = new HeaderBlock({ stream, endsStream, bytesMax });
    this.memory.charge('requests', bytesMax);
    this.#blockSince = this.#core.clock.monotonic();
    this.#block.add(frame);
  }

  #takeContinuation(frame: Frame): void {
    const block = this.#block;
    if (block === undefined || block.stream !== frame.stream) throw violation('CONTINUATION');
    block.add(frame);
    if ((frame.flags & flag.endHeaders) === 0) return;
    this.#block = undefined;
    this.memory.charge('requests', -this.#core.limits.headerBytesMax);
    const head = this.#decoded(block.bytes, { start: 0, end: block.length });
    this.#takeHead(head, { id: block.stream, endsStream: block.endsStream });
  }

  #decoded(bytes: Buffer, place: { start: number; end: number }): RequestHead {
    const head = new RequestHead(this.#core.limits.headerBytesMax);
    this.#decoder.decode(bytes, place, head);
    return head;
  }

  #takeHead(head: RequestHead, to: { id: number; endsStream: boolean }): void {
    const { id, endsStream } = to;
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#takeTrailers(stream, head, endsStream);
    else if (id <= this.#lastStream) this.#takeLateHead(id);
    // A request after the last one announced in GOAWAY, which the client will repeat elsewhere.
    else if (this.#farewell === 'final') this.#guard.idleFrame();
    else {
      this.#lastStream = id;
      head.check({ hasBody: !endsStream });
      if (head.malformed !== undefined) this.#refuse(id, errorCode.protocolError);
      else if (this.#streams.size >= this.#core.limits.streamsPerConnectionMax) {
        this.#refuse(id, errorCode.refusedStream);
      } else this.#open(head, to);
    }
  }

  #open(head: RequestHead, { id, endsStream }: { id: number; endsStream: boolean }): void {
    const stream = new Http2Stream({
      id,
      head,
      host: this,
      sendWindow: this.#peerStreamWindow,
      receiveWindowBytes: streamWindowBytes,
      remoteEnded: endsStream,
    });
    this.#streams.add(stream);
    const status = head.tooLarge ? 431 : head.method === 'CONNECT' ? 501 : undefined;
    if (status === undefined) this.#onRequest(stream, this);
    else stream.respond({ status, headers: {}, contentLength: 0, empty: true });
  }

  #takeTrailers(stream: Http2Stream, head: RequestHead, endsStream: boolean): void {
    head.checkTrailers();
    if (stream.remoteEnded) this.#resetFor(stream, errorCode.streamClosed);
    else if (!endsStream || head.malformed !== undefined || head.tooLarge) {
      this.#resetFor(stream, errorCode.protocolError);
    } else this.#endBody(stream);
  }

  /** Headers of a stream that is closed or was skipped. */
  #takeLateHead(id: number): void {
    const how = this.#closedStreams.endingOf(id);
    if (how !== ending.resetByUs) {
      const code = how === ending.unknown ? errorCode.protocolError : errorCode.streamClosed;
      throw new ConnectionError(code, 'HEADERS of a stream that is closed');
    }
    this.#guard.idleFrame();
  }

  #takeData(frame: Frame): void {
    const id = frame.stream;
    const frameBytes = frame.end - frame.start;
    if (id === 0 || id > this.#lastStream) throw violation('DATA of no stream');
    if (!this.#window.take(frameBytes)) {
      throw new ConnectionError(errorCode.flowControlError, 'more data than the window allows');
    }
    trimPayload(frame);
    const bytes = frame.end - frame.start;
    const endsStream = (frame.flags & flag.endStream) !== 0;
    if (bytes === 0 && !endsStream) this.#guard.idleFrame();
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#giveBack(frameBytes);
      this.#takeLateData(id);
      return;
    }
    const fault = faultOfData(stream, { bytes, frameBytes });
    if (fault !== errorCode.noError) {
      this.#giveBack(frameBytes);
      this.#resetFor(stream, fault);
      return;
    }
    stream.receive(frame.bytes.subarray(frame.start, frame.end), frameBytes);
    if (endsStream) this.#endBody(stream);
  }

  /** Ignores data that the client sent before it received the reset of the stream. */
  #takeLateData(id: number): void {
    const how = this.#closedStreams.endingOf(id);
    if (how === ending.finished) {
      throw new ConnectionError(errorCode.streamClosed, 'DATA of a stream that has ended');
    }
    if (how === ending.resetByClient) this.#refuse(id, errorCode.streamClosed);
  }

  #endBody(stream: Http2Stream): void {
    const announced = stream.head.contentLength;
    if (announced !== undefined && announced !== stream.receivedBytes) {
      this.#resetFor(stream, errorCode.protocolError);
    } else stream.receiveEnd();
  }

  #takeReset(frame: Frame): void {
    if (frame.end - frame.start !== 4) throw wrongSize('RST_STREAM');
    if (frame.stream === 0 || frame.stream > this.#lastStream) throw violation('RST_STREAM');
    const stream = this.#streams.get(frame.stream);
    if (stream === undefined) return;
    this.#cutOff(stream, ending.resetByClient);
    this.#guard.reset();
  }

  #takeSettings(frame: Frame): void {
    if (frame.stream !== 0) throw violation('SETTINGS of a stream');
    if ((frame.flags & flag.ack) !== 0) {
      if (frame.end !== frame.start) throw wrongSize('an acknowledgement of SETTINGS');
      if (!this.#sawSettings) throw violation('a connection that does not begin with SETTINGS');
      return;
    }
    this.#sawSettings = true;
    const settings = readSettings(frame);
    if ((settings.headerTableBytes ?? headerTableBytes) < headerTableBytes) {
      this.#owesTableUpdate = true;
    }
    this.#output.frameBytesMax = settings.frameBytesMax ?? this.#output.frameBytesMax;
    acknowledgeSettings(this.#output);
    this.#boundControl();
    if (settings.initialWindow !== undefined) this.#moveWindows(settings.initialWindow);
  }

  /** A new initial window changes the send windows of all streams by the difference. */
  #moveWindows(initialWindow: number): void {
    const by = initialWindow - this.#peerStreamWindow;
    this.#peerStreamWindow = initialWindow;
    for (const stream of this.#streams.all()) {
      if (stream.sendWindow + by > windowBytesMax) throw outOfRange();
      stream.sendWindow += by;
      this.#output.wake(stream);
    }
  }

  #takePing(frame: Frame): void {
    if (frame.stream !== 0) throw violation('PING of a stream');
    if (frame.end - frame.start !== farewellPing.length) throw wrongSize('PING');
    const payload = frame.bytes.subarray(frame.start, frame.end);
    if ((frame.flags & flag.ack) === 0) {
      sendPing(this.#output, { payload, flags: flag.ack });
      this.#boundControl();
    } else if (this.#farewell === 'announced' && payload.equals(farewellPing))
      this.#sendFinalGoAway();
  }

  #takeWindowUpdate(frame: Frame): void {
    const id = frame.stream;
    if (frame.end - frame.start !== 4) throw wrongSize('WINDOW_UPDATE');
    if (id > this.#lastStream) throw violation('WINDOW_UPDATE of no stream');
    const by = uint31(frame.bytes, frame.start);
    const output = this.#output;
    if (id === 0) {
      if (by === 0) throw violation('WINDOW_UPDATE by nothing');
      if (output.sendWindow + by > windowBytesMax) throw outOfRange();
      output.sendWindow += by;
      output.schedule();
      return;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (by === 0) this.#resetFor(stream, errorCode.protocolError);
    else if (stream.sendWindow + by > windowBytesMax) {
      this.#resetFor(stream, errorCode.flowControlError);
    } else {
      stream.sendWindow += by;
      output.wake(stream);
    }
  }

  // What becomes of the streams.

  #reset(stream: number, code: number): void {
    sendReset(this.#output, { stream, code });
    this.#boundControl();
  }

  /** Resets a stream that was not opened, which is charged to the client. */
  #refuse(id: number, code: number): void {
    this.#closedStreams.add(id, ending.resetByUs);
    this.#reset(id, code);
    this.#guard.reset();
  }

  /** Resets a stream because of the client's fault, which counts like a reset by the client. */
  #resetFor(stream: Http2Stream, code: number): void {
    this.reset(stream, code);
    this.#guard.reset();
  }

  #cutOff(stream: Http2Stream, how: number): void {
    this.#forget(stream, how);
    stream.die();
    stream.owner?.streamClosed();
    this.#leaveWhenDone();
  }

  #forget(stream: Http2Stream, how: number): void {
    const unread = stream.discard();
    if (unread > 0) this.#giveBack(unread);
    this.#streams.delete(stream);
    this.#closedStreams.add(stream.id, how);
  }

  #giveBack(bytes: number): void {
    const by = this.#window.giveBack(bytes);
    if (by > 0) sendWindowUpdate(this.#output, { stream: 0, by });
  }

  #boundControl(): void {
    this.#output.chargeControl();
    if (this.#output.control.length <= controlBytesMax) return;
    this.socket.destroy();
  }

  // How it ends.

  /** Sends the second GOAWAY: no request after the last one seen will be answered. */
  #sendFinalGoAway(): void {
    if (this.closed || this.#farewell === 'final') return;
    this.#timer?.stop();
    this.#farewell = 'final';
    sendGoAway(this.#output, { lastStream: this.#lastStream, code: errorCode.noError });
    this.#leaveWhenDone();
  }

  #leaveWhenDone(): void {
    if (this.#farewell === 'final' && !this.closed && this.#streams.size === 0) this.#leave();
  }

  /** Closes the server's side, and the socket soon after if the client does not. */
  #leave(): void {
    this.closed = true;
    this.#output.finish();
    this.socket.end();
    this.#timer?.stop();
    this.#timer = this.#core.clock.after(lingerMs, () => this.socket.destroy());
  }

  #fail(error: unknown): void {
    if (this.closed) return;
    this.closed = true;
    const isKnown = error instanceof ConnectionError;
    const code = isKnown ? error.code : errorCode.internalError;
    this.#endStreams();
    sendGoAway(this.#output, { lastStream: this.#lastStream, code });
    this.#leave();
    if (!isKnown) reportFault('http2', error);
  }

  readonly #onClose = (): void => {
    this.closed = true;
    this.#timer?.stop();
    this.#endStreams();
    for (const stream of this.#output.unwritten) stream.owner?.streamClosed();
  };

  #endStreams(): void {
    for (const stream of this.#streams.all()) {
      this.#streams.delete(stream);
      stream.die();
      stream.owner?.streamClosed();
    }
  }
}

const goAwayBytesMin = 8;

/** The error code for a DATA frame; `noError` if it is valid. */
function faultOfData(
  stream: Http2Stream,
  { bytes, frameBytes }: { bytes: number; frameBytes: number },
): number {
  if (stream.remoteEnded) return errorCode.streamClosed;
  if (!stream.window.take(frameBytes)) return errorCode.flowControlError;
  const announced = stream.head.contentLength;
  const isTooMuch = announced !== undefined && stream.receivedBytes + bytes > announced;
  return isTooMuch ? errorCode.protocolError : errorCode.noError;
}

function violation(what: string): ConnectionError {
  return new ConnectionError(errorCode.protocolError, what);
}

function wrongSize(what: string): ConnectionError {
  return new ConnectionError(errorCode.frameSizeError, `${what} of a wrong length`);
}

function outOfRange(): ConnectionError {
  return new ConnectionError(errorCode.flowControlError, 'a window out of range');
}
