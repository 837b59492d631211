import {
  accessMatrix,
  canI,
  createSession,
  type Discovered,
  getCommand,
  hashOf,
  matrixVerbs,
  objectCommand,
  ownRules,
  type Route,
  routeOf,
  type SessionState,
  subjectText,
  whoAmI,
  whoCan,
} from '@wheelhouse/console/testing';
import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';

import { adminToken, configMap, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer, withUsers } from '../support/with-server.ts';
import {
  apiFor,
  discovered,
  kindNamed,
  parseYaml,
  type TestApi,
  trustingFetch,
} from './console.ts';

let admin: TestApi;
let reader: TestApi;
let discovery: Discovered;
let namespace: string;
const server = await withUsers([{ name: 'reader', groups: ['team'] }, { name: 'auditor' }]);
beforeAll(async () => {
  admin = apiFor(server);
  reader = apiFor(server, { token: 'reader' });
  discovery = await discovered(admin);
  namespace = await freshNamespace(server);
  const within = `${rbacPath}/namespaces/${namespace}`;
  const rules = [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['one', 'two'], verbs: ['get'] },
    { apiGroups: ['apps'], resources: ['*/scale'], verbs: ['update'] },
  ];
  await mustCreate(server, `${within}/roles`, roleOf('Role', 'reader', { rules }));
  const subjects = [
    { kind: 'Group', name: 'team', apiGroup: 'rbac.authorization.svc.io' },
    { kind: 'ServiceAccount', name: 'robot', namespace },
  ];
  const binding = { role: 'reader', roleKind: 'Role', subjects } as const;
  await mustCreate(server, `${within}/rolebindings`, bindingOf('RoleBinding', 'team', binding));
  const everywhere = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }];
  const role = roleOf('ClusterRole', 'configurer', { rules: everywhere });
  await mustCreate(server, `${rbacPath}/clusterroles`, role);
  await mustCreate(
    server,
    `${rbacPath}/clusterrolebindings`,
    bindingOf('ClusterRoleBinding', 'conf', { role: 'configurer', subjects: ['carol'] }),
  );
});

const dialect = () => discovery.dialect;

describe('signing in', () => {
  function sessionOf(options: { readonly stored?: string; readonly url?: string } = {}) {
    let stored = options.stored;
    const states: SessionState[] = [];
    const urls: string[] = [];
    const session = createSession({
      fetch: (url, request) => {
        urls.push(url);
        return trustingFetch(url, request);
      },
      base: options.url ?? server.url,
      tokens: {
        read: () => stored,
        write: (token) => {
          stored = token;
        },
      },
      parseYaml,
      onChange: (state) => states.push(state),
    });
    return { session, states, urls, stored: () => stored };
  }

  test('CLIENT-4: a token signs in, and the server names its user', async () => {
    const { session, states, urls, stored } = sessionOf();
    expect(session.state).toEqual({ phase: 'signed out', message: '' });
    await session.signIn(' reader\n');
    expect(session.state).toEqual({
      phase: 'signed in',
      subject: { user: 'reader', groups: ['team', 'system:authenticated'] },
    });
    expect(states.map(({ phase }) => phase)).toEqual(['signing in', 'signed in']);
    expect(stored()).toBe('reader');
    // No URL contains it.
    expect(urls.filter((url) => url.includes('reader'))).toEqual([]);
    session.signOut();
    expect(session.state.phase).toBe('signed out');
    expect(stored()).toBeUndefined();
  });

  test('CLIENT-4: a reload keeps the token of the tab; without one, a token is required', async () => {
    const again = sessionOf({ stored: 'reader' });
    await again.session.resume();
    expect(again.session.state).toMatchObject({ phase: 'signed in', subject: { user: 'reader' } });
    const first = sessionOf();
    await first.session.resume();
    expect(first.session.state).toEqual({ phase: 'signed out', message: '' });
  });

  test('CLIENT-4: a reload keeps the token while the server does not answer', async () => {
    const away = sessionOf({ stored: 'reader', url: 'https://127.0.0.1:9' });
    await away.session.resume();
    expect(away.session.state).toMatchObject({ message: 'the server cannot be reached' });
    expect(away.stored()).toBe('reader');
    const rejected = sessionOf({ stored: 'wrong' });
    await rejected.session.resume();
    expect(rejected.stored()).toBeUndefined();
  });

  test('CLIENT-4: what a user began sends nothing with the credential of the next', async () => {
    const { session, urls } = sessionOf();
    const subject = () => {
      if (session.state.phase !== 'signed in') throw new Error(session.state.phase);
      return session.state.subject;
    };
    await session.signIn('reader');
    const api = session.apiOf(subject());
    const path = '/version';
    await api.json({ path });
    session.signOut();
    const requestCount = urls.length;
    const refused = { code: 401, message: 'You are signed out.' };
    await expect(api.json({ path })).rejects.toMatchObject(refused);
    expect(urls.length).toBe(requestCount);
    await session.signIn(adminToken);
    await expect(api.send({ path })).rejects.toMatchObject(refused);
    await expect(api.stream({ path })).rejects.toMatchObject(refused);
    await session.apiOf(subject()).json({ path });
    await session.signIn('reader');
    await api.json({ path });
  });

  test('CLIENT-4: an invalid token is rejected with a reason and not stored', async () => {
    const { session, stored, urls } = sessionOf();
    const message = async (token: string) => {
      await session.signIn(token);
      return session.state.phase === 'signed out' ? session.state.message : session.state.phase;
    };
    expect(await message('wrong')).toBe('The server rejected this token.');
    expect(await message('')).toBe('The browser presented no certificate.');
    const requestCount = urls.length;
    expect(await message('two words')).toContain('The token contains invalid characters.');
    expect(await message('line\nbreak')).toContain('The token contains invalid characters.');
    expect(await message('tökén')).toContain('The token contains invalid characters.');
    expect(urls.length).toBe(requestCount);
    expect(stored()).toBeUndefined();
    const away = sessionOf({ url: 'https://127.0.0.1:9' });
    await away.session.signIn('reader');
    expect(away.session.state).toMatchObject({ message: 'the server cannot be reached' });
  });

  test('CLIENT-4: an expired token ends the session', async () => {
    const { session, stored } = sessionOf();
    await session.signIn(adminToken);
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    const robot = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    await mustCreate(server, path, robot);
    const request = { spec: { expirationSeconds: 600 } };
    const { body } = await server.post<ResponseOf<TokenRequest>>(`${path}/robot/token`, request);
    await session.signIn(body.status.token);
    expect(session.state).toMatchObject({
      phase: 'signed in',
      subject: { user: `system:serviceaccount:${namespace}:robot` },
    });
    // Deleting the account revokes its tokens.
    await server.remove(`${path}/robot`);
    await expect(session.api.json({ path: '/api' })).rejects.toMatchObject({ code: 401 });
    expect(session.state).toEqual({
      phase: 'signed out',
      message: 'Your session has expired. Sign in again.',
    });
    expect(stored()).toBeUndefined();
  });

  test('CLIENT-4: signing in works with releases that lack SelfSubjectReview', async () => {
    const older = await withServer({ emulatedMinor: 21 });
    const { session } = sessionOf({ url: older.url });
    await session.signIn(adminToken);
    const subject = { user: '', groups: [] };
    expect(session.state).toEqual({ phase: 'signed in', subject });
    await session.signIn('wrong');
    expect(session.state).toMatchObject({ message: 'The server rejected this token.' });
    await session.signIn('');
    expect(session.state).toMatchObject({ message: 'The browser presented no certificate.' });
  });

  test('CLIENT-4: the console detects the server’s dialect', async () => {
    const kubernetes = await withServer({ dialect: 'kubernetes' });
    const { session } = sessionOf({ url: kubernetes.url });
    await session.signIn(adminToken);
    expect(session.state).toMatchObject({ subject: { user: 'system:admin' } });
    expect((await discovered(session.api)).dialect.name).toBe('kubernetes');
    const rules = await ownRules(session.api, {
      dialect: (await discovered(session.api)).dialect,
      namespace: 'default',
    });
    expect(rules.rules.length).toBeGreaterThan(0);
    expect(dialect().name).toBe('svc');
  });
});

describe('access', () => {
  test('CLIENT-4: shows the user, and a matrix of kinds and verbs for a namespace', async () => {
    expect(await whoAmI(reader, dialect())).toEqual({
      user: 'reader',
      groups: ['team', 'system:authenticated'],
    });
    const { rules, isIncomplete, paths } = await ownRules(reader, {
      dialect: dialect(),
      namespace,
    });
    expect(isIncomplete).toBe(false);
    expect(paths).toContainEqual({ path: '/healthz', verbs: ['get'] });
    const matrix = accessMatrix(discovery.kinds, rules, { subresources: 'shown' });
    const row = (name: string, subresource = '') => {
      const kind = kindNamed(discovery.kinds, name);
      const found = matrix.find(
        (entry) => entry.kind === kind && entry.subresource === subresource,
      );
      return Object.fromEntries(
        matrixVerbs.map((verb, index) => {
          const cell = found?.cells[index];
          return [verb, cell?.kind === 'named' ? cell.names.join() : cell?.kind];
        }),
      );
    };
    expect(row('configmaps')).toEqual({
      get: 'yes',
      list: 'yes',
      watch: 'yes',
      create: 'no',
      update: 'no',
      patch: 'no',
      delete: 'no',
      deletecollection: 'no',
    });
    expect(row('secrets')).toMatchObject({ get: 'one,two', list: 'no' });
    expect(row('deployments.apps', 'scale')).toMatchObject({
      update: 'yes',
      get: 'no',
      list: 'none',
    });
    expect(row('deployments.apps')).toMatchObject({ update: 'no' });
    expect(row('selfsubjectaccessreviews.authorization.svc.io')).toMatchObject({
      create: 'yes',
      get: 'none',
    });
    expect(matrix).toHaveLength(
      accessMatrix(discovery.kinds, [], { subresources: 'shown' }).length,
    );
    const withoutSubresources = accessMatrix(discovery.kinds, rules, { subresources: 'hidden' });
    expect(withoutSubresources.every(({ subresource }) => subresource === '')).toBe(true);
    expect(withoutSubresources).toHaveLength(
      discovery.kinds.filter(({ preferred }) => preferred).length,
    );

    const elsewhere = await ownRules(reader, { dialect: dialect(), namespace: 'default' });
    const otherMatrix = accessMatrix([kindNamed(discovery.kinds, 'configmaps')], elsewhere.rules, {
      subresources: 'hidden',
    });
    expect(otherMatrix[0]?.cells.map(({ kind }) => kind)).not.toContain('yes');
  });

  test('CLIENT-4: the matrix agrees with the server’s decisions', async () => {
    const { rules } = await ownRules(reader, { dialect: dialect(), namespace });
    const [row] = accessMatrix([kindNamed(discovery.kinds, 'configmaps')], rules, {
      subresources: 'hidden',
    });
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const token = 'reader';
    const statuses = {
      list: (await server.get(path, { token })).status,
      create: (await server.post(path, configMap('x'), { token })).status,
      deletecollection: (await server.remove(path, undefined, { token })).status,
    };
    for (const [verb, status] of Object.entries(statuses)) {
      const cell = row?.cells[(matrixVerbs as readonly string[]).indexOf(verb)];
      expect(cell?.kind, verb).toBe(status === 403 ? 'no' : 'yes');
    }
  });

  test('CLIENT-4: the server decides what the user or another user may do', async () => {
    const attempt = {
      verb: 'get',
      group: '',
      resource: 'secrets',
      subresource: '',
      namespace,
      name: 'one',
    };
    const check = (api: TestApi, change: object = {}, user?: string) =>
      canI(api, {
        dialect: dialect(),
        attempt: { ...attempt, ...change },
        ...(user === undefined ? {} : { subject: { user, groups: ['team'] } }),
      });
    expect(await check(reader)).toMatchObject({ isAllowed: true, isDenied: false });
    expect((await check(reader)).reason).toContain('RoleBinding');
    expect(await check(reader, { name: 'three' })).toMatchObject({ isAllowed: false, reason: '' });
    expect(await check(reader, { namespace: '' })).toMatchObject({ isAllowed: false });
    expect(await check(reader, { subresource: 'x' })).toMatchObject({ isAllowed: false });
    expect(await check(admin, {}, 'anybody')).toMatchObject({ isAllowed: true });
    expect(await check(admin, { verb: 'delete' }, 'anybody')).toMatchObject({ isAllowed: false });
    // Checking others requires permission to create the review.
    await expect(check(reader, {}, 'carol')).rejects.toMatchObject({ code: 403 });
  });

  test('CLIENT-4: lists the subjects with a permission, with their bindings and roles', async () => {
    const permission = { verb: 'list', group: '', resource: 'configmaps', subresource: '' };
    const { grants, unread } = await whoCan(admin, { dialect: dialect(), permission, namespace });
    expect(unread).toEqual([]);
    const reach = grants.map(
      ({ subject, binding, role }) => `${subjectText(subject)} ${binding} ${role}`,
    );
    expect(reach).toContain('User/carol ClusterRoleBinding/conf ClusterRole/configurer');
    expect(reach).toContain(`Group/team RoleBinding/${namespace}/team Role/reader`);
    expect(reach).toContain(
      `ServiceAccount/${namespace}/robot RoleBinding/${namespace}/team Role/reader`,
    );
    expect(reach).toContain(
      'Group/system:masters ClusterRoleBinding/cluster-admin ClusterRole/cluster-admin',
    );
    expect(reach).not.toContain(expect.stringContaining('reader ClusterRole'));

    const secrets = { ...permission, resource: 'secrets', verb: 'get' };
    const secretReaders = await whoCan(admin, {
      dialect: dialect(),
      permission: secrets,
      namespace,
    });
    const team = secretReaders.grants.find(({ subject }) => subject.name === 'team');
    expect(team?.names).toEqual(['one', 'two']);

    const everywhere = await whoCan(admin, { dialect: dialect(), permission, namespace: '' });
    const subjects = everywhere.grants.map(({ subject }) => subjectText(subject));
    expect(subjects).toContain('User/carol');
    expect(subjects).not.toContain('Group/team');
    // The result matches the decision of the server.
    for (const user of ['carol', 'dave']) {
      const attempt = { ...permission, namespace, name: '' };
      const subject = { user, groups: [] };
      const { isAllowed } = await canI(admin, { dialect: dialect(), attempt, subject });
      expect(isAllowed, user).toBe(subjects.includes(`User/${user}`));
    }
  });

  test('CLIENT-4: roles and bindings that cannot be read are reported', async () => {
    const permission = { verb: 'list', group: '', resource: 'configmaps', subresource: '' };
    const { grants, unread } = await whoCan(reader, { dialect: dialect(), permission, namespace });
    expect(grants).toEqual([]);
    expect(unread.map(({ resource }) => resource).sort()).toEqual([
      'clusterrolebindings',
      'clusterroles',
      'rolebindings',
      'roles',
    ]);
    expect(unread[0]?.message).toContain('User "reader" cannot list resource');
  });
});

describe('routes', () => {
  const resource = { group: 'apps', version: 'v1', resource: 'deployments' };

  test('CLIENT-4: every view has a URL that restores it', () => {
    const routes: Route[] = [
      { page: 'home' },
      { page: 'table', at: { ...resource, namespace: 'a', labels: 'x in (a,b)', fields: 'm=1&2' } },
      { page: 'table', at: { ...resource, group: '', namespace: '', labels: '', fields: '' } },
      { page: 'object', resource, namespace: 'a', name: 'b', tab: 'yaml' },
      { page: 'object', resource, namespace: '', name: 'system:a/b?c#d%', tab: 'edit' },
      {
        page: 'object',
        resource,
        namespace: 'n',
        name: '<img src=x onerror=alert(1)>',
        tab: 'json',
      },
      { page: 'create', resource, namespace: 'n' },
      { page: 'access', tab: 'who', namespace: 'n' },
    ];
    for (const route of routes) expect(routeOf(hashOf(route))).toEqual(route);
    for (const hash of ['', '#', '#/', '#/x/y', '#/t/', '#/o/core/v1/pods', '#/t/%zz/v1/', '#//']) {
      expect(routeOf(hash), hash).toEqual({ page: 'home' });
    }
  });

  test('CLIENT-4: a rule for some names does not allow creation, as in RBAC', () => {
    const rule = { verbs: ['*'], groups: [''], resources: ['secrets'], names: ['one'] };
    const secrets = kindNamed(discovery.kinds, 'secrets');
    const [row] = accessMatrix([secrets], [rule], { subresources: 'hidden' });
    const cellOf = (verb: (typeof matrixVerbs)[number]) => row?.cells[matrixVerbs.indexOf(verb)];
    expect(cellOf('get')).toEqual({ kind: 'named', names: ['one'] });
    expect(cellOf('create')).toEqual({ kind: 'no' });
  });

  test('CLIENT-4: views have equivalent kubectl commands', () => {
    const kind = kindNamed(discovery.kinds, 'deployments.apps');
    const of = { kind, namespace: 'a', labels: '', fields: '', width: 'normal' } as const;
    expect(getCommand(of)).toBe('kubectl get deployments.apps -n a');
    expect(
      getCommand({ ...of, namespace: undefined, labels: "a!='b'; rm -rf", width: 'wide' }),
    ).toBe(`kubectl get deployments.apps -A -l 'a!='\\''b'\\''; rm -rf' -o wide`);
    expect(objectCommand({ kind, namespace: 'a', name: '$(x)' }, 'get')).toBe(
      "kubectl get deployments.apps -n a -o yaml -- '$(x)'",
    );
    const cluster = kindNamed(discovery.kinds, 'namespaces');
    expect(objectCommand({ kind: cluster, namespace: undefined, name: 'b' }, 'delete')).toBe(
      'kubectl delete namespaces -- b',
    );
  });
});
