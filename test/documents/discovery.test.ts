import { describe, expect, test } from 'vitest';
import type { DiscoveredGroups } from '../support/discovered-groups.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const everyVerb = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];
const aggregated = (group = 'apidiscovery.svc.io', version = 'v2') =>
  `application/json;g=${group};v=${version};as=APIGroupDiscoveryList`;

describe('discovery documents', () => {
  test('API-11: /api lists the core versions and the server’s address', async () => {
    for (const path of ['/api', '/api/']) {
      const { status, body } = await server.get(path);
      expect(status).toBe(200);
      expect(body).toEqual({
        kind: 'APIVersions',
        versions: ['v1'],
        serverAddressByClientCIDRs: [
          { clientCIDR: '0.0.0.0/0', serverAddress: new URL(server.url).host },
        ],
      });
    }
  });

  test('API-11: /apis and /apis/<group> list versions, the preferred one first', async () => {
    const { body } = await server.get('/apis');
    expect(body).toMatchObject({ kind: 'APIGroupList', apiVersion: 'v1' });
    const names = body.groups.map((group: { name: string }) => group.name);
    expect(names).toEqual(expect.arrayContaining(['apps', 'batch', 'rbac.authorization.svc.io']));
    expect(names).not.toContain('');
    const autoscaling = {
      name: 'autoscaling',
      versions: [
        { groupVersion: 'autoscaling/v2', version: 'v2' },
        { groupVersion: 'autoscaling/v1', version: 'v1' },
      ],
      preferredVersion: { groupVersion: 'autoscaling/v2', version: 'v2' },
    };
    expect(body.groups).toContainEqual(autoscaling);
    expect((await server.get('/apis/autoscaling')).body).toEqual({
      kind: 'APIGroup',
      apiVersion: 'v1',
      ...autoscaling,
    });
  });

  test('API-11: /api/v1 lists resources and subresources', async () => {
    const { body } = await server.get('/api/v1');
    expect(body).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' });
    // The oldest clients did not expect an apiVersion there.
    expect(body).not.toHaveProperty('apiVersion');
    expect(body.resources).toContainEqual({
      name: 'configmaps',
      singularName: 'configmap',
      namespaced: true,
      kind: 'ConfigMap',
      verbs: everyVerb,
      shortNames: ['cm'],
      storageVersionHash: 'qFsyl6wFWjQ=',
    });
    expect(body.resources).toContainEqual({
      name: 'namespaces/status',
      singularName: '',
      namespaced: false,
      kind: 'Namespace',
      verbs: ['get', 'patch', 'update'],
    });
    const namespaces = body.resources.find((resource) => resource.name === 'namespaces');
    expect(namespaces?.namespaced).toBe(false);
    expect(namespaces?.verbs).not.toContain('deletecollection');
  });

  test('API-11: /apis/<group>/<version> names the kind of a subresource', async () => {
    const { body } = await server.get('/apis/apps/v1');
    expect(body).toMatchObject({ kind: 'APIResourceList', groupVersion: 'apps/v1' });
    expect(body.resources).toContainEqual({
      name: 'deployments/scale',
      singularName: '',
      namespaced: true,
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
      verbs: ['get', 'patch', 'update'],
    });
  });

  test('API-11: /version', async () => {
    const { status, body } = await server.get('/version');
    expect(status).toBe(200);
    expect(body).toMatchObject({ major: '1', gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/) });
    for (const name of ['minor', 'gitCommit', 'gitTreeState', 'buildDate', 'goVersion']) {
      expect(body[name], name).toEqual(expect.any(String));
    }
  });

  test('API-11: /version is always indented JSON', async () => {
    for (const path of ['/version', '/version/']) {
      const { text, headers } = await server.get(path, { headers: { 'user-agent': 'client' } });
      expect(text, path).toBe(JSON.stringify(JSON.parse(text), null, 2));
      expect(headers['content-type']).toBe('application/json');
    }
    const { status, text } = await server.get('/version', { accept: 'application/yaml' });
    expect(status).toBe(406);
    expect(text).toContain('reason: NotAcceptable');
    // The method is checked first.
    const headers = { accept: 'application/yaml' };
    expect((await server.request('DELETE', '/version', { headers })).status).toBe(405);
  });

  test('API-11: an unserved path is 404, other methods are 405', async () => {
    for (const path of ['/api/v2', '/apis/none', '/apis/apps/v9', '/api/v1/none', '/none']) {
      const { status, body } = await server.get(path);
      expect(status, path).toBe(404);
      expect(body.message).toBe('the server could not find the requested resource');
    }
    for (const path of ['/api', '/apis', '/api/v1', '/apis/apps', '/apis/apps/v1', '/version']) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const { status, body } = await server.request(method, path, { body: '{}' });
        expect(status, `${method} ${path}`).toBe(405);
        expect(body.reason).toBe('MethodNotAllowed');
      }
      const head = await server.request('HEAD', path);
      expect(head.status).toBe(200);
      expect(head.text).toBe('');
    }
  });

  test('API-11: documents are available in YAML', async () => {
    const { headers, text } = await server.get('/apis/apps/v1', { accept: 'application/yaml' });
    expect(headers['content-type']).toBe('application/yaml');
    expect(text).toMatch(/^apiVersion: v1\ngroupVersion: apps\/v1\nkind: APIResourceList\n/);
  });
});

describe('aggregated discovery', () => {
  test('API-11: is served in YAML', async () => {
    const form = 'g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';
    const { headers, text } = await server.get('/api', { accept: `application/yaml;${form}` });
    expect(headers['content-type']).toBe(`application/yaml;${form}`);
    expect(text).toMatch(/^apiVersion: apidiscovery.svc.io\/v2\nitems:\n/);
  });

  test.each([
    ['apidiscovery.svc.io', 'v2'],
    ['apidiscovery.k8s.io', 'v2'],
    ['apidiscovery.svc.io', 'v2beta1'],
  ])('API-11: g=%s v=%s', async (group, version) => {
    const accept = `${aggregated(group, version)},application/json`;
    const core = await server.get<DiscoveredGroups>('/api', { accept });
    expect(core.headers['content-type']).toBe(
      `application/json;g=${group};v=${version};as=APIGroupDiscoveryList`,
    );
    expect(core.body).toMatchObject({
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.svc.io/${version}`,
    });
    expect(core.body.items).toHaveLength(1);
    const [v1] = core.body.items[0].versions;
    expect(v1).toMatchObject({ version: 'v1', freshness: 'Current' });
    expect(v1.resources).toContainEqual({
      resource: 'configmaps',
      responseKind: { group: '', version: '', kind: 'ConfigMap' },
      scope: 'Namespaced',
      singularResource: 'configmap',
      verbs: everyVerb,
      shortNames: ['cm'],
    });
    const named = await server.get<DiscoveredGroups>('/apis', { accept });
    const names = named.body.items.map((item) => item.metadata.name);
    const plain = await server.get('/apis');
    expect(names).toEqual(plain.body.groups.map((entry: { name: string }) => entry.name));
    const apps = named.body.items.find((item) => item.metadata.name === 'apps');
    const deployments = apps?.versions[0].resources.find(
      (resource) => resource.resource === 'deployments',
    );
    expect(deployments?.responseKind).toEqual({ group: '', version: '', kind: 'Deployment' });
    expect(deployments?.subresources).toContainEqual({
      subresource: 'scale',
      responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      verbs: ['get', 'patch', 'update'],
    });
  });

  test('API-11: an ETag identifies the document, and If-None-Match gets 304', async () => {
    const first = await server.get('/apis', { accept: aggregated() });
    const etag = String(first.headers.etag);
    expect(etag).toMatch(/^"[0-9A-F]{128}"$/);
    expect(first.headers.vary).toBe('Accept');
    const headers = { 'if-none-match': etag };
    const again = await server.get('/apis', { accept: aggregated(), headers });
    expect(again.status).toBe(304);
    expect(again.text).toBe('');
    expect(again.headers.etag).toBe(etag);
    const core = await server.get('/api', { accept: aggregated(), headers });
    expect(core.status).toBe(200);
    expect(core.headers.etag).not.toBe(etag);
  });

  test('API-11: documents are available in protobuf, aggregated ones with the same ETag', async () => {
    const type = 'application/vnd.svc.protobuf';
    for (const [path, kind] of [
      ['/api', 'APIVersions'],
      ['/apis', 'APIGroupList'],
      ['/api/v1', 'APIResourceList'],
      ['/apis/apps', 'APIGroup'],
      ['/apis/apps/v1', 'APIResourceList'],
    ] as const) {
      const answer = await server.get(path, { accept: type });
      expect([answer.status, answer.headers['content-type']], path).toEqual([200, type]);
      expect(answer.text.startsWith('k8s\0'), path).toBe(true);
      expect(answer.text, path).toContain(kind);
    }
    const form = aggregated().replace('application/json', type);
    const yaml = aggregated().replace('application/json', 'application/yaml');
    for (const path of ['/api', '/apis']) {
      const json = await server.get(path, { accept: aggregated() });
      expect((await server.get(path, { accept: yaml })).text, path).toMatch(/^apiVersion: /);
      const answer = await server.get(path, { accept: `${form},application/json` });
      expect([answer.status, answer.headers['content-type']], path).toEqual([200, form]);
      expect(answer.text.startsWith('k8s\0'), path).toBe(true);
      expect(answer.text, path).toContain('APIGroupDiscoveryList');
      expect(answer.headers.etag, path).toBe(json.headers.etag);
      const etag = String(answer.headers.etag);
      const again = await server.get(path, { accept: form, headers: { 'if-none-match': etag } });
      expect(again.status, path).toBe(304);
    }
  });

  test('API-11: an unsupported form falls back to the plain one, or is 406', async () => {
    const unknown = aggregated('apidiscovery.svc.io', 'v9');
    const fallen = await server.get('/apis', { accept: `${unknown},application/json` });
    expect(fallen.body.kind).toBe('APIGroupList');
    expect((await server.get('/apis', { accept: unknown })).status).toBe(406);
    const deeper = await server.get('/apis/apps', { accept: `${aggregated()},application/json` });
    expect(deeper.body.kind).toBe('APIGroup');
  });
});
