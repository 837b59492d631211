import type { ReviewToken } from '../authn/token-review.ts';
import type { Attributes, AuthorizationResult } from '../authz/contract.ts';
import type { RulesForUser } from '../authz/rbac-authorizer.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { UserInfo } from '../meta/types.ts';

/** What reviews ask of authorization and authentication. */
export interface ReviewPort {
  decide(attributes: Attributes): MaybePromise<AuthorizationResult>;
  /** Everything a user may do in a namespace, as far as it can be listed. */
  rulesFor(user: UserInfo, namespace: string): Promise<RulesForUser>;
  reviewToken: ReviewToken;
  /** Whether reviews are about selectors too; those that are left out nobody judges nor answers. */
  readonly selectors: 'told' | 'left out';
}
