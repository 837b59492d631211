import { decodeReviewAnswer, encodeJson, type JsonLimits, jsonText } from '@wheelhouse/codec';
import type { ObjectConverter } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  cloneJson,
  type Dialect,
  errorText,
  type FieldError,
  fieldErrorsText,
  goTypeName,
  isObject,
  itemAt,
  type JsonObject,
  type JsonValue,
  jsonObject,
  member,
  parseApiVersion,
  randomUuid,
  setMember,
  textOf,
  validateAnnotations,
  validateLabels,
} from '@wheelhouse/machinery';
import { maxDepth } from '@wheelhouse/schema';
import { ConversionFailure } from './converted-kinds.ts';
import type { ConversionFault, ConversionMetrics } from './metrics.ts';

const conversionReviewVersions = ['v1', 'v1beta1'] as const;
type ReviewVersion = (typeof conversionReviewVersions)[number];

/** A review to post, and the values that its answer must repeat. */
interface ConversionReview {
  readonly version: ReviewVersion;
  /** The apiVersion of the ConversionReview. */
  readonly apiVersion: string;
  readonly uid: string;
  readonly body: string;
}

const kind = 'ConversionReview';

/** The first version of ConversionReview that both sides support; undefined if there is none. */
function conversionReviewVersion(accepted: readonly string[]): ReviewVersion | undefined {
  return accepted.find((name): name is ReviewVersion =>
    conversionReviewVersions.some((version) => version === name),
  );
}

/** Creates the review that requests objects, given as JSON, in another version. */
function conversionReviewOf(
  objects: readonly string[],
  target: { readonly version: ReviewVersion; readonly group: string; readonly desired: string },
): ConversionReview {
  const uid = randomUuid();
  const apiVersion = `${target.group}/${target.version}`;
  const desired = JSON.stringify(target.desired);
  // Includes an empty response, as kube-apiserver sends it: webhooks may fill it in place.
  const body =
    `{"kind":"${kind}","apiVersion":"${apiVersion}","request":{"uid":"${uid}",` +
    `"desiredAPIVersion":${desired},"objects":[${objects.join(',')}]},` +
    '"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}\n';
  return { version: target.version, apiVersion, uid, body };
}

/** Maximum number of bytes of one text in an answer, which is decoded in one step (TRUST-2). */
const textBytesMax = 16_777_216;

/** Limits of an answer: each object in it may nest as deep as one in a request. */
const answerLimits: JsonLimits = { depthMax: maxDepth + 3, valuesMax: 20_000_000, textBytesMax };

/**
 * The converted objects of an answer, not yet validated. Throws an Error in kube-apiserver's
 * wording if the answer is for another review or reports a failure.
 */
function convertedObjects(answer: JsonObject, review: ConversionReview): JsonValue[] {
  const isKnown = textOf(answer['apiVersion']) === review.apiVersion && answer['kind'] === kind;
  if (review.version === 'v1' && !isKnown) {
    const expected = showKind(review.apiVersion, kind);
    const received = showKind(textOf(answer['apiVersion']), textOf(answer['kind']));
    throw new Error(`expected webhook response of ${expected}, got ${received}`);
  }
  const response = member(answer, 'response');
  if (!isObject(response)) throw new Error('no response provided');
  const uid = textOf(member(response, 'uid'));
  // v1beta1 answers have no uid.
  if (review.version === 'v1' && uid !== review.uid) {
    const [expected, received] = [JSON.stringify(review.uid), JSON.stringify(uid)];
    throw new Error(`expected response.uid=${expected}, got ${received}`);
  }
  checkResult(member(response, 'result'));
  const converted = member(response, 'convertedObjects') ?? [];
  if (Array.isArray(converted)) return converted;
  throw new Error('response.convertedObjects must be a list');
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

/** `group/version, Kind=kind` */
function showKind(apiVersion: string, shown: string): string {
  const { group = '', version = '' } = parseApiVersion(apiVersion) ?? {};
  return `${group}/${version}, Kind=${shown}`;
}

/** The conversion settings of a custom kind, and the tools to carry them out. */
export interface WebhookConversion {
  readonly crdName: string;
  /** Versions of ConversionReview that the webhook accepts, in order of preference. */
  readonly reviewVersions: readonly string[];
  /** The apiVersions of the kind, between which objects are converted. */
  readonly apiVersions: ReadonlySet<string>;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly metrics: ConversionMetrics;
  /** Posts a review's JSON and resolves with the answer; rejects in kube-apiserver's wording. */
  readonly post: (body: string) => Promise<Buffer>;
}

/**
 * Converts custom objects by calling their definition's webhook (CRD-4). One call sends one review:
 * `entriesIn` limits its objects.
 */
export function webhookConverter(conversion: WebhookConversion): Pick<ObjectConverter, 'convert'> {
  return {
    async convert(objects, apiVersion) {
      checkVersions(conversion, { objects, apiVersion });
      const places = [...objects.keys()].filter((at) => objects[at]?.apiVersion !== apiVersion);
      if (places.length === 0) return objects;
      const foreign = places.map((at) => itemAt(objects, at));
      const converted = await convertOnce(conversion, { objects: foreign, apiVersion });
      const result = [...objects];
      for (const [index, at] of places.entries()) result[at] = itemAt(converted, index);
      return result;
    },
  };
}

function checkVersions(
  { apiVersions }: WebhookConversion,
  { objects, apiVersion }: { objects: readonly ApiObject[]; apiVersion: string },
): void {
  if (!apiVersions.has(apiVersion)) {
    throw new ConversionFailure(`request to convert CR to an invalid group/version: ${apiVersion}`);
  }
  const unknown = objects.find((object) => !apiVersions.has(object.apiVersion));
  if (unknown === undefined) return;
  throw new ConversionFailure(
    `request to convert CR from an invalid group/version: ${unknown.apiVersion}`,
  );
}

/** A failed conversion, with its type for the metrics. */
class Fault extends Error {
  readonly type: ConversionFault;

  constructor(type: ConversionFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.type = type;
  }
}

async function convertOnce(
  conversion: WebhookConversion,
  request: { readonly objects: readonly ApiObject[]; readonly apiVersion: string },
): Promise<readonly ApiObject[]> {
  const { objects, apiVersion } = request;
  const { reviewVersions, dialect, clock } = conversion;
  const version = conversionReviewVersion(reviewVersions);
  if (version === undefined) throw new ConversionFailure('no supported conversion review versions');
  const startMs = clock.monotonic();
  const group = dialect.group('apiextensions');
  const review = conversionReviewOf(objects.map(jsonText), { version, group, desired: apiVersion });
  const [first] = objects as [ApiObject];
  try {
    const converted = await postReview(conversion, review);
    const checked = checkedObjects(converted, { objects, apiVersion });
    measure(conversion, { from: first.apiVersion, to: apiVersion, startMs });
    return checked;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const fault = error.type;
    measure(conversion, { from: first.apiVersion, to: apiVersion, startMs, fault });
    const kind = showKind(first.apiVersion, first.kind);
    throw new ConversionFailure(`conversion webhook for ${kind} ${error.message}`, error);
  }
}

function measure(
  { clock, crdName, metrics }: WebhookConversion,
  run: { from: string; to: string; startMs: number; fault?: ConversionFault },
): void {
  const { from, to, startMs, fault } = run;
  const versionOf = (apiVersion: string) => parseApiVersion(apiVersion)?.version ?? '';
  metrics({
    crdName,
    fromVersion: versionOf(from),
    toVersion: versionOf(to),
    durationMs: clock.monotonic() - startMs,
    ...(fault === undefined ? {} : { fault }),
  });
}

async function postReview(
  { post, clock, dialect }: WebhookConversion,
  review: ConversionReview,
): Promise<readonly JsonValue[]> {
  const { version } = review;
  const group = dialect.group('apiextensions');
  const type = { dialect, group, version, kind, versions: conversionReviewVersions };
  let answer: JsonObject;
  try {
    const bytes = await post(review.body);
    answer = await decodeReviewAnswer(bytes, { clock, limits: answerLimits, type });
  } catch (error) {
    throw new Fault('conversion_webhook_call_failure', `failed: ${errorText(error)}`, error);
  }
  try {
    return convertedObjects(answer, review);
  } catch (error) {
    const why = `failed: ${errorText(error)}`;
    throw new Fault('conversion_webhook_malformed_response_failure', why, error);
  }
}

/**
 * The objects of an answer with their original metadata. Throws Fault if they do not match the
 * request.
 */
function checkedObjects(
  converted: readonly JsonValue[],
  expected: { readonly objects: readonly ApiObject[]; readonly apiVersion: string },
): readonly ApiObject[] {
  const { objects, apiVersion } = expected;
  if (converted.length !== objects.length) {
    const why = `returned ${converted.length} objects, expected ${objects.length}`;
    throw new Fault('conversion_webhook_partial_response_failure', why);
  }
  const isAlone = objects.length === 1;
  return objects.map((original, index) => {
    const value = converted[index] ?? null;
    const at = isAlone ? 'at index 0' : `at index ${index}`;
    const what = isAlone ? 'object' : 'converted object';
    const refuse = (why: string) =>
      new Fault('conversion_webhook_invalid_converted_object_failure', `returned invalid ${why}`);
    const fault = typeFault(value, { original, apiVersion });
    if (fault !== undefined) throw refuse(`${what} ${at}: ${fault}`);
    const object = jsonObject(value);
    const stranger = identityFault(original, object);
    const place = isAlone ? '' : ` ${at}`;
    if (stranger !== undefined) throw refuse(`${what}${place}: ${stranger}`);
    const wrong = restoreMetadata(original, object);
    if (wrong !== undefined) throw refuse(`metadata${isAlone ? '' : ` in object ${at}`}: ${wrong}`);
    return asApiObject(object);
  });
}

function typeFault(
  value: JsonValue,
  { original, apiVersion }: { original: ApiObject; apiVersion: string },
): string | undefined {
  if (!isObject(value)) return 'it is not an object';
  const kind = textOf(value['kind']);
  if (kind === '') return `Object 'Kind' is missing in '${encodeJson(value).toString('utf8')}'`;
  const receivedVersion = textOf(value['apiVersion']);
  if (receivedVersion !== apiVersion) {
    return `invalid groupVersion (expected ${apiVersion}, received ${receivedVersion})`;
  }
  if (kind !== original.kind) {
    return `invalid kind (expected ${original.kind}, received ${kind})`;
  }
  return undefined;
}

const identities = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const;

/** Why a converted object is not the one that was sent; undefined if it is. */
function identityFault(original: JsonObject, converted: JsonObject): string | undefined {
  const before = metadataOf(original);
  const after = metadataOf(converted);
  for (const [name, shown] of identities) {
    const [originalText, convertedText] = [
      textOf(member(before, name)),
      textOf(member(after, name)),
    ];
    if (originalText !== convertedText)
      return `must have the same ${shown}: ${originalText} != ${convertedText}`;
  }
  return undefined;
}

const metadataOf = (object: JsonObject): JsonObject => {
  const metadata = member(object, 'metadata');
  return isObject(metadata) ? metadata : {};
};

/**
 * Restores the metadata of a converted object, except labels and annotations, which a webhook may
 * change. Returns the error in these, or undefined.
 */
export function restoreMetadata(original: JsonObject, converted: JsonObject): string | undefined {
  if (!Object.hasOwn(converted, 'metadata')) return 'missing metadata in converted object';
  const convertedMetadata = converted['metadata'] ?? null;
  if (!isObject(convertedMetadata))
    return `invalid metadata of type ${goTypeName(convertedMetadata)} in converted object`;
  const metadata = cloneJson(metadataOf(original));
  converted['metadata'] = metadata;
  for (const field of ['labels', 'annotations'] as const) {
    const fault = takeField(field, convertedMetadata, metadata);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function takeField(
  field: 'labels' | 'annotations',
  convertedMetadata: JsonObject,
  metadata: JsonObject,
): string | undefined {
  const converted = member(convertedMetadata, field);
  const before = metadata[field];
  if (converted === undefined || converted === null) {
    delete metadata[field];
    return undefined;
  }
  if (!isObject(converted)) {
    return `invalid metadata.${field} of type ${goTypeName(converted)} in converted object`;
  }
  const texts: Record<string, string> = {};
  for (const key of Object.keys(converted)) {
    const value = converted[key] ?? null;
    if (typeof value !== 'string') {
      const type = goTypeName(value);
      return `metadata.${field}[${key}] must be a string, but is ${type} in converted object`;
    }
    setMember(texts, key, value);
  }
  metadata[field] = texts;
  // Unchanged values have been validated before.
  if (sameTexts(isObject(before) ? before : {}, texts)) return undefined;
  return faultOf(
    field === 'labels'
      ? validateLabels(texts, 'metadata.labels')
      : validateAnnotations(texts, 'metadata.annotation'),
  );
}

function sameTexts(left: JsonObject, right: JsonObject): boolean {
  const keys = Object.keys(right);
  return (
    keys.length === Object.keys(left).length &&
    keys.every((key) => member(left, key) === member(right, key))
  );
}

/** Errors in one line; undefined if there are none. */
function faultOf(errors: readonly FieldError[]): string | undefined {
  return errors.length === 0 ? undefined : fieldErrorsText(errors);
}
