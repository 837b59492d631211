import { decodeJson, JsonError, type JsonLimits } from '@wheelhouse/codec';
import {
  goValue,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
  problemText,
  randomUuid,
  textOf,
  typeMetaStruct,
} from '@wheelhouse/machinery';
import { maxDepth } from '@wheelhouse/schema';

type ReviewVersion = 'v1' | 'v1beta1';

/** A review to post, and what its answer is held against. */
export interface ConversionReview {
  readonly version: ReviewVersion;
  /** Of ConversionReview itself, with its version. */
  readonly apiVersion: string;
  readonly uid: string;
  readonly body: string;
}

const kind = 'ConversionReview';

/** The first version of ConversionReview that both sides know; undefined where there is none. */
export function conversionReviewVersion(accepted: readonly string[]): ReviewVersion | undefined {
  return accepted.find((one): one is ReviewVersion => one === 'v1' || one === 'v1beta1');
}

/** Makes the review that asks for objects, given as JSON, in another version. */
export function conversionReviewOf(
  objects: readonly string[],
  target: { readonly version: ReviewVersion; readonly group: string; readonly desired: string },
): ConversionReview {
  const uid = randomUuid();
  const apiVersion = `${target.group}/${target.version}`;
  const desired = JSON.stringify(target.desired);
  // The response is there in upstream's form as well: webhooks may fill it in place.
  const body =
    `{"kind":"${kind}","apiVersion":"${apiVersion}","request":{"uid":"${uid}",` +
    `"desiredAPIVersion":${desired},"objects":[${objects.join(',')}]},` +
    '"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}\n';
  return { version: target.version, apiVersion, uid, body };
}

/** Reads an answer's JSON. Throws an Error, in upstream's words, for what is none. */
export function readConversionAnswer(bytes: Buffer): JsonObject {
  if (bytes.length === 0) throw new Error('0-length response with status code: 200');
  const value = parsed(bytes);
  if (isObject(value)) return value;
  const why = problemText({ code: 'misfit', what: goValue(value), type: typeMetaStruct });
  throw new Error(problemText({ code: 'no type', why }));
}

/** Of an answer: each object in it may nest as deep as one in a request. */
const answerLimits: JsonLimits = { depthMax: maxDepth + 3, valuesMax: 20_000_000 };

function parsed(bytes: Buffer): JsonValue {
  try {
    return decodeJson(bytes, answerLimits).value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Error(problemText({ code: 'no type', why: error.message }));
  }
}

/**
 * The converted objects of an answer, not judged yet. Throws an Error, in upstream's words, where it
 * does not answer this review, or tells of a failure.
 */
export function convertedObjects(answer: JsonObject, review: ConversionReview): JsonValue[] {
  const isKnown = textOf(answer['apiVersion']) === review.apiVersion && answer['kind'] === kind;
  if (review.version === 'v1' && !isKnown) {
    const wanted = showKind(review.apiVersion, kind);
    const got = showKind(textOf(answer['apiVersion']), textOf(answer['kind']));
    throw new Error(`expected webhook response of ${wanted}, got ${got}`);
  }
  const response = member(answer, 'response');
  if (!isObject(response)) throw new Error('no response provided');
  const uid = textOf(member(response, 'uid'));
  // The earlier version never told whose answer it is.
  if (review.version === 'v1' && uid !== review.uid) {
    const [wanted, got] = [JSON.stringify(review.uid), JSON.stringify(uid)];
    throw new Error(`expected response.uid=${wanted}, got ${got}`);
  }
  checkResult(member(response, 'result'));
  const converted = member(response, 'convertedObjects') ?? [];
  if (Array.isArray(converted)) return converted;
  throw new Error('response.convertedObjects is no list');
}

function checkResult(result: JsonValue | undefined): void {
  const resultFields = isObject(result) ? result : {};
  const status = textOf(member(resultFields, 'status'));
  if (status === 'Success') return;
  const message = textOf(member(resultFields, 'message'));
  throw new Error(
    message === '' ? `response.result.status was '${status}', not 'Success'` : message,
  );
}

/** `group/version, Kind=kind`, as upstream prints a kind. */
export function showKind(apiVersion: string, shown: string): string {
  const { group = '', version = '' } = parseApiVersion(apiVersion) ?? {};
  return `${group}/${version}, Kind=${shown}`;
}
