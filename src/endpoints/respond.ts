import type { AuditTrail } from '../audit/trail.ts';
import type { Exchange } from '../base/exchange.ts';
import type { JsonObject } from '../base/json.ts';
import type { Status, StatusDetails, StatusError } from '../meta/status.ts';
import { jsonIn } from '../registry/object-codec.ts';
import type { Entry } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { sendBody } from './compression.ts';
import { encodeBytes, encodeValue, type Output } from './output.ts';
import { protobufObject } from './protobuf-bytes.ts';
import { transformFor } from './transform.ts';

/** Headers of an API answer: upstream's cache rule, the request's id, its warnings. */
export function answerHeaders(
  call: Pick<ApiCall, 'baseHeaders' | 'warnings'>,
  contentType: string,
): Record<string, string | readonly string[]> {
  const { baseHeaders } = call;
  // No spread: it costs a tenth of a small answer.
  const headers: Record<string, string | readonly string[]> = {
    'audit-id': baseHeaders['audit-id'] ?? '',
    'cache-control': baseHeaders['cache-control'] ?? '',
    'content-type': contentType,
  };
  if (call.warnings.length > 0) headers.warning = call.warnings.map(warningHeader);
  return headers;
}

/** Longest text and sum of texts upstream lets into Warning headers, bytes. */
const warningTextMax = 4096;

/** `299 - "text"`, quoted as RFC 7234 wants, control characters dropped. */
export function warningHeader(text: string): string {
  const clean = Array.from(text)
    .filter((character) => character >= ' ' && character !== '\u007f')
    .join('')
    .slice(0, warningTextMax);
  const quoted = clean.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return `299 - "${Buffer.from(quoted, 'utf8').toString('latin1')}"`;
}

/** Answers with one object in the request's version and encoding. */
export async function sendEntry(
  call: ApiCall,
  answer: { status: number; entry: Entry },
): Promise<void> {
  const { def, version } = call.target;
  const transform = transformFor(call, 'object');
  const isProtobuf = call.output.encoding.form === 'protobuf' && transform === undefined;
  call.audit?.responseObject(
    () => transform?.entry(answer.entry) ?? jsonIn(def, version, answer.entry),
  );
  const body = isProtobuf
    ? protobufObject(call, answer.entry)
    : await encodeBytes(
        call.output,
        transform?.entry(answer.entry) ?? jsonIn(def, version, answer.entry),
      );
  const headers = answerHeaders(call, call.output.encoding.mediaType);
  sendBody(call, { status: answer.status, headers, body });
}

/** Answers with a decoded value (discovery, reviews, a scale). */
export async function sendValue(
  call: Pick<ApiCall, 'baseHeaders' | 'warnings' | 'exchange' | 'output' | 'audit'>,
  answer: { status: number; value: JsonObject },
): Promise<void> {
  const { audit } = call;
  if (audit !== undefined) tellAnswer(audit, answer.value);
  const body = await encodeValue(call.output, answer.value);
  const headers = answerHeaders(call, call.output.encoding.mediaType);
  call.exchange.send({ status: answer.status, headers, body });
}

/** A Status says in the audit log's own words how it went. */
function tellAnswer(audit: AuditTrail, value: JsonObject): void {
  const isStatus = value.kind === 'Status' && value.apiVersion === 'v1';
  if (isStatus) audit.responseStatus(value as unknown as Status);
  else audit.responseObject(() => value);
}

/** Answers a failure: the Status itself, `Retry-After` where it has one (API-10, LIST-7). */
export async function sendFailure(
  call: {
    readonly exchange: Exchange;
    readonly output: Output;
    readonly baseHeaders: Readonly<Record<string, string>>;
    readonly audit?: AuditTrail | undefined;
  },
  error: StatusError,
): Promise<void> {
  call.audit?.responseStatus(error.status);
  const body = await encodeValue(call.output, error.status as unknown as JsonObject);
  const headers: Record<string, string> = {
    ...call.baseHeaders,
    'content-type': call.output.encoding.mediaType,
  };
  const retryAfter = error.status.details?.retryAfterSeconds;
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  call.exchange.send({ status: error.code, headers, body });
}

/** The Status of a success without an object (deletions). */
export function successStatus(details: StatusDetails, code: number): JsonObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { ...details } as JsonObject,
    ...(code === 200 ? {} : { code }),
  };
}
