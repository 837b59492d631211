import {
  type ApiObject,
  dialectOf,
  type JsonObject,
  runInOnePiece,
  silentLogger,
} from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { dryEntry, encodeStored } from '../../../registry/object-codec.ts';
import type { Attributes, AuthorizationResult } from '../../../registry/permit.ts';
import { createRbacAuthorizer } from './rbac-authorizer.ts';
import { RbacChanges } from './rbac-changes.ts';
import { placeOf, RbacIndex, type RbacKind } from './rbac-index.ts';

function object(kind: RbacKind, place: string, body: JsonObject): ApiObject {
  const [namespace, name = ''] = place.includes('/') ? place.split('/') : ['', place];
  return {
    apiVersion: 'rbac.authorization.svc.io/v1',
    kind,
    metadata: { name, ...(namespace === '' ? {} : { namespace: namespace! }) },
    ...body,
  };
}

/**
 * An authorizer without roles, and the changes that it follows.
 * @param readMs the time that passes with each reading of the clock, by which large changes pause
 */
function rbac(readMs = 0) {
  let nowMs = 0;
  const monotonic = () => {
    nowMs += readMs;
    return nowMs;
  };
  const clock = { monotonic };
  const changes = new RbacChanges({ clock, logger: silentLogger });
  const authorizer = createRbacAuthorizer({ changes, dialect: dialectOf('svc'), clock });
  return { ...authorizer, changes };
}
type Rbac = ReturnType<typeof rbac>;

function add(to: Rbac, kind: RbacKind, place: string, body: JsonObject): void {
  const value = encodeStored(object(kind, place, body));
  const index = { name: '', namespace: '', uid: '', labels: {}, fields: {}, ownerUids: [] };
  to.changes.report(kind, place, dryEntry({ key: place, value, index }));
}

function remove(from: Rbac, kind: RbacKind, place: string): void {
  from.changes.report(kind, place, undefined);
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
    add(authorizer, 'RoleBinding', 'ns/b', { roleRef, subjects: [subject] });
    const who = { user: { name, uid: '', groups, extra: {} } };
    expect(decide(authorizer, who).decision).toBe('allow');
    expect(decide(authorizer).decision).toBe('no-opinion');
    remove(authorizer, 'RoleBinding', 'ns/b');
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
    add(authorizer, 'Role', 'ns/gone', readPods);
    expect(decide(authorizer).decision).toBe('allow');
    remove(authorizer, 'Role', 'ns/gone');
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

const rulesAbout = (resources: readonly string[]) =>
  resources.map((resource) => ({ verbs: ['get'], apiGroups: [''], resources: [resource] }));
const many = (count: number, stem: string) =>
  Array.from({ length: count }, (_, at) => `${stem}${at}`);
/** Rules about so many resources that a role with them is large. */
const largeRules = rulesAbout(['pods', ...many(1_000, 'r')]);
const manyUsers = [user('u'), ...many(1_000, 'user').map(user)];
const bound = (name: string) => ({ roleRef: ref('ClusterRole', name), subjects: [user('u')] });
const awaited = async (decision: ReturnType<Rbac['authorize']>) => (await decision).decision;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const isWaiting = (decision: ReturnType<Rbac['authorize']>) => decision instanceof Promise;

describe('TRUST-2: large roles and bindings', () => {
  /** Runs the steps of a change, and returns the decisions before, between, and after them. */
  function decisionsBetween(index: RbacIndex, change: Generator<void, void>): string[] {
    const grants = () => {
      const found: string[] = [];
      index.visit({ name: 'u', uid: '', groups: [], extra: {} }, 'ns', ({ binding }) => {
        found.push(`${binding.shown}: ${binding.role.compiled.length}`);
        return 'continue';
      });
      return found.join(', ');
    };
    const seen = [grants()];
    for (const _ of change) seen.push(grants());
    return [...seen, grants()];
  }
  const binding = placeOf('RoleBinding', 'ns/b');
  const role = placeOf('ClusterRole', 'r');
  const bindingOf = (subjects: JsonObject[], to: string) =>
    object('RoleBinding', 'ns/b', { roleRef: ref('ClusterRole', to), subjects });

  test('a role takes a step for each rule, and takes effect as a whole', () => {
    const index = new RbacIndex();
    runInOnePiece(index.setSteps(binding, bindingOf([user('u')], 'r')));
    const set = (count: number) =>
      index.setSteps(role, object('ClusterRole', 'r', { rules: largeRules.slice(0, count) }));
    runInOnePiece(set(1));
    const seen = decisionsBetween(index, set(1_000));
    expect(seen.length).toBeGreaterThan(2_000);
    const shown = 'RoleBinding "b/ns" of ClusterRole "r"';
    expect([...new Set(seen)]).toEqual([`${shown}: 1`, `${shown}: 1000`]);
    expect(seen.at(-2)).toBe(`${shown}: 1`);
  });

  test('a binding takes a step for each subject, and takes effect as a whole', () => {
    const index = new RbacIndex();
    runInOnePiece(index.setSteps(binding, bindingOf(manyUsers, 'r')));
    const replaced = decisionsBetween(index, index.setSteps(binding, bindingOf(manyUsers, 'q')));
    expect(replaced.length).toBeGreaterThan(2_000);
    const shown = (name: string) => `RoleBinding "b/ns" of ClusterRole "${name}": 0`;
    expect([...new Set(replaced)]).toEqual([shown('r'), shown('q')]);
    const removed = decisionsBetween(index, index.setSteps(binding, undefined));
    expect(removed.length).toBeGreaterThan(1_000);
    expect([...new Set(removed)]).toEqual([shown('q'), '']);
    expect(index.role(ref('ClusterRole', 'r'), '')).toBeUndefined();
    expect(index.role(ref('ClusterRole', 'q'), '')).toBeUndefined();
  });

  test('a decision waits for a changed role of the user', async () => {
    const authorizer = rbac();
    add(authorizer, 'ClusterRoleBinding', 'b', bound('r'));
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
    const grant = authorizer.authorize(requestWith({}));
    expect(isWaiting(grant)).toBe(true);
    expect(await awaited(grant)).toBe('allow');
    expect(isWaiting(authorizer.authorize(requestWith({})))).toBe(false);
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules.slice(1) });
    const revoked = authorizer.authorize(requestWith({}));
    expect(isWaiting(revoked)).toBe(true);
    expect(await awaited(revoked)).toBe('no-opinion');
  });

  test('a decision waits for a changed binding in its namespace', async () => {
    const authorizer = rbac();
    add(authorizer, 'ClusterRole', 'r', readPods);
    const roleRef = ref('ClusterRole', 'r');
    add(authorizer, 'RoleBinding', 'ns/b', { roleRef, subjects: manyUsers });
    const elsewhere = authorizer.authorize(requestWith({ namespace: 'other' }));
    expect(elsewhere).toEqual({ decision: 'no-opinion', reason: '' });
    const grant = authorizer.authorize(requestWith({}));
    expect(isWaiting(grant)).toBe(true);
    expect(await awaited(grant)).toBe('allow');
    add(authorizer, 'RoleBinding', 'ns/b', { roleRef, subjects: manyUsers.slice(1) });
    expect(await awaited(authorizer.authorize(requestWith({})))).toBe('no-opinion');
    remove(authorizer, 'RoleBinding', 'ns/b');
    const other = requestWith({ user: { name: 'user7', uid: '', groups: [], extra: {} } });
    expect(await awaited(authorizer.authorize(other))).toBe('no-opinion');
  });

  test('a decision that other roles allow waits for no change', () => {
    const authorizer = rbac();
    add(authorizer, 'ClusterRole', 'small', readPods);
    add(authorizer, 'ClusterRoleBinding', 'a', bound('large'));
    add(authorizer, 'ClusterRoleBinding', 'b', bound('small'));
    add(authorizer, 'ClusterRole', 'large', { rules: largeRules });
    expect(decide(authorizer).reason).toBe(
      'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "small" to User "u"',
    );
  });

  test('changes of one object stay in order, and the last one takes effect', async () => {
    const authorizer = rbac(0.05);
    add(authorizer, 'ClusterRoleBinding', 'b', bound('r'));
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
    add(authorizer, 'ClusterRole', 'r', { rules: [] });
    expect(await awaited(authorizer.authorize(requestWith({})))).toBe('no-opinion');
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
    const first = authorizer.authorize(requestWith({}));
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    // The index is now at work on the role.
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules.slice(1) });
    const second = authorizer.authorize(requestWith({}));
    expect(await awaited(first)).toBe('allow');
    expect(await awaited(second)).toBe('no-opinion');
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
    remove(authorizer, 'ClusterRole', 'r');
    const third = await authorizer.authorize(requestWith({}));
    expect(third.reason).toContain('"r" not found');
    expect(authorizer.changes.isSettled).toBe(true);
  });

  test('a waiting decision does not wait for later changes', async () => {
    const authorizer = rbac(0.05);
    add(authorizer, 'ClusterRoleBinding', 'b', bound('r'));
    add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
    let settled: AuthorizationResult | undefined;
    const waiting = Promise.resolve(authorizer.authorize(requestWith({}))).then((result) => {
      settled = result;
    });
    for (let at = 0; at < 200 && settled === undefined; at += 1) {
      add(authorizer, 'ClusterRole', `other${at}`, { rules: largeRules });
      add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
      await nextTurn();
    }
    expect(settled).toMatchObject({ decision: 'allow' });
    expect(authorizer.changes.isSettled).toBe(false);
    await waiting;
  });

  test('a decision on very many rules pauses, and visits a role once', async () => {
    const authorizer = rbac();
    const rules = rulesAbout(many(1_500, 'r'));
    for (const name of many(15, 'role')) {
      add(authorizer, 'ClusterRole', name, { rules });
      add(authorizer, 'ClusterRoleBinding', name, {
        roleRef: ref('ClusterRole', name),
        subjects: Array.from({ length: 5 }, () => user('u')),
      });
    }
    add(authorizer, 'ClusterRole', 'last', readPods);
    add(authorizer, 'RoleBinding', 'ns/last', bound('last'));
    await authorizer.changes.settled();
    const decision = authorizer.authorize(requestWith({}));
    expect(isWaiting(decision)).toBe(true);
    expect((await decision).reason).toContain('"last/ns"');
    expect(await awaited(authorizer.authorize(requestWith({ verb: 'list' })))).toBe('no-opinion');
  });

  test('all changes that are reported while the index is loaded are in it afterwards', async () => {
    const authorizer = rbac();
    await authorizer.changes.load(async () => {
      add(authorizer, 'ClusterRole', 'r', { rules: largeRules });
      add(authorizer, 'ClusterRoleBinding', 'b', bound('r'));
      expect(authorizer.changes.isSettled).toBe(false);
    });
    expect(authorizer.changes.isSettled).toBe(true);
    expect(decide(authorizer).decision).toBe('allow');
  });
});
