import { beforeAll, describe, expect, test } from 'vitest';
import { configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let maps: string;

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const failure = (rest: object) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  ...rest,
});
const rbac = '/apis/rbac.authorization.svc.io/v1';

describe('names', () => {
  test('API-3: a second create is 409, and a deleted name is free for a new uid', async () => {
    const first = await server.post(maps, configMap('one'));
    expect(first.status).toBe(201);
    const second = await server.post(maps, configMap('one'));
    expect(second.status).toBe(409);
    expect(second.body).toEqual(
      failure({
        message: 'configmaps "one" already exists',
        reason: 'AlreadyExists',
        details: { name: 'one', kind: 'configmaps' },
        code: 409,
      }),
    );
    const elsewhere = await freshNamespace(server);
    const created = await server.post(
      `/api/v1/namespaces/${elsewhere}/configmaps`,
      configMap('one'),
    );
    expect(created.status).toBe(201);
    expect((await server.remove(`${maps}/one`)).status).toBe(200);
    const again = await server.post(maps, configMap('one'));
    expect(again.status).toBe(201);
    expect(again.body.metadata.uid).not.toBe(first.body.metadata.uid);
  });

  test('API-3: the same name works in another group and another kind', async () => {
    const role = { metadata: { name: 'one' }, rules: [] };
    const roles = `${rbac}/namespaces/${namespace}/roles`;
    expect((await server.post(roles, role)).status).toBe(201);
    const { body } = await server.post(roles, role);
    expect(body.message).toBe('roles.rbac.authorization.svc.io "one" already exists');
    expect(body.details).toEqual({
      name: 'one',
      group: 'rbac.authorization.svc.io',
      kind: 'roles',
    });
  });

  test('API-3: one of several concurrent creates succeeds', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => server.post(maps, configMap('raced'))),
    );
    const codes = answers.map((answer) => answer.status).sort();
    expect(codes).toEqual([201, ...new Array(19).fill(409)]);
  });
});

describe('PUT of a missing object', () => {
  test.each([
    ['roles.rbac', () => `${rbac}/namespaces/${namespace}/roles`, { rules: [] }],
    ['clusterroles.rbac', () => `${rbac}/clusterroles`, { rules: [] }],
    [
      'leases.coordination',
      () => `/apis/coordination.svc.io/v1/namespaces/${namespace}/leases`,
      { spec: {} },
    ],
    [
      'events',
      () => `/api/v1/namespaces/${namespace}/events`,
      { involvedObject: {}, reason: 'x', message: 'y', type: 'Normal' },
    ],
  ])('API-5: creates %s', async (_, path, body) => {
    const object = (more = {}) => ({ metadata: { name: 'put', ...more }, ...body });
    if (path().includes('/events')) Object.assign(body, { involvedObject: { namespace } });
    const made = await server.put(`${path()}/put`, object());
    expect(made.status, made.text).toBe(201);
    const { resourceVersion } = made.body.metadata;
    const again = await server.put(
      `${path()}/put`,
      object({ labels: { a: 'b' }, resourceVersion }),
    );
    expect(again.status, again.text).toBe(200);
    expect(again.body.metadata.uid).toBe(made.body.metadata.uid);
  });

  test('API-5: 404 for other kinds', async () => {
    const { status, body } = await server.put(`${maps}/absent`, configMap('absent'));
    expect(status).toBe(404);
    expect(body).toEqual(
      failure({
        message: 'configmaps "absent" not found',
        reason: 'NotFound',
        details: { name: 'absent', kind: 'configmaps' },
        code: 404,
      }),
    );
    const node = await server.put('/api/v1/nodes/absent', { metadata: { name: 'absent' } });
    expect(node.status).toBe(404);
  });

  test('API-5: a uid makes it a conflict', async () => {
    const role = { metadata: { name: 'uid', uid: 'x' }, rules: [] };
    const { status, body } = await server.put(`${rbac}/namespaces/${namespace}/roles/uid`, role);
    expect(status).toBe(409);
    expect(body.reason).toBe('Conflict');
    expect(body.message).toContain(
      'Precondition failed: UID in precondition: x, UID in object meta: ',
    );
  });
});

describe('paths and methods', () => {
  test.each([
    ['GET', '/none'],
    ['GET', '/api/v1/nothings'],
    ['GET', '/api/v9/pods'],
    ['GET', '/apis/none.io/v1/things'],
    ['GET', '/api/v1/namespaces/default/nothings/x'],
    ['GET', '/api/v1/namespaces/default/configmaps/x/none'],
    ['GET', '/api/v1/namespaces/default/configmaps/x/status'],
    ['GET', '/api/v1/configmaps/x'],
    ['GET', '/api/v1/namespaces/default/nodes/x'],
    ['GET', '/api/v1/namespaces/default/configmaps/x/y/z'],
    ['POST', '/apis/apps/v1/namespaces/default/nothings'],
  ])('API-9: %s %s is 404 with a Status', async (method, path) => {
    const answer = await server.request(method, path, method === 'POST' ? { body: '{}' } : {});
    expect(answer.body).toEqual(
      failure({
        message: 'the server could not find the requested resource',
        reason: 'NotFound',
        details: {},
        code: 404,
      }),
    );
    expect(answer.status).toBe(404);
  });

  test.each([
    ['PUT', '/api/v1/namespaces/default/configmaps'],
    ['PATCH', '/api/v1/namespaces/default/configmaps'],
    ['POST', '/api/v1/namespaces/default/configmaps/x'],
    ['POST', '/api/v1/configmaps'],
    ['DELETE', '/api/v1/configmaps'],
    ['DELETE', '/api/v1/namespaces'],
    ['DELETE', '/apis/apps/v1/namespaces/default/deployments/x/status'],
    ['OPTIONS', '/api/v1/namespaces/default/configmaps'],
    ['PURGE', '/api/v1/namespaces/default/configmaps/x'],
  ])('API-10: %s %s is 405 with a Status', async (method, path) => {
    const answer = await server.request(method, path, {
      body: '{}',
      type: method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    });
    expect(answer.body).toEqual(
      failure({
        message: 'the server does not allow this method on the requested resource',
        reason: 'MethodNotAllowed',
        details: {},
        code: 405,
      }),
    );
    expect(answer.status).toBe(405);
  });

  test('API-10: HEAD returns the headers of GET without a body', async () => {
    await server.post(maps, configMap('head'));
    for (const [path, status] of [
      [`${maps}/head`, 200],
      [maps, 200],
      [`${maps}/none`, 404],
      ['/none', 404],
    ] as const) {
      const head = await server.request('HEAD', path);
      const get = await server.get(path);
      expect(head.status, path).toBe(status);
      expect(head.text).toBe('');
      expect(head.headers['content-type']).toBe(get.headers['content-type']);
    }
  });

  test('API-10: an invalid object is 422 with its causes', async () => {
    const { status, body } = await server.post(maps, configMap('Not_A_Name'));
    expect(status).toBe(422);
    expect(body).toMatchObject(
      failure({
        reason: 'Invalid',
        code: 422,
        details: {
          name: 'Not_A_Name',
          kind: 'ConfigMap',
          causes: [{ reason: 'FieldValueInvalid', field: 'metadata.name' }],
        },
      }),
    );
    expect(body.message).toBe(
      `ConfigMap "Not_A_Name" is invalid: metadata.name: ${body.details.causes[0].message}`,
    );
  });

  test('API-10: an invalid credential is 401, a missing permission 403', async () => {
    const nobody = await server.get(maps, { token: 'wrong' });
    expect(nobody.body).toEqual(
      failure({ message: 'Unauthorized', reason: 'Unauthorized', code: 401 }),
    );
    const anonymous = await server.get(`${maps}/x`, { token: undefined });
    expect(anonymous.body).toEqual(
      failure({
        message:
          'configmaps "x" is forbidden: User "system:anonymous" cannot get resource "configmaps" ' +
          `in API group "" in the namespace "${namespace}"`,
        reason: 'Forbidden',
        details: { name: 'x', kind: 'configmaps' },
        code: 403,
      }),
    );
  });

  test('API-10: path and body must name the same object', async () => {
    await server.post(maps, configMap('named'));
    const { status, body } = await server.put(`${maps}/named`, configMap('other'));
    expect(status).toBe(400);
    expect(body.message).toBe(
      'the name of the object (other) does not match the name on the URL (named)',
    );
    const elsewhere = { ...configMap('x'), metadata: { name: 'x', namespace: 'elsewhere' } };
    const posted = await server.post(maps, elsewhere);
    expect(posted.status).toBe(400);
    expect(posted.body.message).toBe(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  });
});
