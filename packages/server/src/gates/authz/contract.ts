import type { MaybePromise } from '@wheelhouse/machinery';
import type { Attributes, AuthorizationResult } from '../../registry/permit.ts';

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
