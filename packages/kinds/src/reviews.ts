import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from './define.ts';
import type { ResourceDef } from './resource-def.ts';

const resourceAttributes = { namespace: 'default', verb: 'get', resource: 'pods' };

const reviews: readonly Omit<Parameters<typeof virtualKind>[0], 'dialect'>[] = [
  // Reports the requester's own identity (AUTHN-10).
  { facts: 'authentication', kind: 'SelfSubjectReview', olderVersions: ['v1beta1', 'v1alpha1'] },
  // Authenticates a token and reports its identity (AUTHN-10).
  { facts: 'authentication', kind: 'TokenReview', spec: { token: 'example' } },
  // A SubjectAccessReview that is limited to one namespace.
  {
    facts: 'authorization',
    kind: 'LocalSubjectAccessReview',
    scope: 'Namespaced',
    spec: { resourceAttributes, user: 'jane' },
  },
  // Reports whether the requester is authorized for an action.
  { facts: 'authorization', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } },
  // Lists the actions that the requester is authorized for in a namespace.
  { facts: 'authorization', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } },
  // Reports whether a user or group is authorized for an action (AUTHZ-8).
  {
    facts: 'authorization',
    kind: 'SubjectAccessReview',
    spec: { resourceAttributes, user: 'jane', groups: ['dev'] },
  },
];

/** The kinds of all reviews. */
export const reviewKinds = reviews.map(
  (review) =>
    (dialect: Dialect): ResourceDef =>
      virtualKind({ dialect, ...review }),
);
