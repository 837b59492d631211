import type { BodySink, BodySource, PeerConnection, ResponseHead } from '@wheelhouse/http2';
import {
  type BodyPiece,
  type BodyStream,
  BodyTooLarge,
  type ChargedMemory,
  type Clock,
  contained,
  type DetachedConnection,
  type Exchange,
  isWhole,
  MemoryShortage,
  pendingPromise,
  type ResponseBody,
  type ResponseHeaders,
  type ResponseStream,
  reportFault,
  totalBytes,
  type WholeResponse,
  wholeBytes,
} from '@wheelhouse/machinery';
import { BodyReader, PacedWriter, pacedAboveBytes } from './body-io.ts';
import type { HttpLimits } from './limits.ts';

/** Memory to decode, default, and store a body besides the body itself, as a multiple of it. */
const decodedPart = 6;

/** What an exchange needs from its server. */
export interface ExchangeHost {
  readonly clock: Clock;
  readonly limits: HttpLimits;
  /** Marks an exchange as the one that occupies the thread. */
  readonly occupancy: { enter(occupant: Exchange): void };
  /** Whether the server is stopping, so that connections must not be reused. */
  readonly draining: boolean;
}

/**
 * The common part of HTTP/1.1 and HTTP/2 exchanges: a source of the request's body and a sink for
 * the answer's, accounted for from the first header until the answer is sent. The sweep calls
 * `expire` periodically, so requests need no timers.
 */
export abstract class ExchangeBase implements Exchange {
  abstract readonly method: string;
  abstract readonly url: string;
  abstract readonly httpVersion: '1.1' | '2';
  readonly connection: PeerConnection;
  /** Its index among the server's exchanges in flight; -1 if it is not in flight. */
  place = -1;
  userName: string | undefined = undefined;
  endListener: { clientEnded(): void } | undefined = undefined;
  protected readonly core: ExchangeHost;
  protected bodyRefused = false;
  /** Whether the application receives the body as a stream, whose duration is not limited. */
  streamsBody = false;
  #reader: BodyReader | undefined;
  #abortCallbacks: (() => void)[] | undefined;
  #aborted = false;
  #isSuperseded = false;
  #answering: 'no' | 'whole' | 'stream' = 'no';
  #status: number | undefined;
  #progressAt: number | undefined;
  #receivedBytes: number | undefined;
  #responseBytes: number | undefined;
  #streamedBytes = 0;
  #whenAnswered: ((bytes: number) => void) | undefined;
  /** Writes an answer in several batches; undefined for others. */
  #writer: PacedWriter | undefined;
  #isClosed = false;
  #delivered: ReturnType<typeof pendingPromise<void>> | undefined;
  /** Bytes charged for it, released at its end. */
  #requestBytes = 0;
  #bodyBytes = 0;
  #answerBytes = 0;
  #watchBytes = 0;
  #releases: (() => void)[] | undefined;
  #isOver = false;

  constructor(options: { connection: PeerConnection; core: ExchangeHost }) {
    this.connection = options.connection;
    this.core = options.core;
  }

  protected abstract readonly source: BodySource;
  protected abstract readonly sink: BodySink;
  abstract header(name: string): string | undefined;
  abstract headerLines(): readonly string[];
  protected abstract writeHead(head: ResponseHead): void;
  /** Whether the request has a body, possibly an empty one. */
  protected abstract readonly hasBody: boolean;
  /** Lets a client that sent `Expect: 100-continue` continue. */
  protected abstract allowBody(): void;
  /** Ends the answer to a request whose body will not be read. */
  protected abstract endRefused(body: Buffer): void;
  /** Once closed: whether the whole answer was sent. */
  protected abstract readonly complete: boolean;
  /** Aborts the exchange. */
  abstract destroy(): void;

  get remoteAddress(): string {
    return this.connection.remoteAddress;
  }

  resumed(): void {
    this.core.occupancy.enter(this);
  }

  get aborted(): boolean {
    return this.#aborted || this.#isSuperseded;
  }

  get responseCode(): number | undefined {
    return this.#status;
  }

  get receivedBytes(): number | undefined {
    return this.#receivedBytes;
  }

  get responseBytes(): number | undefined {
    return this.#responseBytes;
  }

  get streamedBytes(): number {
    return this.#streamedBytes;
  }

  onResponseEnd(callback: (bytes: number) => void): void {
    this.#whenAnswered = callback;
  }

  delivered(): Promise<void> | undefined {
    const isUnderWay = this.#answering === 'stream' || this.#writer !== undefined;
    if (!isUnderWay || this.#isClosed) return undefined;
    this.#delivered ??= pendingPromise();
    return this.#delivered.promise;
  }

  cutOff(): boolean {
    if (this.#writer === undefined || this.#isClosed) return false;
    this.destroy();
    return true;
  }

  get answered(): boolean {
    return this.#answering !== 'no';
  }

  async body(limitBytes: number): Promise<Buffer> {
    const announced = Number(this.header('content-length') ?? 0);
    if (announced > limitBytes) {
      this.bodyRefused = true;
      throw new BodyTooLarge(`body of ${announced} bytes over ${limitBytes}`);
    }
    const { memory } = this.connection;
    if (!memory.admits(announced * (1 + decodedPart))) {
      this.bodyRefused = true;
      throw new MemoryShortage();
    }
    const { clock, limits } = this.core;
    const deadline = clock.monotonic() + limits.bodyTimeoutMs;
    const reader = new BodyReader({ source: this.source, limitBytes, deadline, meter: this });
    this.#reader = reader;
    const whole = reader.read();
    if (this.aborted) reader.abort('nobody waits for the answer');
    else this.allowBody();
    try {
      const bytes = await whole;
      this.resumed();
      this.#receivedBytes = bytes.length;
      // The body itself has already been charged.
      const more = bytes.length * decodedPart;
      if (!memory.admits(more)) throw new MemoryShortage();
      this.bodyGrew(more);
      return bytes;
    } catch (error) {
      this.bodyRefused = true;
      this.bodyGrew(-this.#bodyBytes);
      throw error;
    }
  }

  /** Charges the memory of a request that has begun. */
  began(bytes: number): void {
    this.#requestBytes = bytes;
    this.connection.memory.charge('requests', bytes);
  }

  /** Charges memory for its body, or for what was decoded from it. */
  bodyGrew(bytes: number): void {
    if (this.#isOver || bytes === 0) return;
    this.#bodyBytes += bytes;
    this.connection.memory.charge('bodies', bytes);
  }

  chargeMemory({ bytes, shared }: ChargedMemory): boolean {
    const { memory } = this.connection;
    if (this.#isOver) return true;
    if (!memory.admits(bytes)) return false;
    this.#watchBytes += bytes;
    memory.charge('watches', bytes);
    for (const charge of shared ?? []) {
      this.#releases ??= [];
      this.#releases.push(memory.chargeShared(charge.key, charge.bytes));
    }
    return true;
  }

  /** Bytes that would be released if it ended. */
  get heldBytes(): number {
    const charged = this.#requestBytes + this.#bodyBytes + this.#answerBytes + this.#watchBytes;
    return charged + this.sink.bufferedBytes;
  }

  #releaseMemory(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { memory } = this.connection;
    memory.charge('requests', -this.#requestBytes);
    if (this.#bodyBytes > 0) memory.charge('bodies', -this.#bodyBytes);
    if (this.#answerBytes > 0) memory.charge('answers', -this.#answerBytes);
    if (this.#watchBytes > 0) memory.charge('watches', -this.#watchBytes);
    for (const release of this.#releases ?? []) release();
    this.#releases = undefined;
  }

  /** Ends it to release memory: with `refusal` unless an answer has begun. */
  shed(refusal: WholeResponse): void {
    const respond = this.supersede();
    if (respond === undefined) this.destroy();
    else respond(refusal);
    this.#releaseMemory();
  }

  bodyStream(): BodyStream | undefined {
    if (!this.hasBody) return undefined;
    this.streamsBody = true;
    if (!this.aborted) this.allowBody();
    return this.source;
  }

  takeOver(): DetachedConnection | undefined {
    const taken = this.answered || this.aborted ? undefined : this.release();
    if (taken !== undefined) this.#begin('stream', 101);
    return taken;
  }

  onAbort(callback: () => void): void {
    if (this.aborted) callback();
    else if (this.#abortCallbacks === undefined) this.#abortCallbacks = [callback];
    else this.#abortCallbacks.push(callback);
  }

  /** Wraps `writeHead` of this exchange only, so that other exchanges pay nothing. */
  addHeaders(more: ResponseHeaders): void {
    const write = this.writeHead;
    this.writeHead = (head) => {
      write.call(this, { ...head, headers: { ...more, ...head.headers } });
    };
  }

  /** Whether an answer is being streamed, as for a watch. */
  get isStreaming(): boolean {
    return this.#answering === 'stream';
  }

  send(response: WholeResponse): void {
    if (!this.#isSuperseded) this.#respond(response);
  }

  supersede(): ((response: WholeResponse) => void) | undefined {
    if (this.answered || this.aborted) return undefined;
    this.#isSuperseded = true;
    const reader = this.#reader;
    if (reader !== undefined && !reader.settled) {
      this.bodyRefused = true;
      reader.abort('nobody waits for the answer');
    }
    this.#tellAborted();
    return (response) => this.#respond(response);
  }

  #respond(response: WholeResponse): void {
    const { status, headers, body } = response;
    this.#begin('whole', status);
    if (this.#aborted) return;
    const bodyBytes = lengthOf(body);
    const empty = bodyBytes === 0 || this.method === 'HEAD' || status === 204 || status === 304;
    const contentLength = status === 204 || status === 304 ? undefined : bodyBytes;
    this.writeHead({ status, headers, contentLength, empty });
    this.#responseBytes = empty ? 0 : bodyBytes;
    if (empty && !this.bodyRefused) return;
    if (isWhole(body) && body.length > pacedAboveBytes) {
      this.#answerBytes = body.length;
      this.connection.memory.charge('answers', body.length);
    }
    if (this.bodyRefused)
      this.endRefused(empty ? noBytes : isWhole(body) ? body : wholeBytes(body));
    else if (isWhole(body) && body.length <= pacedAboveBytes) this.sink.end(body);
    else this.#sendPaced(isWhole(body) ? [body] : body);
  }

  stream(response: { status: number; headers: ResponseHeaders }): ResponseStream {
    if (this.#isSuperseded) return unread;
    this.#begin('stream', response.status);
    const { status, headers } = response;
    if (!this.#aborted) this.writeHead({ status, headers, contentLength: undefined, empty: false });
    return new StreamedAnswer(this, this.sink);
  }

  /** Counts bytes of a streamed answer. */
  countStreamed(bytes: number): void {
    this.#streamedBytes += bytes;
  }

  /** Ends a streamed answer; from now on the rest of it must make progress. */
  endStream(): void {
    this.#answering = 'whole';
    this.sink.end();
    this.#wroteAll(this.#streamedBytes);
  }

  #wroteAll(bytes: number): void {
    this.#responseBytes = bytes;
    this.#whenAnswered?.(bytes);
  }

  /** Releases the connection for a takeover; undefined if that is not possible. */
  protected release(): DetachedConnection | undefined {
    return undefined;
  }

  /** Called when the exchange has ended, completely or not. */
  closed(): void {
    this.#releaseMemory();
    this.#reader?.abort('the client has gone');
    this.#isClosed = true;
    this.#writer?.stop();
    if (!this.complete) {
      this.#aborted = true;
      this.#tellAborted();
    }
    this.#delivered?.resolve();
  }

  #tellAborted(): void {
    const callbacks = this.#abortCallbacks;
    this.#abortCallbacks = undefined;
    for (const callback of callbacks ?? []) contained({ where: 'endpoint' }, callback)();
  }

  /**
   * Called when the client has ended its side of the connection, and thus either left or only
   * reads. An answer that is being sent continues; a stream, which may never end, does not.
   */
  clientEnded(): void {
    if (!this.answered) this.endListener?.clientEnded();
    const isAnswering = this.#isSuperseded || this.#answering === 'whole';
    if (!isAnswering) this.destroy();
  }

  /** Called by the sweep: aborts the exchange if its client is too slow. */
  expire(now: number): void {
    const reader = this.#reader;
    if (reader !== undefined && !reader.settled && now > reader.deadline) {
      reader.abort('the body took too long');
    }
    if (this.#answering !== 'whole') return;
    this.#progressAt ??= now;
    if (now - this.#progressAt > this.core.limits.writeTimeoutMs) this.destroy();
  }

  #begin(kind: 'whole' | 'stream', status: number): void {
    if (this.#answering !== 'no') throw new Error('this exchange has been answered already');
    this.#answering = kind;
    this.#status = status;
  }

  #sendPaced(pieces: Iterable<BodyPiece>): void {
    const onProgress = (): void => {
      this.resumed();
      this.#progressAt = this.core.clock.monotonic();
    };
    const onFailure = (error: unknown): void => {
      this.destroy();
      reportFault('endpoint', error);
    };
    const onWritten = (bytes: number): void => this.#wroteAll(bytes);
    const { sink: target, core } = this;
    const { clock } = core;
    const writer = new PacedWriter({ target, pieces, clock, onProgress, onFailure, onWritten });
    writer.run();
    if (!writer.over) this.#writer = writer;
  }
}

/** A class rather than an object with closures, because every watch has one. */
class StreamedAnswer implements ResponseStream {
  readonly #exchange: ExchangeBase;
  readonly #sink: BodySink;

  constructor(exchange: ExchangeBase, sink: BodySink) {
    this.#exchange = exchange;
    this.#sink = sink;
  }

  write(chunk: Buffer): boolean {
    this.#exchange.countStreamed(chunk.length);
    return this.#sink.write(chunk);
  }

  onDrain(callback: () => void): void {
    this.#sink.onDrain(callback);
  }

  get bufferedBytes(): number {
    return this.#sink.bufferedBytes;
  }

  end(): void {
    this.#exchange.endStream();
  }

  destroy(): void {
    this.#exchange.destroy();
  }
}

/** The stream of an exchange that has already been answered by its timeout. */
const unread: ResponseStream = {
  write: () => true,
  onDrain: () => {},
  bufferedBytes: 0,
  end: () => {},
  destroy: () => {},
};

/** The body of answers that have none; shared, since an empty buffer cannot change. */
export const noBytes = Buffer.alloc(0);

function lengthOf(body: ResponseBody): number | undefined {
  if (isWhole(body)) return body.length;
  return Array.isArray(body) ? totalBytes(body) : undefined;
}
