import { join } from 'node:path';
import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import { itemAt } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { configMap, freshNamespace, type ResponseOf, startTestServer } from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';
import { withServer } from '../support/with-server.ts';
import {
  awaitWebhook,
  configMapRule,
  configure,
  hooksOf,
  patching,
  registration,
  startAdmissionService,
  webhook,
} from './admission-service.ts';

let namespace: string;
let maps: string;
const { hooked, later, unhook } = hooksOf(() => ({ server, service, namespace }));

const service = await untilEnd(startAdmissionService());
const server = await withServer();
beforeEach(async () => {
  await unhook();
  service.forget();
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const requestAt = (path: string, index = 0) => itemAt(service.at(path), index).request;

describe('ADM-2: the review that a webhook receives', () => {
  test('ADM-2: a review has every field of the request, encoded as by kube-apiserver', async () => {
    await hooked('validating', { path: '/v' });
    const user = { 'impersonate-user': 'amy', 'impersonate-uid': '7', 'impersonate-group': 'dev' };
    const extra = { 'impersonate-extra-scopes': 'a' };
    const query = '?fieldManager=me&fieldValidation=Strict&dryRun=All';
    const answer = await server.post(`${maps}${query}`, configMap('a'), {
      headers: { ...user, 'impersonate-group': 'system:masters', ...extra },
    });
    expect(answer.status).toBe(201);
    const [call] = service.received;
    expect(call).toMatchObject({ method: 'POST', path: '/v?timeout=10s' });
    expect(call?.headers).toMatchObject({
      accept: 'application/json, */*',
      'content-type': 'application/json',
      'user-agent': 'kube-apiserver-admission',
    });
    const kind = { group: '', version: 'v1', kind: 'ConfigMap' };
    const resource = { group: '', version: 'v1', resource: 'configmaps' };
    expect(call?.body).toEqual({
      kind: 'AdmissionReview',
      apiVersion: 'admission.svc.io/v1',
      request: {
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        kind,
        resource,
        requestKind: kind,
        requestResource: resource,
        name: 'a',
        namespace,
        operation: 'CREATE',
        userInfo: {
          username: 'amy',
          uid: '7',
          groups: ['system:masters', 'system:authenticated'],
          extra: { scopes: ['a'] },
        },
        object: expect.objectContaining({ kind: 'ConfigMap', data: { a: '1' } }),
        oldObject: null,
        dryRun: true,
        options: {
          kind: 'CreateOptions',
          apiVersion: 'meta.svc.io/v1',
          dryRun: ['All'],
          fieldManager: 'me',
          fieldValidation: 'Strict',
        },
      },
    });
  });

  test('ADM-2: generated name and uid appear after mutation only', async () => {
    await hooked('mutating', { path: '/m' });
    await hooked('validating', { path: '/v' });
    const body = { ...configMap(''), metadata: { generateName: 'gen-' } };
    const made = await server.post(maps, body);
    expect(made.status).toBe(201);
    expect(requestAt('/m').name).toBeUndefined();
    expect(requestAt('/m').object.metadata.uid).toBeUndefined();
    expect(requestAt('/v')).toMatchObject({
      name: made.body.metadata.name,
      object: { metadata: { uid: made.body.metadata.uid, name: made.body.metadata.name } },
    });
  });

  test('ADM-2: a Namespace is its own namespace unless its name is generated', async () => {
    const resources = ['namespaces'];
    const rules = [{ operations: ['*'], apiGroups: [''], apiVersions: ['*'], resources }];
    const all = { namespaceSelector: {}, rules };
    await hooked('mutating', { path: '/m', ...all });
    await hooked('validating', { path: '/v', ...all });
    const create = (metadata: object) =>
      server.post('/api/v1/namespaces?dryRun=All', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata,
      });
    await create({ name: 'named' });
    const { body } = await create({ generateName: 'gen-' });
    const namesOf = (path: string) =>
      service.at(path).map(({ request }) => [request.name, request.namespace]);
    expect(namesOf('/m')).toEqual([
      ['named', 'named'],
      [undefined, undefined],
    ]);
    expect(namesOf('/v')).toEqual([
      ['named', 'named'],
      [body.metadata.name, undefined],
    ]);
  });

  test('ADM-2: a Namespace is deleted by its uid, and reviewed only once', async () => {
    const resources = ['namespaces'];
    const rules = [{ operations: ['DELETE'], apiGroups: [''], apiVersions: ['*'], resources }];
    const path = '/api/v1/namespaces/held';
    const metadata = { name: 'held' };
    const { body } = await server.post('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata,
      spec: { finalizers: ['svc', 'example.com/hold'] },
    });
    await hooked('validating', { path: '/v', namespaceSelector: {}, rules });
    const preconditions = { uid: body.metadata.uid };
    await server.remove(path);
    await server.remove(path);
    expect(service.at('/v').map(({ request }) => request.options)).toEqual([
      { kind: 'DeleteOptions', apiVersion: 'meta.svc.io/v1', preconditions },
    ]);
    await server.put(`${path}/finalize`, { metadata, spec: { finalizers: [] } });
  });

  test('ADM-2: a webhook can name an object, also one whose name would be generated', async () => {
    const named = [{ op: 'add', path: '/metadata/name', value: 'renamed' }];
    await hooked('mutating', { path: '/m' });
    await hooked('validating', { path: '/v' });
    service.answer('/m', () => patching(named));
    const first = await server.post(maps, configMap('a'));
    expect(first.body.metadata.name).toBe('renamed');
    expect(requestAt('/v')).toMatchObject({ name: 'a', object: { metadata: { name: 'renamed' } } });
    const generated = { ...configMap(''), metadata: { generateName: 'gen-' } };
    const second = await server.post(maps, generated);
    expect([second.status, second.body.reason]).toEqual([409, 'AlreadyExists']);
    expect(second.body.message).toContain('"renamed" already exists');
    const applied = await server.patch(`${maps}/n?fieldManager=me`, configMap('n'), 'apply');
    expect([applied.status, applied.body.reason]).toEqual([400, 'BadRequest']);
    expect((await server.get(`${maps}/n`)).status).toBe(404);
  });

  test('ADM-2: updates, patches, applies, and deletions carry the old object', async () => {
    await hooked('validating', { path: '/v' });
    await server.post(maps, configMap('a'));
    const path = `${maps}/a`;
    await server.put(path, configMap('a', { data: { a: '2' } }));
    await server.patch(path, { data: { a: '3' } }, 'merge');
    const applied = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'n' },
      data: { b: '1' },
    };
    await server.patch(`${maps}/n?fieldManager=me&force=true`, applied, 'apply');
    await server.remove(path, {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: 5,
      propagationPolicy: 'Background',
    });
    const seen = service
      .at('/v')
      .map(({ request }) => [
        request.operation,
        request.oldObject?.data?.a,
        request.object?.data?.a,
        request.options.kind,
      ]);
    expect(seen).toEqual([
      ['CREATE', undefined, '1', 'CreateOptions'],
      ['UPDATE', '1', '2', 'UpdateOptions'],
      ['UPDATE', '2', '3', 'UpdateOptions'],
      ['CREATE', undefined, undefined, 'CreateOptions'],
      ['DELETE', '3', undefined, 'DeleteOptions'],
    ]);
    expect(requestAt('/v', 4)).toMatchObject({
      object: null,
      name: 'a',
      options: { gracePeriodSeconds: 5, propagationPolicy: 'Background' },
    });
  });

  test('ADM-2: the options of a deletion state the grace period of a Pod', async () => {
    const operations = ['DELETE'];
    const rule = { operations, apiGroups: [''], apiVersions: ['*'], resources: ['pods'] };
    await hooked('validating', { path: '/v', rules: [rule] });
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    const make = (name: string, more: object) =>
      server.post(pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { ...spec, ...more },
      });
    await make('bound', { nodeName: 'n' });
    await make('free', {});
    const dryRun = ['All'];
    await server.remove(`${pods}/bound`, { dryRun, preconditions: {} });
    await server.remove(`${pods}/bound`, { dryRun, gracePeriodSeconds: 5 });
    await server.remove(`${pods}/free`, { dryRun, gracePeriodSeconds: 5 });
    await server.remove(`${pods}?fieldSelector=metadata.name%3Dfree`, { dryRun });
    const kind = { kind: 'DeleteOptions', apiVersion: 'meta.svc.io/v1' };
    expect(service.at('/v').map(({ request }) => request.options)).toEqual([
      { ...kind, dryRun, preconditions: {}, gracePeriodSeconds: 30 },
      { ...kind, dryRun, gracePeriodSeconds: 5 },
      { ...kind, dryRun, gracePeriodSeconds: 0 },
      { ...kind, dryRun },
    ]);
  });

  test('ADM-2: a Pod that is removed at once is reviewed again once it is marked', async () => {
    const operations = ['DELETE'];
    const rule = { operations, apiGroups: [''], apiVersions: ['*'], resources: ['pods'] };
    await hooked('validating', { path: '/v', rules: [rule] });
    const path = `/api/v1/namespaces/${namespace}/pods/p`;
    const spec = { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] };
    await server.post(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name: 'p' }, spec });
    await server.remove(path);
    const removal = { gracePeriodSeconds: 0 };
    service.answer('/v', ({ oldObject }) => ({
      allowed: oldObject?.metadata.deletionGracePeriodSeconds !== 0,
    }));
    expect((await server.remove(path, removal)).status).toBe(400);
    expect((await server.get<Pod>(path)).body.metadata.deletionGracePeriodSeconds).toBe(0);
    service.answer('/v', () => ({ allowed: true }));
    expect((await server.remove(path, removal)).status).toBe(200);
    const reviewed = service
      .at('/v')
      .map(({ request: { oldObject, options } }) => [
        oldObject?.metadata.deletionGracePeriodSeconds,
        options.gracePeriodSeconds,
      ]);
    expect(reviewed).toEqual([
      [undefined, 30],
      [30, 0],
      [0, 0],
      [0, 0],
    ]);
    expect((await server.get(path)).status).toBe(404);
  });

  test('ADM-2: deletecollection sends a review for each object', async () => {
    await hooked('validating', {
      path: '/v',
      rules: [{ ...configMapRule, operations: ['DELETE'] }],
    });
    for (const name of ['a', 'b', 'c']) await server.post(maps, configMap(name));
    service.answer('/v', ({ oldObject }) => ({ allowed: oldObject?.metadata.name !== 'b' }));
    const answer = await server.remove(maps);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain('denied the request');
    expect((await server.get(`${maps}/b`)).status).toBe(200);
    service.answer('/v', () => ({}));
    await server.remove(maps);
    const asked = service.at('/v').map(({ request }) => request);
    const names = new Set(asked.map(({ oldObject }) => oldObject?.metadata.name));
    expect([...names].sort()).toEqual(['a', 'b', 'c']);
    // A request for a collection has no name.
    expect(asked.filter(({ name }) => name !== undefined)).toEqual([]);
  });

  test('ADM-2: subresources have their own objects, and streams are reviewed', async () => {
    const rule = (group: string, resources: string[]) => ({
      operations: ['*'],
      apiGroups: [group],
      apiVersions: ['*'],
      resources,
    });
    await hooked('validating', {
      path: '/v',
      rules: [rule('apps', ['deployments/*']), rule('', ['pods/*'])],
    });
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    const labels = { a: 'b' };
    const template = { metadata: { labels }, spec };
    const apps = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    const deployment = { spec: { replicas: 1, selector: { matchLabels: labels }, template } };
    const meta = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' } };
    expect((await server.post(apps, { ...meta, ...deployment })).status).toBe(201);
    const scaled = await server.patch(`${apps}/d/scale`, { spec: { replicas: 3 } }, 'merge');
    expect(scaled.status).toBe(200);
    await server.patch(`${apps}/d/status`, { status: { replicas: 1 } }, 'merge');
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
    expect((await server.post(pods, pod)).status).toBe(201);
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' } };
    const target = { kind: 'Node', name: 'n' };
    expect((await server.post(`${pods}/p/binding`, { ...binding, target })).status).toBe(201);
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } };
    expect((await server.post(`${pods}/p/eviction`, eviction)).status).toBe(201);
    await server.post(`${pods}/p/exec?command=ls&command=-l&stdin=true&container=c`, undefined);
    const seen = service
      .at('/v')
      .map(({ request }) => [
        request.operation,
        `${request.resource.resource}/${request.subResource ?? ''}`,
        request.kind.kind,
        request.object.kind,
      ]);
    // As in kube-apiserver, `pods/*` includes pods themselves.
    expect(seen).toEqual([
      ['CREATE', 'deployments/', 'Deployment', 'Deployment'],
      ['UPDATE', 'deployments/scale', 'Scale', 'Scale'],
      ['UPDATE', 'deployments/status', 'Deployment', 'Deployment'],
      ['CREATE', 'pods/', 'Pod', 'Pod'],
      ['CREATE', 'pods/binding', 'Binding', 'Binding'],
      ['CREATE', 'pods/eviction', 'Eviction', 'Eviction'],
      ['CONNECT', 'pods/exec', 'PodExecOptions', 'PodExecOptions'],
    ]);
    expect(requestAt('/v', 1)).toMatchObject({
      requestSubResource: 'scale',
      kind: { group: 'autoscaling', version: 'v1' },
      object: { spec: { replicas: 3 } },
      oldObject: { spec: { replicas: 1 } },
    });
    expect(requestAt('/v', 6)).toMatchObject({
      object: { command: ['ls', '-l'], stdin: true, container: 'c' },
      oldObject: null,
      options: null,
    });
  });

  test('ADM-2: a request without a name in its path takes the object’s name', async () => {
    const rules = [
      { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['bindings'] },
    ];
    await hooked('validating', { path: '/v', rules });
    service.answer('/v', () => ({ allowed: false }));
    const refused = await server.post(`/api/v1/namespaces/${namespace}/bindings`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'p' },
      target: { kind: 'Node', name: 'n' },
    });
    expect(refused.status).toBe(400);
    expect(requestAt('/v', 0)).toMatchObject({ name: 'p', kind: { kind: 'Binding' } });
    expect(requestAt('/v', 0)).not.toHaveProperty('subResource');
  });

  test('ADM-2: a denied CONNECT ends the stream before it begins', async () => {
    const streams = {
      operations: ['CONNECT'],
      apiGroups: [''],
      apiVersions: ['v1'],
      resources: ['*/*'],
    };
    await hooked('validating', { path: '/v', rules: [streams] });
    await hooked('mutating', { path: '/m', rules: [{ ...streams, resources: ['pods/exec'] }] });
    service.answer('/m', () => patching([{ op: 'add', path: '/command/-', value: 'added' }]));
    service.answer('/v', () => ({ allowed: false, status: { message: 'no streams' } }));
    const exec = await server.get(`/api/v1/namespaces/${namespace}/pods/p/exec?command=ls`);
    expect(exec.status).toBe(400);
    expect(exec.body.message).toContain('denied the request: no streams');
    expect(requestAt('/v').object.command).toEqual(['ls', 'added']);
  });

  test('ADM-2: OPTIONS of a proxy is a CONNECT', async () => {
    const rules = [
      { operations: ['CONNECT'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods/proxy'] },
    ];
    await hooked('validating', { path: '/v', rules });
    service.answer('/v', () => ({ allowed: false, status: { message: 'no proxies' } }));
    const path = `/api/v1/namespaces/${namespace}/pods/p/proxy/x`;
    const refused = await server.request('OPTIONS', path);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain('denied the request: no proxies');
    expect(requestAt('/v')).toMatchObject({
      operation: 'CONNECT',
      kind: { kind: 'PodProxyOptions' },
      subResource: 'proxy',
    });
  });

  test('ADM-2: v1beta1 reviews go to webhooks that list it first', async () => {
    await hooked('mutating', { path: '/m', admissionReviewVersions: ['v9', 'v1beta1', 'v1'] });
    service.answer('/m', () => ({
      uid: 'anything',
      patch: Buffer.from('[{"op":"add","path":"/data/b","value":"2"}]').toString('base64'),
    }));
    const made = await server.post(maps, configMap('a'));
    expect(made.body.data).toEqual({ a: '1', b: '2' });
    expect(service.at('/m')[0]?.apiVersion).toBe('admission.svc.io/v1beta1');
  });

  test('ADM-2: webhook and policy configurations are never reviewed', async () => {
    await hooked('validating', {
      path: '/v',
      namespaceSelector: {},
      rules: [
        { operations: ['*'], apiGroups: [registration], apiVersions: ['*'], resources: ['*'] },
      ],
    });
    await awaitOtherWebhook();
    const { remove } = await configure(server, 'mutating', [
      webhook(service, { path: '/never', namespace }),
    ]);
    await remove();
    expect(service.at('/v')).toEqual([]);
  });

  test('ADM-2: a configuration takes effect within a second and until it is deleted', async () => {
    const round = async () => {
      const { remove } = await configure(server, 'validating', [
        webhook(service, { path: '/v', namespace }),
      ]);
      const startMs = performance.now();
      await awaitWebhook(server, { service, path: '/v', namespace });
      const tookMs = performance.now() - startMs;
      await remove();
      return tookMs;
    };
    expect(await onceWithin(1000, round)).toBe(true);
    const before = service.at('/v').length;
    expect((await server.post(maps, configMap('a'))).status).toBe(201);
    expect(service.at('/v')).toHaveLength(before);
  });
});

test('ADM-2: the first write after a restart is reviewed', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory: join(directory, 'data') } as const;
  const before = await startTestServer({ store });
  await configure(before, 'validating', [webhook(service, { path: '/restart' })]);
  await before.stop();
  service.answer('/restart', () => ({ allowed: false }));
  const after = await startTestServer({ store });
  const made = await after.post('/api/v1/namespaces/default/configmaps', configMap('a'));
  await after.stop();
  expect(made.status).toBe(400);
  expect(made.body.message).toContain('denied the request without explanation');
});

/** Makes sure that webhooks are followed: waits until a webhook of this namespace is called. */
async function awaitOtherWebhook(): Promise<void> {
  await hooked('validating', { path: '/other' });
  await awaitWebhook(server, { service, path: '/other', namespace });
}

describe('ADM-2: mutation', () => {
  const add = (name: string, value: string) => [{ op: 'add', path: `/data/${name}`, value }];

  test('ADM-2: a patch is applied, and the next webhook sees the result', async () => {
    await hooked(
      'mutating',
      { name: 'b.example.com', path: '/first' },
      { name: 'a.example.com', path: '/second' },
    );
    service.answer('/first', () => patching(add('b', '2')));
    service.answer('/second', ({ object }) => patching(add('c', object.data['b'] ?? '')));
    const made = await server.post(maps, configMap('a'));
    expect(made.body.data).toEqual({ a: '1', b: '2', c: '2' });
    expect(made.body.metadata.managedFields).toHaveLength(1);
  });

  test('ADM-2: configurations run in the order of their names', async () => {
    const order: string[] = [];
    for (const name of ['z', 'y']) {
      const made = webhook(service, { path: `/${name}`, namespace });
      const { remove } = await configure(server, 'mutating', [made], `order-${name}`);
      later(remove);
      service.answer(`/${name}`, () => {
        order.push(name);
        return {};
      });
    }
    await server.post(maps, configMap('a'));
    expect(order).toEqual(['y', 'z']);
  });

  test('ADM-2: the mutated object is decoded, defaulted, and validated', async () => {
    const rules = [{ ...configMapRule, resources: ['pods'], operations: ['CREATE'] }];
    await hooked('mutating', { path: '/m', rules });
    const container = { name: 'x', image: 'i:latest', unknown: 1 };
    service.answer('/m', () =>
      patching([{ op: 'add', path: '/spec/containers/-', value: container }]),
    );
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const made = await server.post<ResponseOf<Pod>>(pods, pod);
    expect(made.status).toBe(201);
    expect(made.body.spec.containers[1]).toMatchObject({
      name: 'x',
      imagePullPolicy: 'Always',
      terminationMessagePath: '/dev/termination-log',
    });
    expect(made.body.spec.containers[1]).not.toHaveProperty('unknown');
    service.answer('/m', () =>
      patching([{ op: 'add', path: '/spec/containers/-', value: { name: 'A B', image: 'i' } }]),
    );
    const invalid = await server.post(pods, { ...pod, metadata: { name: 'q' } });
    expect(invalid.status).toBe(422);
    expect(invalid.body.message).toContain('spec.containers[1].name: Invalid value: "A B"');
  });

  test('ADM-2: custom objects are mutated and pruned by their schema', async () => {
    const group = `mutated-${namespace}.example.com`;
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } },
    };
    await server.post('/apis/apiextensions.svc.io/v1/customresourcedefinitions', {
      apiVersion: 'apiextensions.svc.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `foos.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural: 'foos', singular: 'foo', kind: 'Foo', listKind: 'FooList' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } },
        ],
      },
    });
    const foos = `/apis/${group}/v1/namespaces/${namespace}/foos`;
    await expect.poll(async () => (await server.get(foos)).status).toBe(200);
    const rules = [
      { operations: ['*'], apiGroups: [group], apiVersions: ['*'], resources: ['foos'] },
    ];
    await hooked('mutating', { path: '/m', rules });
    service.answer('/m', () =>
      patching([{ op: 'add', path: '/spec', value: { a: 'x', gone: true } }]),
    );
    const foo = { apiVersion: `${group}/v1`, kind: 'Foo', metadata: { name: 'f' } };
    const made = await server.post(foos, foo);
    expect(made.status).toBe(201);
    expect(made.body.spec).toEqual({ a: 'x' });
  });

  test('ADM-2: reviews of virtual subresources', async () => {
    const rule = (resource: string) => ({
      operations: ['CREATE'],
      apiGroups: [''],
      apiVersions: ['v1'],
      resources: [resource],
    });
    await hooked(
      'mutating',
      { name: 'b.example.com', path: '/binding', rules: [rule('pods/binding')] },
      { name: 't.example.com', path: '/token', rules: [rule('serviceaccounts/token')] },
    );
    service.answer('/binding', () =>
      patching([{ op: 'replace', path: '/target/name', value: 'other' }]),
    );
    service.answer('/token', () =>
      patching([{ op: 'replace', path: '/spec/expirationSeconds', value: 700 }]),
    );
    const base = `/api/v1/namespaces/${namespace}`;
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    await server.post(`${base}/pods`, { kind: 'Pod', metadata: { name: 'p' }, spec });
    const target = { kind: 'Node', name: 'n' };
    await server.post(`${base}/pods/p/binding`, {
      kind: 'Binding',
      metadata: { name: 'p' },
      target,
    });
    expect((await server.get(`${base}/pods/p`)).body.spec.nodeName).toBe('other');
    const account = { kind: 'ServiceAccount', metadata: { name: 'a' } };
    await server.post(`${base}/serviceaccounts`, account);
    const asked = { kind: 'TokenRequest', spec: { audiences: ['x'], expirationSeconds: 3600 } };
    const token = await server.post(`${base}/serviceaccounts/a/token`, asked);
    expect(token.body.spec).toMatchObject({ audiences: ['x'], expirationSeconds: 700 });
    expect(service.at('/token')[0]?.request.object.metadata).toMatchObject({ namespace });
  });

  test('ADM-2: a webhook changes the replicas of a Scale', async () => {
    const labels = { a: 'b' };
    const apps = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await server.post(apps, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
    const rules = [
      { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['deployments/scale'] },
    ];
    await hooked('mutating', { path: '/m', rules });
    service.answer('/m', () => patching([{ op: 'replace', path: '/spec/replicas', value: 7 }]));
    const scaled = await server.patch(`${apps}/d/scale`, { spec: { replicas: 3 } }, 'merge');
    expect(scaled.body.spec.replicas).toBe(7);
    expect((await server.get(`${apps}/d`)).body.spec.replicas).toBe(7);
  });

  test('ADM-2: unreadable managedFields are restored with a warning', async () => {
    await hooked('mutating', { path: '/m' });
    service.answer('/m', () =>
      patching([{ op: 'replace', path: '/metadata/managedFields/0/operation', value: 'Odd' }]),
    );
    const made = await server.post(maps, configMap('a'));
    expect(made.status).toBe(201);
    expect(made.body.metadata.managedFields[0].operation).toBe('Update');
    expect(made.warnings).toEqual([
      '.metadata.managedFields was in an invalid state after admission; this could be caused by ' +
        'an outdated mutating admission controller; please fix your requests: operation must be ' +
        '`Apply` or `Update`',
    ]);
  });

  test('ADM-2: a webhook can change neither identity nor server-set fields', async () => {
    await hooked('mutating', { path: '/m' });
    service.answer('/m', () => patching([{ op: 'add', path: '/metadata/uid', value: 'chosen' }]));
    expect((await server.post(maps, configMap('a'))).body.metadata.uid).not.toBe('chosen');
    service.answer('/m', () =>
      patching([{ op: 'replace', path: '/metadata/namespace', value: 'default' }]),
    );
    const moved = await server.post(maps, configMap('b'));
    expect(moved.status).toBe(400);
    expect(moved.body.message).toContain('does not match the namespace sent on the request');
  });

  test('ADM-2: reinvocationPolicy IfNeeded calls again after later changes', async () => {
    await hooked(
      'mutating',
      { name: 'again.example.com', path: '/again', reinvocationPolicy: 'IfNeeded' },
      { name: 'never.example.com', path: '/never' },
      { name: 'last.example.com', path: '/last', reinvocationPolicy: 'IfNeeded' },
    );
    service.answer('/last', ({ object }) => (object.data.l ? {} : patching(add('l', '1'))));
    service.answer('/again', ({ object }) => patching(add('n', object.data.l ?? 'none')));
    const made = await server.post(maps, configMap('a'));
    expect(made.body.data).toEqual({ a: '1', l: '1', n: '1' });
    const counts = ['/again', '/never', '/last'].map((path) => service.at(path).length);
    expect(counts).toEqual([2, 1, 2]);
  });

  test('ADM-2: nothing is called again without a later change', async () => {
    await hooked(
      'mutating',
      { name: 'first.example.com', path: '/first' },
      { name: 'again.example.com', path: '/again', reinvocationPolicy: 'IfNeeded' },
    );
    service.answer('/first', () => patching(add('f', '1')));
    service.answer('/again', () => patching([{ op: 'test', path: '/data/a', value: '1' }]));
    await server.post(maps, configMap('a'));
    expect(service.at('/again')).toHaveLength(1);
  });

  test('ADM-2: an update that lost a race is reviewed again', async () => {
    await server.post(maps, configMap('a'));
    await hooked('mutating', { path: '/m' });
    let raced: Promise<unknown> | undefined;
    service.reply('/m', async ({ body: { apiVersion, kind, request } }) => {
      // Another client writes while the first write is under review.
      if (request.object.data.by === 'first' && raced === undefined) {
        raced = server.patch(`${maps}/a`, { data: { by: 'other', o: '1' } }, 'merge');
        await raced;
      }
      return { apiVersion, kind, response: { uid: request.uid, allowed: true } };
    });
    const first = await server.patch(`${maps}/a`, { data: { by: 'first' } }, 'merge');
    expect(first.status).toBe(200);
    expect(first.body.data).toEqual({ a: '1', by: 'first', o: '1' });
    const seen = service.at('/m').map(({ request }) => request.oldObject.data.o);
    expect(seen).toEqual([undefined, undefined, '1']);
  });
});
