import { beforeAll, describe, expect, test } from 'vitest';
import { configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let maps: string;
const rbac = '/apis/rbac.authorization.svc.io/v1';

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
  await server.post(maps, configMap('one'));
});

/** The 404 for a path that is not served. */
const pathNotFound = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'the server could not find the requested resource',
  reason: 'NotFound',
  details: {},
  code: 404,
};

describe('API-1: shapes of paths', () => {
  test('API-1: core and named groups, namespaced and not', async () => {
    const pairs: [string, string][] = [
      ['/api/v1/namespaces', 'NamespaceList'],
      [`/api/v1/namespaces/${namespace}`, 'Namespace'],
      [maps, 'ConfigMapList'],
      [`${maps}/one`, 'ConfigMap'],
      ['/api/v1/configmaps', 'ConfigMapList'],
      [`${rbac}/clusterroles`, 'ClusterRoleList'],
      [`${rbac}/clusterroles/cluster-admin`, 'ClusterRole'],
      [`${rbac}/namespaces/${namespace}/roles`, 'RoleList'],
      [`${rbac}/roles`, 'RoleList'],
      [`/api/v1/namespaces/${namespace}/status`, 'Namespace'],
      [`${maps}/`, 'ConfigMapList'],
    ];
    for (const [path, kind] of pairs) {
      const answer = await server.get(path);
      expect([path, answer.status, answer.body.kind]).toEqual([path, 200, kind]);
    }
  });

  test('API-1: the cluster-wide path of a namespaced type lists all namespaces', async () => {
    const otherNamespace = await freshNamespace(server);
    await server.post(`/api/v1/namespaces/${otherNamespace}/configmaps`, configMap('two'));
    const { body } = await server.get('/api/v1/configmaps');
    const seen = body.items.map(
      ({ metadata }: { metadata: { namespace: string; name: string } }) =>
        `${metadata.namespace}/${metadata.name}`,
    );
    expect(seen).toEqual(expect.arrayContaining([`${namespace}/one`, `${otherNamespace}/two`]));
    const within = await server.get(`/api/v1/namespaces/${otherNamespace}/configmaps`);
    expect(within.body.items).toHaveLength(1);
  });

  test('API-1: namespaces do not nest', async () => {
    const inside = `/api/v1/namespaces/${namespace}/namespaces`;
    for (const path of [inside, `${inside}/${namespace}`, `${inside}/${namespace}/status`]) {
      expect((await server.get(path)).body, path).toEqual(pathNotFound);
    }
    expect((await server.post(inside, { metadata: { name: 'inner' } })).body).toEqual(pathNotFound);
    const status = await server.get(`/api/v1/namespaces/${namespace}/status`);
    expect(status.body).toMatchObject({ kind: 'Namespace', metadata: { name: namespace } });
  });

  test.each(['labelSelector=%zz', 'labelSelector=none;x=1', 'fieldSelector=%', 'limit=%4'])(
    'API-1: an unreadable parameter is ignored: %s',
    async (query) => {
      const { status, body } = await server.get(`${maps}?${query}`);
      expect(status).toBe(200);
      expect(body.items).toHaveLength(1);
    },
  );

  test('API-1: subresources', async () => {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    const template = {
      metadata: { labels: { app: 'x' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    };
    const spec = { selector: { matchLabels: { app: 'x' } }, template };
    const body = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' }, spec };
    expect((await server.post(path, body)).status).toBe(201);
    expect((await server.get(`${path}/d/status`)).body.kind).toBe('Deployment');
    const patched = await server.patch(
      `${path}/d/status`,
      { status: { replicas: 3 }, spec: { replicas: 9 } },
      'merge',
    );
    expect(patched.status, patched.text).toBe(200);
    expect(patched.body.status.replicas).toBe(3);
    expect(patched.body.spec.replicas).toBe(1);
  });

  test('API-1: legacy watch paths watch a collection or one object', async () => {
    const version = (await server.get(maps)).body.metadata.resourceVersion;
    const query = `?resourceVersion=${version}`;
    const base = `/api/v1/watch/namespaces/${namespace}/configmaps`;
    const [all, single] = [
      await server.watch(base + query),
      await server.watch(`${base}/w1${query}`),
    ];
    await server.post(maps, configMap('w2'));
    await server.post(maps, configMap('w1'));
    await all.until((events) => events.length === 2);
    await single.until((events) => events.length === 1);
    expect(single.events[0]?.object.metadata.name).toBe('w1');
    all.close();
    single.close();
    expect((await server.post(base, configMap('w3'))).status).toBe(405);
    expect((await server.get('/api/v1/watch')).body).toEqual(pathNotFound);
  });

  test.each([
    '/api/v2/configmaps',
    '/api/v1/nosuchthings',
    '/apis/nosuch.group/v1/things',
    '/apis/apps/v9/deployments',
    '//api',
    '//api/v1',
    '/api//v1',
    '/apis//apps',
    '/apis//apps/v1',
    '/api/v1//configmaps',
    '/api/v1/namespaces//configmaps',
    '/api/v1/configmaps/one',
    '/nosuch',
    '/openapi/v3/',
    '/index.html/',
    '/api/v1/namespaces/x/clusterroles',
    `${rbac}/namespaces/x/clusterroles`,
    '/api/v1/proxy/namespaces/x/pods/y',
    '/api/v1/namespaces/x/configmaps/one/nosuch',
    '/api/v1/namespaces/x/configmaps/one/status/more',
    '/api/v1/namespaces/x/configmaps/one/status',
  ])('API-1: %s is 404', async (path) => {
    const answer = await server.get(path);
    expect(answer.status).toBe(404);
    expect(answer.body).toEqual(pathNotFound);
  });

  test('API-11: /index.html is another name of the list of paths', async () => {
    const [index, root] = [await server.get('/index.html'), await server.get('/')];
    expect(index.body['paths']).toContain('/apis/apps/v1');
    expect(index.body).toEqual(root.body);
  });

  test.each([
    ['%zz', 'invalid URL escape'],
    ['%ff', 'invalid URL escape'],
    ['a%00b', 'NUL'],
    ['..', `Name parameter invalid: "..": may not be '..'`],
    ['%2e%2e', `Name parameter invalid: "..": may not be '..'`],
    ['.', `Name parameter invalid: ".": may not be '.'`],
    ['a%25b', `Name parameter invalid: "a%b": may not contain '%'`],
    ['x'.repeat(9000), 'longer than 8192 bytes'],
  ])('API-1: a name $0 is 400', async (name, message) => {
    for (const path of [`${maps}/${name}`, `/api/v1/namespaces/${name}`]) {
      const answer = await server.get(path);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ kind: 'Status', reason: 'BadRequest', code: 400 });
      expect(answer.body.message).toContain(message);
    }
  });

  test.each(['%zz', 'a%00b', '..', 'a%25b', 'x'.repeat(9000), '/one', 'one//status'])(
    'API-1, AUTHN-1: what is wrong with the path $0 is only for authenticated users',
    async (rest) => {
      const path = `${maps}/${rest}`;
      const unknown = await server.get(path, { token: 'none' });
      expect([unknown.status, unknown.body.reason]).toEqual([401, 'Unauthorized']);
      const anonymous = await server.get(path, { token: '' });
      expect([anonymous.status, anonymous.body.reason]).toEqual([403, 'Forbidden']);
    },
  );

  test('API-1: an invalid timeout is 400, also for unauthenticated users', async () => {
    const prefix = 'invalid timeout specified in the request URL - time: ';
    for (const [given, why] of [
      ['abc', 'invalid duration "abc"'],
      ['10', 'missing unit in duration "10"'],
      ['1parsec', 'unknown unit "parsec" in duration "1parsec"'],
      ['1constructor', 'unknown unit "constructor" in duration "1constructor"'],
    ]) {
      for (const path of [maps, '/version', '/apis']) {
        const unknown = server.get(`${path}?timeout=${given}`, { token: 'none' });
        for (const answer of [await server.get(`${path}?timeout=${given}`), await unknown]) {
          expect(answer.status).toBe(400);
          expect(answer.body).toMatchObject({ reason: 'BadRequest', message: `${prefix}${why}` });
        }
      }
    }
    const taken = ['timeout=32s', 'timeout=0', 'timeout=', 'watch=true&timeoutSeconds=1&timeout=x'];
    for (const query of taken) expect((await server.get(`${maps}?${query}`)).status).toBe(200);
  });

  test('API-1: unusual but legal names are 404 for that object', async () => {
    for (const name of ['%20', 'A', '%E2%82%AC', '__proto__', 'constructor', 'x'.repeat(400)]) {
      const answer = await server.get(`${maps}/${name}`);
      expect(answer.status).toBe(404);
      expect(answer.body.details).toEqual({ name: decodeURIComponent(name), kind: 'configmaps' });
    }
  });
});

describe('API-1: paths of create-only resources', () => {
  test.each(['GET', 'POST', 'PUT', 'DELETE'])('API-1: %s on a name is 404', async (method) => {
    const paths = [
      '/api/v1/namespaces/default/bindings/x',
      '/apis/authorization.svc.io/v1/subjectaccessreviews/x',
    ];
    for (const path of paths) {
      const body = method === 'GET' ? {} : { body: {} };
      expect((await server.request(method, path, body)).status, path).toBe(404);
    }
  });

  test('API-4: only a proxy passes OPTIONS on', async () => {
    const at = '/api/v1/namespaces/default';
    for (const path of [`${at}/pods/x/proxy`, `${at}/services/x/proxy/`, '/api/v1/nodes/x/proxy']) {
      expect((await server.request('OPTIONS', path)).status, path).toBe(404);
    }
    for (const path of [`${at}/pods/x/exec`, `${at}/pods/x`, `${at}/pods`]) {
      expect((await server.request('OPTIONS', path)).status, path).toBe(405);
    }
  });
});

describe('API-4: methods and verbs', () => {
  test('API-4: HEAD answers like GET without a body', async () => {
    for (const path of [maps, `${maps}/one`, '/api/v1', '/version', `${maps}?watch=1`]) {
      const head = await server.request('HEAD', path);
      expect([path, head.status, head.text]).toEqual([path, 200, '']);
    }
    expect((await server.request('HEAD', `${maps}/absent`)).status).toBe(404);
  });

  test.each(['watch=true', 'watch=1'])('API-4: GET ?%s is a watch', async (query) => {
    const version = (await server.get(maps)).body.metadata.resourceVersion;
    const watch = await server.watch(`${maps}?${query}&resourceVersion=${version}`);
    const name = `seen-${query.slice(6)}`;
    await server.post(maps, configMap(name));
    await watch.until((events) => events.length === 1);
    expect(watch.events[0]?.object.metadata.name).toBe(name);
    watch.close();
  });

  test.each(['watch=false', 'watch=0', ''])('API-4: GET ?%s is a list', async (query) => {
    expect((await server.get(`${maps}?${query}`)).body.kind).toBe('ConfigMapList');
  });

  const refused: [string, string, unknown?][] = [
    ['POST', '/one', configMap('one')],
    ['PUT', '', configMap('one')],
    ['PATCH', '', {}],
    ['OPTIONS', ''],
    ['TRACE', ''],
    ['PROPFIND', '/one'],
    ['OPTIONS', '/one'],
  ];
  test.each(refused)('API-4: %s on configmaps%s is 405', async (method, rest, body) => {
    const answer = await server.request(method, `${maps}${rest}`, { body });
    expect(answer.status).toBe(405);
    expect(answer.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'the server does not allow this method on the requested resource',
      reason: 'MethodNotAllowed',
      details: {},
      code: 405,
    });
  });

  test.each(['export=true', 'export', 'export=1&resourceVersion=0'])(
    'API-4: GET of an object ?%s is 400',
    async (query) => {
      const message = 'the export parameter, deprecated since v1.14, is no longer supported';
      const apps = `/apis/apps/v1/namespaces/${namespace}/deployments`;
      for (const path of [`${maps}/one`, `${maps}/absent`, `${apps}/absent/scale`]) {
        const { status, body } = await server.get(`${path}?${query}`);
        expect([status, body.reason, body.message]).toEqual([400, 'BadRequest', message]);
      }
      expect((await server.get(`${maps}?${query}`)).body.kind).toBe('ConfigMapList');
    },
  );

  test.each(['export=false', 'export=0'])('API-4: GET ?%s ignores export', async (query) => {
    expect((await server.get(`${maps}/one?${query}`)).body.kind).toBe('ConfigMap');
  });

  test('API-4: writes across all namespaces are 405, or 404 if the kind has no lists', async () => {
    expect((await server.post('/api/v1/configmaps', configMap('x'))).status).toBe(405);
    const reviews = '/apis/authorization.svc.io/v1/localsubjectaccessreviews';
    for (const path of ['/api/v1/bindings', reviews]) {
      expect((await server.get(path)).status, path).toBe(404);
      expect((await server.post(path, {})).status, path).toBe(404);
    }
    expect((await server.remove('/api/v1/configmaps')).status).toBe(405);
    expect((await server.get(`${maps}/one`)).status).toBe(200);
  });

  test('API-4: POST, PUT, PATCH and DELETE on health and discovery are 405', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      for (const path of ['/healthz', '/api', '/apis/apps', '/version']) {
        const answer = await server.request(method, path);
        expect([method, path, answer.status]).toEqual([method, path, 405]);
      }
    }
  });
});

describe('API-7: path and body agree', () => {
  const put = (body: unknown) => server.put(`${maps}/one`, body);

  test('API-7: another name is 400', async () => {
    const answer = await put(configMap('other'));
    expect(answer.status).toBe(400);
    expect(answer.body.reason).toBe('BadRequest');
    expect(answer.body.message).toBe(
      'the name of the object (other) does not match the name on the URL (one)',
    );
    const patch = { metadata: { name: 'other' } };
    const patched = await server.patch(`${maps}/one`, patch, 'merge');
    expect(patched.status).toBe(400);
    expect(patched.body.message).toBe(answer.body.message);
  });

  test('API-7: a PUT without any name is 400', async () => {
    const answer = await put({ ...configMap(''), metadata: {} });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(
      'the name of the object (one based on URL) was undeterminable: name must be provided',
    );
  });

  test('API-7: another namespace is 400, and none means the path’s', async () => {
    const metadata = { name: 'one', namespace: 'elsewhere' };
    const message =
      'the namespace of the provided object does not match the namespace sent on the request';
    const answers = [
      await server.post(maps, configMap('new', { metadata: { ...metadata, name: 'new' } })),
      await put(configMap('one', { metadata })),
      await server.patch(`${maps}/one`, { metadata: { namespace: 'elsewhere' } }, 'merge'),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.body.message]).toEqual([400, message]);
    }
    const made = await server.post(maps, configMap('placed'));
    expect(made.body.metadata.namespace).toBe(namespace);
  });

  test('API-7: a namespace in a cluster-scoped body is dropped', async () => {
    const answer = await server.post(`${rbac}/clusterroles`, {
      apiVersion: 'rbac.authorization.svc.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'api-7', namespace: 'x' },
    });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.metadata).not.toHaveProperty('namespace');
  });

  test.each([
    [{ apiVersion: 'v2' }, 'no kind "ConfigMap" is registered for version "v2"'],
    [{ apiVersion: 'apps/v1' }, 'no kind "ConfigMap" is registered for version "apps/v1"'],
    [{ apiVersion: 'a/b/c' }, 'unexpected GroupVersion string: a/b/c'],
    [{ kind: 'Secret' }, 'cannot be handled as a ConfigMap'],
    [{ kind: 'NoSuch' }, 'cannot be handled as a ConfigMap'],
    [{ kind: 7 }, 'json: cannot unmarshal number into Go struct field'],
  ])('API-7: a body with %j is 400', async (wrong, message) => {
    const answers = [
      await server.post(maps, { ...configMap('kind'), ...wrong }),
      await put({ ...configMap('one'), ...wrong }),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(400);
      expect(answer.body.reason).toBe('BadRequest');
      expect(answer.body.message).toContain(message);
    }
  });

  test('API-7: the core group may be an empty name before the version', async () => {
    const slashed = (name: string, more = {}) => ({ ...configMap(name, more), apiVersion: '/v1' });
    const path = `${maps}/slashed`;
    const answers = [
      await server.post(maps, slashed('slashed')),
      await server.put(path, slashed('slashed', { data: { a: '1' } })),
      await server.patch(path, { apiVersion: '/v1', data: { a: '2' } }, 'merge'),
      await server.patch(path, { apiVersion: '/v1', data: { a: '3' } }, 'strategic'),
      await server.patch(`${path}?fieldManager=m&force=true`, slashed('slashed'), 'apply'),
    ];
    for (const answer of answers) {
      expect([answer.status < 300, answer.body.apiVersion], answer.text).toEqual([true, 'v1']);
    }
    const stored = await server.get(path);
    expect(stored.body.apiVersion).toBe('v1');
    const versions = stored.body.metadata.managedFields.map(
      (entry: { apiVersion: string }) => entry.apiVersion,
    );
    expect(new Set(versions)).toEqual(new Set(['v1']));
    const wrong = await server.post(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
      apiVersion: '/v1',
      kind: 'Deployment',
      metadata: { name: 'slashed' },
    });
    expect([wrong.status, wrong.body.message]).toEqual([
      400,
      'Deployment in version "v1" cannot be handled as a Deployment: no kind "Deployment" is ' +
        'registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
    ]);
  });

  test('API-7: a body without apiVersion and kind takes those of the endpoint', async () => {
    const answer = await server.post(maps, { metadata: { name: 'bare' } });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
  });
});

describe('API-8: the namespace of a new object', () => {
  test('API-8: a missing namespace is 404', async () => {
    const path = '/api/v1/namespaces/absent/configmaps';
    const answer = await server.post(path, configMap('x'));
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({
      reason: 'NotFound',
      message: 'namespaces "absent" not found',
      details: { name: 'absent', kind: 'namespaces' },
    });
    const list = await server.get(path);
    expect([list.status, list.body.items]).toEqual([200, []]);
  });

  test('API-8: a terminating namespace is 403 with cause NamespaceTerminating', async () => {
    const own = await freshNamespace(server);
    const path = `/api/v1/namespaces/${own}/configmaps`;
    const metadata = { name: 'held', finalizers: ['example.com/hold'] };
    await server.post(path, configMap('held', { metadata }));
    await server.remove(`/api/v1/namespaces/${own}`);
    const answer = await server.post(path, configMap('late'));
    expect(answer.status).toBe(403);
    expect(answer.body).toMatchObject({
      reason: 'Forbidden',
      message:
        `configmaps "late" is forbidden: unable to create new content in namespace ${own} ` +
        'because it is being terminated',
      details: {
        name: 'late',
        kind: 'configmaps',
        causes: [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${own} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      },
    });
    const applied = await server.patch(`${path}/late?fieldManager=me`, configMap('late'), 'apply');
    expect(applied.status).toBe(403);
    const changed = await server.patch(`${path}/held`, { data: { a: '2' } }, 'merge');
    expect(changed.status).toBe(200);
  });
});
