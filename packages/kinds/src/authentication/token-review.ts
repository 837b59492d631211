import type { Dialect } from '@wheelhouse/machinery';
import type { ResourceDef } from '../resource-def.ts';
import { virtualKind } from '../virtual-kind.ts';

/** TokenReview: whose token is this, as the server sees it? (AUTHN-10) */
export function tokenReview(dialect: Dialect): ResourceDef {
  const spec = { token: 'example' };
  return virtualKind({ dialect, facts: 'authentication', kind: 'TokenReview', spec });
}
