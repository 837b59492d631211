import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';

/** SelfSubjectReview: reports the requester's own identity (AUTHN-10). */
export function selfSubjectReview(dialect: Dialect): ResourceDef {
  const olderVersions = ['v1beta1', 'v1alpha1'];
  return virtualKind({
    dialect,
    facts: 'authentication',
    kind: 'SelfSubjectReview',
    olderVersions,
  });
}

/** TokenReview: authenticates a token and reports its identity (AUTHN-10). */
export function tokenReview(dialect: Dialect): ResourceDef {
  const spec = { token: 'example' };
  return virtualKind({ dialect, facts: 'authentication', kind: 'TokenReview', spec });
}
