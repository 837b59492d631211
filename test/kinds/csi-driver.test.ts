import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import { describe, expect, test } from 'vitest';
import { causes, eventually, type ResponseOf, selecting } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const path = '/apis/storage.svc.io/v1/csidrivers';
const driver = (name: string, spec: object = {}, more: object = {}) => ({
  apiVersion: 'storage.svc.io/v1',
  kind: 'CSIDriver',
  metadata: { name, ...more },
  spec,
});

const full = {
  attachRequired: false,
  fsGroupPolicy: 'File',
  podInfoOnMount: true,
  requiresRepublish: true,
  seLinuxMount: true,
  storageCapacity: true,
  tokenRequests: [{ audience: '' }, { audience: 'vault', expirationSeconds: 3600 }],
  volumeLifecycleModes: ['Persistent', 'Ephemeral'],
};

describe('fields', () => {
  test('CSI-1: every field is stored as sent', async () => {
    const made = await server.post(path, driver('full.example.com', full));
    expect(made.status).toBe(201);
    expect(made.body.spec).toEqual(full);
    expect((await server.get(`${path}/full.example.com`)).body).toEqual(made.body);
  });

  test('CSI-1: defaults apply, and an empty list of modes means Persistent', async () => {
    for (const [name, spec] of [
      ['plain.example.com', {}],
      ['empty.example.com', { volumeLifecycleModes: [] }],
    ] as const) {
      const made = await server.post(path, driver(name, spec));
      expect(made.body.spec).toEqual({
        attachRequired: true,
        fsGroupPolicy: 'ReadWriteOnceWithFSType',
        podInfoOnMount: false,
        requiresRepublish: false,
        seLinuxMount: false,
        storageCapacity: false,
        volumeLifecycleModes: ['Persistent'],
      });
    }
  });

  test.each([[undefined], [null]])(
    'CSI-1, FV-1: a driver whose spec is %j is 422',
    async (spec) => {
      const { status, body } = await server.post(path, { ...driver('none.example.com'), spec });
      expect(status).toBe(422);
      expect(causes(body)).toEqual(['spec: Required value']);
      await server.post(path, driver('whole.example.com', {}));
      const whole = `${path}/whole.example.com`;
      const removed = await server.patch(whole, { spec: null }, 'merge');
      expect([removed.status, causes(removed.body)]).toEqual([422, ['spec: Required value']]);
      const replaced = await server.put(whole, { ...(await server.get(whole)).body, spec });
      expect([replaced.status, causes(replaced.body)]).toEqual([422, ['spec: Required value']]);
    },
  );

  test('CSI-1, FV-1: a token request requires an audience, which may be empty', async () => {
    const made = await server.post(path, driver('token.example.com', { tokenRequests: [{}] }));
    expect(made.status).toBe(422);
    expect(causes(made.body)).toEqual(['spec.tokenRequests[0].audience: Required value']);
  });

  test.each(['a', 'A1', 'a.b-c.D', 'a'.repeat(63)])('CSI-1: the name %j is valid', async (name) => {
    expect((await server.post(path, driver(name))).status).toBe(201);
  });

  test.each(['a'.repeat(64), '-a', 'a-', '.a', 'a_b', 'a b'])(
    'CSI-1: the name %j is invalid',
    async (name) => {
      const answer = await server.post(path, driver(name));
      expect(answer.status).toBe(422);
      expect(answer.body.reason).toBe('Invalid');
      expect(answer.body.details).toMatchObject({
        name,
        group: 'storage.svc.io',
        kind: 'CSIDriver',
      });
      expect(causes(answer.body)[0]).toMatch(/^metadata\.name: /);
    },
  );

  test('CSI-1: a missing name is reported once', async () => {
    const answer = await server.post(path, driver('', {}, { name: undefined }));
    expect(causes(answer.body)).toEqual([
      'metadata.name: Required value: name or generateName is required',
    ]);
  });

  test('CSI-1, MF-2: the creator owns the members of the spec rather than the spec', async () => {
    const made = await server.post(path, driver('owned.example.com'));
    const fields = made.body.metadata.managedFields[0].fieldsV1['f:spec'];
    expect(Object.keys(fields ?? {}).sort()).toEqual([
      'f:attachRequired',
      'f:fsGroupPolicy',
      'f:podInfoOnMount',
      'f:requiresRepublish',
      'f:seLinuxMount',
      'f:storageCapacity',
      'f:volumeLifecycleModes',
    ]);
  });

  test('CSI-1: audiences are unique, one may be empty, and expirations are bounded', async () => {
    const make = (tokenRequests: object[]) =>
      server.post(path, driver('tokens.example.com', { tokenRequests }));
    const twice = await make([{ audience: '' }, { audience: '' }]);
    expect(causes(twice.body)).toEqual(['spec.tokenRequests[1].audience: Duplicate value: ""']);
    const lives = await make([
      { audience: 'a', expirationSeconds: 599 },
      { audience: 'b', expirationSeconds: 4_294_967_297 },
    ]);
    expect(causes(lives.body)).toEqual([
      'spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
      'spec.tokenRequests[1].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
    ]);
    expect((await make([{ audience: 'a', expirationSeconds: 600 }])).status).toBe(201);
  });

  test('CSI-1: policies and modes are enumerated', async () => {
    const spec = { fsGroupPolicy: 'Never', volumeLifecycleModes: ['Sometimes'] };
    const answer = await server.post(path, driver('odd.example.com', spec));
    expect(answer.status).toBe(422);
    expect(causes(answer.body)).toEqual([
      'spec.fsGroupPolicy: Unsupported value: "Never": supported values: "File", "None", "ReadWriteOnceWithFSType"',
      'spec.volumeLifecycleModes: Unsupported value: "Sometimes": supported values: "Persistent", "Ephemeral"',
    ]);
    const typed = await server.post(path, driver('odd.example.com', { attachRequired: 'yes' }));
    expect(typed.status).toBe(400);
  });

  test('CSI-1: attachRequired and volumeLifecycleModes are immutable for every write', async () => {
    const at = `${path}/fixed.example.com`;
    await server.post(path, driver('fixed.example.com'));
    const { body } = await server.get(at);
    const put = await server.put(at, { ...body, spec: { ...body.spec, attachRequired: false } });
    expect(put.status).toBe(422);
    // The spelling is kube-apiserver's.
    expect(causes(put.body)).toEqual([
      'spec.attachedRequired: Invalid value: false: field is immutable',
    ]);
    const modes = { spec: { volumeLifecycleModes: ['Ephemeral'] } };
    for (const type of ['merge', 'strategic'] as const) {
      expect((await server.patch(at, { spec: { attachRequired: false } }, type)).status).toBe(422);
      expect((await server.patch(at, modes, type)).status).toBe(422);
    }
    const json = [{ op: 'replace', path: '/spec/attachRequired', value: false }];
    expect((await server.patch(at, json, 'json')).status).toBe(422);
    const applied = driver('fixed.example.com', { attachRequired: false });
    const apply = await server.patch(`${at}?fieldManager=m&force=true`, applied, 'apply');
    expect(apply.status).toBe(422);
    expect((await server.get(at)).body.metadata.resourceVersion).toBe(
      body.metadata.resourceVersion,
    );
  });

  test('CSI-1: other fields are mutable', async () => {
    const at = `${path}/open.example.com`;
    await server.post(path, driver('open.example.com'));
    const { attachRequired: _a, volumeLifecycleModes: _v, ...mutable } = full;
    const changed = await server.patch(at, { spec: mutable }, 'merge');
    expect(changed.status).toBe(200);
    expect(changed.body.spec).toMatchObject(mutable);
  });

  test('CSI-1: tokenRequests are atomic, and modes are a set', async () => {
    const at = `${path}/merge.example.com`;
    const spec = { tokenRequests: [{ audience: 'a' }], volumeLifecycleModes: ['Persistent'] };
    await server.post(path, driver('merge.example.com', spec));
    const patched = await server.patch(
      at,
      { spec: { tokenRequests: [{ audience: 'b' }] } },
      'merge',
    );
    expect(patched.body.spec.tokenRequests).toEqual([{ audience: 'b' }]);
    const { managedFields } = patched.body.metadata;
    const owned = managedFields.flatMap((managedField) =>
      Object.entries(managedField.fieldsV1['f:spec'] ?? {}),
    );
    expect(Object.fromEntries(owned)).toMatchObject({
      'f:tokenRequests': {},
      'f:volumeLifecycleModes': { '.': {}, 'v:"Persistent"': {} },
    });
  });
});

describe('operations', () => {
  test('CSI-2: get, list, and watch cluster-scoped objects', async () => {
    await server.post(path, driver('read.example.com', {}, { labels: { l: 'read' } }));
    const single = await server.get(`${path}/read.example.com?pretty=true`);
    expect(single.status).toBe(200);
    expect(single.text).toContain('\n  "kind": "CSIDriver"');
    const list = await server.get(`${path}?labelSelector=l%3Dread`);
    expect(list.body).toMatchObject({ apiVersion: 'storage.svc.io/v1', kind: 'CSIDriverList' });
    expect(list.body.items.length).toBe(1);
    const none = await server.get(`${path}/none`);
    expect(none.status).toBe(404);
    expect(none.body.message).toBe('csidrivers.storage.svc.io "none" not found');
    const inside = await server.get('/apis/storage.svc.io/v1/namespaces/default/csidrivers');
    expect(inside.status).toBe(404);
    const watch = await server.watch(`${path}?watch=1&labelSelector=l%3Dread`);
    await watch.until((events) => events.length === 1);
    expect(watch.events[0]).toMatchObject({ type: 'ADDED', object: { kind: 'CSIDriver' } });
    watch.close();
  });

  test('CSI-2: create honors its parameters', async () => {
    const name = 'made.example.com';
    const dry = await server.post(`${path}?dryRun=All&pretty=true`, driver(name));
    expect(dry.status).toBe(201);
    expect((await server.get(`${path}/${name}`)).status).toBe(404);
    const odd = driver(name, { other: 1 });
    const strict = await server.post(`${path}?fieldValidation=Strict`, odd);
    expect(strict.status).toBe(400);
    expect(strict.body.message).toContain('unknown field "spec.other"');
    const made = await server.post(`${path}?fieldManager=me`, odd);
    expect(made.status).toBe(201);
    expect(made.warnings).toEqual(['unknown field "spec.other"']);
    expect(made.body.metadata.managedFields[0].manager).toBe('me');
    expect((await server.post(path, driver(name))).status).toBe(409);
  });

  test('CSI-2: update requires a resourceVersion and does not create', async () => {
    const at = `${path}/put.example.com`;
    const absent = await server.put(at, driver('put.example.com', {}, { resourceVersion: '1' }));
    expect(absent.status).toBe(404);
    await server.post(path, driver('put.example.com'));
    const blind = await server.put(at, driver('put.example.com'));
    expect(blind.status).toBe(422);
    expect(causes(blind.body)).toEqual([
      'metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
    ]);
    const { body } = await server.get(at);
    const next = { ...body, spec: { ...body.spec, storageCapacity: true } };
    expect((await server.put(`${at}?dryRun=All&fieldValidation=Strict`, next)).status).toBe(200);
    const put = await server.put(`${at}?fieldManager=me`, next);
    expect(put.status).toBe(200);
    expect(put.body.spec.storageCapacity).toBe(true);
    expect((await server.put(at, next)).status).toBe(409);
  });

  test('CSI-2: patch changes an object, and apply creates one', async () => {
    const at = `${path}/apply.example.com`;
    expect((await server.patch(at, { spec: {} }, 'merge')).status).toBe(404);
    const made = await server.patch(`${at}?fieldManager=m`, driver('apply.example.com'), 'apply');
    expect(made.status).toBe(201);
    const spec = { requiresRepublish: true };
    const patched = await server.patch(`${at}?dryRun=All`, { spec }, 'strategic');
    expect(patched.status).toBe(200);
    expect((await server.get(at)).body.spec.requiresRepublish).toBe(false);
  });

  test('CSI-2: delete returns the object, also while a finalizer holds it', async () => {
    const at = `${path}/gone.example.com`;
    const made = await server.post(path, driver('gone.example.com'));
    const answer = await server.remove(at);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      kind: 'CSIDriver',
      metadata: { name: 'gone.example.com', uid: made.body.metadata.uid },
    });
    expect((await server.remove(at)).status).toBe(404);
    const finalizers = ['example.com/hold'];
    await server.post(path, driver('gone.example.com', {}, { finalizers }));
    const removed = await server.remove(at);
    expect([200, 202]).toContain(removed.status);
    expect(removed.body.metadata.deletionTimestamp).toBeDefined();
    await server.patch(at, { metadata: { finalizers: null } }, 'merge');
    expect((await server.get(at)).status).toBe(404);
  });

  test('CSI-2: deletecollection', async () => {
    await server.post(path, driver('many.example.com', {}, { labels: { l: 'many' } }));
    const answer = await server.remove(`${path}?labelSelector=l%3Dmany`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ kind: 'Status', status: 'Success' });
    expect((await server.get(`${path}?labelSelector=l%3Dmany`)).body.items).toEqual([]);
    expect((await server.get(path)).body.items.length).toBeGreaterThan(0);
  });
});

describe('generation', () => {
  const deployment = (more: object = {}) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: { replicas: 1, ...selecting({ a: 'b' }) },
    ...more,
  });

  test('META-8: grows with the spec, not with metadata or status', async () => {
    const at = '/apis/apps/v1/namespaces/default/deployments/d';
    const made = await server.post(
      '/apis/apps/v1/namespaces/default/deployments',
      deployment({ status: { replicas: 9 } }),
    );
    expect(made.status).toBe(201);
    expect(made.body.metadata.generation).toBe(1);
    expect(made.body.status).toEqual({});
    const labelled = await server.patch(at, { metadata: { labels: { x: 'y' } } }, 'merge');
    expect(labelled.body.metadata.generation).toBe(1);
    const status = await server.patch(`${at}/status`, { status: { replicas: 3 } }, 'merge');
    expect(status.status).toBe(200);
    expect(status.body.metadata.generation).toBe(1);
    const scaled = await server.patch(at, { spec: { replicas: 2 } }, 'merge');
    expect(scaled.body.metadata.generation).toBe(2);
    expect(scaled.body.status).toMatchObject({ replicas: 3 });
    const through = await server.patch(
      `${at}/status`,
      { spec: { replicas: 5 }, status: { readyReplicas: 1 } },
      'merge',
    );
    expect(through.body.spec.replicas).toBe(2);
    expect(through.body.metadata.generation).toBe(2);
    const own = await server.patch(at, { metadata: { generation: 99 } }, 'merge');
    expect(own.body.metadata.generation).toBe(2);
    const same = await server.patch(at, { spec: { replicas: 2 } }, 'merge');
    expect(same.body.metadata.generation).toBe(2);
    const limited = (memory: string) => {
      const containers = [{ name: 'c', resources: { limits: { memory } } }];
      const patch = { spec: { template: { spec: { containers } } } };
      return server.patch<ResponseOf<Deployment>>(at, patch, 'strategic');
    };
    expect((await limited('1Gi')).body.metadata.generation).toBe(3);
    const { body } = await limited('1073741824');
    expect(body.spec.template.spec.containers[0].resources.limits.memory).toBe('1073741824');
    expect(body.metadata.generation).toBe(3);
  });

  test('META-8: does not exist for kinds without a status', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'g', generation: 7 } };
    const made = await server.post('/api/v1/namespaces/default/configmaps', body);
    expect(made.body.metadata).not.toHaveProperty('generation');
    const at = '/api/v1/namespaces/default/configmaps/g';
    const changed = await server.patch(at, { data: { a: 'b' } }, 'merge');
    expect(changed.body.metadata).not.toHaveProperty('generation');
  });

  test('META-8: grows for custom kinds, without the status when that is a subresource', async () => {
    const kinds = async (plural: string, subresources: object) => {
      const kind = plural === 'parts' ? 'Part' : 'Whole';
      const schema = {
        openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      };
      const made = await server.post('/apis/apiextensions.svc.io/v1/customresourcedefinitions', {
        apiVersion: 'apiextensions.svc.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `${plural}.example.com` },
        spec: {
          group: 'example.com',
          scope: 'Cluster',
          names: { plural, kind },
          versions: [{ name: 'v1', served: true, storage: true, schema, ...subresources }],
        },
      });
      expect(made.status).toBe(201);
      const path = `/apis/example.com/v1/${plural}`;
      await eventually(async () => (await server.get(path)).status === 200);
      const body = { apiVersion: 'example.com/v1', kind, metadata: { name: 'x' }, spec: { a: 1 } };
      expect((await server.post(path, body)).body.metadata.generation).toBe(1);
      const generation = async (change: object, sub = '') =>
        (await server.patch(`${path}/x${sub}`, change, 'merge')).body.metadata.generation;
      return [
        await generation({ metadata: { labels: { a: 'b' } } }),
        await generation({ spec: { a: 2 } }),
        await generation({ status: { b: 1 } }),
        ...('subresources' in subresources
          ? [await generation({ status: { b: 2 } }, '/status')]
          : []),
      ];
    };
    const withStatus = { subresources: { status: {} } };
    expect(await kinds('parts', withStatus)).toEqual([1, 2, 2, 2]);
    expect(await kinds('wholes', {})).toEqual([1, 2, 3]);
  });
});
