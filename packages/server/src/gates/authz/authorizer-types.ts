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
