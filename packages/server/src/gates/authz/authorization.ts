import { AccessDenied, forbidden, type MaybePromise } from '@wheelhouse/machinery';
import {
  type Attributes,
  type AuthorizationResult,
  grantPermit,
  type Permit,
} from '../../registry/permit.ts';

/** One authorizer of the chain; a missing permission is a result, not an error. */
export interface Authorizer {
  readonly name: string;
  authorize(attributes: Attributes): MaybePromise<AuthorizationResult>;
}

/** Types of authorizers. */
export const authorizerTypes = [
  'ABAC',
  'AlwaysAllow',
  'AlwaysDeny',
  'Node',
  'RBAC',
  'Webhook',
] as const;
/** A type of authorizer, as `--authorization-mode` names it (AUTHZ-2). */
export type AuthorizerType = (typeof authorizerTypes)[number];

/** Versions of SubjectAccessReview that can be sent to a webhook. */
export const accessReviewVersions = ['v1', 'v1beta1'] as const;
/** A version of SubjectAccessReview that can be sent to a webhook. */
export type AccessReviewVersion = (typeof accessReviewVersions)[number];

/** Authorizes requests with a chain of authorizers. */
export interface Authorization {
  /** The decision of the first authorizer with an opinion; for reviews and special verbs. */
  decide(attributes: Attributes): MaybePromise<AuthorizationResult>;
  /** The gate: returns a Permit; throws or rejects with a 403 StatusError. */
  authorize(attributes: Attributes): MaybePromise<Permit>;
}

/**
 * Combines authorizers in order (AUTHZ-2): the first that allows or denies decides. If none does,
 * the request is not allowed, and the reasons of all are joined by newlines. An authorizer that
 * throws has no opinion, and the client does not see its error. The list of the chain may be
 * replaced; a request uses the list that is current when it begins.
 */
export function createAuthorization(options: {
  readonly chain: { readonly list: readonly Authorizer[] };
  readonly onError?: (failure: { authorizer: string; error: unknown }) => void;
}): Authorization {
  const failed = (authorizer: Authorizer, error: unknown): AuthorizationResult => {
    options.onError?.({ authorizer: authorizer.name, error });
    return { decision: 'no-opinion', reason: '' };
  };
  const decideAsync = async (
    attributes: Attributes,
    state: {
      readonly authorizers: readonly Authorizer[];
      readonly index: number;
      readonly pending: Promise<AuthorizationResult>;
      readonly passed: AuthorizationResult[];
    },
  ): Promise<AuthorizationResult> => {
    const { authorizers, passed } = state;
    let { index, pending } = state;
    for (;;) {
      const current = authorizers[index]!;
      const result = await pending.catch((error: unknown) => failed(current, error));
      if (result.decision !== 'no-opinion') return result;
      passed.push(result);
      index += 1;
      const next = authorizers[index];
      if (next === undefined) return withoutOpinion(passed);
      pending = (async () => next.authorize(attributes))();
    }
  };

  const decide = (attributes: Attributes): MaybePromise<AuthorizationResult> => {
    const authorizers = options.chain.list;
    const passed: AuthorizationResult[] = [];
    for (let index = 0; index < authorizers.length; index++) {
      const authorizer = authorizers[index]!;
      let result: MaybePromise<AuthorizationResult>;
      try {
        result = authorizer.authorize(attributes);
      } catch (error) {
        result = failed(authorizer, error);
      }
      if (result instanceof Promise) {
        return decideAsync(attributes, { authorizers, index, pending: result, passed });
      }
      if (result.decision !== 'no-opinion') return result;
      passed.push(result);
    }
    return withoutOpinion(passed);
  };

  return {
    decide,
    authorize(attributes) {
      const result = decide(attributes);
      if (result instanceof Promise) return result.then((settled) => permit(attributes, settled));
      return permit(attributes, result);
    },
  };
}

function withoutOpinion(passed: readonly AuthorizationResult[]): AuthorizationResult {
  const reasons = passed.map(({ reason }) => reason).filter((reason) => reason !== '');
  const errors = new Set(passed.flatMap(({ error }) => error ?? []));
  const [first] = errors;
  const result = { decision: 'no-opinion', reason: reasons.join('\n') } as const;
  if (first === undefined) return result;
  return { ...result, error: errors.size === 1 ? first : `[${[...errors].join(', ')}]` };
}

function permit(attributes: Attributes, result: AuthorizationResult): Permit {
  if (result.decision !== 'allow') throw new ForbiddenError(attributes, result);
  return grantPermit(attributes, result.reason);
}

/** A 403 for a request that is not allowed (AUTHZ-1). */
export class ForbiddenError extends AccessDenied {
  readonly result: AuthorizationResult;

  constructor(attributes: Attributes, result: AuthorizationResult) {
    const { reason } = result;
    const text = escapeMarkup(cannot(attributes));
    const { message, status } = forbidden(
      { group: attributes.group, resource: attributes.resource },
      attributes.name,
      reason === '' ? text : `${text}: ${reason}`,
    );
    const { details = {} } = status;
    super({ code: 403, reason: 'Forbidden', message, details });
    this.result = result;
  }
}

function cannot(attributes: Attributes): string {
  const user = `User ${JSON.stringify(attributes.user.name)} cannot ${attributes.verb}`;
  if (!attributes.isResourceRequest) return `${user} path ${JSON.stringify(attributes.path)}`;
  const resource =
    attributes.subresource === ''
      ? attributes.resource
      : `${attributes.resource}/${attributes.subresource}`;
  const scope =
    attributes.namespace === ''
      ? 'at the cluster scope'
      : `in the namespace ${JSON.stringify(attributes.namespace)}`;
  const group = JSON.stringify(attributes.group);
  return `${user} resource ${JSON.stringify(resource)} in API group ${group} ${scope}`;
}

/** Escapes markup, because a browser might render the message as a page. */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Allows everything (`--authorization-mode=AlwaysAllow`). */
export const alwaysAllow: Authorizer = {
  name: 'AlwaysAllow',
  authorize: () => ({ decision: 'allow', reason: '' }),
};

/** Allows nothing, but lets later authorizers decide. */
export const alwaysDeny: Authorizer = {
  name: 'AlwaysDeny',
  authorize: () => ({ decision: 'no-opinion', reason: 'Everything is forbidden.' }),
};

/**
 * Creates the first authorizer of the chain, which allows everything to `system:masters`
 * (AUTHZ-10).
 */
export function createPrivilegedGroupAuthorizer(): Authorizer {
  return {
    name: 'PrivilegedGroup',
    authorize: ({ user }) =>
      user.groups.includes('system:masters')
        ? { decision: 'allow', reason: '' }
        : { decision: 'no-opinion', reason: '' },
  };
}
