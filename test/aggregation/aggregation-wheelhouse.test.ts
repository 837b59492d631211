import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { APIService } from '@wheelhouse/kinds/types/apiregistration/v1';
import type { SelfSubjectAccessReview } from '@wheelhouse/kinds/types/authorization/v1';
import { type JsonObject, systemClock } from '@wheelhouse/machinery';
import {
  ensureCa,
  ensureServingCertificates,
  issueClientCertificate,
  readFeatureGates,
} from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import type { OpenApiIndex, OpenApiV2 } from '../documents/openapi-part.ts';
import { sample } from '../operations/metric-samples.ts';
import { temporaryFolder } from '../support/cleanup.ts';
import { adminToken, eventually, type ResponseOf, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/**
 * One Wheelhouse in front of another: the second serves a custom kind, and trusts the user headers
 * of the first because of its client certificate.
 */
const group = 'widgets.example.com';
const kubectlPath = ['/usr/bin/kubectl', '/usr/local/bin/kubectl'].find((path) => existsSync(path));

const token = 'jane-token';

const directory = temporaryFolder();
const file = (name: string, text: string) => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};
const proxies = ensureCa(join(directory, 'proxies'), systemClock.now());
const shown = issueClientCertificate({
  ca: proxies,
  user: 'front-proxy-client',
  groups: [],
  clock: systemClock,
});
const serving = ensureServingCertificates({
  certDir: join(directory, 'serving'),
  hosts: ['back.default.svc', '127.0.0.1', 'localhost'],
  clock: systemClock,
});
const { gates: featureGates } = readFeatureGates(['RemoteRequestHeaderUID=true']);
const requestHeader = {
  clientCaFile: file('proxies.crt', proxies.certificatePem),
  allowedNames: ['front-proxy-client'],
  usernameHeaders: ['X-User', 'X-Remote-User'],
  uidHeaders: ['X-Remote-Uid'],
  groupHeaders: ['X-Team', 'X-Remote-Group'],
  extraHeaderPrefixes: ['X-More-', 'X-Remote-Extra-'],
};
const back = await withServer({
  dialect: 'kubernetes',
  featureGates,
  listen: {
    host: '127.0.0.1',
    port: 0,
    tls: {
      certFile: file('back.crt', serving.certificatePem),
      keyFile: file('back.key', serving.keyPem),
    },
  },
  authentication: { requestHeader },
});
const front = await withServer({
  dialect: 'kubernetes',
  featureGates,
  authentication: {
    tokenFile: file('tokens.csv', `${token},jäne,uid-7,"readers,writers"\n`),
    requestHeader,
  },
  aggregation: {
    certificate: {
      certFile: file('front.crt', shown.certificatePem),
      keyFile: file('front.key', shown.keyPem),
    },
  },
});
await serveWidgets(back);
await joinServers(serving.caPem);

async function serveWidgets(server: TestServer): Promise<void> {
  const properties = {
    spec: {
      type: 'object',
      description: 'What the widget should be.',
      properties: { size: { type: 'integer', minimum: 1 } },
    },
  };
  const made = await server.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties } },
          additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        },
      ],
    },
  });
  expect(made.status, made.text).toBe(201);
  const path = `/apis/${group}/v1/namespaces/default/widgets`;
  await eventually(async () => (await server.get(path)).status === 200, 'the kind');
}

async function joinServers(caPem: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const answer = await front.post(path, body);
    expect(answer.status, answer.text).toBe(201);
  };
  await post('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'back' },
    spec: { type: 'ExternalName', externalName: 'localhost' },
  });
  const services = '/apis/apiregistration.k8s.io/v1/apiservices';
  await post(services, {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1.${group}` },
    spec: {
      group,
      version: 'v1',
      groupPriorityMinimum: 1000,
      versionPriority: 10,
      caBundle: Buffer.from(caPem).toString('base64'),
      service: { namespace: 'default', name: 'back', port: Number(new URL(back.url).port) },
    },
  });
  await eventually(async () => {
    const { body } = await front.get<ResponseOf<APIService>>(`${services}/v1.${group}`);
    return body.status?.conditions?.[0]?.status === 'True';
  }, 'the other server');
}

const widgets = `/apis/${group}/v1/namespaces/default/widgets`;
const widget = (name: string, size: unknown) => ({
  apiVersion: `${group}/v1`,
  kind: 'Widget',
  metadata: { name },
  spec: { size },
});

test('ADM-4: objects are written, read, and watched through the front server', async () => {
  const watch = await front.watch(`${widgets}?watch=true`);
  const made = await front.post(widgets, widget('a', 3));
  expect(made.status, made.text).toBe(201);
  await watch.until((events) => events.some(({ object }) => object.metadata.name === 'a'));
  watch.close();
  const refused = await front.post(widgets, widget('b', 0));
  expect(refused.status).toBe(422);
  expect(refused.body.message).toContain('spec.size');
  expect((await back.get(`${widgets}/a`)).body).toEqual((await front.get(`${widgets}/a`)).body);
  expect((await back.get(`${widgets}/a`)).body.metadata.uid).toBe(made.body.metadata.uid);
});

/** Allows a user or group one verb on widgets. */
async function grant(
  server: TestServer,
  { verb, ...subject }: { verb: string; kind: 'User' | 'Group'; name: string },
): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const name = `widgets-${verb}`;
  const rules = [{ apiGroups: [group], resources: ['widgets'], verbs: [verb] }];
  const roleRef = { apiGroup, kind: 'ClusterRole', name };
  const binding = { metadata: { name }, roleRef, subjects: [{ apiGroup, ...subject }] };
  for (const [resource, object] of [
    ['clusterroles', { metadata: { name }, rules }],
    ['clusterrolebindings', binding],
  ] as const) {
    const answer = await server.post(`/apis/${apiGroup}/v1/${resource}`, object);
    expect(answer.status, answer.text).toBe(201);
  }
}

test('ADM-4: a client cannot name another user in headers that the other server trusts', async () => {
  await grant(front, { verb: 'get', kind: 'User', name: 'jäne' });
  const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const resourceAttributes = { verb: 'get', group, resource: 'widgets', namespace: 'default' };
  await eventually(async () => {
    const review = { spec: { resourceAttributes } };
    const { body } = await front.post<ResponseOf<SelfSubjectAccessReview>>(reviews, review, {
      token,
    });
    return body.status.allowed;
  }, 'the permission at the first server');
  const headers = {
    'X-User': 'root',
    'X-Team': 'system:masters',
    'X-More-Scopes': 'all',
    'X-Remote-User': 'root',
    'X-Remote-Group': 'system:masters',
  };
  const { status, body } = await front.get(`${widgets}/a`, { token, headers });
  expect(status).toBe(403);
  expect(body.message).toContain('User "jäne" cannot get resource "widgets"');
});

test('ADM-4: both servers authorize by name, uid, groups, and extra', async () => {
  const readers = { verb: 'list', kind: 'Group', name: 'readers' } as const;
  const message = `widgets.${group} is forbidden: User "jäne" cannot list resource "widgets" in API group "${group}" in the namespace "default"`;
  const nearby = await front.get(widgets, { token });
  expect([nearby.status, nearby.body.message]).toEqual([403, message]);
  await grant(front, readers);
  const far = await eventually(async () => {
    const answer = await front.get(widgets, { token });
    return answer.body.message === message && answer;
  }, 'the refusal of the other server');
  expect(far.status).toBe(403);
  await grant(back, readers);
  const list = await eventually(async () => {
    const answer = await front.get(widgets, { token });
    return answer.status === 200 && answer;
  }, 'the list');
  expect(list.body.kind).toBe('WidgetList');
  const pretender = await back.get(widgets, {
    token: undefined,
    headers: { 'x-remote-user': 'system:admin', 'x-remote-group': 'system:masters' },
  });
  expect(pretender.status).toBe(403);
});

test('ADM-4: the extension-apiserver-authentication ConfigMap publishes the trust', async () => {
  const path = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
  const { status, body } = await front.get(path);
  expect(status).toBe(200);
  expect(Object.keys(body.data).sort()).toEqual([
    'requestheader-allowed-names',
    'requestheader-client-ca-file',
    'requestheader-extra-headers-prefix',
    'requestheader-group-headers',
    'requestheader-uid-headers',
    'requestheader-username-headers',
  ]);
  expect(body.data['requestheader-allowed-names']).toBe('["front-proxy-client"]');
  expect(body.data['requestheader-uid-headers']).toBe('["X-Remote-Uid"]');
  expect(body.data['requestheader-client-ca-file']).toContain('BEGIN CERTIFICATE');
  const role = await front.get(
    '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/extension-apiserver-authentication-reader',
  );
  expect(role.body.rules[0].resourceNames).toEqual(['extension-apiserver-authentication']);
  const queue = { name: 'cluster_authentication_trust_controller' };
  const { text } = await front.get('/metrics');
  expect(sample(text, 'workqueue_adds_total', queue)).toBeGreaterThan(0);
});

test('ADM-4: OpenAPI includes the other server’s kinds', async () => {
  const urlIn = async (server: TestServer, part: string) =>
    (await server.get<OpenApiIndex>('/openapi/v3')).body.paths[part]?.serverRelativeURL;
  const name = `apis/${group}/v1`;
  const serverRelativeURL = await eventually(() => urlIn(front, name), 'the group in the index');
  expect(serverRelativeURL).toBe(await urlIn(back, name));
  expect(await urlIn(front, 'apis/apps/v1')).toMatch(/\?hash=[0-9A-F]+$/);
  const document = await front.get(serverRelativeURL);
  expect(document.status).toBe(200);
  expect(document.text).toBe((await back.get(serverRelativeURL)).text);
  const named = `com.example.widgets.v1.Widget`;
  // The server fetches the documents of the two versions separately.
  const whole = await eventually(async () => {
    const answer = await front.get<OpenApiV2>('/openapi/v2');
    return answer.body.definitions[named] === undefined ? undefined : answer;
  }, 'the kind in the document');
  expect(whole.body.definitions[named]?.properties.spec?.description).toBe(
    'What the widget should be.',
  );
  expect(whole.body.paths[`/apis/${group}/v1/namespaces/{namespace}/widgets`]?.get).toBeDefined();
  expect(whole.body.paths['/api/v1/pods']).toBeDefined();
  const again = await front.get('/openapi/v2', {
    headers: { 'if-none-match': String(whole.headers['etag']) },
  });
  expect(again.status).toBe(304);
  const type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
  const binary = await front.get('/openapi/v2', { accept: type });
  expect(binary.headers['content-type']).toBe(type);
  expect(binary.text).toContain(named);
});

describe.skipIf(kubectlPath === undefined)('an unmodified kubectl', () => {
  function kubectl(...args: string[]) {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: front.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'u', user: { token: adminToken } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    };
    writeFileSync(join(directory, 'config'), JSON.stringify(config));
    const env = { HOME: directory, KUBECONFIG: join(directory, 'config'), PATH: '/usr/bin:/bin' };
    return new Promise<{ out: string; err: string }>((resolve) => {
      execFile(kubectlPath ?? '', args, { env, timeout: 30_000 }, (_, out, err) =>
        resolve({ out, err }),
      );
    });
  }

  test('ADM-4: kubectl discovers, prints, explains, and writes the aggregated kinds', async () => {
    const file = join(directory, 'widget.json');
    writeFileSync(file, JSON.stringify(widget('mine', 5)));
    const applied = await kubectl('apply', '-f', file);
    expect(applied.out, applied.err).toContain(`widget.${group}/mine created`);
    const list = await kubectl('get', 'wd', 'mine');
    expect(list.out.split('\n').map((line) => line.trim().split(/\s+/).slice(0, 2))).toEqual([
      ['NAME', 'SIZE'],
      ['mine', '5'],
      [''],
    ]);
    const resources = await kubectl('api-resources', `--api-group=${group}`, '--no-headers');
    expect(resources.out).toMatch(/^widgets\s+wd\s+widgets\.example\.com\/v1\s+true\s+Widget/);
    const explained = await kubectl('explain', 'widget.spec.size');
    expect(explained.out).toContain('FIELD: size <integer>');
    const available = await kubectl('get', 'apiservice', `v1.${group}`, '--no-headers');
    expect(available.out).toMatch(/default\/back\s+True/);
    writeFileSync(file, JSON.stringify(widget('mine', 0)));
    const invalid = await kubectl('apply', '-f', file);
    expect(invalid.err).toContain('is invalid: spec.size');
    expect((await kubectl('delete', 'widget', 'mine')).out).toContain('deleted');
  });
});

test('ADM-4: the whole user reaches the other server', async () => {
  const review: JsonObject = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const services = '/apis/apiregistration.k8s.io/v1/apiservices';
  const name = 'v1.authentication.k8s.io';
  const { body: widgetsService } = await front.get(`${services}/v1.${group}`);
  const taken = await front.post(services, {
    ...widgetsService,
    metadata: { name },
    spec: { ...widgetsService.spec, group: 'authentication.k8s.io' },
  });
  expect(taken.status, taken.text).toBe(201);
  await eventually(async () => {
    const { body } = await front.get<ResponseOf<APIService>>(`${services}/${name}`);
    return body.status?.conditions?.[0]?.status === 'True';
  }, 'reviews of the other server');
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const reviewed = await front.post(path, review, { token });
  expect(reviewed.status, reviewed.text).toBe(201);
  expect(reviewed.body.status.userInfo).toMatchObject({
    username: 'jäne',
    uid: 'uid-7',
    groups: ['readers', 'writers', 'system:authenticated'],
  });
  const acted = await front.post(path, review, {
    headers: {
      'impersonate-user': 'bob',
      'impersonate-group': 'team',
      'impersonate-extra-acme.com%2Fscope': 'a',
    },
  });
  expect(acted.body.status.userInfo).toMatchObject({
    username: 'bob',
    groups: ['team', 'system:authenticated'],
    extra: { 'acme.com/scope': ['a'] },
  });
});
