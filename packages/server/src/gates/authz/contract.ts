import type {
  FieldRequirement,
  LabelRequirement,
  MaybePromise,
  RequestSubject,
  UserInfo,
  Waiting,
} from '@wheelhouse/machinery';

/**
 * What authorization looks at (AUTHZ-1). Made from a RequestInfo, or by hand for reviews and
 * checks.
 */
export interface Attributes extends RequestSubject {
  readonly user: UserInfo;
  /** What a list, watch or deletecollection keeps to; absent when it keeps to nothing readable. */
  readonly fieldSelector?: readonly FieldRequirement[];
  readonly labelSelector?: readonly LabelRequirement[];
  /** Who waits for the verdict: where nobody does any more, nobody else need be asked. */
  readonly client?: Waiting | undefined;
}

export type Decision = 'allow' | 'deny' | 'no-opinion';

export interface AuthorizationResult {
  readonly decision: Decision;
  /** Shown to the client when denied: `RBAC: clusterrole.… "x" not found`. May be empty. */
  readonly reason: string;
  /** What kept an authorizer from judging, for who reviews access; says nothing confidential. */
  readonly error?: string;
}

/** One authorizer of the chain; never throws for a lack of permission. */
export interface Authorizer {
  readonly name: string;
  authorize(attributes: Attributes): MaybePromise<AuthorizationResult>;
}

/** What authorizers a server may have, in upstream's words. */
export const authorizerTypes = [
  'ABAC',
  'AlwaysAllow',
  'AlwaysDeny',
  'Node',
  'RBAC',
  'Webhook',
] as const;
export type AuthorizerType = (typeof authorizerTypes)[number];

/** Versions of SubjectAccessReview that a webhook may be asked in. */
export const accessReviewVersions = ['v1', 'v1beta1'] as const;
export type AccessReviewVersion = (typeof accessReviewVersions)[number];
