import { type ApiObject, dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../../registry/permit.ts';
import { createRbacAuthorizer, type RbacSource } from './rbac-authorizer.ts';
import type { RbacChange, RbacKind } from './rbac-index.ts';

function object(kind: RbacKind, place: string, body: JsonObject): ApiObject {
  const [namespace, name = ''] = place.includes('/') ? place.split('/') : ['', place];
  return {
    apiVersion: 'rbac.authorization.svc.io/v1',
    kind,
    metadata: { name, ...(namespace === '' ? {} : { namespace: namespace! }) },
    ...body,
  };
}

/** An authorizer without roles, and a function that reports changes to it. */
function rbac() {
  let apply = (_: RbacChange): void => {};
  const onChange: RbacSource['onChange'] = (listener) => {
    apply = listener;
    return () => {};
  };
  const source = { list: () => [], onChange };
  const authorizer = createRbacAuthorizer({ source, dialect: dialectOf('svc') });
  return { ...authorizer, apply: (change: RbacChange) => apply(change) };
}
type Rbac = ReturnType<typeof rbac>;

function add(to: Rbac, kind: RbacKind, place: string, body: JsonObject): ApiObject {
  const current = object(kind, place, body);
  to.apply({ kind, current });
  return current;
}

const requestWith = (change: Partial<Attributes> & { user?: Attributes['user'] }): Attributes => ({
  user: { name: 'u', uid: '', groups: ['g'], extra: {} },
  verb: 'get',
  isResourceRequest: true,
  group: '',
  version: 'v1',
  resource: 'pods',
  subresource: '',
  namespace: 'ns',
  name: 'p',
  path: '',
  ...change,
});

const user = (name: string) => ({ kind: 'User', name });
const ref = (kind: string, name: string) => ({ kind, name });

describe('AUTHZ-4: rules', () => {
  const cases: [JsonObject, Partial<Attributes>, boolean][] = [
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }, {}, true],
    [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, { subresource: 'log' }, true],
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }, { subresource: 'log' }, false],
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods/log'] }, { subresource: 'log' }, true],
    [{ verbs: ['get'], apiGroups: [''], resources: ['*/log'] }, { subresource: 'log' }, true],
    [{ verbs: ['get'], apiGroups: [''], resources: ['*/log'] }, {}, false],
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods/*'] }, { subresource: 'log' }, false],
    [{ verbs: ['list'], apiGroups: [''], resources: ['pods'] }, {}, false],
    [{ verbs: ['get'], apiGroups: ['apps'], resources: ['pods'] }, {}, false],
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['p'] }, {}, true],
    [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['q'] }, {}, false],
    [
      { verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['q'] },
      { name: '' },
      false,
    ],
    [{ verbs: ['get'], nonResourceURLs: ['*'] }, {}, false],
    [
      { verbs: ['get'], nonResourceURLs: ['/a/*'] },
      { isResourceRequest: false, path: '/a/b' },
      true,
    ],
    [
      { verbs: ['get'], nonResourceURLs: ['/a/*'] },
      { isResourceRequest: false, path: '/a' },
      false,
    ],
    [
      { verbs: ['get'], nonResourceURLs: ['/a*'] },
      { isResourceRequest: false, path: '/abc' },
      true,
    ],
    [{ verbs: ['get'], nonResourceURLs: ['/a'] }, { isResourceRequest: false, path: '/a' }, true],
    [{ verbs: ['*'], nonResourceURLs: ['*'] }, { isResourceRequest: false, path: '/x' }, true],
    [{ verbs: ['__proto__'], apiGroups: [''], resources: ['pods'] }, {}, false],
  ];
  test.each(cases)('%j on %j is %s', (rule, change, allowed) => {
    const authorizer = rbac();
    add(authorizer, 'ClusterRole', 'r', { rules: [rule] });
    add(authorizer, 'ClusterRoleBinding', 'b', {
      roleRef: ref('ClusterRole', 'r'),
      subjects: [user('u')],
    });
    const { decision } = authorizer.authorize(requestWith(change)) as { decision: string };
    expect(decision).toBe(allowed ? 'allow' : 'no-opinion');
  });
});

const readPods = { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] };
const decide = (authorizer: Rbac, change: Partial<Attributes> = {}) =>
  authorizer.authorize(requestWith(change)) as { decision: string; reason: string };

describe('AUTHZ-4: bindings', () => {
  test('a RoleBinding grants only in its namespace', () => {
    const authorizer = rbac();
    add(authorizer, 'Role', 'ns/r', readPods);
    add(authorizer, 'RoleBinding', 'ns/b', { roleRef: ref('Role', 'r'), subjects: [user('u')] });
    expect(decide(authorizer)).toEqual({
      decision: 'allow',
      reason: 'RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "u"',
    });
    expect(decide(authorizer, { namespace: 'other' }).decision).toBe('no-opinion');
    expect(decide(authorizer, { namespace: '' }).decision).toBe('no-opinion');
  });

  test.each<[JsonObject, string, string[]]>([
    [{ kind: 'Group', name: 'g2' }, 'someone', ['g2']],
    [{ kind: 'ServiceAccount', name: 'sa', namespace: 'x' }, 'system:serviceaccount:x:sa', []],
    [{ kind: 'ServiceAccount', name: 'sa' }, 'system:serviceaccount:ns:sa', []],
  ])('subject %j is %s %j', (subject, name, groups) => {
    const authorizer = rbac();
    add(authorizer, 'ClusterRole', 'r', readPods);
    const roleRef = ref('ClusterRole', 'r');
    const binding = add(authorizer, 'RoleBinding', 'ns/b', { roleRef, subjects: [subject] });
    const who = { user: { name, uid: '', groups, extra: {} } };
    expect(decide(authorizer, who).decision).toBe('allow');
    expect(decide(authorizer).decision).toBe('no-opinion');
    authorizer.apply({ kind: 'RoleBinding', previous: binding });
    expect(decide(authorizer, who).decision).toBe('no-opinion');
  });

  test('unresolvable references are reported and do not affect other bindings', () => {
    const authorizer = rbac();
    const subjects = [user('u')];
    add(authorizer, 'RoleBinding', 'ns/a', { roleRef: ref('Role', 'gone'), subjects });
    add(authorizer, 'ClusterRoleBinding', 'b', { roleRef: ref('ClusterRole', 'away'), subjects });
    add(authorizer, 'RoleBinding', 'ns/c', {
      roleRef: ref('Role', 'r'),
      subjects: [{ kind: 'User', name: 'u', namespace: 'ns' }],
    });
    expect(decide(authorizer).reason).toBe(
      'RBAC: [clusterrole.rbac.authorization.svc.io "away" not found, ' +
        'role.rbac.authorization.svc.io "gone" not found, ' +
        'RoleBinding "c/ns": subject User "u" must not have the namespace "ns"]',
    );
    const role = add(authorizer, 'Role', 'ns/gone', readPods);
    expect(decide(authorizer).decision).toBe('allow');
    authorizer.apply({ kind: 'Role', previous: role });
    expect(decide(authorizer).decision).toBe('no-opinion');
  });

  test('a changed role takes effect, and rulesFor lists the rules that apply', () => {
    const authorizer = rbac();
    add(authorizer, 'ClusterRole', 'r', { rules: [] });
    const roleRef = ref('ClusterRole', 'r');
    add(authorizer, 'ClusterRoleBinding', 'b', { roleRef, subjects: [user('u'), user('v')] });
    expect(decide(authorizer).decision).toBe('no-opinion');
    add(authorizer, 'ClusterRole', 'r', readPods);
    expect(decide(authorizer).decision).toBe('allow');
    expect(authorizer.rulesFor(requestWith({}).user, 'ns').rules).toMatchObject(readPods.rules);
    add(authorizer, 'ClusterRoleBinding', 'b', { roleRef, subjects: [user('v')] });
    expect(decide(authorizer).decision).toBe('no-opinion');
  });
});
