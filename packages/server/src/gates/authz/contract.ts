import type {
  FieldRequirement,
  LabelRequirement,
  MaybePromise,
  RequestSubject,
  UserInfo,
  WaitingClient,
} from '@wheelhouse/machinery';

/** The attributes of a request, a review, or a check that authorization considers (AUTHZ-1). */
export interface Attributes extends RequestSubject {
  readonly user: UserInfo;
  /**
   * The selectors of a list, watch, or deletecollection; absent if there are none or unreadable.
   */
  readonly fieldSelector?: readonly FieldRequirement[];
  readonly labelSelector?: readonly LabelRequirement[];
  /** The waiting client; webhooks are not called once it has disconnected. */
  readonly client?: WaitingClient | undefined;
}

export type Decision = 'allow' | 'deny' | 'no-opinion';

export interface AuthorizationResult {
  readonly decision: Decision;
  /** Part of the 403 message, such as `RBAC: clusterrole.… "x" not found`. May be empty. */
  readonly reason: string;
  /** Why an authorizer could not decide, for access reviews; contains nothing confidential. */
  readonly error?: string;
}

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
export type AuthorizerType = (typeof authorizerTypes)[number];

/** Versions of SubjectAccessReview that can be sent to a webhook. */
export const accessReviewVersions = ['v1', 'v1beta1'] as const;
export type AccessReviewVersion = (typeof accessReviewVersions)[number];
