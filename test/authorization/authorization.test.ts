import { describe, expect, test } from 'vitest';
import {
  as,
  bindingOf,
  grantRules,
  mustCreate,
  rbacGroup,
  rbacPath,
  roleOf,
  startWithUsers,
} from '../authentication/token-users.ts';

import { eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

const server = await withUsers([
  { name: 'nobody' },
  { name: 'alice' },
  { name: 'bob', groups: ['readers', 'writers'] },
  { name: 'root', groups: ['system:masters'] },
  { name: 'system:serviceaccount:default:robot', groups: ['system:serviceaccounts'] },
]);
const namespace = await freshNamespace(server);

/** Waits until a user gets the wanted status, because authorization follows the caches. */
async function settles(user: string, path: string, status: number): Promise<void> {
  await eventually(
    async () => (await server.get(path, as(user))).status === status,
    `${user} gets ${status} at ${path}`,
  );
}

const cluster = (name: string, rules: object[], subjects: (string | object)[]) =>
  grantRules(server, name, { rules, subjects });

async function namespaced(
  name: string,
  rules: object[],
  options: { subjects: (string | object)[]; namespace?: string },
) {
  const path = `${rbacPath}/namespaces/${options.namespace ?? namespace}`;
  await mustCreate(server, `${path}/roles`, roleOf('Role', name, { rules }));
  const { subjects } = options;
  const binding = bindingOf('RoleBinding', name, { role: name, roleKind: 'Role', subjects });
  await mustCreate(server, `${path}/rolebindings`, binding);
}

describe('wording', () => {
  const pods = (verb: string, more = '') =>
    `User "nobody" cannot ${verb} resource "pods${more}" in API group ""`;
  test.each([
    ['GET', '/api/v1/namespaces/x/pods', `pods is forbidden: ${pods('list')} in the namespace "x"`],
    ['HEAD', '/api/v1/namespaces/x/pods', ''],
    [
      'GET',
      '/api/v1/namespaces/x/pods?watch=1',
      `pods is forbidden: ${pods('watch')} in the namespace "x"`,
    ],
    ['GET', '/api/v1/pods', `pods is forbidden: ${pods('list')} at the cluster scope`],
    [
      'GET',
      '/api/v1/namespaces/x/pods/p',
      `pods "p" is forbidden: ${pods('get')} in the namespace "x"`,
    ],
    [
      'POST',
      '/api/v1/namespaces/x/pods',
      `pods is forbidden: ${pods('create')} in the namespace "x"`,
    ],
    [
      'PUT',
      '/api/v1/namespaces/x/pods/p/status',
      `pods "p" is forbidden: ${pods('update', '/status')} in the namespace "x"`,
    ],
    [
      'PATCH',
      '/api/v1/namespaces/x/pods/p',
      `pods "p" is forbidden: ${pods('patch')} in the namespace "x"`,
    ],
    [
      'DELETE',
      '/api/v1/namespaces/x/pods/p',
      `pods "p" is forbidden: ${pods('delete')} in the namespace "x"`,
    ],
    [
      'DELETE',
      '/api/v1/namespaces/x/pods',
      `pods is forbidden: ${pods('deletecollection')} in the namespace "x"`,
    ],
    [
      'GET',
      '/apis/apps/v1/deployments',
      'deployments.apps is forbidden: User "nobody" cannot list resource "deployments" in API group "apps" at the cluster scope',
    ],
    [
      'GET',
      '/api/v1/namespaces/x',
      'namespaces "x" is forbidden: User "nobody" cannot get resource "namespaces" in API group "" in the namespace "x"',
    ],
    ['GET', '/metrics', 'forbidden: User "nobody" cannot get path "/metrics"'],
    ['POST', '/healthz', 'forbidden: User "nobody" cannot post path "/healthz"'],
    ['GET', '/a<b>&', 'forbidden: User "nobody" cannot get path "/a&lt;b&gt;&amp;"'],
  ])('AUTHZ-1: %s %s', async (method, path, message) => {
    const answer = await server.request(method, path, { ...as('nobody'), body: undefined });
    expect(answer.status).toBe(403);
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
    if (method === 'HEAD') return;
    expect(answer.body).toMatchObject({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'Forbidden',
      message,
      code: 403,
    });
  });

  test('AUTHZ-1: details name the object, its group, and its resource; none for a path', async () => {
    const named = await server.get('/apis/apps/v1/namespaces/x/deployments/d', as('nobody'));
    expect(named.body.details).toEqual({ name: 'd', group: 'apps', kind: 'deployments' });
    const path = await server.get('/metrics', as('nobody'));
    expect(path.body.details).toEqual({});
  });

  test('AUTHZ-1: a forbidden request does not reveal whether the object exists', async () => {
    const unknown = await server.get('/apis/none.example/v1/things', as('nobody'));
    expect(unknown.status).toBe(403);
    expect(unknown.body.message).toBe(
      'things.none.example is forbidden: User "nobody" cannot list resource "things" in API group "none.example" at the cluster scope',
    );
    expect((await server.get('/apis/none.example/v1/things')).status).toBe(404);
    const absent = await server.get('/api/v1/namespaces/nowhere/configmaps/c', as('nobody'));
    expect(absent.status).toBe(403);
  });

  test('AUTHZ-1: a refused anonymous request names system:anonymous', async () => {
    const answer = await server.get('/api/v1/nodes', { token: undefined });
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope',
    );
  });
});

describe('RBAC', () => {
  const rule = (verbs: string[], more: object) => ({ verbs, apiGroups: [''], ...more });

  test('AUTHZ-4: a Role applies in its namespace, to its verbs and resources only', async () => {
    const rules = [rule(['get', 'list'], { resources: ['configmaps'] })];
    await namespaced('reads-maps', rules, { subjects: ['alice'] });
    const maps = `/api/v1/namespaces/${namespace}/configmaps`;
    await settles('alice', maps, 200);
    const refused = async (method: string, path: string) =>
      expect((await server.request(method, path, as('alice'))).status).toBe(403);
    await refused('GET', `${maps}?watch=true`);
    await refused('POST', maps);
    await refused('DELETE', maps);
    await refused('GET', '/api/v1/configmaps');
    await refused('GET', '/api/v1/namespaces/default/configmaps');
    await refused('GET', `/api/v1/namespaces/${namespace}/secrets`);
    await refused('GET', `/apis/apps/v1/namespaces/${namespace}/deployments`);
    expect((await server.get(`${maps}/none`, as('alice'))).status).toBe(404);
  });

  test('AUTHZ-4: a ClusterRole bound in a namespace applies there only, never to paths', async () => {
    const rules = [rule(['*'], { resources: ['*'] }), { verbs: ['*'], nonResourceURLs: ['*'] }];
    await mustCreate(server, `${rbacPath}/clusterroles`, roleOf('ClusterRole', 'all', { rules }));
    const place = await freshNamespace(server);
    await mustCreate(
      server,
      `${rbacPath}/namespaces/${place}/rolebindings`,
      bindingOf('RoleBinding', 'b', { role: 'all', subjects: ['alice'] }),
    );
    await settles('alice', `/api/v1/namespaces/${place}/secrets`, 200);
    expect((await server.get('/api/v1/secrets', as('alice'))).status).toBe(403);
    expect((await server.get('/metrics', as('alice'))).status).toBe(403);
    expect((await server.get(`/api/v1/namespaces/${place}`, as('alice'))).status).toBe(200);
  });

  test('AUTHZ-4: resourceNames cover named objects, never create or an unfiltered list', async () => {
    const rules = [rule(['*'], { resources: ['configmaps'], resourceNames: ['mine'] })];
    await namespaced('one-map', rules, { subjects: ['bob'] });
    const maps = `/api/v1/namespaces/${namespace}/configmaps`;
    await settles('bob', `${maps}/mine`, 404);
    expect((await server.get(`${maps}/other`, as('bob'))).status).toBe(403);
    expect((await server.get(maps, as('bob'))).status).toBe(403);
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine' } };
    expect((await server.post(maps, body, as('bob'))).status).toBe(403);
    const named = await server.get(`${maps}?fieldSelector=metadata.name%3Dmine`, as('bob'));
    expect(named.status).toBe(200);
    // The old watch paths take the name from the path alone.
    const old = maps.replace('/v1/', '/v1/watch/');
    const query = 'fieldSelector=metadata.name%3Dmine&timeoutSeconds=1';
    expect((await server.get(`${old}?${query}`, as('bob'))).status).toBe(403);
  });

  test('AUTHZ-4: subresources are named separately, or with * before the slash', async () => {
    const rules = [
      rule(['get'], { resources: ['pods'] }),
      rule(['get'], { resources: ['*/scale'] }),
    ];
    await cluster('parts', rules, ['alice']);
    await settles('alice', `/api/v1/namespaces/${namespace}/pods/p`, 404);
    const at = (path: string) => server.get(`/api/v1/namespaces/${namespace}/${path}`, as('alice'));
    expect((await at('pods/p/status')).status).toBe(403);
    expect((await at('replicationcontrollers/r/scale')).status).not.toBe(403);
    expect((await at('replicationcontrollers/r')).status).toBe(403);
  });

  test('AUTHZ-4: nonResourceURLs match exactly, or by prefix with a trailing *', async () => {
    const rules = [{ verbs: ['get'], nonResourceURLs: ['/logs', '/debug/*'] }];
    await cluster('paths', rules, ['alice']);
    await settles('alice', '/logs', 404);
    expect((await server.get('/debug/deep/er', as('alice'))).status).toBe(404);
    expect((await server.get('/debug', as('alice'))).status).toBe(403);
    expect((await server.get('/logs/x', as('alice'))).status).toBe(403);
    expect((await server.request('POST', '/logs', as('alice'))).status).toBe(403);
  });

  test('AUTHZ-4: subjects are users, groups, service accounts, and special groups', async () => {
    const rules = [rule(['list'], { resources: ['nodes'] })];
    await cluster('by-group', rules, [{ kind: 'Group', name: 'writers' }]);
    await settles('bob', '/api/v1/nodes', 200);
    expect((await server.get('/api/v1/nodes', as('nobody'))).status).toBe(403);
    await cluster(
      'by-account',
      [rule(['list'], { resources: ['persistentvolumes'] })],
      [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }],
    );
    await settles('system:serviceaccount:default:robot', '/api/v1/persistentvolumes', 200);
    await cluster(
      'by-special-group',
      [{ verbs: ['list'], apiGroups: ['storage.svc.io'], resources: ['csidrivers'] }],
      [{ kind: 'Group', name: 'system:unauthenticated' }],
    );
    await eventually(async () => {
      const answer = await server.get('/apis/storage.svc.io/v1/csidrivers', { token: undefined });
      return answer.status === 200;
    });
    const known = await server.get('/apis/storage.svc.io/v1/csidrivers', as('nobody'));
    expect(known.status).toBe(403);
  });

  test('AUTHZ-4: an unresolvable roleRef is reported, and other bindings still apply', async () => {
    const place = await freshNamespace(server);
    const path = `${rbacPath}/namespaces/${place}/rolebindings`;
    const dangling = bindingOf('RoleBinding', 'a', {
      role: 'gone',
      roleKind: 'Role',
      subjects: ['alice'],
    });
    await mustCreate(server, path, dangling);
    const secrets = `/api/v1/namespaces/${place}/secrets`;
    const reported = await eventually(async () => {
      const answer = await server.get(secrets, as('alice'));
      return answer.body.message.includes('RBAC') && answer;
    });
    expect(reported.status).toBe(403);
    expect(reported.body.message).toBe(
      `secrets is forbidden: User "alice" cannot list resource "secrets" in API group "" in the namespace "${place}": ` +
        `RBAC: role.${rbacGroup} "gone" not found`,
    );
    const misplaced = bindingOf('RoleBinding', 'm', {
      role: 'gone',
      roleKind: 'Role',
      subjects: [{ kind: 'User', name: 'nobody', namespace: place }],
    });
    await mustCreate(server, path, misplaced);
    await eventually(async () => {
      const { body } = await server.get(secrets, as('nobody'));
      return body.message.endsWith(
        `RBAC: RoleBinding "m/${place}": subject User "nobody" must not have the namespace "${place}"`,
      );
    }, 'the misplaced subject is reported');
    const rules = [rule(['list'], { resources: ['secrets'] })];
    await namespaced('reads', rules, { subjects: ['alice'], namespace: place });
    await settles('alice', secrets, 200);
  });

  test('AUTHZ-4: a revoked right is refused', async () => {
    const rules = [rule(['list'], { resources: ['services'] })];
    await namespaced('short-lived', rules, { subjects: ['alice'] });
    const path = `/api/v1/namespaces/${namespace}/services`;
    await settles('alice', path, 200);
    const role = `${rbacPath}/namespaces/${namespace}/roles/short-lived`;
    await server.patch(role, { rules: [rule(['get'], { resources: ['services'] })] }, 'merge');
    await settles('alice', path, 403);
    await server.patch(role, { rules }, 'merge');
    await settles('alice', path, 200);
    await server.remove(`${rbacPath}/namespaces/${namespace}/rolebindings/short-lived`);
    await settles('alice', path, 403);
  });

  test('AUTHZ-4, TRUST-2: the next request sees a large role or binding', async () => {
    const place = await freshNamespace(server);
    const many = Array.from({ length: 2_000 }, (_, at) => `n${at}`);
    const others = many.map((name) => rule(['get'], { resources: [name] }));
    await namespaced('large', others, { subjects: [...many, 'alice'], namespace: place });
    const put = async (resource: string, object: object) => {
      const path = `${rbacPath}/namespaces/${place}/${resource}/large`;
      expect((await server.put(path, object)).status).toBe(200);
      const { status } = await server.get(`/api/v1/namespaces/${place}/secrets`, as('alice'));
      return status;
    };
    const withRules = (...more: object[]) =>
      put('roles', roleOf('Role', 'large', { rules: [...others, ...more] }));
    const withSubjects = (...more: string[]) => {
      const subjects = [...many, ...more];
      const binding = { role: 'large', roleKind: 'Role', subjects } as const;
      return put('rolebindings', bindingOf('RoleBinding', 'large', binding));
    };
    const secrets = rule(['list'], { resources: ['secrets'] });
    expect(await withRules(secrets)).toBe(200);
    expect(await withRules()).toBe(403);
    expect(await withRules(secrets)).toBe(200);
    expect(await withSubjects()).toBe(403);
    expect(await withSubjects('alice')).toBe(200);
    await server.remove(`${rbacPath}/namespaces/${place}/rolebindings/large`);
    const after = await server.get(`/api/v1/namespaces/${place}/secrets`, as('alice'));
    expect(after.status).toBe(403);
  });

  test('AUTHZ-10: system:masters may do everything, regardless of bindings', async () => {
    expect((await server.get('/api/v1/secrets', as('root'))).status).toBe(200);
    expect((await server.get('/metrics', as('root'))).status).not.toBe(403);
    const binding = `${rbacPath}/clusterrolebindings/cluster-admin`;
    expect((await server.remove(binding)).status).toBe(200);
    expect((await server.get('/api/v1/secrets', as('root'))).status).toBe(200);
  });

  test('API-5: PUT that creates a role also needs the verb create', async () => {
    const update = { verbs: ['update'], apiGroups: [rbacGroup], resources: ['roles'] };
    await namespaced('updates-roles', [update], { subjects: ['nobody'] });
    const path = `${rbacPath}/namespaces/${namespace}/roles/fresh`;
    const body = roleOf('Role', 'fresh', { rules: [] });
    const answer = await eventually(async () => {
      const put = await server.put(path, body, as('nobody'));
      return put.body.message?.includes('cannot create') && put;
    });
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      `roles.${rbacGroup} "fresh" is forbidden: User "nobody" cannot create resource "roles" in API group "${rbacGroup}" in the namespace "${namespace}"`,
    );
  });
});

describe('modes', () => {
  test('AUTHZ-2: AlwaysAllow and AlwaysDeny apply, and system:masters passes both', async () => {
    const open = await startWithUsers([{ name: 'nobody' }], {
      authorizationModes: ['AlwaysAllow'],
    });
    expect((await open.get('/api/v1/secrets', as('nobody'))).status).toBe(200);
    expect((await open.get('/api/v1/secrets', { token: undefined })).status).toBe(200);
    const none = await open.get(`${rbacPath}/clusterroles`);
    expect(none.body.items).toEqual([]);
    await open.stop();
    const closed = await withUsers([{ name: 'nobody' }], { authorizationModes: ['AlwaysDeny'] });
    const denied = await closed.get('/api/v1/secrets', as('nobody'));
    expect(denied.status).toBe(403);
    expect(denied.body.message).toBe(
      'secrets is forbidden: User "nobody" cannot list resource "secrets" in API group "" at the cluster scope: Everything is forbidden.',
    );
    expect((await closed.get('/api/v1/secrets')).status).toBe(200);
  });

  test('AUTHZ-2: modes run in order until one decides, and reasons are joined', async () => {
    const both = await withUsers([{ name: 'nobody' }], {
      authorizationModes: ['AlwaysDeny', 'RBAC'],
    });
    const path = `${rbacPath}/clusterrolebindings`;
    const subjects = ['nobody'];
    await mustCreate(both, path, bindingOf('ClusterRoleBinding', 'b', { role: 'gone', subjects }));
    await eventually(async () => {
      const { body } = await both.get('/api/v1/secrets', as('nobody'));
      return body.message.endsWith(
        `Everything is forbidden.\nRBAC: clusterrole.${rbacGroup} "gone" not found`,
      );
    });
    const rules = [{ verbs: ['list'], apiGroups: [''], resources: ['secrets'] }];
    await mustCreate(both, `${rbacPath}/clusterroles`, roleOf('ClusterRole', 'gone', { rules }));
    await eventually(async () => (await both.get('/api/v1/secrets', as('nobody'))).status === 200);
  });
});
