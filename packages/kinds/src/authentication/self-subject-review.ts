import type { Dialect } from '@wheelhouse/machinery';
import type { ResourceDef } from '../resource-def.ts';
import { virtualKind } from '../virtual-kind.ts';

/** SelfSubjectReview: who am I, as the server sees it? (AUTHN-10) */
export function selfSubjectReview(dialect: Dialect): ResourceDef {
  const olderVersions = ['v1beta1', 'v1alpha1'];
  return virtualKind({
    dialect,
    facts: 'authentication',
    kind: 'SelfSubjectReview',
    olderVersions,
  });
}
