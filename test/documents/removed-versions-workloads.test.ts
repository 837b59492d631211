import type { StatefulSet } from '@wheelhouse/kinds/types/apps/v1';
import type { APIGroup, GroupVersionForDiscovery } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import {
  eventually,
  freshNamespace,
  type ResponseBody,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import type { OpenApiV3 } from './openapi-part.ts';

const pods = { containers: [{ name: 'main', image: 'example.com/main:1.0' }] };
const template = { metadata: { labels: { app: 'a' } }, spec: pods };
const unlimited = 2_147_483_647;

let namespace: string;
const server = await withServer({ emulatedMinor: 15 });

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (groupVersion: string, resource: string, name = '') =>
  `/apis/${groupVersion}/namespaces/${namespace}/${resource}${name === '' ? '' : `/${name}`}`;

const plural = (kind: string) => `${kind.toLowerCase()}s`;

/** A workload with as few fields as possible. */
function small(apiVersion: string, kind: string, spec: object = {}): ApiObject {
  const name = `${kind}-${apiVersion.replaceAll('/', '-')}`.toLowerCase();
  return { apiVersion, kind, metadata: { name }, spec: { template, ...spec } };
}

async function made<Body = ResponseBody>(object: ApiObject): Promise<Body> {
  const answer = await server.post<Body>(at(object.apiVersion, plural(object.kind)), object);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

test('VER-2: a Deployment of extensions is served by apps, keeping its extra fields', async () => {
  const body = small('extensions/v1beta1', 'Deployment', { rollbackTo: { revision: 3 } });
  const answer = await server.post(at('extensions/v1beta1', 'deployments'), body);
  expect(answer.status, answer.text).toBe(201);
  expect(answer.warnings).toEqual([
    'extensions/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment',
  ]);
  expect(answer.body.spec.rollbackTo).toEqual({ revision: 3 });
  const path = at('apps/v1', 'deployments', body.metadata.name);
  const current = (await server.get(path)).body;
  expect(current).toMatchObject({
    apiVersion: 'apps/v1',
    metadata: { annotations: { 'deprecated.deployment.rollback.to': '3' } },
    spec: { selector: { matchLabels: { app: 'a' } } },
  });
  expect(current.spec.rollbackTo).toBeUndefined();
  const managers = current.metadata.managedFields.map(
    (managedField: { apiVersion: string }) => managedField.apiVersion,
  );
  expect(managers).toEqual(['extensions/v1beta1']);
  const metrics = (await server.get('/metrics')).text;
  expect(metrics).toMatch(
    /apiserver_requested_deprecated_apis\{group="extensions",removed_release="1.16",resource="deployments",subresource="",version="v1beta1"\} 1/,
  );
});

test.each(['extensions/v1beta1', 'apps/v1beta1'])(
  'VER-2: a Deployment of %s rolls back through its subresource',
  async (apiVersion) => {
    const body = small(apiVersion, 'Deployment');
    body.metadata.name += '-rollback';
    body.metadata.annotations = { kept: 'yes', note: 'old' };
    const { name } = body.metadata;
    const before = await made(body);
    const rollback = {
      apiVersion,
      kind: 'DeploymentRollback',
      name,
      updatedAnnotations: { note: 'new' },
      rollbackTo: { revision: 7 },
    };
    const path = `${at(apiVersion, 'deployments', name)}/rollback`;
    const ask = (change: object, query = '') =>
      server.post(`${path}${query}`, { ...rollback, ...change });

    const dry = await ask({}, '?dryRun=All');
    expect(dry.status, dry.text).toBe(201);
    const read = async (groupVersion: string) =>
      (await server.get(at(groupVersion, 'deployments', name))).body;
    expect((await read(apiVersion)).spec.rollbackTo).toBeUndefined();

    const answer = await ask({});
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      message: `rollback request for deployment "${name}" succeeded`,
      code: 200,
    });
    const after = await read(apiVersion);
    expect(after.spec).toEqual({ ...before.spec, rollbackTo: { revision: 7 } });
    expect(after.metadata.annotations).toEqual({ kept: 'yes', note: 'new' });
    expect(after.metadata.generation).toBe(before.metadata.generation);
    expect((await read('apps/v1')).metadata.annotations).toEqual({
      kept: 'yes',
      note: 'new',
      'deprecated.deployment.rollback.to': '7',
    });
    // Without a revision, the rollback goes to the previous one.
    expect((await ask({ rollbackTo: {} })).status).toBe(201);
    expect((await read('apps/v1')).metadata.annotations).toMatchObject({
      'deprecated.deployment.rollback.to': '0',
    });

    expect(await ask({ name: 'other' })).toMatchObject({
      status: 400,
      body: { message: 'name in URL does not match name in DeploymentRollback object' },
    });
    const wrong = await ask({ rollbackTo: { revision: -1 }, updatedAnnotations: { '-': '' } });
    expect(wrong.status).toBe(422);
    expect(wrong.body.details).toMatchObject({ group: 'apps', kind: 'DeploymentRollback' });
    expect(wrong.body.details.causes.map((cause: { field: string }) => cause.field)).toEqual([
      'updatedAnnotations',
      'rollback.version',
    ]);
    expect((await ask({ name: '' })).body.message).toBe(
      'DeploymentRollback.apps "" is invalid: name: Required value: name is required',
    );
    const absent = at(apiVersion, 'deployments', 'absent');
    const none = await server.post(`${absent}/rollback`, { ...rollback, name: 'absent' });
    expect(none.status).toBe(404);
    expect((await server.get(path)).status).toBe(405);
  },
);

test('VER-2: only versions that had rollback serve it', async () => {
  for (const [groupVersion, has] of [
    ['extensions/v1beta1', true],
    ['apps/v1beta1', true],
    ['apps/v1beta2', false],
    ['apps/v1', false],
  ] as const) {
    const { resources } = (await server.get(`/apis/${groupVersion}`)).body;
    const entry = resources.find(
      (resource: { name: string }) => resource.name === 'deployments/rollback',
    );
    const expected = {
      name: 'deployments/rollback',
      singularName: '',
      namespaced: true,
      kind: 'DeploymentRollback',
      verbs: ['create'],
    };
    expect(entry).toEqual(has ? expected : undefined);
    const path = `${at(groupVersion, 'deployments', 'absent')}/rollback`;
    const rollback = { name: 'absent', rollbackTo: {} };
    const answer = await server.post(path, rollback);
    expect(answer.status).toBe(404);
    const noPath = 'the server could not find the requested resource';
    expect(answer.body.message === noPath).toBe(!has);
  }
  const { paths } = (await server.get<OpenApiV3>('/openapi/v3/apis/apps/v1beta1')).body;
  const route = '/apis/apps/v1beta1/namespaces/{namespace}/deployments/{name}/rollback';
  expect(paths[route]).toHaveProperty('post');
});

const rolling = (size: number | string) => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge: size, maxUnavailable: size },
});

test.each([
  ['extensions/v1beta1', [unlimited, unlimited, rolling(1)]],
  ['apps/v1beta1', [600, 2, rolling('25%')]],
  ['apps/v1beta2', [600, 10, rolling('25%')]],
  ['apps/v1', [600, 10, rolling('25%')]],
])('VER-2: a Deployment of %s has the defaults of its version', async (apiVersion, expected) => {
  const selector = { matchLabels: { app: 'a' } };
  const object = small(apiVersion, 'Deployment', { selector });
  object.metadata.name += '-defaults';
  const { spec } = await made(object);
  const { progressDeadlineSeconds, revisionHistoryLimit, strategy } = spec;
  expect([progressDeadlineSeconds, revisionHistoryLimit, strategy]).toEqual(expected);
});

const fromTemplate = [
  ['extensions/v1beta1', 'Deployment'],
  ['extensions/v1beta1', 'DaemonSet'],
  ['extensions/v1beta1', 'ReplicaSet'],
  ['apps/v1beta1', 'Deployment'],
  ['apps/v1beta1', 'ReplicaSet'],
  ['apps/v1beta1', 'StatefulSet'],
] as const;

test.each(fromTemplate)('VER-2: %s %s takes its selector from its template', async (...type) => {
  const object = small(...type);
  object.metadata.name += '-selector';
  const { metadata, spec } = await made(object);
  expect(spec.selector).toEqual({ matchLabels: { app: 'a' } });
  expect(metadata.labels).toEqual({ app: 'a' });
});

const asking = ['Deployment', 'DaemonSet', 'ReplicaSet', 'StatefulSet'].flatMap((kind) => [
  ['apps/v1beta2', kind] as const,
  ['apps/v1', kind] as const,
]);

test.each(asking)('VER-2: %s %s requires a selector', async (...type) => {
  const object = small(...type);
  const answer = await server.post(at(type[0], plural(type[1])), object);
  expect(answer.status).toBe(422);
  const fields = answer.body.details.causes.map((cause: { field: string }) => cause.field);
  // For a DaemonSet, a missing selector is reported as one that does not match the template's
  // labels.
  const field = type[1] === 'DaemonSet' ? 'spec.template.metadata.labels' : 'spec.selector';
  expect(fields).toContain(field);
});

const changed = { template: { ...template, metadata: { labels: { app: 'b' } } } };
const changes = { spec: { selector: { matchLabels: { app: 'b' } }, ...changed } };

test.each([
  ['extensions/v1beta1', 'Deployment', 200],
  ['extensions/v1beta1', 'DaemonSet', 200],
  ['extensions/v1beta1', 'ReplicaSet', 200],
  ['apps/v1beta1', 'Deployment', 200],
  ['apps/v1beta1', 'StatefulSet', 422],
  ['apps/v1beta2', 'Deployment', 422],
  ['apps/v1beta2', 'DaemonSet', 422],
  ['apps/v1beta2', 'ReplicaSet', 422],
  ['apps/v1', 'Deployment', 422],
])('VER-2: a selector changed through %s %s: %i', async (apiVersion, kind, status) => {
  const object = small(apiVersion, kind, { selector: { matchLabels: { app: 'a' } } });
  object.metadata.name += '-change';
  await made(object);
  const path = at(apiVersion, plural(kind), object.metadata.name);
  const answer = await server.patch(path, changes, 'merge');
  expect(answer.status, answer.text).toBe(status);
  if (status === 422) expect(answer.body.message).toContain('spec');
});

test.each([
  ['extensions/v1beta1', 'DaemonSet', 'OnDelete'],
  ['apps/v1beta2', 'DaemonSet', 'RollingUpdate'],
  ['apps/v1', 'DaemonSet', 'RollingUpdate'],
  ['apps/v1beta1', 'StatefulSet', 'OnDelete'],
  ['apps/v1beta2', 'StatefulSet', 'RollingUpdate'],
  ['apps/v1', 'StatefulSet', 'RollingUpdate'],
])('VER-2: %s %s is updated by %s', async (apiVersion, kind, type) => {
  const object = small(apiVersion, kind, { selector: { matchLabels: { app: 'a' } } });
  object.metadata.name += '-update';
  expect((await made<ResponseOf<StatefulSet>>(object)).spec.updateStrategy.type).toBe(type);
});

test('VER-2: templateGeneration of a DaemonSet counts, and is an annotation in apps', async () => {
  const object = small('extensions/v1beta1', 'DaemonSet');
  object.metadata.name = 'counted';
  expect((await made(object)).spec.templateGeneration).toBe(1);
  const path = at('extensions/v1beta1', 'daemonsets', 'counted');
  const spec = { template: { metadata: { labels: { more: 'b' } } }, templateGeneration: 9 };
  const patched = await server.patch(path, { spec }, 'merge');
  expect(patched.body.spec.templateGeneration).toBe(2);
  const { metadata, spec: current } = (await server.get(at('apps/v1', 'daemonsets', 'counted')))
    .body;
  expect(metadata.annotations).toEqual({ 'deprecated.daemonset.template.generation': '2' });
  expect(current.templateGeneration).toBeUndefined();
});

test.each([
  ['extensions/v1beta1', ['orphan']],
  ['apps/v1beta2', ['orphan']],
  ['apps/v1', undefined],
])('VER-2: a Deployment deleted through %s keeps its dependents: %s', async (apiVersion, kept) => {
  const object = small(apiVersion, 'Deployment', { selector: { matchLabels: { app: 'a' } } });
  object.metadata.name += '-deleted';
  object.metadata.finalizers = ['example.com/wait'];
  await made(object);
  const path = at(apiVersion, 'deployments', object.metadata.name);
  const answer = await server.remove(path);
  expect(answer.status, answer.text).toBe(200);
  const { finalizers } = answer.body.metadata;
  expect(finalizers).toEqual(['example.com/wait', ...(kept ?? [])]);
});

test('VER-2: an apply in another version owns the same fields (SSA-8)', async () => {
  const intent = (apiVersion: string, replicas: number) => ({
    apiVersion,
    kind: 'Deployment',
    metadata: { name: 'applied' },
    spec: { replicas, selector: { matchLabels: { app: 'a' } }, template },
  });
  const apply = (apiVersion: string, replicas: number, manager: string) =>
    server.patch(
      `${at(apiVersion, 'deployments', 'applied')}?fieldManager=${manager}`,
      intent(apiVersion, replicas),
      'apply',
    );
  expect((await apply('extensions/v1beta1', 2, 'old')).status).toBe(201);
  const conflict = await apply('apps/v1', 3, 'new');
  expect(conflict.status).toBe(409);
  expect(conflict.body.message).toBe(
    'Apply failed with 1 conflict: conflict with "old": .spec.replicas',
  );
  const same = await apply('apps/v1', 2, 'new');
  expect(same.status).toBe(200);
  const owners = same.body.metadata.managedFields.map((managedField) => [
    managedField.manager,
    managedField.apiVersion,
  ]);
  expect(owners).toEqual([
    ['new', 'apps/v1'],
    ['old', 'extensions/v1beta1'],
  ]);
});

test('VER-2: dependents of an object of an older version are collected', async () => {
  const collected = await withServer({
    emulatedMinor: 15,
    controllers: ['garbage-collector-controller'],
  });
  const path = (groupVersion: string, resource: string) =>
    `/apis/${groupVersion}/namespaces/default/${resource}`;
  const owner = small('extensions/v1beta1', 'Deployment');
  const created = await collected.post(path('extensions/v1beta1', 'deployments'), owner);
  expect(created.status, created.text).toBe(201);
  const { name, uid } = created.body.metadata;
  const dependent = small('apps/v1beta2', 'ReplicaSet', {
    selector: { matchLabels: { app: 'a' } },
  });
  const reference = { apiVersion: 'extensions/v1beta1', kind: 'Deployment', name, uid };
  dependent.metadata.ownerReferences = [reference];
  const sets = path('apps/v1beta2', 'replicasets');
  expect((await collected.post(sets, dependent)).status).toBe(201);
  const policy = { propagationPolicy: 'Background' };
  const url = `${path('extensions/v1beta1', 'deployments')}/${name}`;
  expect((await collected.remove(url, policy)).status).toBe(200);
  const gone = async () =>
    (await collected.get(`${sets}/${dependent.metadata.name}`)).status === 404;
  await eventually(gone, 'the dependent to go');
});

test('VER-4: objects stored by an emulated release are readable, and vice versa', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  const within = async (emulatedMinor: number, use: (emulated: TestServer) => Promise<void>) => {
    const emulated = await startTestServer({ store, emulatedMinor });
    await use(emulated).finally(() => emulated.stop());
  };
  const url = (groupVersion: string) => `/apis/${groupVersion}/namespaces/default/deployments`;
  const object = small('extensions/v1beta1', 'Deployment', { rollbackTo: { revision: 3 } });
  const { name } = object.metadata;
  await within(15, async (emulated) => {
    expect((await emulated.post(url('extensions/v1beta1'), object)).status).toBe(201);
  });
  await within(32, async (emulated) => {
    expect((await emulated.get(`${url('extensions/v1beta1')}/${name}`)).status).toBe(404);
    const labels = { metadata: { labels: { current: 'yes' } } };
    const patched = await emulated.patch(`${url('apps/v1')}/${name}`, labels, 'merge');
    expect(patched.status, patched.text).toBe(200);
  });
  await within(15, async (emulated) => {
    const { metadata, spec } = (await emulated.get(`${url('extensions/v1beta1')}/${name}`)).body;
    expect(metadata.labels).toEqual({ app: 'a', current: 'yes' });
    expect(spec.rollbackTo).toEqual({ revision: 3 });
  });
});

test('VER-2: watches show objects in their version', async () => {
  const groups = ['extensions/v1beta1', 'apps/v1'];
  const watches = await Promise.all(
    groups.map((group) =>
      server.watch(`${at(group, 'replicasets')}?watch=1&fieldSelector=metadata.name=watched`),
    ),
  );
  const object = small('extensions/v1beta1', 'ReplicaSet');
  object.metadata.name = 'watched';
  await made(object);
  for (const [index, watch] of watches.entries()) {
    await watch.until((events) => events.length > 0);
    expect(watch.events[0]?.object.apiVersion).toBe(groups[index]);
    watch.close();
  }
});

test('VER-2: the version and the documents name the emulated release', async () => {
  const { body } = await server.get('/version');
  expect(body).toMatchObject({ major: '1', minor: '32' });
  expect(body).toMatchObject({ emulationMajor: '1', emulationMinor: '15' });
  const document = (await server.get<OpenApiV3>('/openapi/v3/apis/extensions/v1beta1')).body;
  expect(document.info.version).toBe('v1.15.0');
});

test('VER-2: newer APIs are not served', async () => {
  for (const path of ['networking.svc.io/v1/ingresses', 'discovery.svc.io/v1/endpointslices']) {
    expect((await server.get(`/apis/${path}`)).status).toBe(404);
  }
  const names = (await server.get('/apis')).body.groups.flatMap((group: APIGroup) =>
    group.versions.map((version: GroupVersionForDiscovery) => version.groupVersion),
  );
  expect(names).toContain('extensions/v1beta1');
  expect(names).not.toContain('autoscaling/v2');
});
