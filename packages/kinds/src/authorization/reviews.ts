import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';

const resourceAttributes = { namespace: 'default', verb: 'get', resource: 'pods' };

/** SubjectAccessReview: may a user, or a group, do something? (AUTHZ-8) */
export function subjectAccessReview(dialect: Dialect): ResourceDef {
  const spec = { resourceAttributes, user: 'jane', groups: ['dev'] };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SubjectAccessReview', spec });
}

/** LocalSubjectAccessReview: the same within a namespace, for who may ask in that one alone. */
export function localSubjectAccessReview(dialect: Dialect): ResourceDef {
  const kind = 'LocalSubjectAccessReview';
  const spec = { resourceAttributes, user: 'jane' };
  return virtualKind({ dialect, facts: 'authorization', kind, scope: 'Namespaced', spec });
}

/** SelfSubjectAccessReview: may I do something? */
export function selfSubjectAccessReview(dialect: Dialect): ResourceDef {
  const spec = { resourceAttributes };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SelfSubjectAccessReview', spec });
}

/** SelfSubjectRulesReview: what may I do in a namespace? */
export function selfSubjectRulesReview(dialect: Dialect): ResourceDef {
  const spec = { namespace: 'default' };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SelfSubjectRulesReview', spec });
}
