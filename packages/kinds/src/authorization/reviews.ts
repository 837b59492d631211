import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';

const resourceAttributes = { namespace: 'default', verb: 'get', resource: 'pods' };

/** SubjectAccessReview: whether a user or group may do something (AUTHZ-8). */
export function subjectAccessReview(dialect: Dialect): ResourceDef {
  const spec = { resourceAttributes, user: 'jane', groups: ['dev'] };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SubjectAccessReview', spec });
}

/** LocalSubjectAccessReview: the same within one namespace, for users who may ask only there. */
export function localSubjectAccessReview(dialect: Dialect): ResourceDef {
  const kind = 'LocalSubjectAccessReview';
  const spec = { resourceAttributes, user: 'jane' };
  return virtualKind({ dialect, facts: 'authorization', kind, scope: 'Namespaced', spec });
}

/** SelfSubjectAccessReview: whether the requester may do something. */
export function selfSubjectAccessReview(dialect: Dialect): ResourceDef {
  const spec = { resourceAttributes };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SelfSubjectAccessReview', spec });
}

/** SelfSubjectRulesReview: what the requester may do in a namespace. */
export function selfSubjectRulesReview(dialect: Dialect): ResourceDef {
  const spec = { namespace: 'default' };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SelfSubjectRulesReview', spec });
}
