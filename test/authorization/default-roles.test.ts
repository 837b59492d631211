import { dialectOf } from '@wheelhouse/machinery';
import { defaultRbac } from '@wheelhouse/server/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  as,
  bindingOf,
  mustCreate,
  rbacGroup,
  rbacPath,
  roleOf,
  startWithUsers,
} from '../authentication/token-users.ts';
import { temporaryFolder } from '../support/cleanup.ts';
import { eventually, freshNamespace, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const autoupdate = `${rbacGroup}/autoupdate`;
const names = (items: { metadata: { name: string } }[]) => items.map((item) => item.metadata.name);

describe('defaults', async () => {
  const server = await withServer();

  test('AUTHZ-7: exist once readyz succeeds, with labels and annotations', async () => {
    const hook = '/readyz/poststarthook/rbac/bootstrap-roles';
    expect((await server.get(hook)).text).toBe('ok');
    const defaults = defaultRbac(dialectOf('svc'));
    const selector = '?labelSelector=svc.io%2Fbootstrapping%3Drbac-defaults';
    for (const [resource, objects] of [
      ['clusterroles', defaults.clusterRoles],
      ['clusterrolebindings', defaults.clusterRoleBindings],
      ['roles', defaults.roles],
      ['rolebindings', defaults.roleBindings],
    ] as const) {
      const { body } = await server.get(`${rbacPath}/${resource}${selector}`);
      const found = body.items.map(
        (item: { metadata: { name: string; namespace?: string } }) =>
          `${item.metadata.namespace ?? ''}/${item.metadata.name}`,
      );
      const wanted = objects.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`);
      expect(found).toEqual(wanted.sort());
      for (const item of body.items) expect(item.metadata.annotations[autoupdate]).toBe('true');
    }
  });

  test.each([
    ['exist without RBAC', ['Node', 'AlwaysAllow'], true],
    ['do not exist if every request is allowed', ['AlwaysAllow'], false],
  ] as const)('AUTHZ-7: they %s', async (_what, authorizationModes, exist) => {
    const serverWithModes = await withServer({ authorizationModes });
    const { body } = await serverWithModes.get(`${rbacPath}/clusterroles`);
    expect(names(body.items).includes('cluster-admin')).toBe(exist);
  });

  test("AUTHZ-7: the document's roles and bindings are among them", async () => {
    const { body } = await server.get(`${rbacPath}/clusterroles`);
    expect(names(body.items)).toEqual(
      expect.arrayContaining([
        'admin',
        'cluster-admin',
        'edit',
        'system:auth-delegator',
        'system:basic-user',
        'system:controller:namespace-controller',
        'system:discovery',
        'system:kube-controller-manager',
        'system:kube-scheduler',
        'system:monitoring',
        'system:node',
        'system:node-bootstrapper',
        'system:node-proxier',
        'system:persistent-volume-provisioner',
        'system:public-info-viewer',
        'system:volume-scheduler',
        'view',
      ]),
    );
    const subjects = async (name: string) =>
      (await server.get(`${rbacPath}/clusterrolebindings/${name}`)).body.subjects?.map(
        (subject: { name: string }) => subject.name,
      );
    expect(await subjects('cluster-admin')).toEqual(['system:masters']);
    expect(await subjects('system:basic-user')).toEqual(['system:authenticated']);
    expect(await subjects('system:discovery')).toEqual(['system:authenticated']);
    const everybody = ['system:authenticated', 'system:unauthenticated'];
    expect(await subjects('system:public-info-viewer')).toEqual(everybody);
    expect(await subjects('system:node')).toBeUndefined();
  });
});

describe('user-facing roles', () => {
  let server: TestServer;
  let namespace: string;
  beforeAll(async () => {
    server = await startWithUsers([{ name: 'admin' }, { name: 'edit' }, { name: 'view' }]);
    namespace = await freshNamespace(server);
    const path = `${rbacPath}/namespaces/${namespace}/rolebindings`;
    for (const role of ['admin', 'edit', 'view']) {
      await mustCreate(server, path, bindingOf('RoleBinding', role, { role, subjects: [role] }));
    }
    const reads = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const user of ['admin', 'edit', 'view']) {
      await eventually(async () => (await server.get(reads, as(user))).status === 200);
    }
  });
  afterAll(() => server.stop());

  const core = () => `/api/v1/namespaces/${namespace}`;
  const rbac = () => `${rbacPath}/namespaces/${namespace}`;
  const slices = () => `/apis/discovery.svc.io/v1/namespaces/${namespace}/endpointslices`;
  const allowed = async (user: string, method: string, path: string) =>
    (await server.request(method, path, as(user))).status !== 403;

  test.each<[string, string, () => string, string]>([
    ['reads ConfigMaps', 'GET', () => `${core()}/configmaps`, 'admin edit view'],
    ['reads Pods', 'GET', () => `${core()}/pods`, 'admin edit view'],
    ['reads Secrets', 'GET', () => `${core()}/secrets`, 'admin edit'],
    ['writes ConfigMaps', 'POST', () => `${core()}/configmaps`, 'admin edit'],
    ['runs Pods', 'POST', () => `${core()}/pods`, 'admin edit'],
    ['deletes Pods', 'DELETE', () => `${core()}/pods/p`, 'admin edit'],
    ['reads quota', 'GET', () => `${core()}/resourcequotas`, 'admin edit view'],
    ['writes quota', 'POST', () => `${core()}/resourcequotas`, ''],
    ['reads the namespace', 'GET', core, 'admin edit view'],
    ['writes the namespace', 'PUT', core, ''],
    ['deletes the namespace', 'DELETE', core, ''],
    ['reads roles', 'GET', () => `${rbac()}/roles`, 'admin'],
    ['writes roles', 'POST', () => `${rbac()}/roles`, 'admin'],
    ['reads bindings', 'GET', () => `${rbac()}/rolebindings`, 'admin'],
    ['writes bindings', 'POST', () => `${rbac()}/rolebindings`, 'admin'],
    ['reads EndpointSlices', 'GET', slices, 'admin edit view'],
    ['writes EndpointSlices', 'POST', slices, ''],
    ['writes Endpoints', 'PUT', () => `${core()}/endpoints/e`, ''],
    ['reads cluster roles', 'GET', () => `${rbacPath}/clusterroles`, ''],
    ['reads other namespaces', 'GET', () => '/api/v1/namespaces/default/pods', ''],
  ])('AUTHZ-7: who %s', async (_, method, path, who) => {
    const may: string[] = [];
    for (const user of ['admin', 'edit', 'view']) {
      if (await allowed(user, method, path())) may.push(user);
    }
    expect(may.join(' ')).toBe(who);
  });

  test('AUTHZ-7: admin may create and bind roles within its own rights', async () => {
    const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['secrets'] }];
    const role = roleOf('Role', 'r', { rules });
    expect((await server.post(`${rbac()}/roles`, role, as('admin'))).status).toBe(201);
    const binding = bindingOf('RoleBinding', 'b', { role: 'view', subjects: ['someone'] });
    expect((await server.post(`${rbac()}/rolebindings`, binding, as('admin'))).status).toBe(201);
    const wide = bindingOf('RoleBinding', 'c', { role: 'cluster-admin', subjects: ['admin'] });
    expect((await server.post(`${rbac()}/rolebindings`, wide, as('admin'))).status).toBe(403);
  });

  test('AUTHZ-6: a labeled role is aggregated into view, edit, and admin', async () => {
    const rules = [{ verbs: ['get'], apiGroups: ['example.com'], resources: ['widgets'] }];
    const labels = { [`${rbacGroup}/aggregate-to-view`]: 'true' };
    const path = `/apis/example.com/v1/namespaces/${namespace}/widgets/w`;
    expect((await server.get(path, as('view'))).status).toBe(403);
    await mustCreate(server, `${rbacPath}/clusterroles`, {
      ...roleOf('ClusterRole', 'widgets', { rules }),
      metadata: { name: 'widgets', labels },
    });
    for (const user of ['view', 'edit', 'admin']) {
      await eventually(
        async () => (await server.get(path, as(user))).status === 404,
        `${user} may get widgets`,
      );
    }
    await server.remove(`${rbacPath}/clusterroles/widgets`);
    await eventually(async () => (await server.get(path, as('admin'))).status === 403);
  });

  test('AUTHZ-6: aggregated rules are unique, ordered, and restored after changes', async () => {
    const make = async (name: string, label: string, rules: object[]) =>
      mustCreate(server, `${rbacPath}/clusterroles`, {
        ...roleOf('ClusterRole', name, { rules }),
        metadata: { name, labels: { part: label } },
      });
    const one = { verbs: ['get'], apiGroups: ['a'], resources: ['one'] };
    const two = { verbs: ['get'], apiGroups: ['a'], resources: ['two'] };
    const three = { verbs: ['get'], apiGroups: ['a'], resources: ['three'] };
    await make('part-b', 'x', [two, one]);
    await make('part-a', 'x', [one]);
    await make('part-c', 'y', [three, two]);
    const clusterRoleSelectors = [
      { matchLabels: { part: 'y' } },
      { matchExpressions: [{ key: 'part', operator: 'In', values: ['x'] }] },
    ];
    const path = `${rbacPath}/clusterroles/whole`;
    await mustCreate(
      server,
      `${rbacPath}/clusterroles`,
      roleOf('ClusterRole', 'whole', { aggregationRule: { clusterRoleSelectors }, rules: [] }),
    );
    const resources = async () =>
      ((await server.get(path)).body.rules ?? []).flatMap((rule) => rule.resources);
    await eventually(async () => (await resources()).join() === 'three,two,one');
    await server.patch(path, { rules: [] }, 'merge');
    await eventually(async () => (await resources()).join() === 'three,two,one');
    const { body } = await server.get(path);
    await server.patch(
      `${rbacPath}/clusterroles/part-a`,
      { metadata: { labels: { z: '1' } } },
      'merge',
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect((await server.get(path)).body.metadata.resourceVersion).toBe(
      body.metadata.resourceVersion,
    );
  });
});

describe('reconciliation', () => {
  test('AUTHZ-7: each start adds what is missing and respects autoupdate=false', async () => {
    const directory = temporaryFolder();
    const store = { type: 'embedded', directory } as const;
    const roles = `${rbacPath}/clusterroles`;
    const bindings = `${rbacPath}/clusterrolebindings`;
    let server = await withServer({ store });
    const extra = { verbs: ['get'], apiGroups: ['x'], resources: ['y'] };
    await server.patch(`${roles}/system:basic-user`, { rules: [extra] }, 'merge');
    const off = { metadata: { annotations: { [autoupdate]: 'false' } }, rules: [] };
    await server.patch(`${roles}/system:discovery`, off, 'merge');
    await server.patch(`${bindings}/system:discovery`, { subjects: [] }, 'merge');
    await server.remove(`${roles}/system:monitoring`);
    await server.remove(`${bindings}/system:basic-user`);
    const rebound = bindingOf('ClusterRoleBinding', 'system:basic-user', {
      role: 'view',
      subjects: [],
    });
    await mustCreate(server, bindings, rebound);
    const untouched = (await server.get(`${roles}/cluster-admin`)).body.metadata.resourceVersion;
    await server.stop();
    server = await withServer({ store });
    const basic = (await server.get(`${roles}/system:basic-user`)).body.rules;
    expect(basic).toContainEqual(extra);
    expect(basic.length).toBe(3);
    const discovery = await server.get(`${roles}/system:discovery`);
    expect(discovery.body.rules ?? []).toEqual([]);
    const bound = await server.get(`${bindings}/system:discovery`);
    expect(
      names(bound.body.subjects.map((subject: { name: string }) => ({ metadata: subject }))),
    ).toEqual(['system:authenticated']);
    expect((await server.get(`${roles}/system:monitoring`)).status).toBe(200);
    const again = await server.get(`${bindings}/system:basic-user`);
    expect(again.body.roleRef.name).toBe('system:basic-user');
    const kept = await server.get(`${roles}/cluster-admin`);
    expect(kept.body.metadata.resourceVersion).toBe(untouched);
  });

  test('AUTHZ-7: the binding split from system:discovery starts with its subjects', async () => {
    const directory = temporaryFolder();
    const store = { type: 'embedded', directory } as const;
    const bindings = `${rbacPath}/clusterrolebindings`;
    let server = await withServer({ store });
    const subjects = [{ kind: 'Group', apiGroup: rbacGroup, name: 'system:authenticated' }];
    const off = { metadata: { annotations: { [autoupdate]: 'false' } }, subjects };
    await server.patch(`${bindings}/system:discovery`, off, 'merge');
    await server.remove(`${bindings}/system:public-info-viewer`);
    await server.stop();
    server = await withServer({ store });
    const viewer = (await server.get(`${bindings}/system:public-info-viewer`)).body;
    expect(viewer.subjects).toEqual(subjects);
    expect(viewer.roleRef.name).toBe('system:public-info-viewer');
    expect(viewer.metadata.annotations[autoupdate]).toBe('false');
  });
});
