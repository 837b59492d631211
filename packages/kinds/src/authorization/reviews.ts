import type { Dialect } from '@wheelhouse/machinery';
import { virtualKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';

const resourceAttributes = { namespace: 'default', verb: 'get', resource: 'pods' };

/** SubjectAccessReview: reports whether a user or group is authorized for an action (AUTHZ-8). */
export function subjectAccessReview(dialect: Dialect): ResourceDef {
  const spec = { resourceAttributes, user: 'jane', groups: ['dev'] };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SubjectAccessReview', spec });
}

/** LocalSubjectAccessReview: a SubjectAccessReview that is limited to one namespace. */
export function localSubjectAccessReview(dialect: Dialect): ResourceDef {
  const kind = 'LocalSubjectAccessReview';
  const spec = { resourceAttributes, user: 'jane' };
  return virtualKind({ dialect, facts: 'authorization', kind, scope: 'Namespaced', spec });
}

/** SelfSubjectAccessReview: reports whether the requester is authorized for an action. */
export function selfSubjectAccessReview(dialect: Dialect): ResourceDef {
  const spec = { resourceAttributes };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SelfSubjectAccessReview', spec });
}

/**
 * SelfSubjectRulesReview: lists the actions that the requester is authorized for in a namespace.
 */
export function selfSubjectRulesReview(dialect: Dialect): ResourceDef {
  const spec = { namespace: 'default' };
  return virtualKind({ dialect, facts: 'authorization', kind: 'SelfSubjectRulesReview', spec });
}
