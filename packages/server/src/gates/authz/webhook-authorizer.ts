import { createHash } from 'node:crypto';
import { reviewStatusReader, structType, textType, truthType } from '@wheelhouse/codec';
import {
  type Clock,
  createExpiringCache,
  type Dialect,
  errorText,
  type JsonObject,
  type LabelOperator,
  type MaybePromise,
  runInSlices,
  setMember,
  textOf,
  type UserInfo,
  type Webhook,
  WebhookError,
  webhookBody,
} from '@wheelhouse/machinery';
import type { Attributes, AuthorizationResult } from '../../registry/permit.ts';
import type { AccessReviewVersion, Authorizer } from './authorization.ts';

/** A webhook's decision. */
interface AccessReviewStatus {
  readonly allowed: boolean;
  readonly denied: boolean;
  readonly reason: string;
}

/**
 * The spec of a v1 SubjectAccessReview for a request, in kube-apiserver's member order and without
 * empty members, so that equal requests have equal texts.
 */
function accessReviewSpec(
  attributes: Attributes,
  options: { readonly selectors: 'included' | 'omitted' },
): JsonObject {
  const { user, path, verb } = attributes;
  const target = attributes.isResourceRequest
    ? { resourceAttributes: resourceAttributes(attributes, options.selectors) }
    : { nonResourceAttributes: nonEmpty({ path, verb }) };
  const extra = extraOf(user);
  return {
    ...target,
    ...nonEmpty({ user: user.name }),
    ...(user.groups.length === 0 ? {} : { groups: [...user.groups] }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
    ...nonEmpty({ uid: user.uid }),
  };
}

function nonEmpty(members: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ''));
}

function resourceAttributes(attributes: Attributes, selectors: 'included' | 'omitted'): JsonObject {
  const { namespace, verb, group, version, resource, subresource, name } = attributes;
  const plain = nonEmpty({ namespace, verb, group, version, resource, subresource, name });
  if (selectors === 'omitted') return plain;
  const fields = fieldRequirements(attributes);
  const labels = labelRequirements(attributes);
  return {
    ...plain,
    ...(fields.length === 0 ? {} : { fieldSelector: { requirements: fields } }),
    ...(labels.length === 0 ? {} : { labelSelector: { requirements: labels } }),
  };
}

function fieldRequirements({ fieldSelector = [] }: Attributes): JsonObject[] {
  return fieldSelector.map(({ label, operator, value }) => ({
    key: label,
    operator: operator === '=' ? 'In' : 'NotIn',
    values: [value],
  }));
}

const operators: Readonly<Partial<Record<LabelOperator, string>>> = {
  '=': 'In',
  '==': 'In',
  in: 'In',
  '!=': 'NotIn',
  notin: 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Omits numeric comparisons, which reviews cannot express; the review is then broader. */
function labelRequirements({ labelSelector = [] }: Attributes): JsonObject[] {
  return labelSelector.flatMap(({ key, operator, values }) => {
    const word = operators[operator];
    if (word === undefined) return [];
    return [{ key, operator: word, ...(values.length === 0 ? {} : { values: [...values] }) }];
  });
}

/** Sorts members by name, as Go encodes maps. */
function extraOf({ extra }: UserInfo): JsonObject {
  const sorted: JsonObject = {};
  for (const name of Object.keys(extra).sort()) setMember(sorted, name, [...(extra[name] ?? [])]);
  return sorted;
}

/** The body posted to a webhook; v1beta1 has another name for the groups. */
function accessReviewBody(
  spec: JsonObject,
  review: { readonly apiVersion: string; readonly version: AccessReviewVersion },
): string {
  return webhookBody({
    kind: 'SubjectAccessReview',
    apiVersion: review.apiVersion,
    metadata: { creationTimestamp: null },
    spec: review.version === 'v1' ? spec : withOldGroups(spec),
    status: { allowed: false },
  });
}

function withOldGroups(spec: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(spec).map(([name, value]) => [name === 'groups' ? 'group' : name, value]),
  );
}

const readStatus = reviewStatusReader(
  'SubjectAccessReview',
  structType('SubjectAccessReviewStatus', {
    allowed: truthType,
    denied: truthType,
    reason: textType,
    evaluationError: textType,
  }),
);

/** The decision of an answer. Throws if it is malformed or not a review of that version. */
function readAccessReview(answer: JsonObject, apiVersion: string): AccessReviewStatus {
  const status = readStatus(answer, apiVersion);
  return {
    allowed: status['allowed'] === true,
    denied: status['denied'] === true,
    reason: textOf(status['reason']),
  };
}

/**
 * kube-apiserver's limits of the cache: the number of answers, and the length of a request's
 * attributes.
 */
const answersMax = 8192;
const cacheableLengthMax = 10_000;

/** Options of a webhook authorizer; times are in milliseconds. */
export interface WebhookAuthorizerSettings {
  readonly name: string;
  readonly version: AccessReviewVersion;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** The decision after a failed call. */
  readonly failurePolicy: 'NoOpinion' | 'Deny';
  /** Whether the webhook receives the selectors of lists. */
  readonly selectors: 'included' | 'omitted';
}

/**
 * Whether a request matches the webhook's conditions, in steps (TRUST-2). Throws if that cannot be
 * evaluated.
 */
export type MatchRequest = (spec: JsonObject) => Generator<void, boolean>;

/**
 * Creates an authorizer that posts a SubjectAccessReview to a webhook (AUTHZ-2, AUTHZ-3). Answers
 * are cached, for separate durations if the request is allowed and if it is not. The failure policy
 * applies to failed calls, malformed answers, and conditions that cannot be evaluated. `onFailOpen`
 * is called when a failure leaves the decision to the next authorizer.
 */
export function createWebhookAuthorizer(
  settings: WebhookAuthorizerSettings,
  parts: {
    readonly webhook: Webhook;
    readonly dialect: Dialect;
    readonly clock: Clock;
    readonly matches?: MatchRequest | undefined;
    readonly onError: (error: unknown) => void;
    readonly onFailOpen: (outcome: WebhookError['outcome']) => void;
  },
): Authorizer {
  const { version } = settings;
  const { webhook, matches, clock } = parts;
  const apiVersion = `${parts.dialect.group('authorization')}/${version}`;
  const cache = createExpiringCache<AuthorizationResult>({ entriesMax: answersMax, clock });

  const failed = (error: unknown, message: string): AuthorizationResult => {
    parts.onError(error);
    return settings.failurePolicy === 'Deny'
      ? { decision: 'deny', reason: '', error: message }
      : { decision: 'no-opinion', reason: '', error: message };
  };
  const callWebhook = async (
    spec: JsonObject,
    attributes: Attributes,
  ): Promise<AuthorizationResult> => {
    const body = accessReviewBody(spec, { apiVersion, version });
    let status: AccessReviewStatus;
    try {
      const read = (answer: JsonObject) => readAccessReview(answer, apiVersion);
      status = await webhook.call(body, read, attributes.client);
    } catch (error) {
      if (!(error instanceof WebhookError)) throw error;
      if (settings.failurePolicy === 'NoOpinion') parts.onFailOpen(error.outcome);
      return failed(error, `authorization webhook ${JSON.stringify(settings.name)} failed`);
    }
    const result = resultOf(status);
    const ttlMs = status.allowed ? settings.authorizedTtlMs : settings.unauthorizedTtlMs;
    if (isCacheable(attributes)) cache.set(keyOf(spec), result, ttlMs);
    return result;
  };

  return {
    name: settings.name,
    authorize(attributes): MaybePromise<AuthorizationResult> {
      const spec = accessReviewSpec(attributes, settings);
      const decide = (isMatch: boolean): MaybePromise<AuthorizationResult> =>
        isMatch
          ? (cache.get(keyOf(spec)) ?? callWebhook(spec, attributes))
          : { decision: 'no-opinion', reason: '' };
      if (matches === undefined) return decide(true);
      let isMatch: MaybePromise<boolean>;
      try {
        isMatch = runInSlices(matches(spec), clock);
      } catch (error) {
        return failed(error, errorText(error));
      }
      if (!(isMatch instanceof Promise)) return decide(isMatch);
      return isMatch.then(decide, (error: unknown) => failed(error, errorText(error)));
    },
  };
}

function resultOf({ allowed, denied, reason }: AccessReviewStatus): AuthorizationResult {
  if (!denied) return { decision: allowed ? 'allow' : 'no-opinion', reason };
  if (!allowed) return { decision: 'deny', reason };
  const error = 'webhook subject access review returned both allow and deny response';
  return { decision: 'deny', reason, error };
}

const plainKeyMax = 500;

/** The text of a spec, or the digest of a long one, to limit the memory of keys. */
function keyOf(spec: JsonObject): string {
  const text = JSON.stringify(spec);
  return text.length <= plainKeyMax ? text : createHash('sha256').update(text).digest('base64');
}

/** Whether a request is small enough to cache; clients choose these values. */
function isCacheable(attributes: Attributes): boolean {
  const { namespace, verb, group, version, resource, subresource, name, path } = attributes;
  const controlled = [namespace, verb, group, version, resource, subresource, name, path];
  return controlled.reduce((sum, text) => sum + text.length, 0) < cacheableLengthMax;
}
