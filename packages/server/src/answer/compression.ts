import { createGzip, type Gzip } from 'node:zlib';
import {
  type BodyPiece,
  type Clock,
  listen,
  pieceBytes,
  type ResponseHeaders,
  type ResponseStream,
  Slices,
} from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';

/** Fastest level: the point is less traffic, not the smallest archive. */
const level = 1;

/**
 * Sends a body compressed. Pieces are taken as the reader keeps up, so that neither the whole answer
 * nor its compressed form stands in memory.
 */
export function sendGzip(
  call: ApiCall,
  answer: { status: number; headers: ResponseHeaders; pieces: Iterable<BodyPiece> },
): void {
  const { exchange, context } = call;
  const gzip = createGzip({ level });
  const stream = exchange.stream({
    status: answer.status,
    headers: { ...answer.headers, 'content-encoding': 'gzip', vary: 'Accept-Encoding' },
  });
  // A reader that never reads would hold the archive for good; a watch may last, an answer may not.
  const remainingMs = Math.max(0, call.deadline.dueMs - context.clock.monotonic());
  const deadline = context.clock.after(remainingMs, () => {
    context.metrics.aborted(exchange, call.info);
    stream.destroy();
  });
  const feeder = new Feeder({ gzip, pieces: answer.pieces, clock: context.clock }, (error) => {
    context.logger.error('an answer could not be compressed', { error: String(error) });
    gzip.destroy();
    stream.destroy();
  });
  const close = () => {
    deadline.stop();
    feeder.stop();
  };
  listen(gzip, { where: 'endpoint' }, { close });
  exchange.onAbort(() => gzip.destroy());
  drainInto(gzip, stream);
  feeder.run();
}

function drainInto(gzip: Gzip, stream: ResponseStream): void {
  const destroy = () => stream.destroy();
  listen(
    gzip,
    { where: 'endpoint', end: destroy },
    {
      data(chunk: Buffer) {
        if (!stream.write(chunk)) gzip.pause();
      },
      end: () => stream.end(),
      error: destroy,
    },
  );
  stream.onDrain(() => gzip.resume());
}

/** Writes pieces as fast as the compressor takes them, in slices (TRUST-2), until it is closed. */
class Feeder {
  readonly #gzip: Gzip;
  readonly #pieces: Iterator<BodyPiece>;
  readonly #slices: Slices;
  readonly #onError: (error: unknown) => void;
  readonly #run = (): void => this.run();

  constructor(
    options: {
      readonly gzip: Gzip;
      readonly pieces: Iterable<BodyPiece>;
      readonly clock: Clock;
    },
    onError: (error: unknown) => void,
  ) {
    this.#gzip = options.gzip;
    this.#pieces = options.pieces[Symbol.iterator]();
    this.#slices = new Slices(options.clock);
    this.#onError = onError;
  }

  run(): void {
    try {
      while (!this.#gzip.destroyed) {
        if (this.#slices.over) {
          this.#slices.afterPause(this.#run);
          return;
        }
        const next = this.#pieces.next();
        if (next.done === true) {
          this.#gzip.end();
          return;
        }
        if (next.value.length === 0 || this.#gzip.write(pieceBytes(next.value))) continue;
        const drain = () => {
          stop();
          this.run();
        };
        const stop = listen(this.#gzip, { where: 'endpoint', end: this.#onError }, { drain });
        return;
      }
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Tells the source of the pieces that none is wanted any more. */
  stop(): void {
    this.#pieces.return?.();
  }
}
