import { createGzip, type Gzip } from 'node:zlib';
import { takesCoding } from '../base/accept-encoding.ts';
import {
  type BodyPiece,
  pieceBytes,
  type ResponseHeaders,
  type ResponseStream,
} from '../base/exchange.ts';
import type { ApiCall } from './call.ts';

/** Answers are compressed above this many bytes only (CODEC-7). */
const thresholdBytes = 128 * 1024;

/** Fastest level: the point is less traffic, not the smallest archive. */
const level = 1;

/**
 * Sends a body, compressed when it is the answer of a get or list, is long enough, the client takes
 * gzip and the feature is on (CODEC-7). Pieces are taken as the reader keeps up, so that neither
 * the whole answer nor its compressed form stands in memory.
 */
export function sendBody(
  call: ApiCall,
  answer: { status: number; headers: ResponseHeaders; body: Buffer | Iterable<BodyPiece> },
): void {
  const { status, headers, body } = answer;
  const isShort = isBuffer(body) && body.length <= thresholdBytes;
  if (isShort || !mayCompress(call)) {
    call.exchange.send(answer);
    return;
  }
  const { pieces, isLong } = measured(isBuffer(body) ? [body] : body);
  if (isLong) sendGzip(call, { status, headers, pieces });
  else call.exchange.send({ status, headers, body: pieces });
}

function mayCompress(call: ApiCall): boolean {
  const { context, exchange, info } = call;
  if (!context.compressResponses || exchange.method !== 'GET') return false;
  if (info.verb !== 'get' && info.verb !== 'list') return false;
  return takesGzip(exchange.header('accept-encoding') ?? '');
}

function isBuffer(body: Buffer | Iterable<BodyPiece>): body is Buffer {
  return body instanceof Buffer;
}

/** Whether an `Accept-Encoding` names gzip with a weight other than 0. */
export function takesGzip(accepted: string): boolean {
  return takesCoding(accepted, 'gzip');
}

/** Looks as far into the pieces as it takes to know whether they are long; loses none. */
function measured(source: Iterable<BodyPiece>): {
  pieces: Iterable<BodyPiece>;
  isLong: boolean;
} {
  const rest = source[Symbol.iterator]();
  const seen: BodyPiece[] = [];
  let bytes = 0;
  while (bytes <= thresholdBytes) {
    const next = rest.next();
    if (next.done === true) return { pieces: seen, isLong: false };
    seen.push(next.value);
    bytes += next.value.length;
  }
  return { pieces: chained(seen, rest), isLong: true };
}

function* chained(seen: readonly BodyPiece[], rest: Iterator<BodyPiece>): Generator<BodyPiece> {
  yield* seen;
  for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value;
}

function sendGzip(
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
  gzip.on('close', () => deadline.stop());
  exchange.onAbort(() => gzip.destroy());
  drainInto(gzip, stream);
  feed(gzip, answer.pieces[Symbol.iterator](), (error) => {
    context.logger.error('an answer could not be compressed', { error: String(error) });
    gzip.destroy();
    stream.destroy();
  });
}

function drainInto(gzip: Gzip, stream: ResponseStream): void {
  gzip.on('data', (chunk: Buffer) => {
    if (!stream.write(chunk)) gzip.pause();
  });
  stream.onDrain(() => gzip.resume());
  gzip.on('end', () => stream.end());
  gzip.on('error', () => stream.destroy());
}

/** Writes pieces as fast as the compressor takes them. */
function feed(gzip: Gzip, pieces: Iterator<BodyPiece>, onError: (error: unknown) => void): void {
  try {
    while (!gzip.destroyed) {
      const next = pieces.next();
      if (next.done === true) {
        gzip.end();
        return;
      }
      if (gzip.write(pieceBytes(next.value))) continue;
      gzip.once('drain', () => feed(gzip, pieces, onError));
      return;
    }
  } catch (error) {
    onError(error);
  }
}
