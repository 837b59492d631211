import { beforeEach, describe, expect, test } from 'vitest';
import {
  bindingOf,
  mustCreate,
  rbacGroup,
  rbacPath,
  roleOf,
} from '../authentication/token-users.ts';
import { causes, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const server = await withServer();
beforeEach(async () => {
  namespace = await freshNamespace(server);
});

const roles = () => `${rbacPath}/namespaces/${namespace}/roles`;
const bindings = () => `${rbacPath}/namespaces/${namespace}/rolebindings`;
const binding = (name: string, more: object = {}) => ({
  ...bindingOf('RoleBinding', name, { role: 'r', roleKind: 'Role', subjects: ['jane'] }),
  ...more,
});

describe('RoleBinding', () => {
  test('RBAC-1: every field is kept, and API groups of references are defaulted', async () => {
    const subjects = [
      { kind: 'User', name: 'jane' },
      { kind: 'Group', name: 'system:authenticated' },
      { kind: 'ServiceAccount', name: 'bot', namespace: 'other' },
      { kind: 'ServiceAccount', name: 'own' },
    ];
    const roleRef = { kind: 'ClusterRole', name: 'view' };
    const made = await server.post(bindings(), binding('full', { roleRef, subjects }));
    expect(made.status).toBe(201);
    expect(made.body.roleRef).toEqual({ apiGroup: rbacGroup, ...roleRef });
    expect(made.body.subjects).toEqual([
      { apiGroup: rbacGroup, ...subjects[0] },
      { apiGroup: rbacGroup, ...subjects[1] },
      subjects[2],
      subjects[3],
    ]);
    expect((await server.get(`${bindings()}/full`)).body).toEqual(made.body);
  });

  test('RBAC-1: subjects may be absent or empty, and an empty list is absent', async () => {
    const { subjects: _, ...bare } = binding('bare');
    const made = await server.post(bindings(), bare);
    expect(made.status).toBe(201);
    expect(made.body).not.toHaveProperty('subjects');
  });

  test('RBAC-1: required fields must exist with their types', async () => {
    const { roleRef: _, ...without } = binding('x');
    const absent = await server.post(bindings(), without);
    expect(absent.status).toBe(422);
    expect(causes(absent.body)).toEqual(expect.arrayContaining(['roleRef.name: Required value']));
    const nameless = await server.post(bindings(), binding('x', { subjects: [{ kind: 'User' }] }));
    expect(nameless.status).toBe(422);
    expect(causes(nameless.body)).toEqual(['subjects[0].name: Required value']);
    const typed = await server.post(bindings(), binding('x', { subjects: 'jane' }));
    expect(typed.status).toBe(400);
    expect(typed.body.reason).toBe('BadRequest');
  });

  test.each([
    ['a kind that no role has', { kind: 'Node', name: 'n' }, 'roleRef.kind'],
    ['another group', { apiGroup: 'apps', kind: 'Role', name: 'n' }, 'roleRef.apiGroup'],
    ['a name with a slash', { kind: 'Role', name: 'a/b' }, 'roleRef.name'],
    ['no name', { kind: 'Role', name: '' }, 'roleRef.name'],
  ])('RBAC-1: a roleRef of %s is refused', async (_, roleRef, field) => {
    const answer = await server.post(bindings(), binding('x', { roleRef }));
    expect(answer.status).toBe(422);
    expect(answer.body.reason).toBe('Invalid');
    expect(answer.body.details.causes[0].field).toBe(field);
  });

  test.each([
    ['an unknown kind', { kind: 'Robot', name: 'r' }, 'subjects[0].kind', 'Unsupported value'],
    [
      'a service account with a group',
      { kind: 'ServiceAccount', name: 'r', apiGroup: 'x' },
      'subjects[0].apiGroup',
      'Unsupported value',
    ],
    [
      'a service account with a wrong name',
      { kind: 'ServiceAccount', name: 'R_' },
      'subjects[0].name',
      'Invalid value',
    ],
    [
      'a user of another group',
      { kind: 'User', name: 'r', apiGroup: 'x' },
      'subjects[0].apiGroup',
      'Unsupported value',
    ],
  ])('RBAC-1: a subject of %s is refused', async (_, subject, field, message) => {
    const answer = await server.post(bindings(), binding('x', { subjects: [subject] }));
    expect(answer.status).toBe(422);
    expect(answer.body.details.causes[0].field).toBe(field);
    expect(answer.body.details.causes[0].message).toContain(message);
  });

  test('RBAC-1: roleRef is immutable for every write', async () => {
    await mustCreate(server, bindings(), binding('fixed'));
    const at = `${bindings()}/fixed`;
    const roleRef = { apiGroup: rbacGroup, kind: 'Role', name: 'other' };
    const answers = [
      await server.put(at, binding('fixed', { roleRef })),
      await server.patch(at, { roleRef: { name: 'other' } }, 'merge'),
      await server.patch(at, { roleRef: { name: 'other' } }, 'strategic'),
      await server.patch(at, [{ op: 'replace', path: '/roleRef/name', value: 'other' }], 'json'),
      await server.patch(
        `${at}?fieldManager=m&force=true`,
        { apiVersion: `${rbacGroup}/v1`, kind: 'RoleBinding', roleRef },
        'apply',
      ),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(422);
      expect(answer.body.message).toBe(
        `RoleBinding.${rbacGroup} "fixed" is invalid: roleRef: Invalid value: rbac.RoleRef{APIGroup:"${rbacGroup}", Kind:"Role", Name:"other"}: cannot change roleRef`,
      );
    }
  });

  test('RBAC-1: subjects are atomic, so a merge replaces them', async () => {
    await mustCreate(server, bindings(), binding('atomic'));
    const at = `${bindings()}/atomic`;
    const joe = { kind: 'User', name: 'joe' };
    const patched = await server.patch(at, { subjects: [joe] }, 'strategic');
    expect(patched.body.subjects).toEqual([{ apiGroup: rbacGroup, ...joe }]);
    const apply = (manager: string, name: string) =>
      server.patch(
        `${at}?fieldManager=${manager}`,
        {
          apiVersion: `${rbacGroup}/v1`,
          kind: 'RoleBinding',
          subjects: [{ apiGroup: rbacGroup, kind: 'User', name }],
        },
        'apply',
      );
    const conflict = await apply('m', 'ann');
    expect(conflict.status).toBe(409);
    expect(conflict.body.details.causes).toEqual([
      expect.objectContaining({ reason: 'FieldManagerConflict', field: '.subjects' }),
    ]);
  });

  test('RBAC-1: a RoleBinding of a missing role is stored', async () => {
    expect((await server.post(bindings(), binding('early'))).status).toBe(201);
  });

  test.each([
    ['a/b', "may not contain '/'"],
    ['a%b', "may not contain '%'"],
    ['.', "may not be '.'"],
    ['..', "may not be '..'"],
  ])('RBAC-1: the name %j is not a path segment', async (name, message) => {
    for (const [path, object] of [
      [bindings(), binding(name)],
      [roles(), roleOf('Role', name, { rules: [] })],
      [`${rbacPath}/clusterroles`, roleOf('ClusterRole', name, { rules: [] })],
    ] as const) {
      const answer = await server.post(path, object);
      expect(answer.status).toBe(422);
      expect(causes(answer.body)).toEqual([
        `metadata.name: Invalid value: ${JSON.stringify(name)}: ${message}`,
      ]);
    }
    expect((await server.post(bindings(), binding('System:Any_Thing'))).status).toBe(201);
  });

  test('RBAC-1: a ClusterRoleBinding refers to ClusterRoles and namespaced accounts', async () => {
    const path = `${rbacPath}/clusterrolebindings`;
    const make = (roleKind: 'Role' | 'ClusterRole', subjects: object[]) =>
      server.post(path, bindingOf('ClusterRoleBinding', 'c', { role: 'r', roleKind, subjects }));
    const toRole = await make('Role', []);
    expect(causes(toRole.body)).toEqual([
      'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    ]);
    const placeless = await make('ClusterRole', [{ kind: 'ServiceAccount', name: 'a' }]);
    expect(causes(placeless.body)).toEqual(['subjects[0].namespace: Required value']);
  });
});

describe('rules', () => {
  test('RBAC-3: nonResourceURLs are for ClusterRoles only, and not beside resources', async () => {
    const rules = [{ nonResourceURLs: ['/healthz', '/logs/*'], verbs: ['get'] }];
    const inRole = await server.post(roles(), roleOf('Role', 'r', { rules }));
    expect(inRole.status).toBe(422);
    expect(causes(inRole.body)).toEqual([
      'rules[0].nonResourceURLs: Invalid value: []string{"/healthz", "/logs/*"}: namespaced rules cannot apply to non-resource URLs',
    ]);
    const both = [{ ...rules[0], apiGroups: [''], resources: ['pods'] }];
    const path = `${rbacPath}/clusterroles`;
    const mixed = await server.post(path, roleOf('ClusterRole', 'r', { rules: both }));
    expect(causes(mixed.body)).toEqual([
      'rules[0].nonResourceURLs: Invalid value: []string{"/healthz", "/logs/*"}: rules cannot apply to both regular resources and non-resource URLs',
    ]);
    const name = `paths-${namespace}`;
    expect((await server.post(path, roleOf('ClusterRole', name, { rules }))).status).toBe(201);
  });

  test('RBAC-3: required members of a rule', async () => {
    const rules = [{ verbs: [] }, { verbs: ['get'], apiGroups: [''] }];
    const answer = await server.post(roles(), roleOf('Role', 'r', { rules }));
    expect(answer.status).toBe(422);
    expect(causes(answer.body)).toEqual([
      'rules[0].verbs: Required value: verbs must contain at least one value',
      'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
      'rules[0].resources: Required value: resource rules must supply at least one resource',
      'rules[1].resources: Required value: resource rules must supply at least one resource',
    ]);
  });

  test('RBAC-3: aggregationRule is for ClusterRoles only and needs a selector', async () => {
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] };
    const strict = await server.post(
      `${roles()}?fieldValidation=Strict`,
      roleOf('Role', 'r', { aggregationRule, rules: [] }),
    );
    expect(strict.status).toBe(400);
    expect(strict.body.message).toContain('unknown field "aggregationRule"');
    const path = `${rbacPath}/clusterroles`;
    const empty = await server.post(
      path,
      roleOf('ClusterRole', 'r', { aggregationRule: { clusterRoleSelectors: [] }, rules: [] }),
    );
    expect(empty.status).toBe(422);
    expect(causes(empty.body)).toEqual([
      'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
    ]);
    const wrong = { clusterRoleSelectors: [{ matchLabels: { 'a b': 'c' } }] };
    const odd = await server.post(
      path,
      roleOf('ClusterRole', 'r', { aggregationRule: wrong, rules: [] }),
    );
    expect(odd.status).toBe(422);
  });
});

describe('operations', () => {
  test('RBAC-2: get honors pretty', async () => {
    await mustCreate(server, bindings(), binding('one'));
    const plain = await server.get(`${bindings()}/one`);
    expect(plain.status).toBe(200);
    expect(plain.body.kind).toBe('RoleBinding');
    const pretty = await server.get(`${bindings()}/one?pretty=true`);
    expect(pretty.text).toContain('\n  "kind": "RoleBinding"');
    expect(pretty.body).toEqual(plain.body);
    const none = await server.get(`${bindings()}/none`);
    expect(none.status).toBe(404);
    expect(none.body).toMatchObject({
      reason: 'NotFound',
      message: `rolebindings.${rbacGroup} "none" not found`,
      details: { name: 'none', group: rbacGroup, kind: 'rolebindings' },
    });
  });

  test('RBAC-2: list covers one namespace or all', async () => {
    await mustCreate(
      server,
      bindings(),
      binding('a', { metadata: { name: 'a', labels: { l: '1' } } }),
    );
    await mustCreate(server, bindings(), binding('b'));
    const names = async (path: string) => {
      const { status, body } = await server.get(path);
      expect(status).toBe(200);
      expect(body).toMatchObject({ apiVersion: `${rbacGroup}/v1`, kind: 'RoleBindingList' });
      return body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    };
    expect(await names(bindings())).toEqual(['a', 'b']);
    expect(await names(`${bindings()}?limit=1`)).toEqual(['a']);
    expect(await names(`${bindings()}?labelSelector=l%3D1`)).toEqual(['a']);
    expect(await names(`${bindings()}?fieldSelector=metadata.name%3Db`)).toEqual(['b']);
    const everywhere = `${rbacPath}/rolebindings?fieldSelector=metadata.namespace%3D${namespace}`;
    expect(await names(everywhere)).toEqual(['a', 'b']);
    const odd = await server.get(`${bindings()}?fieldSelector=roleRef.name%3Dr`);
    expect(odd.status).toBe(400);
  });

  test('RBAC-2: create honors dryRun and fieldValidation', async () => {
    const dry = await server.post(`${bindings()}?dryRun=All`, binding('c'));
    expect(dry.status).toBe(201);
    expect((await server.get(`${bindings()}/c`)).status).toBe(404);
    const odd = binding('c', { spec: 1 });
    const strict = await server.post(`${bindings()}?fieldValidation=Strict`, odd);
    expect(strict.status).toBe(400);
    expect(strict.body.message).toContain('unknown field "spec"');
    const warned = await server.post(`${bindings()}?fieldManager=me&pretty=1`, odd);
    expect(warned.status).toBe(201);
    expect(warned.warnings).toEqual(['unknown field "spec"']);
    expect(warned.body.metadata.managedFields[0]).toMatchObject({
      manager: 'me',
      operation: 'Update',
    });
    const again = await server.post(bindings(), binding('c'));
    expect(again.status).toBe(409);
    expect(again.body.reason).toBe('AlreadyExists');
    expect((await server.post(`${rbacPath}/rolebindings`, binding('d'))).status).toBe(405);
  });

  test('RBAC-2: PUT replaces, or creates with 201', async () => {
    const at = `${bindings()}/p`;
    expect((await server.put(at, binding('p'))).status).toBe(201);
    const more = binding('p', { subjects: [{ kind: 'User', name: 'joe' }] });
    const replaced = await server.put(`${at}?fieldManager=me&fieldValidation=Strict`, more);
    expect(replaced.status).toBe(200);
    expect(replaced.body.subjects[0].name).toBe('joe');
    const dry = await server.put(`${at}?dryRun=All`, binding('p', { subjects: [] }));
    expect(dry.status).toBe(200);
    expect((await server.get(at)).body.subjects.length).toBe(1);
    const stale = binding('p', { metadata: { name: 'p', resourceVersion: '1' } });
    const lost = await server.put(at, stale);
    expect(lost.status).toBe(409);
    expect(lost.body.reason).toBe('Conflict');
    expect((await server.put(at, binding('q'))).status).toBe(400);
  });

  test('RBAC-2: PATCH creates a missing object only as an apply', async () => {
    const at = `${bindings()}/s`;
    expect((await server.patch(at, { subjects: [] }, 'merge')).status).toBe(404);
    const applied = await server.patch(`${at}?fieldManager=m`, binding('s'), 'apply');
    expect(applied.status).toBe(201);
    const again = await server.patch(`${at}?fieldManager=m&force=true`, binding('s'), 'apply');
    expect(again.status).toBe(200);
    expect(again.body.metadata.resourceVersion).toBe(applied.body.metadata.resourceVersion);
    const force = await server.patch(`${at}?force=true`, { subjects: [] }, 'merge');
    expect(force.status).toBe(422);
  });

  test('RBAC-2: delete returns a Status', async () => {
    await mustCreate(server, bindings(), binding('gone'));
    const { body: before } = await server.get(`${bindings()}/gone`);
    const dry = await server.remove(`${bindings()}/gone?dryRun=All`);
    expect(dry.status).toBe(200);
    const answer = await server.remove(`${bindings()}/gone`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Success',
      details: { name: 'gone', group: rbacGroup, kind: 'rolebindings', uid: before.metadata.uid },
    });
    expect((await server.remove(`${bindings()}/gone`)).status).toBe(404);
  });

  test('RBAC-2: deletecollection honors selectors', async () => {
    for (const name of ['a', 'b', 'c']) {
      const metadata = { name, labels: { keep: String(name === 'c') } };
      await mustCreate(server, bindings(), binding(name, { metadata }));
    }
    const answer = await server.remove(`${bindings()}?labelSelector=keep%3Dfalse`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ kind: 'Status', status: 'Success' });
    const { body } = await server.get(bindings());
    expect(body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual([
      'c',
    ]);
    expect((await server.remove(`${rbacPath}/rolebindings`)).status).toBe(405);
  });

  test('RBAC-2: watch sees each write', async () => {
    const watch = await server.watch(`${bindings()}?watch=true`);
    await mustCreate(server, bindings(), binding('w'));
    await server.patch(`${bindings()}/w`, { subjects: [] }, 'merge');
    await server.remove(`${bindings()}/w`);
    await watch.until((events) => events.length === 3);
    expect(watch.events.map((event) => event.type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    watch.close();
  });
});
