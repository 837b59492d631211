import type { MaybePromise, UserInfo } from '@wheelhouse/machinery';
import type { ReviewToken } from '../../gates/authn/token-review.ts';
import type { Attributes, AuthorizationResult } from '../../gates/authz/contract.ts';
import type { RulesForUser } from '../../gates/authz/rbac/rbac-authorizer.ts';

/** What reviews ask of authorization and authentication. */
export interface ReviewPort {
  decide(attributes: Attributes): MaybePromise<AuthorizationResult>;
  /** Everything a user may do in a namespace, as far as it can be listed. */
  rulesFor(user: UserInfo, namespace: string): Promise<RulesForUser>;
  reviewToken: ReviewToken;
  /** Whether reviews are about selectors too; those that are left out nobody judges nor answers. */
  readonly selectors: 'told' | 'left out';
}
