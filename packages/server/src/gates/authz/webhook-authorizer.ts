import { createHash } from 'node:crypto';
import {
  type Clock,
  createExpiringCache,
  type Dialect,
  type JsonObject,
  type MaybePromise,
  type Webhook,
  WebhookError,
} from '@wheelhouse/machinery';
import {
  type AccessReviewStatus,
  accessReviewBody,
  accessReviewSpec,
  readAccessReview,
} from './access-review.ts';
import type { AccessReviewVersion } from './authorizer-types.ts';
import type { Attributes, AuthorizationResult, Authorizer } from './contract.ts';

/** Upstream's bounds: how many answers are kept, and how long what a client chose may be then. */
const answersMax = 8192;
const controlledLengthMax = 10_000;

/** What a webhook authorizer does by; times in milliseconds. */
export interface WebhookAuthorizerSettings {
  readonly name: string;
  readonly version: AccessReviewVersion;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** What a call that fails comes to. */
  readonly failurePolicy: 'NoOpinion' | 'Deny';
  /** Whether selectors of lists are told to the webhook. */
  readonly selectors: 'told' | 'left out';
}

/** Whether a request is the webhook's concern. Throws when that cannot be told. */
export type MatchRequest = (spec: JsonObject) => boolean;

/**
 * Decides by what a webhook answers to a SubjectAccessReview (AUTHZ-2, AUTHZ-3). Answers are kept
 * for a while, those of allowed requests apart from the others. A call that fails, an answer that
 * cannot be understood and a condition that cannot be evaluated come to what the failure policy says.
 * `onFailOpen` hears of calls whose failure let the next authorizer decide.
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
  const ask = async (spec: JsonObject, attributes: Attributes): Promise<AuthorizationResult> => {
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
      try {
        if (matches?.(spec) === false) return { decision: 'no-opinion', reason: '' };
      } catch (error) {
        return failed(error, error instanceof Error ? error.message : String(error));
      }
      return cache.get(keyOf(spec)) ?? ask(spec, attributes);
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

/** The text of a spec, or a digest of a long one, so that keys take little memory. */
function keyOf(spec: JsonObject): string {
  const text = JSON.stringify(spec);
  return text.length <= plainKeyMax ? text : createHash('sha256').update(text).digest('base64');
}

/** What clients choose at will could otherwise fill the memory. */
function isCacheable(attributes: Attributes): boolean {
  const { namespace, verb, group, version, resource, subresource, name, path } = attributes;
  const controlled = [namespace, verb, group, version, resource, subresource, name, path];
  return controlled.reduce((sum, text) => sum + text.length, 0) < controlledLengthMax;
}
