import type { Socket } from 'node:net';
import { type Clock, listen, reportFault, type Timer } from '@wheelhouse/machinery';
import {
  acknowledgeSettings,
  FloodGuard,
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
  wrongSize,
} from './control-frames.ts';
import {
  checkOrder,
  type Frame,
  FrameReader,
  type FrameSink,
  HeaderBlock,
  priorityBytes,
  trimPayload,
  uint31,
  violation,
} from './frame-reader.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { addContinue, addResponseHead, RequestHead, type ResponseHead } from './message-heads.ts';
import { Output, type OutputOwner } from './output.ts';
import { PacedReading } from './paced-reading.ts';
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
import {
  ClosedStreams,
  ending,
  Http2Stream,
  ReceiveWindow,
  type StreamHost,
  StreamTable,
} from './stream.ts';

/** kube-apiserver's receive window of a stream, in which most objects fit without an update. */
const streamWindowBytes = 256 * 1024;
/** Size of the dynamic table for the client's headers: the default of the protocol. */
const headerTableBytes = 4096;
/** Maximum size of control frames that wait for a client that does not read. */
const controlBytesMax = 4 * 1024 * 1024;

/** Maximum time for the response to the ping after the first GOAWAY, milliseconds. */
const goAwayPingTimeoutMs = 1000;
/** Maximum time for the client to close the connection after the server, milliseconds. */
const closeTimeoutMs = 1000;
const goAwayPing = Buffer.from('shutdown', 'latin1');

/** The facilities of the server that a connection uses. Sizes in bytes, times in milliseconds. */
interface Http2Host extends ConnectionHost {
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
export class Http2Connection
  extends PeerConnection
  implements FrameSink, StreamHost, OutputOwner<Http2Stream>
{
  /** Whether frames are no longer accepted. */
  closed = false;
  readonly #core: Http2Host;
  readonly #onRequest: (stream: Http2Stream, connection: Http2Connection) => void;
  readonly #reader = new FrameReader(this, 'client');
  readonly #decoder = new HpackDecoder(headerTableBytes);
  readonly #output: Output<Http2Stream>;
  readonly #guard: FloodGuard;
  readonly #streams = new StreamTable<Http2Stream>();
  readonly #closedStreams = new ClosedStreams();
  readonly #window: ReceiveWindow;
  /** ID of the last stream that the server opened or rejected. */
  #lastStream = 0;
  /** ID of the last stream of the client, including those ignored after the final GOAWAY. */
  #newestStream = 0;
  #hasSettings = false;
  /** The incomplete header block. No other frame may arrive before its end. */
  #block: HeaderBlock | undefined;
  #blockSince = 0;
  #peerStreamWindow = defaultWindowBytes;
  /**
   * Whether the client has shrunk its header table, so that the next header block must set its size
   * to 0.
   */
  #owesTableUpdate = false;
  #shutdown: 'none' | 'announced' | 'final' = 'none';
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
    const pace = new PacedReading({ socket, where: 'http2' });
    listen(
      socket,
      { where: 'http2' },
      {
        data: (chunk: Buffer) => {
          this.#reader.read(chunk);
          pace.parsed(chunk.length);
        },
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
    // Bodies that wait must not keep one that is read from arriving, so all streams have room.
    const roomBytes = streamWindowBytes * core.limits.streamsPerConnectionMax;
    const windowBytes = Math.min(roomBytes, windowBytesMax);
    this.#window = new ReceiveWindow(windowBytes);
    sendWindowUpdate(this.#output, { stream: 0, by: windowBytes - defaultWindowBytes });
  }

  /**
   * Announces that the connection will close, and serves the requests that the client sends before
   * it receives the announcement. The final GOAWAY with the last stream follows when the client has
   * responded to a ping (RFC 9113, 6.8).
   */
  override retire(): void {
    if (this.closed || this.#shutdown !== 'none') return;
    this.#shutdown = 'announced';
    sendGoAway(this.#output, { lastStream: streamIdMax, code: errorCode.noError });
    sendPing(this.#output, { payload: goAwayPing, flags: 0 });
    this.#timer = this.#core.clock.after(goAwayPingTimeoutMs, () => this.#sendFinalGoAway());
  }

  override expire(now: number): void {
    if (this.#block === undefined) return;
    if (now - this.#blockSince > this.#core.limits.headersTimeoutMs) {
      this.fail(
        new ConnectionError(errorCode.enhanceYourCalm, 'header block not complete in time'),
      );
    }
  }

  // Called by streams.

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
    this.#limitControl();
    output.schedule();
    if (!head.empty) return;
    stream.ending = true;
    stream.endSent = true;
    if (!stream.remoteEnded) this.#reset(stream.id, errorCode.noError);
    output.addEnded(stream);
  }

  sendContinue(stream: Http2Stream): void {
    addContinue(this.#output.control, { stream: stream.id, tableUpdate: this.#owesTableUpdate });
    this.#owesTableUpdate = false;
    this.#output.schedule();
  }

  reset(stream: Http2Stream, code: number): void {
    this.#reset(stream.id, code);
    this.#abort(stream, ending.resetByServer);
  }

  consumed(stream: Http2Stream, bytes: number): void {
    this.#returnWindow(bytes);
    if (stream.aborted || stream.remoteEnded || stream.discards) return;
    const by = stream.window.restore(bytes);
    if (by > 0) sendWindowUpdate(this.#output, { stream: stream.id, by });
  }

  // Called by the output.

  streamEnded(stream: Http2Stream): void {
    this.#remove(stream, stream.remoteEnded ? ending.finished : ending.resetByServer);
    this.#guard.creditResponse();
  }

  streamFinished(stream: Http2Stream): void {
    stream.owner?.streamClosed();
    this.#closeWhenIdle();
  }

  // Frames from the client.

  handleFrame(frame: Frame): void {
    const { type } = frame;
    checkOrder(frame, { block: this.#block, hasSettings: this.#hasSettings });
    if (type === frameType.data) this.#handleData(frame);
    else if (type === frameType.headers) this.#handleHeaders(frame);
    else if (type === frameType.continuation) this.#handleContinuation(frame);
    else {
      // No other frame carries a request or a body.
      if (this.#output.dataFrames > 0) this.#guard.creditData(this.#output.dataFrames);
      this.#output.dataFrames = 0;
      this.#guard.chargeIdleFrame();
      this.#handleControl(frame);
    }
  }

  /** Unknown types are extensions, which must be ignored (RFC 9113, 5.5). */
  #handleControl(frame: Frame): void {
    const { type, stream } = frame;
    if (type === frameType.windowUpdate) this.#handleWindowUpdate(frame);
    else if (type === frameType.settings) this.#handleSettings(frame);
    else if (type === frameType.resetStream) this.#handleReset(frame);
    else if (type === frameType.ping) this.#handlePing(frame);
    else if (type === frameType.pushPromise) throw violation('PUSH_PROMISE from a client');
    else if (type === frameType.priority) {
      if (stream === 0) throw violation('PRIORITY on stream 0');
      if (frame.end - frame.start !== priorityBytes) throw wrongSize('PRIORITY');
      if (uint31(frame.bytes, frame.start) === stream) throw violation('stream depends on itself');
    } else if (type === frameType.goAway) readGoAway(frame);
  }

  #handleHeaders(frame: Frame): void {
    const { stream, flags } = frame;
    if (stream % 2 === 0) throw violation('HEADERS on an even stream ID');
    trimPayload(frame);
    const endsStream = (flags & flag.endStream) !== 0;
    if ((flags & flag.endHeaders) !== 0) {
      const head = this.#decodeHead(frame.bytes, frame);
      this.#handleHead(head, { id: stream, endsStream });
      return;
    }
    const bytesMax = this.#core.limits.headerBytesMax;
    this.#block = new HeaderBlock({ stream, endsStream, bytesMax });
    this.memory.charge('requests', bytesMax);
    this.#blockSince = this.#core.clock.monotonic();
    this.#block.add(frame);
  }

  #handleContinuation(frame: Frame): void {
    const block = this.#block;
    if (block === undefined) return;
    block.add(frame);
    if ((frame.flags & flag.endHeaders) === 0) return;
    this.#block = undefined;
    this.memory.charge('requests', -this.#core.limits.headerBytesMax);
    const head = this.#decodeHead(block.bytes, { start: 0, end: block.length });
    this.#handleHead(head, { id: block.stream, endsStream: block.endsStream });
  }

  #decodeHead(bytes: Buffer, place: { start: number; end: number }): RequestHead {
    const head = new RequestHead(this.#core.limits.headerBytesMax);
    this.#decoder.decode(bytes, place, head);
    return head;
  }

  #handleHead(head: RequestHead, to: { id: number; endsStream: boolean }): void {
    const { id, endsStream } = to;
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#handleTrailers(stream, head, endsStream);
    else if (id <= this.#lastStream) this.#handleLateHead(id);
    // The client repeats requests after the last one of the final GOAWAY elsewhere.
    else if (this.#shutdown === 'final') {
      this.#newestStream = Math.max(this.#newestStream, id);
      this.#guard.chargeIdleFrame();
    } else {
      this.#lastStream = id;
      this.#newestStream = id;
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

  #handleTrailers(stream: Http2Stream, head: RequestHead, endsStream: boolean): void {
    head.checkTrailers();
    if (stream.remoteEnded) this.#resetFor(stream, errorCode.streamClosed);
    else if (!endsStream || head.malformed !== undefined || head.tooLarge) {
      this.#resetFor(stream, errorCode.protocolError);
    } else this.#endBody(stream);
  }

  /** Handles headers of a stream that is closed or was skipped. */
  #handleLateHead(id: number): void {
    const how = this.#closedStreams.endingOf(id);
    if (how !== ending.resetByServer) {
      const code = how === ending.unknown ? errorCode.protocolError : errorCode.streamClosed;
      throw new ConnectionError(code, 'HEADERS on a closed stream');
    }
    this.#guard.chargeIdleFrame();
  }

  #handleData(frame: Frame): void {
    const id = frame.stream;
    const frameBytes = frame.end - frame.start;
    if (id === 0 || id > this.#newestStream) throw violation('DATA on an idle stream');
    if (!this.#window.spend(frameBytes)) {
      throw new ConnectionError(errorCode.flowControlError, 'data exceeds the window');
    }
    trimPayload(frame);
    const bytes = frame.end - frame.start;
    const endsStream = (frame.flags & flag.endStream) !== 0;
    if (bytes === 0 && !endsStream) this.#guard.chargeIdleFrame();
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#returnWindow(frameBytes);
      this.#handleLateData(id);
      return;
    }
    const fault = dataError(stream, { bytes, frameBytes });
    if (fault !== errorCode.noError) {
      this.#returnWindow(frameBytes);
      this.#resetFor(stream, fault);
      return;
    }
    stream.receive(frame.bytes.subarray(frame.start, frame.end), frameBytes);
    if (endsStream) this.#endBody(stream);
  }

  /** Ignores data that the client sent before it received the reset of the stream. */
  #handleLateData(id: number): void {
    const how = this.#closedStreams.endingOf(id);
    if (how === ending.finished) {
      throw new ConnectionError(errorCode.streamClosed, 'DATA on a closed stream');
    }
    if (how === ending.resetByClient) this.#refuse(id, errorCode.streamClosed);
  }

  #endBody(stream: Http2Stream): void {
    const declaredBytes = stream.head.contentLength;
    if (declaredBytes !== undefined && declaredBytes !== stream.receivedBytes) {
      this.#resetFor(stream, errorCode.protocolError);
    } else stream.receiveEnd();
  }

  #handleReset(frame: Frame): void {
    onlyWord(frame, 'RST_STREAM');
    if (frame.stream === 0 || frame.stream > this.#newestStream)
      throw violation('RST_STREAM on an idle stream');
    const stream = this.#streams.get(frame.stream);
    if (stream === undefined) return;
    this.#abort(stream, ending.resetByClient);
    this.#guard.chargeReset();
  }

  #handleSettings(frame: Frame): void {
    const settings = readSettings(frame);
    if (settings === undefined) {
      if (!this.#hasSettings) throw violation('connection does not begin with SETTINGS');
      return;
    }
    this.#hasSettings = true;
    if ((settings.headerTableBytes ?? headerTableBytes) < headerTableBytes) {
      this.#owesTableUpdate = true;
    }
    this.#output.frameBytesMax = settings.frameBytesMax ?? this.#output.frameBytesMax;
    acknowledgeSettings(this.#output);
    this.#limitControl();
    if (settings.initialWindow !== undefined) this.#adjustSendWindows(settings.initialWindow);
  }

  /** Changes the send windows of all streams by the change of the initial window. */
  #adjustSendWindows(initialWindow: number): void {
    const by = initialWindow - this.#peerStreamWindow;
    this.#peerStreamWindow = initialWindow;
    if (by === 0) return;
    this.#guard.chargeAffected(this.#streams.size);
    for (const stream of this.#streams.all()) {
      if (stream.sendWindow + by > windowBytesMax) throw windowOutOfRange();
      stream.sendWindow += by;
      this.#output.wake(stream);
    }
  }

  #handlePing(frame: Frame): void {
    const payload = readPing(frame);
    if ((frame.flags & flag.ack) === 0) {
      sendPing(this.#output, { payload, flags: flag.ack });
      this.#limitControl();
    } else if (this.#shutdown === 'announced' && payload.equals(goAwayPing))
      this.#sendFinalGoAway();
  }

  #handleWindowUpdate(frame: Frame): void {
    const id = frame.stream;
    const by = onlyWord(frame, 'WINDOW_UPDATE');
    if (id > this.#newestStream) throw violation('WINDOW_UPDATE on an idle stream');
    const output = this.#output;
    if (id === 0) {
      widenConnection(output, by);
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

  #reset(stream: number, code: number): void {
    sendReset(this.#output, { stream, code });
    this.#limitControl();
  }

  /** Rejects a stream and charges the reset to the client. */
  #refuse(id: number, code: number): void {
    this.#closedStreams.add(id, ending.resetByServer);
    this.#reset(id, code);
    this.#guard.chargeReset();
  }

  /** Resets a stream because of the client's error and charges the reset to the client. */
  #resetFor(stream: Http2Stream, code: number): void {
    this.reset(stream, code);
    this.#guard.chargeReset();
  }

  #abort(stream: Http2Stream, how: number): void {
    this.#remove(stream, how);
    stream.abort();
    stream.owner?.streamClosed();
    this.#closeWhenIdle();
  }

  #remove(stream: Http2Stream, how: number): void {
    const unread = stream.discard();
    if (unread > 0) this.#returnWindow(unread);
    this.#streams.delete(stream);
    this.#closedStreams.add(stream.id, how);
  }

  #returnWindow(bytes: number): void {
    const by = this.#window.restore(bytes);
    if (by > 0) sendWindowUpdate(this.#output, { stream: 0, by });
  }

  #limitControl(): void {
    this.#output.chargeControl();
    if (this.#output.control.length <= controlBytesMax) return;
    this.socket.destroy();
  }

  /** Sends the second GOAWAY, after which the server ignores new requests. */
  #sendFinalGoAway(): void {
    if (this.closed || this.#shutdown === 'final') return;
    this.#timer?.stop();
    this.#shutdown = 'final';
    sendGoAway(this.#output, { lastStream: this.#lastStream, code: errorCode.noError });
    this.#closeWhenIdle();
  }

  /** Closes the socket once every answer is written: a slow client still reads its last one. */
  #closeWhenIdle(): void {
    if (this.#shutdown !== 'final' || this.closed || this.#streams.size > 0) return;
    if (this.#output.unwritten.length === 0) this.#closeSocket();
  }

  /** Closes the server's side, and after a timeout the socket. */
  #closeSocket(): void {
    this.closed = true;
    this.#output.finish();
    this.socket.end();
    this.#timer?.stop();
    this.#timer = this.#core.clock.after(closeTimeoutMs, () => this.socket.destroy());
  }

  fail(error: unknown): void {
    if (this.closed) return;
    this.closed = true;
    const isProtocolError = error instanceof ConnectionError;
    const code = isProtocolError ? error.code : errorCode.internalError;
    this.#endStreams();
    sendGoAway(this.#output, { lastStream: this.#lastStream, code });
    this.#closeSocket();
    if (!isProtocolError) reportFault('http2', error);
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
      stream.abort();
      stream.owner?.streamClosed();
    }
  }
}

/** Returns the error code for a DATA frame; `noError` if it is valid. */
function dataError(
  stream: Http2Stream,
  { bytes, frameBytes }: { bytes: number; frameBytes: number },
): number {
  if (stream.remoteEnded) return errorCode.streamClosed;
  if (!stream.window.spend(frameBytes)) return errorCode.flowControlError;
  const declaredBytes = stream.head.contentLength;
  const isTooMuch = declaredBytes !== undefined && stream.receivedBytes + bytes > declaredBytes;
  return isTooMuch ? errorCode.protocolError : errorCode.noError;
}
