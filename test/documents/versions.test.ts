import { builtinKinds } from '@wheelhouse/kinds';
import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1';
import type {
  APIGroup,
  APIResource,
  GroupVersionForDiscovery,
} from '@wheelhouse/kinds/types/meta/v1';
import { type ApiObject, dialectOf } from '@wheelhouse/machinery';
import {
  configuredKinds,
  defaultGates,
  type RuntimeConfig,
  readOptions,
} from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import {
  configMap,
  eventually,
  freshNamespace,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

function runtimeConfig(pairs: string): RuntimeConfig {
  // With priority and fairness on, its kinds cannot be disabled.
  const outcome = readOptions([
    `--runtime-config=${pairs}`,
    '--enable-priority-and-fairness=false',
  ]);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options.config.runtimeConfig ?? new Map();
}

async function within(pairs: string, use: (server: TestServer) => Promise<void>) {
  const server = await startTestServer({ runtimeConfig: runtimeConfig(pairs) });
  try {
    await use(server);
  } finally {
    await server.stop();
  }
}

const identity = 'authentication.svc.io';
const review = (version: string) => ({
  apiVersion: `${identity}/${version}`,
  kind: 'SelfSubjectReview',
});
const reviews = (version: string) => `/apis/${identity}/${version}/selfsubjectreviews`;

/** `group/version` of all groups in discovery, in order. */
async function served(server: TestServer): Promise<string[]> {
  const { body } = await server.get('/apis');
  return body.groups.flatMap((group: APIGroup) =>
    group.versions.map((version: GroupVersionForDiscovery) => version.groupVersion),
  );
}

describe('default versions', async () => {
  const server = await withServer();

  test('VER-1: alpha versions and new beta versions are off by default', async () => {
    const names = await served(server);
    expect(names).toContain(`${identity}/v1`);
    expect(names.filter((name) => /alpha|beta/.test(name))).toEqual([]);
    expect((await server.post(reviews('v1beta1'), review('v1beta1'))).status).toBe(404);
    expect((await server.get(`/apis/${identity}/v1beta1`)).status).toBe(404);
  });

  test('VER-4: discovery prefers the stable version; objects have one storage version', async () => {
    const group = (await server.get('/apis/apps')).body;
    expect(group.preferredVersion).toEqual({ groupVersion: 'apps/v1', version: 'v1' });
    for (const def of builtinKinds(dialectOf('svc'))) {
      const [, version = ''] = def.storage.apiVersion.split('/');
      const names = def.versions.map((entry) => entry.version);
      // Events of two groups are stored once, in the form of the core group.
      if (def.kind !== 'Event') expect(names, def.resource).toContain(version || 'v1');
    }
  });

  test('VER-4: objects stored in an older version stay readable', async () => {
    const version = (name: string, storage: boolean, more = {}) => ({
      name,
      storage,
      served: true,
      schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'string' } } } },
      ...more,
    });
    const names = { plural: 'olds', singular: 'old', kind: 'Old', listKind: 'OldList' };
    const deprecated = { deprecated: true };
    const crd = {
      apiVersion: 'apiextensions.svc.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'olds.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Cluster',
        names,
        versions: [version('v1beta1', true, deprecated), version('v1', false)],
      },
    };
    const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
    expect((await server.post(definitions, crd)).status).toBe(201);
    const olds = (name: string) => `/apis/example.com/${name}/olds`;
    await eventually(async () => (await server.get(olds('v1'))).status === 200);
    const object = { apiVersion: 'example.com/v1beta1', kind: 'Old', metadata: { name: 'a' } };
    const created = await server.post(olds('v1beta1'), { ...object, spec: 's' });
    expect(created.status).toBe(201);
    expect(created.warnings).toEqual([
      'example.com/v1beta1 Old is deprecated; use example.com/v1 Old',
    ]);
    const versions = [version('v1beta1', false, deprecated), version('v1', true)];
    const path = `${definitions}/olds.example.com`;
    expect((await server.patch(path, { spec: { versions } }, 'merge')).status).toBe(200);
    const stored = async () =>
      (
        await server.get<ResponseOf<CustomResourceDefinition>>(path)
      ).body.status.storedVersions.join() === 'v1beta1,v1';
    await eventually(stored, 'both stored versions listed');
    await eventually(async () => (await server.get(`${olds('v1')}/a`)).status === 200);
    const read = await server.get(`${olds('v1')}/a`);
    expect(read.body).toMatchObject({ apiVersion: 'example.com/v1', spec: 's' });
    const group = (await server.get('/apis/example.com')).body;
    expect(group.preferredVersion.version).toBe('v1');
    expect((await server.get('/metrics')).text).toContain(
      'apiserver_requested_deprecated_apis{group="example.com",removed_release="",resource="olds",subresource="",version="v1beta1"} 1',
    );
  });

  test('VER-4: two versions of one stored object are one object', async () => {
    const namespace = await freshNamespace(server);
    const core = `/api/v1/namespaces/${namespace}/events`;
    const involvedObject = { kind: 'Pod', name: 'p', namespace };
    const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, involvedObject };
    expect((await server.post(core, { ...event, reason: 'R' })).status).toBe(201);
    const path = `/apis/events.svc.io/v1/namespaces/${namespace}/events/e`;
    const answer = await server.get(path);
    expect(answer.body).toMatchObject({ apiVersion: 'events.svc.io/v1', regarding: { name: 'p' } });
  });
});

describe('VER-1: --runtime-config', () => {
  test('VER-1: a beta version can be enabled, and warns of its removal (VER-3)', async () => {
    await within(`${identity}/v1beta1=true`, async (server) => {
      const answer = await server.post(reviews('v1beta1'), review('v1beta1'));
      expect(answer.status).toBe(201);
      expect(answer.body).toMatchObject({
        apiVersion: `${identity}/v1beta1`,
        status: { userInfo: { username: 'system:admin' } },
      });
      expect(answer.warnings).toEqual([
        `${identity}/v1beta1 SelfSubjectReview is deprecated in v1.30+, unavailable in v1.33+`,
      ]);
      const unserved = [
        ['application/json;as=Other', answer.warnings],
        ['application/xml', []],
      ] as const;
      for (const [accept, warnings] of unserved) {
        const refused = await server.post(reviews('v1beta1'), review('v1beta1'), { accept });
        expect([refused.status, refused.warnings]).toEqual([406, warnings]);
      }
      const names = (await served(server)).filter((name) => name.startsWith(identity));
      expect(names).toEqual([`${identity}/v1`, `${identity}/v1beta1`]);
      const group = (await server.get(`/apis/${identity}`)).body;
      expect(group.preferredVersion.version).toBe('v1');
      expect((await server.post(reviews('v1'), review('v1'))).warnings).toEqual([]);
    });
  });

  test('VER-1: removed versions stay removed', async () => {
    await within('api/all=true,batch/v1beta1=true', async (server) => {
      const names = await served(server);
      expect(names).toContain(`${identity}/v1beta1`);
      // The alpha version ended with 1.32.
      expect(names).not.toContain(`${identity}/v1alpha1`);
      expect(names).not.toContain('batch/v1beta1');
    });
  });

  test('VER-1: a disabled version is absent from discovery, OpenAPI, and paths', async () => {
    await within('batch/v1=false,apps/v1/deployments=false', async (server) => {
      expect(await served(server)).not.toContain('batch/v1');
      const gone = await server.get('/apis/batch/v1/jobs');
      expect(gone.status).toBe(404);
      expect(gone.body.message).toBe('the server could not find the requested resource');
      expect((await server.get('/apis/batch')).status).toBe(404);
      const { body: apps } = await server.get('/apis/apps/v1');
      const names = apps.resources.map((resource: APIResource) => resource.name);
      expect(names).toContain('statefulsets');
      expect(names.filter((name: string) => name.startsWith('deployments'))).toEqual([]);
      expect((await server.get('/apis/apps/v1/deployments')).status).toBe(404);
      expect((await server.get('/apis/apps/v1/statefulsets')).status).toBe(200);
      const paths = (await server.get('/openapi/v3')).body.paths;
      expect(Object.keys(paths)).not.toContain('apis/batch/v1');
      const document = (await server.get('/openapi/v3/apis/apps/v1')).body;
      const described = Object.keys(document.paths);
      expect(described.filter((path) => path.includes('/deployments'))).toEqual([]);
      expect(described.some((path) => path.includes('/statefulsets'))).toBe(true);
      const accept = 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';
      const list = (await server.get('/apis', { accept })).body;
      expect(list.items.map((item: ApiObject) => item.metadata.name)).not.toContain('batch');
    });
  });

  test('VER-1: the most specific key wins: resource, version, class of versions, all', async () => {
    const pairs = 'api/all=false,api/ga=true,apps/v1=false,apps/v1/daemonsets,v1=true';
    await within(pairs, async (server) => {
      expect((await server.get('/apis/batch/v1/jobs')).status).toBe(200);
      expect((await server.get('/apis/apps/v1/deployments')).status).toBe(404);
      expect((await server.get('/apis/apps/v1/daemonsets')).status).toBe(200);
    });
  });

  test('VER-1: the server works without the versions that it uses itself', async () => {
    await within('api/all=false,/v1/configmaps=true', async (server) => {
      const path = '/api/v1/namespaces/default/configmaps';
      expect((await server.post(path, configMap('a'))).status).toBe(201);
      expect((await server.get('/api/v1/namespaces')).status).toBe(404);
      expect((await server.get('/apis/rbac.authorization.svc.io/v1/clusterroles')).status).toBe(
        404,
      );
    });
  });

  test.each(['/v1/configmaps', 'v1/configmaps', 'api/v1/configmaps'])(
    'VER-1: %s names a resource of the core group',
    async (key) => {
      await within(`api/all=false,${key}`, async (server) => {
        expect((await server.get('/api/v1/configmaps')).status).toBe(200);
        expect((await server.get('/api/v1/secrets')).status).toBe(404);
      });
    },
  );

  test('VER-1: the server becomes ready without the core group', async () => {
    const without = { dialect: 'kubernetes', runtimeConfig: runtimeConfig('v1=false') } as const;
    const server = await startTestServer(without);
    try {
      expect((await server.get('/api/v1/namespaces')).status).toBe(404);
      expect((await server.get('/readyz')).status).toBe(200);
    } finally {
      await server.stop();
    }
  });

  test.each([
    ['foo=true', 'runtime-config invalid key foo'],
    ['v9=true', 'runtime-config invalid key v9'],
    ['a/b/c/d=true', 'runtime-config invalid key a/b/c/d'],
    ['api/all=perhaps', 'invalid value api/all=perhaps'],
    [
      'apps/v1=perhaps',
      'invalid value of apps/v1: perhaps, err: strconv.ParseBool: parsing "perhaps": invalid syntax',
    ],
    ['api/all=false', 'invalid key with only api/all=false'],
    [
      'apps/v1/Deployments=true',
      'invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments"',
    ],
  ])('VER-1: %s is refused', (pairs, message) => {
    expect(() => runtimeConfig(pairs)).toThrow(message);
  });

  test.each([
    ['apps/v9=true', 'group version apps/v9 that has not been registered'],
    ['/v9=true', 'group version v9 that has not been registered'],
    ['api/v9=true', 'unknown api groups api'],
    ['foo.io/v1=true', 'unknown api groups foo.io'],
  ])('VER-1: %s stops the start', (pairs, message) => {
    const dialect = dialectOf('svc');
    const config = runtimeConfig(pairs);
    const served = { config, dialect, gates: defaultGates };
    expect(() => configuredKinds(builtinKinds(dialect), served)).toThrow(message);
  });
});
