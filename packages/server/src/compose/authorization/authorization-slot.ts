import type { ReviewPort } from '../../endpoints/reviews/review-port.ts';
import type { Authorization } from '../../gates/authz/authorization.ts';
import type { EscalationPort } from '../../gates/authz/rbac/escalation-check.ts';

/** What the registry and reviews ask of authorization, and of authentication, behind the gates. */
export interface AuthorizationSlot extends EscalationPort, Authorization, ReviewPort {
  /** Called once, when the gates exist. */
  fill(
    made: Pick<AuthorizationSlot, 'rules' | 'rulesFor' | 'reviewToken'> & {
      readonly authorization: Authorization;
    },
  ): void;
}

/**
 * Stands for authorization until it is made: it follows the caches of the registry, which asks it
 * in turn, so one of them must come first.
 */
export function createAuthorizationSlot(
  selectors: AuthorizationSlot['selectors'],
): AuthorizationSlot {
  let filled: Parameters<AuthorizationSlot['fill']>[0] | undefined;
  const get = () => {
    if (filled === undefined) throw new Error('authorization is not set up');
    return filled;
  };
  return {
    selectors,
    fill: (made) => {
      filled = made;
    },
    decide: (attributes) => get().authorization.decide(attributes),
    authorize: (attributes) => get().authorization.authorize(attributes),
    rules: () => get().rules(),
    rulesFor: (user, namespace) => get().rulesFor(user, namespace),
    reviewToken: (token, audiences) => get().reviewToken(token, audiences),
  };
}
