import { beforeAll, describe, expect, test } from 'vitest';
import {
  as,
  bindingOf,
  grantRules,
  mustCreate,
  rbacGroup,
  rbacPath,
  roleOf,
} from '../authentication/token-users.ts';

import { eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

let namespace: string;

const readMaps = { verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'] };
const writeMaps = { verbs: ['create', 'update'], apiGroups: [''], resources: ['configmaps'] };

const server = await withUsers([
  { name: 'writer' },
  { name: 'escalator' },
  { name: 'binder', groups: ['g'] },
  { name: 'root', groups: ['system:masters'] },
]);
beforeAll(async () => {
  namespace = await freshNamespace(server);
  const manage = { verbs: ['*'], apiGroups: [rbacGroup], resources: ['rolebindings'] };
  // Every verb of roles except `bind` and `escalate`.
  const verbs = ['get', 'list', 'create', 'update', 'patch', 'delete'];
  const roles = { verbs, apiGroups: [rbacGroup], resources: ['roles', 'clusterroles'] };
  const bindings = { ...roles, resources: ['rolebindings', 'clusterrolebindings'] };
  await grant('writes-rbac', [roles, bindings, readMaps], ['writer']);
  await grant('escalates', [{ ...roles, verbs: [...verbs, 'escalate'] }], ['escalator']);
  await grant(
    'binds',
    [
      manage,
      {
        verbs: ['bind'],
        apiGroups: [rbacGroup],
        resources: ['clusterroles'],
        resourceNames: ['writes-maps'],
      },
    ],
    ['binder'],
  );
  await mustCreate(
    server,
    `${rbacPath}/clusterroles`,
    roleOf('ClusterRole', 'writes-maps', { rules: [writeMaps] }),
  );
  for (const user of ['writer', 'escalator']) {
    await eventually(async () => (await server.get(roles_(), as(user))).status === 200);
  }
  await eventually(async () => (await server.get(bindings_(), as('binder'))).status === 200);
});

const roles_ = () => `${rbacPath}/namespaces/${namespace}/roles`;
const bindings_ = () => `${rbacPath}/namespaces/${namespace}/rolebindings`;

const grant = (name: string, rules: object[], subjects: string[]) =>
  grantRules(server, name, { rules, subjects });

const notHeld = (name: string, verbs: string) =>
  `roles.${rbacGroup} "${name}" is forbidden: user "writer" (groups=["system:authenticated"]) ` +
  'is attempting to grant RBAC permissions not currently held:\n' +
  `{APIGroups:[""], Resources:["configmaps"], Verbs:[${verbs}]}`;

describe('roles', () => {
  test('AUTHZ-5: the refusal joins the verbs of each missing name', async () => {
    const rule = { ...writeMaps, resourceNames: ['one', 'two'] };
    const role = roleOf('Role', 'names', { rules: [rule] });
    const { status, body } = await server.post(roles_(), role, as('writer'));
    expect(status).toBe(403);
    const missing = ['one', 'two'].map(
      (name) =>
        '{APIGroups:[""], Resources:["configmaps"], ' +
        `ResourceNames:["${name}"], Verbs:["create" "update"]}`,
    );
    expect(body.message.split('\n').slice(1)).toEqual(missing);
  });

  test('AUTHZ-5: a binding of the cluster to a Role has no namespace to find it in', async () => {
    const binding = bindingOf('ClusterRoleBinding', 'to-role', {
      role: 'a',
      roleKind: 'Role',
      subjects: ['x'],
    });
    const path = `${rbacPath}/clusterrolebindings`;
    const refused = await server.post(path, binding, as('writer'));
    expect([refused.status, refused.body.message]).toEqual([400, 'Namespace parameter required.']);
    const invalid = await server.post(path, binding, as('root'));
    expect(invalid.status).toBe(422);
  });

  test('AUTHZ-5: every write refuses rules that the writer does not hold', async () => {
    const wide = (name: string) => roleOf('Role', name, { rules: [readMaps, writeMaps] });
    const made = await server.post(roles_(), wide('a'), as('writer'));
    expect(made.status).toBe(403);
    expect(made.body.reason).toBe('Forbidden');
    expect(made.body.message).toBe(notHeld('a', '"create" "update"'));
    expect(made.body.details).toEqual({ name: 'a', group: rbacGroup, kind: 'roles' });
    const narrow = roleOf('Role', 'a', { rules: [readMaps] });
    expect((await server.post(roles_(), narrow, as('writer'))).status).toBe(201);
    const path = `${roles_()}/a`;
    const refused = [
      await server.put(path, wide('a'), as('writer')),
      await server.patch(path, { rules: [writeMaps] }, 'merge', as('writer')),
      await server.patch(path, { rules: [writeMaps] }, 'strategic', as('writer')),
      await server.patch(
        path,
        [{ op: 'add', path: '/rules/-', value: writeMaps }],
        'json',
        as('writer'),
      ),
      await server.patch(`${path}?fieldManager=m&force=true`, wide('a'), 'apply', as('writer')),
      await server.patch(`${roles_()}/b?fieldManager=m`, wide('b'), 'apply', as('writer')),
      await server.put(`${roles_()}/c`, wide('c'), as('writer')),
    ];
    for (const answer of refused) {
      expect(answer.status).toBe(403);
      expect(answer.body.message).toMatch(
        /attempting to grant RBAC permissions not currently held/,
      );
    }
    expect((await server.get(path)).body.rules).toEqual([
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] },
    ]);
    const dry = await server.put(`${path}?dryRun=All`, wide('a'), as('writer'));
    expect(dry.status).toBe(403);
  });

  test('AUTHZ-5: a role held in one namespace cannot be granted cluster-wide', async () => {
    const place = await freshNamespace(server);
    await mustCreate(
      server,
      `${rbacPath}/namespaces/${place}/rolebindings`,
      bindingOf('RoleBinding', 'b', { role: 'writes-maps', subjects: ['writer'] }),
    );
    const role = roleOf('Role', 'r', { rules: [writeMaps] });
    const path = `${rbacPath}/namespaces/${place}/roles`;
    expect((await server.post(path, role, as('writer'))).status).toBe(201);
    expect((await server.post(roles_(), role, as('writer'))).status).toBe(403);
    const wide = roleOf('ClusterRole', 'r', { rules: [writeMaps] });
    const cluster = await server.post(`${rbacPath}/clusterroles`, wide, as('writer'));
    expect(cluster.status).toBe(403);
    expect(cluster.body.message).toContain(`clusterroles.${rbacGroup} "r" is forbidden: user`);
  });

  test('AUTHZ-5: the verb escalate passes, and so does system:masters', async () => {
    const role = (name: string) => roleOf('Role', name, { rules: [writeMaps] });
    expect((await server.post(roles_(), role('e'), as('escalator'))).status).toBe(201);
    expect((await server.post(roles_(), role('m'), as('root'))).status).toBe(201);
    const cluster = roleOf('ClusterRole', 'e', { rules: [writeMaps] });
    const made = await server.post(`${rbacPath}/clusterroles`, cluster, as('escalator'));
    expect(made.status).toBe(201);
  });

  test('AUTHZ-5: a role whose rules do not change may be updated by anyone with update', async () => {
    await mustCreate(server, roles_(), roleOf('Role', 'kept', { rules: [writeMaps] }));
    const path = `${roles_()}/kept`;
    const freed = await server.patch(
      path,
      { metadata: { finalizers: ['example.com/f'] } },
      'merge',
      as('writer'),
    );
    expect(freed.status).toBe(200);
    const labelled = await server.patch(
      path,
      { metadata: { labels: { a: 'b' } } },
      'merge',
      as('writer'),
    );
    expect(labelled.status).toBe(403);
    await server.patch(path, { metadata: { finalizers: null } }, 'merge');
  });

  test('AUTHZ-5: an aggregationRule needs all rights', async () => {
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] };
    const role = roleOf('ClusterRole', 'gathers', { aggregationRule, rules: [] });
    const path = `${rbacPath}/clusterroles`;
    const answer = await server.post(path, role, as('writer'));
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      `clusterroles.${rbacGroup} "gathers" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
    );
    expect((await server.post(path, role, as('escalator'))).status).toBe(201);
    const without = roleOf('ClusterRole', 'gathers', { rules: [] });
    const dropped = await server.put(`${path}/gathers`, without, as('writer'));
    expect(dropped.status).toBe(403);
    expect(dropped.body.message).toBe(answer.body.message);
  });
});

describe('bindings', () => {
  const bind = (name: string, role: string, roleKind: 'Role' | 'ClusterRole' = 'ClusterRole') =>
    bindingOf('RoleBinding', name, { role, roleKind, subjects: ['someone'] });

  test("AUTHZ-5: a binding needs the role's rules, or bind on that role", async () => {
    const refused = await server.post(bindings_(), bind('x', 'writes-maps'), as('writer'));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      `rolebindings.${rbacGroup} "x" is forbidden: user "writer" (groups=["system:authenticated"]) ` +
        'is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["create" "update"]}',
    );
    await mustCreate(
      server,
      `${rbacPath}/clusterroles`,
      roleOf('ClusterRole', 'reads-maps', { rules: [readMaps] }),
    );
    const held = await server.post(bindings_(), bind('x', 'reads-maps'), as('writer'));
    expect(held.status).toBe(201);
    const bound = await server.post(bindings_(), bind('y', 'writes-maps'), as('binder'));
    expect(bound.status).toBe(201);
    const denied = await server.post(bindings_(), bind('z', 'reads-maps'), as('binder'));
    expect(denied.status).toBe(403);
  });

  test('AUTHZ-5: new subjects need the rights, by PUT, patch, and apply', async () => {
    await mustCreate(server, bindings_(), bind('grows', 'writes-maps'));
    const path = `${bindings_()}/grows`;
    const subjects = [{ kind: 'User', name: 'writer' }];
    const whole = { ...bind('grows', 'writes-maps'), subjects };
    const answers = [
      await server.put(path, whole, as('writer')),
      await server.patch(path, { subjects }, 'merge', as('writer')),
      await server.patch(path, { subjects }, 'strategic', as('writer')),
      await server.patch(`${path}?fieldManager=m&force=true`, whole, 'apply', as('writer')),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([403, 403, 403, 403]);
    expect((await server.put(path, whole, as('binder'))).status).toBe(200);
    expect((await server.put(path, bind('grows', 'writes-maps'), as('root'))).status).toBe(200);
  });

  test('AUTHZ-5: a missing role can be bound only with the verb bind', async () => {
    const gone = await server.post(bindings_(), bind('n', 'gone', 'Role'), as('writer'));
    expect(gone.status).toBe(404);
    expect(gone.body.message).toBe(`rolebindings.${rbacGroup} "gone" not found`);
    const unnamed = await server.post(bindings_(), bind('n', '', 'Role'), as('writer'));
    expect(unnamed.status).toBe(422);
    expect(unnamed.body.message).toContain('roleRef.name: Required value');
    const dangling = await server.post(bindings_(), bind('n', 'gone', 'Role'), as('root'));
    expect(dangling.status).toBe(201);
  });

  test('AUTHZ-5: a ClusterRoleBinding needs the rules cluster-wide', async () => {
    const path = `${rbacPath}/clusterrolebindings`;
    const binding = (name: string, role: string) =>
      bindingOf('ClusterRoleBinding', name, { role, subjects: ['someone'] });
    expect((await server.post(path, binding('w', 'writes-maps'), as('writer'))).status).toBe(403);
    const held = await server.post(path, binding('w', 'writes-rbac'), as('writer'));
    expect(held.status).toBe(201);
  });

  test('AUTHZ-5: a role can be bound right after its creation', async () => {
    for (let index = 0; index < 20; index += 1) {
      const name = `quick-${index}`;
      const role = roleOf('Role', name, { rules: [readMaps] });
      expect((await server.post(roles_(), role, as('writer'))).status).toBe(201);
      const answer = await server.post(bindings_(), bind(name, name, 'Role'), as('writer'));
      expect(answer.status).toBe(201);
    }
  });
});

test('AUTHZ-5: the check holds where another mode authorizes', async () => {
  const closed = await withUsers([{ name: 'root', groups: ['system:masters'] }], {
    authorizationModes: ['AlwaysAllow'],
  });
  const path = `${rbacPath}/clusterroles`;
  const role = roleOf('ClusterRole', 'r', { rules: [writeMaps] });
  // AlwaysAllow allows `escalate` as well.
  expect((await closed.post(path, role, { token: undefined })).status).toBe(201);
});
