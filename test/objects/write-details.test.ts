import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, type ResponseBody } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { apply, dataMap, defineThing, freshName, managersOf, ownedBy } from './apply-kinds.ts';

let namespace: string;
let maps: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const within = (group: string, resource: string) =>
  `/apis/${group}/namespaces/${namespace}/${resource}`;

describe('embedded resources', () => {
  const anything = { 'x-kubernetes-preserve-unknown-fields': true };
  const embedded = { type: 'object', 'x-kubernetes-embedded-resource': true };

  test('MF-5: their metadata is typed like that of any object', async () => {
    const properties = { inner: { ...embedded, ...anything } };
    const thing = await defineThing(server, [{ properties }]);
    const name = freshName();
    const inner = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x', finalizers: ['a.io/b'], labels: { l: 'v' } },
    };
    const path = `${thing.path(namespace)}/${name}`;
    const first = await apply(server, path, thing.body(name, { inner }));
    expect(ownedBy(first, 'alice')?.['f:inner']?.['f:metadata']).toEqual({
      'f:finalizers': { 'v:"a.io/b"': {} },
      'f:labels': { 'f:l': {} },
      'f:name': {},
    });
    const more = { ...inner, metadata: { finalizers: ['c.io/d'] } };
    const second = await apply(server, path, thing.body(name, { inner: more }), { manager: 'bob' });
    expect(second.status).toBe(200);
    expect(second.body['inner']).toHaveProperty('metadata.finalizers', ['a.io/b', 'c.io/d']);
  });

  test('FV-1: metadata of a wrong type is reported', async () => {
    const properties = { inner: { ...embedded, ...anything } };
    const thing = await defineThing(server, [{ properties }]);
    const inner = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', labels: { l: 1 } } };
    const refused = await server.post(thing.path(namespace), thing.body(freshName(), { inner }));
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe(
      'Thing in version "v1" cannot be handled as a Thing: inner.metadata: Invalid value: ' +
        'map[string]interface {}{"labels":map[string]interface {}{"l":1}, "name":"x"}: ' +
        'json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
    );
  });

  test('MF-5: invalid metadata is refused, however the kind declares it', async () => {
    const meta = { type: 'object', properties: { name: { type: 'string' } } };
    const properties = { inner: { ...embedded, properties: { metadata: meta } } };
    const thing = await defineThing(server, [{ properties }]);
    const name = freshName();
    const inner = { apiVersion: 'v1', kind: 'Pod', metadata: { odd: 1 } };
    const body = thing.body(name, { inner });
    const refused = await apply(server, `${thing.path(namespace)}/${name}`, body);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(/\.inner\.metadata\.odd: field not declared in schema$/);
  });
});

describe('field managers', () => {
  const entry = (more: JsonObject) => ({
    manager: 'x',
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    ...more,
  });

  test.each<[string, JsonObject]>([
    ['empty fields', { fieldsV1: {} }],
    ['no fields', {}],
  ])('MF-3: an entry with %s is ignored', async (_, more) => {
    const name = freshName();
    const metadata = { name, managedFields: [entry(more)] };
    const made = await server.post(`${maps}?fieldManager=maker`, {
      ...dataMap(name, { a: '1' }),
      metadata,
    });
    expect(made.status).toBe(201);
    expect(managersOf(made)).toEqual(['maker/Update']);
  });

  test('MF-5: duplicates that another version cannot have drop all managers', async () => {
    const thing = await defineThing(server, [
      { properties: { a: { type: 'string' } } },
      { name: 'v2', properties: { a: { type: 'string' } } },
    ]);
    const name = freshName();
    await server.post(thing.path(namespace), thing.body(name, { a: 'x' }));
    const v2Path = `${thing.path(namespace, 'v2')}/${name}`;
    await apply(server, v2Path, thing.body(name, { a: 'x' }, 'v2'));
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'n', uid: 'u' };
    const path = `${thing.path(namespace)}/${name}`;
    const twice = { metadata: { ownerReferences: [owner, owner] } };
    const patched = await server.patch(path, twice, 'merge');
    expect(patched.status).toBe(200);
    expect(patched.body.metadata.ownerReferences).toEqual([owner]);
    expect(patched.body.metadata.managedFields).toBeUndefined();
  });

  test('SSA-8: only managers in a removed version are dropped', async () => {
    const properties = { size: { type: 'integer' }, mode: { type: 'string' } };
    const thing = await defineThing(server, [{ properties }, { name: 'v0', properties }]);
    const updatedName = freshName();
    const appliedName = freshName();
    for (const name of [updatedName, appliedName]) {
      await apply(
        server,
        `${thing.path(namespace, 'v0')}/${name}`,
        thing.body(name, { size: 1 }, 'v0'),
        { manager: 'old' },
      );
      const bob = thing.body(name, { mode: 'x' });
      await apply(server, `${thing.path(namespace)}/${name}`, bob, { manager: 'bob' });
    }
    await thing.change((crd) => crd.spec.versions.pop());
    const path = (name: string) => `${thing.path(namespace)}/${name}`;
    const updated = await server.patch(`${path(updatedName)}?fieldManager=c`, { size: 2 }, 'merge');
    expect([...managersOf(updated)].sort()).toEqual(['bob/Apply', 'c/Update']);
    const applied = await apply(server, path(appliedName), thing.body(appliedName, { size: 3 }));
    expect(applied.status).toBe(200);
    expect([...managersOf(applied)].sort()).toEqual(['alice/Apply', 'bob/Apply']);
    const shared = await apply(server, path(appliedName), thing.body(appliedName, { mode: 'y' }));
    expect(shared.status).toBe(409);
  });

  test('MF-2: a User-Agent is read as UTF-8 without unprintable characters', async () => {
    const name = freshName();
    const agent = Buffer.from('é\u200bü/1').toString('latin1');
    const headers = { 'user-agent': agent };
    const made = await server.post(maps, dataMap(name, { a: '1' }), { headers });
    expect(managersOf(made)).toEqual(['éü/Update']);
  });

  test('MF-2: a long User-Agent is truncated at a character', async () => {
    const name = freshName();
    const headers = { 'user-agent': Buffer.from('é'.repeat(100)).toString('latin1') };
    const made = await server.post(maps, dataMap(name, { a: '1' }), { headers });
    expect(made.status).toBe(201);
    expect(managersOf(made)).toEqual([`${'é'.repeat(64)}/Update`]);
  });
});

describe('replicas of a scale', () => {
  const replicasOf = (object: ResponseBody) =>
    object.metadata.managedFields
      .filter(({ fieldsV1 }) => fieldsV1['f:spec']?.['f:replicas'] !== undefined)
      .map(
        ({
          manager,
          operation,
          subresource = '',
          time = '',
        }: {
          manager: string;
          operation: string;
          subresource: string;
          time: unknown;
        }) => [`${manager}/${operation}${subresource && `/${subresource}`}`, time !== ''],
      );

  test('SSA-10: an apply takes them from an updater at the next write', async () => {
    const name = freshName();
    const deployments = within('apps/v1', 'deployments');
    const labels = { app: name };
    await server.post(`${deployments}?fieldManager=maker`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
    const path = `${deployments}/${name}`;
    const scale = {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name },
      spec: { replicas: 1 },
    };
    expect((await apply(server, `${path}/scale`, scale)).status).toBe(200);
    const shared = await server.get(path);
    expect(replicasOf(shared.body)).toEqual([
      ['alice/Apply/scale', false],
      ['maker/Update', false],
    ]);
    const again = await apply(server, `${path}/scale`, scale);
    expect(replicasOf((await server.get(path)).body)).toEqual([['alice/Apply/scale', false]]);
    const third = await apply(server, `${path}/scale`, scale);
    expect(third.body.metadata.resourceVersion).toBe(again.body.metadata.resourceVersion);
  });
});

describe('the scale of a custom kind', () => {
  test('SSA-10: replicas bring the defaults of the spec', async () => {
    const properties = {
      spec: {
        type: 'object',
        properties: { replicas: { type: 'integer' }, mode: { type: 'string', default: 'slow' } },
      },
    };
    const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
    const thing = await defineThing(server, [{ properties, subresources: { scale } }]);
    const name = freshName();
    await server.post(thing.path(namespace), thing.body(name, {}));
    const path = `${thing.path(namespace)}/${name}`;
    const scaled = await server.patch(`${path}/scale`, { spec: { replicas: 2 } }, 'merge');
    expect(scaled.status).toBe(200);
    const { spec } = (await server.get(path)).body;
    expect(spec).toEqual({ replicas: 2, mode: 'slow' });
  });
});

describe('autoscaler versions', () => {
  const autoscaler = (name: string, version: string, more: JsonObject = {}) => ({
    apiVersion: `autoscaling/${version}`,
    kind: 'HorizontalPodAutoscaler',
    metadata: { name },
    spec: {
      maxReplicas: 5,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
      ...more,
    },
  });
  const pathOf = (version: string, name: string) =>
    `${within(`autoscaling/${version}`, 'horizontalpodautoscalers')}/${name}`;

  test('SSA-8: a field applied in one version is removed when another omits it', async () => {
    const name = freshName();
    await apply(server, pathOf('v1', name), autoscaler(name, 'v1', { minReplicas: 2 }));
    await apply(server, pathOf('v2', name), autoscaler(name, 'v2', { minReplicas: 3 }));
    const last = await apply(server, pathOf('v1', name), autoscaler(name, 'v1'));
    expect(last.body.spec.minReplicas).toBe(1);
  });

  test('SSA-8: metadata without owners does not block the other version', async () => {
    const name = freshName();
    const labelled = { ...autoscaler(name, 'v2'), metadata: { name, labels: {} } };
    await apply(server, pathOf('v2', name), labelled);
    const last = await apply(server, pathOf('v1', name), autoscaler(name, 'v1'));
    expect(last.status).toBe(200);
    expect(last.body.metadata).toMatchObject({ name, namespace });
    expect(managersOf(last)).toEqual(['alice/Apply']);
    expect(ownedBy(last, 'alice')).not.toHaveProperty('f:metadata');
  });

  test('SSA-9: an unchanged apply keeps what its version cannot express', async () => {
    const name = freshName();
    const share = (averageUtilization: number) => ({
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
    });
    const metrics = [share(50), share(60)];
    await apply(server, pathOf('v2', name), autoscaler(name, 'v2', { metrics }));
    const shared = await apply(server, pathOf('v1', name), autoscaler(name, 'v1'), {
      manager: 'bob',
    });
    expect(shared.status).toBe(200);
    expect([...managersOf(shared)].sort()).toEqual(['alice/Apply', 'bob/Apply']);
    const again = await apply(server, pathOf('v1', name), autoscaler(name, 'v1'), {
      manager: 'bob',
    });
    expect(again.body.metadata.resourceVersion).toBe(shared.body.metadata.resourceVersion);
    expect((await server.get(pathOf('v2', name))).body.spec.metrics).toEqual(metrics);
  });

  test('SSA-8: a value that the other version cannot hold is 400', async () => {
    const name = freshName();
    await apply(server, pathOf('v1', name), autoscaler(name, 'v1'), { manager: 'bob' });
    const target = { type: 'AverageValue', averageValue: 'much' };
    const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
    const refused = await apply(server, pathOf('v2', name), autoscaler(name, 'v2', { metrics }));
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(/Kind=HorizontalPodAutoscaler: quantities must match /);
  });

  test('SSA-8: an object created in v1 shows all status members in v2', async () => {
    const name = freshName();
    await apply(server, pathOf('v1', name), autoscaler(name, 'v1'));
    const shown = await server.get(pathOf('v2', name));
    expect(shown.body.status).toEqual({ desiredReplicas: 0, currentMetrics: null });
  });

  test('MF-2: the creator in v1 owns the default metric', async () => {
    const name = freshName();
    const made = await server.post(
      within('autoscaling/v1', 'horizontalpodautoscalers'),
      autoscaler(name, 'v1'),
    );
    expect(made.body.spec.targetCPUUtilizationPercentage).toBe(80);
    expect(made.body.status).toEqual({ currentReplicas: 0, desiredReplicas: 0 });
    const [{ fieldsV1 }] = made.body.metadata.managedFields;
    expect(fieldsV1['f:spec']).toHaveProperty('f:targetCPUUtilizationPercentage');
  });
});

describe('updates with invalid metadata', () => {
  const bad = { metadata: { labels: { '-': 'x' } } };
  const causesOf = async (path: string) => {
    const refused = await server.patch(path, bad, 'merge');
    expect(refused.status).toBe(422);
    expect(refused.body.message.split('metadata.labels').length - 1).toBe(1);
    return refused.body.details.causes.map(({ field }: { field: string }) => field).length;
  };

  test('META-3: causes repeat as in kube-apiserver, the message does not', async () => {
    const name = freshName();
    await server.post(maps, dataMap(name, {}));
    expect(await causesOf(`${maps}/${name}`)).toBe(4);
    await server.post('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    expect(await causesOf(`/api/v1/namespaces/${name}`)).toBe(4);
    expect(await causesOf(`/api/v1/namespaces/${name}/status`)).toBe(3);
    const roles = within('rbac.authorization.svc.io/v1', 'roles');
    await server.post(roles, {
      apiVersion: 'rbac.authorization.svc.io/v1',
      kind: 'Role',
      metadata: { name },
      rules: [],
    });
    expect(await causesOf(`${roles}/${name}`)).toBe(5);
    const budgets = within('policy/v1', 'poddisruptionbudgets');
    await server.post(budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name },
      spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
    });
    expect(await causesOf(`${budgets}/${name}`)).toBe(2);
  });

  test('META-3: each kind validates the object and the change in its own order', async () => {
    const name = freshName();
    const both = { metadata: { labels: { '-': 'x' }, finalizers: ['a b/c'] } };
    const toldOf = async (path: string) => {
      const refused = await server.patch(path, both, 'merge');
      return refused.body.details.causes
        .map(({ field }: { readonly field: string }) => field.replace('metadata.', '')[0])
        .join('');
    };
    await server.post(maps, dataMap(name, {}));
    expect(await toldOf(`${maps}/${name}`)).toBe('lflllf');
    const namespaces = '/api/v1/namespaces';
    await server.post(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    expect(await toldOf(`${namespaces}/${name}`)).toBe('lfllfl');
    const ranges = `${namespaces}/${namespace}/limitranges`;
    const range = {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name },
      spec: { limits: [] },
    };
    await server.post(ranges, range);
    expect(await toldOf(`${ranges}/${name}`)).toBe('lfllf');
  });

  test('META-5: some kinds accept a finalizer without a domain, most do not', async () => {
    const name = freshName();
    const leases = within('coordination.svc.io/v1', 'leases');
    const metadata = { name, finalizers: ['plain'] };
    const lease = { apiVersion: 'coordination.svc.io/v1', kind: 'Lease', metadata };
    expect((await server.post(`${leases}?dryRun=All`, lease)).status).toBe(201);
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
    const refused = await server.post(`${maps}?dryRun=All`, map);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('name is neither a standard finalizer name nor');
  });
});

describe('empty lists', () => {
  const role = (name: string) => ({
    apiVersion: 'rbac.authorization.svc.io/v1',
    kind: 'Role',
    metadata: { name },
    rules: [],
  });

  test('API-5, SSA-1: equal absent ones, however an object is created', async () => {
    const roles = within('rbac.authorization.svc.io/v1', 'roles');
    const [postedName, putName, appliedName] = [freshName(), freshName(), freshName()];
    const posted = await server.post(roles, role(postedName));
    const put = await server.put(`${roles}/${putName}`, role(putName));
    const applied = await apply(server, `${roles}/${appliedName}`, role(appliedName));
    for (const made of [posted, put, applied]) {
      expect(made.status).toBe(201);
      expect(made.body.rules).toBeNull();
    }
    expect(ownedBy(applied, 'alice')).toEqual({ 'f:rules': {} });
  });
});

describe('bodies and paths', () => {
  test('API-7: a PUT of a missing object checks name and uid first', async () => {
    const name = freshName();
    const misnamed = await server.put(`${maps}/${name}`, dataMap('other', {}));
    expect(misnamed.status).toBe(400);
    expect(misnamed.body.message).toContain('(other) does not match the name on the URL');
    const named = dataMap(name, {});
    const asked = { ...named, metadata: { name, uid: 'u' } };
    const refused = await server.put(`${maps}/${name}`, asked);
    expect(refused.status).toBe(409);
    expect(refused.body.message).toContain(
      'Precondition failed: UID in precondition: u, UID in object meta: ',
    );
    expect((await server.put(`${maps}/${name}`, named)).status).toBe(404);
  });

  test('PATCH-4: a resourceVersion is a number, however it is written', async () => {
    const name = freshName();
    const { body } = await server.post(maps, dataMap(name, { a: '1' }));
    const path = `${maps}/${name}`;
    const padded = `00${body.metadata.resourceVersion}`;
    const patched = await server.patch(path, { metadata: { resourceVersion: padded } }, 'merge');
    expect(patched.status).toBe(200);
    const huge = { metadata: { resourceVersion: '9'.repeat(30) } };
    const refused = await server.patch(path, huge, 'merge');
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('value out of range');
  });

  test('SSA-2: an apply that creates accepts a readable resourceVersion', async () => {
    const name = freshName();
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, resourceVersion: 'x' } };
    const refused = await apply(server, `${maps}/${name}`, body);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('strconv.ParseUint: parsing "x": invalid syntax');
    expect((await server.get(`${maps}/${name}`)).status).toBe(404);
  });

  test.each([null, ''])(
    'PATCH-2: a version of %j leaves an object without a type',
    async (none) => {
      const name = freshName();
      await server.post(maps, dataMap(name, {}));
      const refused = await server.patch(`${maps}/${name}`, { apiVersion: none }, 'merge');
      expect(refused.status).toBe(400);
      expect(refused.body.message).toBe(
        `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
      );
    },
  );

  test.each(['APPLICATION/MERGE-PATCH+JSON', 'application/merge-patch+json ;x=y'])(
    'PATCH-5: %j is not an accepted type',
    async (type) => {
      const name = freshName();
      await server.post(maps, dataMap(name, {}));
      const answer = await server.request('PATCH', `${maps}/${name}`, { body: {}, type });
      expect(answer.status).toBe(415);
    },
  );

  test('META-3: a status write does not change labels of some kinds', async () => {
    const name = freshName();
    const schemas = '/apis/flowcontrol.apiserver.svc.io/v1/flowschemas';
    await server.post(schemas, {
      apiVersion: 'flowcontrol.apiserver.svc.io/v1',
      kind: 'FlowSchema',
      metadata: { name },
      spec: { priorityLevelConfiguration: { name: 'x' }, matchingPrecedence: 9000 },
    });
    const labels = { metadata: { labels: { a: 'b' } } };
    const written = await server.patch(`${schemas}/${name}/status`, labels, 'merge');
    expect(written.status).toBe(200);
    expect(written.body.metadata.labels).toBeUndefined();
  });
});
