import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';

/** SelfSubjectReview: the identity of the requester as the server sees it (AUTHN-10). */
export function selfSubjectReview(dialect: Dialect): ResourceDef {
  const olderVersions = ['v1beta1', 'v1alpha1'];
  return virtualKind({
    dialect,
    facts: 'authentication',
    kind: 'SelfSubjectReview',
    olderVersions,
  });
}

/** TokenReview: the identity that a token belongs to (AUTHN-10). */
export function tokenReview(dialect: Dialect): ResourceDef {
  const spec = { token: 'example' };
  return virtualKind({ dialect, facts: 'authentication', kind: 'TokenReview', spec });
}
