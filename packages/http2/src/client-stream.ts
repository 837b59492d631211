import type { OutputStream } from './output.ts';
import { ReceiveWindow } from './stream.ts';

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
