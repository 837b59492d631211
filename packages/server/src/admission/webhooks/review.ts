import { decodeReviewAnswer, jsonText } from '@wheelhouse/codec';
import { schemaOf } from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  type Clock,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  parseApiVersion,
  randomUuid,
  textOf,
  type UserInfo,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import type { AdmissionCall } from '../../registry/contract.ts';
import {
  type KindFact,
  type RequestFacts,
  type ResourceFact,
  showKind,
} from '../matching/rules.ts';

/** The request as a webhook sees it, in the version that its rules name. */
export interface ConvertedCall {
  readonly call: AdmissionCall;
  readonly facts: RequestFacts;
  readonly resource: ResourceFact;
  readonly kind: KindFact;
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
}

const reviewVersions = ['v1', 'v1beta1'] as const;
type ReviewVersion = (typeof reviewVersions)[number];

/** A review to post, with what its answer must match. */
export interface Review {
  readonly version: ReviewVersion;
  readonly uid: string;
  readonly body: string;
}

/** A webhook's verdict; the patch is the text of a JSON patch, empty for none. */
export interface Verdict {
  readonly allowed: boolean;
  readonly patch: Buffer;
  readonly patchType: string;
  /** A Status. */
  readonly result: JsonObject | undefined;
  readonly warnings: readonly string[];
  readonly auditAnnotations: readonly (readonly [key: string, value: string])[];
}

/** The first version of AdmissionReview that both sides support; undefined if there is none. */
export function reviewVersion(accepted: readonly string[]): ReviewVersion | undefined {
  return accepted.find((name) => reviewVersions.some((version) => version === name)) as
    | ReviewVersion
    | undefined;
}

/** The JSON texts of a call's objects, which the reviews of all its hooks share. */
const objectTexts = new WeakMap<ConvertedCall, string>();

/** The members `object` and `oldObject` of a review, which are its last. */
function objectsText(convertedCall: ConvertedCall): string {
  const cached = objectTexts.get(convertedCall);
  if (cached !== undefined) return cached;
  const { object = null, old = null } = convertedCall;
  const text = `"object":${jsonText(object)},"oldObject":${jsonText(old)}`;
  objectTexts.set(convertedCall, text);
  return text;
}

/** Builds the AdmissionReview of a request. */
export function reviewOf(
  convertedCall: ConvertedCall,
  at: { version: ReviewVersion; dialect: Dialect },
): Review {
  const uid = randomUuid();
  const type = {
    kind: 'AdmissionReview',
    apiVersion: apiVersionOf({ group: at.dialect.group('admission'), version: at.version }),
  };
  const fields = { uid, ...requestFields(convertedCall, at.dialect) };
  const request = `${opened(fields)},${objectsText(convertedCall)}}`;
  return { version: at.version, uid, body: `${opened(type)},"request":${request}}\n` };
}

/** The JSON text of an object with members, without its end. */
const opened = (object: JsonObject): string => jsonText(object).slice(0, -1);

/** The fields of an AdmissionRequest without the objects and the UID; empty names are omitted. */
export function requestFields(
  { call, facts, resource, kind }: Omit<ConvertedCall, 'object' | 'old'>,
  dialect: Dialect,
): JsonObject {
  const { subresource, name, namespace, operation } = facts;
  return {
    kind: { ...kind },
    resource: { ...resource },
    ...(subresource === '' ? {} : { subResource: subresource }),
    requestKind: { ...facts.kind },
    requestResource: { ...facts.resource },
    ...(subresource === '' ? {} : { requestSubResource: subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: userOf(call.context.user),
    dryRun: call.context.dryRun,
    options: optionsOf(call, operation, dialect),
  };
}

function userOf({ name, uid, groups, extra }: UserInfo): JsonObject {
  const more = Object.entries(extra).map(([key, values]): [string, string[]] => [key, [...values]]);
  return {
    ...(name === '' ? {} : { username: name }),
    ...(uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(more.length === 0 ? {} : { extra: Object.fromEntries(more) }),
  };
}

const optionKinds: Readonly<Record<string, string>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
};

function optionsOf(
  { context, deletion }: AdmissionCall,
  operation: RequestFacts['operation'],
  dialect: Dialect,
): JsonValue {
  const kind = optionKinds[operation];
  if (kind === undefined) return null;
  const options = context.request?.options() ?? (context.dryRun ? { dryRun: ['All'] } : {});
  return {
    kind,
    apiVersion: `${dialect.group('meta')}/v1`,
    // Twice: its members precede others in the order of the type, and replace those of the request.
    ...deletion,
    ...options,
    ...deletion,
  };
}

/**
 * Parses an answer. Rejects with an Error in kube-apiserver's wording for a malformed one; its
 * content is not validated yet.
 */
export async function readAnswer(
  bytes: Buffer,
  {
    version,
    dialect,
    clock,
  }: {
    readonly version: ReviewVersion;
    readonly dialect: Dialect;
    readonly clock: Pick<Clock, 'monotonic'>;
  },
): Promise<JsonObject> {
  const group = dialect.group('admission');
  const type = { dialect, group, version, kind: 'AdmissionReview', versions: reviewVersions };
  const value = await decodeReviewAnswer(bytes, { clock, type });
  const review = decodeTyped(schemaOf('admission.v1.AdmissionReview'))(value);
  const raw = value['response'];
  // The typed form does not distinguish an empty patchType from an absent one.
  const patchType = isObject(raw) && typeof raw['patchType'] === 'string' ? raw['patchType'] : null;
  return { ...review, patchTypeGiven: patchType };
}

/**
 * Validates an answer to this review. Throws an Error in kube-apiserver's wording for an invalid
 * one.
 */
export function verdictOf(
  answer: JsonObject,
  review: Review,
  at: { readonly phase: 'mutating' | 'validating'; readonly dialect: Dialect },
): Verdict {
  const response = answer['response'];
  if (!isObject(response)) throw new Error('webhook response was absent');
  const { version } = review;
  const patch = Buffer.from(textOf(response['patch']), 'base64');
  const common = {
    allowed: response['allowed'] === true,
    result: isObject(response['status']) ? response['status'] : undefined,
    warnings: Array.isArray(response['warnings']) ? response['warnings'].map(String) : [],
    auditAnnotations: annotationsOf(response['auditAnnotations']),
  };
  if (version === 'v1beta1') {
    const isPatch = at.phase === 'mutating' && patch.length > 0;
    return {
      ...common,
      patch: isPatch ? patch : Buffer.alloc(0),
      patchType: isPatch ? 'JSONPatch' : '',
    };
  }
  checkIdentity(answer, response, { review, dialect: at.dialect });
  const rawPatchType = answer['patchTypeGiven'];
  const patchType = typeof rawPatchType === 'string' ? rawPatchType : undefined;
  checkPatch({ patch, patchType, phase: at.phase });
  return { ...common, patch, patchType: patchType ?? '' };
}

function checkIdentity(
  answer: JsonObject,
  response: JsonObject,
  at: { review: Review; dialect: Dialect },
): void {
  const uid = textOf(response['uid']);
  if (uid !== at.review.uid) {
    throw new Error(
      `expected response.uid=${JSON.stringify(at.review.uid)}, got ${JSON.stringify(uid)}`,
    );
  }
  const { group = '', version = '' } = parseApiVersion(textOf(answer['apiVersion'])) ?? {};
  const expected = showKind({
    group: at.dialect.group('admission'),
    version: 'v1',
    kind: 'AdmissionReview',
  });
  const got = version === '' ? `/, Kind=${textOf(answer['kind'])}` : undefined;
  const shown = got ?? showKind({ group, version, kind: textOf(answer['kind']) });
  if (shown !== expected) throw new Error(`expected webhook response of ${expected}, got ${shown}`);
}

function checkPatch(parts: {
  readonly patch: Buffer;
  readonly patchType: string | undefined;
  readonly phase: 'mutating' | 'validating';
}): void {
  const { patch, patchType, phase } = parts;
  const hasPatch = patch.length > 0;
  if (phase === 'validating') {
    if (hasPatch) throw new Error('validating webhook may not return response.patch');
    if (patchType !== undefined) {
      throw new Error('validating webhook may not return response.patchType');
    }
    return;
  }
  if (hasPatch && patchType === undefined) {
    throw new Error('webhook returned response.patch but not response.patchType');
  }
  if (!hasPatch && patchType !== undefined) {
    throw new Error('webhook returned response.patchType but not response.patch');
  }
  if (patchType === '') throw new Error('webhook returned invalid response.patchType of ""');
}

function annotationsOf(value: JsonValue | undefined): Verdict['auditAnnotations'] {
  if (!isObject(value)) return [];
  return Object.keys(value).map((key) => [key, textOf(value[key])] as const);
}
