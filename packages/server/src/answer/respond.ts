import { promisify } from 'node:util';
import { createGzip, type Gzip, gzip } from 'node:zlib';
import {
  type BodyPiece,
  type BoundedTexts,
  type Clock,
  firstPieces,
  isWhole,
  type JsonObject,
  jsonObject,
  listen,
  omittedText,
  type Pace,
  pieceBytes,
  type ResponseBody,
  type ResponseHeaders,
  type ResponseStream,
  runAtPace,
  Slices,
  type Status,
  type StatusDetails,
  totalBytes,
} from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import type { AuditTrail } from '../gates/audit/trail.ts';
import type { Target } from '../registry/contract.ts';
import { type AnswerAge, entryIn } from '../registry/conversion/converted-kinds.ts';
import { jsonIn } from '../registry/object-codec.ts';
import { bodyPace, flowSchemaHeader, priorityLevelHeader } from '../request/request-state.ts';
import type { Entry } from '../watchcache/entry.ts';
import {
  encodeBytes,
  encodeBytesSteps,
  encodeValue,
  messageAhead,
  protobufObject,
} from './encodings.ts';
import { jsonSteps, type Transform, transformFor } from './shapes.ts';

/** The fastest level, because speed matters more than size. */
const level = 1;

const compress = promisify(gzip);

/** Compresses a whole document outside the event loop. */
export function gzipped(body: Buffer): Promise<Buffer> {
  return compress(body, { level });
}

/**
 * Sends a compressed body. Pieces are taken as the reader keeps up, so neither the whole answer nor
 * its compressed form is in memory.
 */
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
  // A reader that reads nothing would hold the compressor forever.
  const remainingMs = Math.max(0, call.deadline.dueMs - context.clock.monotonic());
  const deadline = context.clock.after(remainingMs, () => {
    context.metrics.countAbort(exchange, call.info);
    stream.destroy();
  });
  const feeder = new Feeder({ gzip, pieces: answer.pieces, clock: context.clock }, (error) => {
    context.logger.error('cannot compress an answer', { error: String(error) });
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

/**
 * Writes pieces as fast as the compressor accepts them, in slices (TRUST-2), until it is closed.
 */
class Feeder {
  readonly #gzip: Gzip;
  readonly #pieces: Iterator<BodyPiece>;
  readonly #slices: Slices;
  readonly #onError: (error: unknown) => void;
  readonly #run = (): void => this.run();

  constructor(
    options: { readonly gzip: Gzip; readonly pieces: Iterable<BodyPiece>; readonly clock: Clock },
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

  /** Ends the source of the pieces. */
  stop(): void {
    this.#pieces.return?.();
  }
}

/** Headers of an API answer: content type, audit ID, caching, flow control, and warnings. */
export function answerHeaders(
  call: Pick<ApiCall, 'baseHeaders'> & Partial<Pick<ApiCall, 'warnings'>>,
  contentType: string,
): Record<string, string | readonly string[]> {
  const { baseHeaders } = call;
  // No spread: it costs a tenth of a small answer.
  const headers: Record<string, string | readonly string[]> = {
    'audit-id': baseHeaders['audit-id'] ?? '',
    'cache-control': baseHeaders['cache-control'] ?? '',
    'content-type': contentType,
  };
  const flowSchema = baseHeaders[flowSchemaHeader];
  if (flowSchema !== undefined) headers[flowSchemaHeader] = flowSchema;
  const priorityLevel = baseHeaders[priorityLevelHeader];
  if (priorityLevel !== undefined) headers[priorityLevelHeader] = priorityLevel;
  const warning = warningHeaders(call.warnings);
  if (warning !== undefined) headers.warning = warning;
  return headers;
}

/** Headers of an answer that is no API object: those of each answer, its own, and warnings. */
export function documentHeaders(
  { baseHeaders, warnings }: Pick<ApiCall, 'baseHeaders' | 'warnings'>,
  own: Readonly<Record<string, string>>,
): Record<string, string | readonly string[]> {
  const headers = { ...baseHeaders, ...own };
  const warning = warningHeaders(warnings);
  return warning === undefined ? headers : { ...headers, warning };
}

/** Answers with a line of plain text, as kube-apiserver reports overload and errors of proxies. */
export function sendLine(
  { exchange, baseHeaders }: Pick<ApiCall, 'exchange' | 'baseHeaders'>,
  answer: { status: number; text: string; headers?: Readonly<Record<string, string>> },
): void {
  if (exchange.aborted) return;
  const headers = {
    ...baseHeaders,
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    ...answer.headers,
  };
  exchange.send({ status: answer.status, headers, body: Buffer.from(`${answer.text}\n`) });
}

/** Maximum total length of all warnings; above it, each one is truncated to `warningLengthMax`. */
const warningsLengthMax = 4096;

const warningLengthMax = 256;

/**
 * Creates `Warning` headers for as many texts as may be sent; the last one counts the omitted
 * texts. Texts of control characters alone are dropped. Returns undefined if there are none.
 */
export function warningHeaders(warnings: BoundedTexts | undefined): string[] | undefined {
  if (warnings?.isEmpty !== false) return undefined;
  const texts = warnings.texts.map(printable).filter((text) => text.length > 0);
  const whole = texts.reduce((sum, text) => sum + text.length, 0);
  const headers: string[] = [];
  const isWhole = whole <= warningsLengthMax;
  let written = 0;
  for (const text of texts) {
    if (written >= warningsLengthMax) break;
    const cut = isWhole ? text : text.slice(0, warningLengthMax);
    written += cut.length;
    headers.push(warningHeader(cut.join('')));
  }
  const omitted = texts.length - headers.length + warnings.omitted;
  if (omitted > 0) headers.push(warningHeader(omittedText(omitted, 'warning')));
  return headers.length === 0 ? undefined : headers;
}

/** The characters of a text that a header may contain. */
const printable = (text: string): readonly string[] =>
  Array.from(text).filter((character) => !/\p{Cc}/u.test(character));

/** `299 - "text"`, quoted as in RFC 7234. */
function warningHeader(text: string): string {
  const quoted = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return `299 - "${Buffer.from(quoted, 'utf8').toString('latin1')}"`;
}

/** Answers with one object in the request's version and encoding. */
export async function sendEntry(
  call: ApiCall,
  answer: { status: number; entry: Entry; age?: AnswerAge },
): Promise<void> {
  const { rendering, entryKind: def } = call;
  const { version } = call.target;
  let { entry } = answer;
  if (def.behavior.converter !== undefined) {
    entry = await entryIn(call.target.def, version, entry, answer.age);
  }
  const transform = rendering.shape === 'object' ? undefined : transformFor(call, 'object');
  const isProtobuf = rendering.encoding.form === 'protobuf' && transform === undefined;
  const pace = bodyPace(call, entry.json.length);
  if (call.audit?.recordsAnswers === true) {
    const json = await runAtPace(jsonSteps(call, entry, transform), pace);
    await runAtPace(call.audit.setResponseJson(json), pace);
  }
  const encoded =
    pace !== undefined
      ? largeBody(call, { entry, transform, pace })
      : isProtobuf
        ? protobufObject(call, entry)
        : encodeBytes(rendering, transform?.entry(entry) ?? jsonIn(def, version, entry));
  const body = encoded instanceof Promise ? await encoded : encoded;
  const headers = answerHeaders(call, rendering.encoding.mediaType);
  sendBody(call, { status: answer.status, headers, body });
}

/** A large entry in the request's version and encoding, made in steps (TRUST-2). */
async function largeBody(
  call: ApiCall,
  of: { readonly entry: Entry; readonly transform: Transform | undefined; readonly pace: Pace },
): Promise<ResponseBody> {
  const { entry, transform, pace } = of;
  const { rendering } = call;
  if (rendering.encoding.form === 'protobuf' && transform === undefined) {
    await runAtPace(messageAhead(call, entry), pace);
    return protobufObject(call, entry);
  }
  const json = await runAtPace(jsonSteps(call, entry, transform), pace);
  return runAtPace(encodeBytesSteps(rendering, json), pace);
}

/** Minimum size of a compressed answer in bytes (CODEC-7). */
export const compressedMin = 128 * 1024;

/** Sends a body, compressed if the rendering says so and the body is long enough (CODEC-7). */
export function sendBody(
  call: ApiCall,
  answer: { status: number; headers: ResponseHeaders; body: ResponseBody },
): void {
  const { status, headers, body } = answer;
  const isShort = isWhole(body) && body.length <= compressedMin;
  if (isShort || call.rendering.compression === 'none') {
    call.exchange.send(answer);
    return;
  }
  const pieces = isWhole(body) ? [body] : firstPieces(body, compressedMin);
  if (Array.isArray(pieces) && totalBytes(pieces) <= compressedMin) {
    call.exchange.send({ status, headers, body: pieces });
  } else sendGzip(call, { status, headers, pieces });
}

/**
 * Answers with an object that is not stored (a review, a Scale) in the requested form, of which
 * `target` has the columns and the type.
 */
export async function sendUnstored(
  call: ApiCall,
  answer: { status: number; object: JsonObject; target?: Target },
): Promise<void> {
  const { status, object, target = call.target } = answer;
  const form = transformFor({ ...call, target }, 'object');
  await sendValue(call, { status, value: form?.object(object) ?? object });
}

/** Answers with a decoded value, such as a discovery document or a Status. */
export async function sendValue(
  call: Pick<ApiCall, 'baseHeaders' | 'exchange' | 'rendering' | 'audit'> &
    Partial<Pick<ApiCall, 'warnings'>>,
  answer: { status: number; value: JsonObject },
): Promise<void> {
  const { audit } = call;
  if (audit !== undefined) recordAnswer(audit, answer.value);
  const body = await encodeValue(call.rendering, answer.value);
  const headers = answerHeaders(call, call.rendering.encoding.mediaType);
  call.exchange.send({ status: answer.status, headers, body });
}

/** Records the answer for audit; a Status has its own field there. */
function recordAnswer(audit: AuditTrail, value: JsonObject): void {
  if (isStatus(value)) audit.setResponseStatus(value);
  else audit.setResponseObject(value);
}

const isStatus = (value: JsonObject): value is JsonObject & Status =>
  value.kind === 'Status' && value.apiVersion === 'v1';

/** The Status of a success without an object: of a deletion, a binding, or an eviction. */
export function successStatus({
  details,
  ...rest
}: {
  readonly details?: StatusDetails;
  readonly message?: string;
  /** Omitted from the body if absent, as after a deletion. */
  readonly code?: number;
}): JsonObject {
  const shown = details === undefined ? {} : { details: jsonObject({ ...details }) };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...shown, ...rest };
}
