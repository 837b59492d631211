import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, configMap, freshNamespace, selecting } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { apply, dataMap, defineThing, freshName, managersOf, ownedBy } from './apply-kinds.ts';

let namespace: string;
let maps: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

describe('entries', () => {
  test('MF-1: an entry has manager, operation, version, time, and fields', async () => {
    const name = freshName();
    const answer = await server.post(`${maps}?fieldManager=maker`, {
      ...dataMap(name, { a: '1' }),
      metadata: { name, labels: { x: 'y' }, finalizers: ['example.com/f'] },
    });
    expect(answer.body.metadata.managedFields).toEqual([
      {
        manager: 'maker',
        operation: 'Update',
        apiVersion: 'v1',
        time: answer.body.metadata.creationTimestamp,
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:data': { '.': {}, 'f:a': {} },
          'f:metadata': {
            'f:finalizers': { '.': {}, 'v:"example.com/f"': {} },
            'f:labels': { '.': {}, 'f:x': {} },
          },
        },
      },
    ]);
  });

  test('MF-1: list items are named by their keys, in key order', async () => {
    const name = freshName();
    const body = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: [{ port: 80, protocol: 'TCP' }] },
    };
    const path = `/api/v1/namespaces/${namespace}/services/${name}`;
    const answer = await apply(server, path, body);
    expect(ownedBy(answer, 'alice')?.['f:spec']?.['f:ports']).toEqual({
      'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:protocol': {} },
    });
  });

  test('MF-1: writes through a subresource record its name', async () => {
    const name = `ns-${freshName()}`;
    const path = `/api/v1/namespaces/${name}`;
    await server.post('/api/v1/namespaces?fieldManager=maker', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    const condition = { type: 'X', status: 'True', reason: 'r', message: 'm' };
    const answer = await server.patch(
      `${path}/status?fieldManager=maker`,
      { status: { conditions: [condition] } },
      'merge',
    );
    expect(answer.status).toBe(200);
    expect(managersOf(answer)).toContain('maker/Update/status');
  });
});

describe('writers', () => {
  test('MF-2: finalizing a Namespace does not change the owner of its status', async () => {
    const name = `ns-${freshName()}`;
    const path = `/api/v1/namespaces/${name}`;
    await server.post('/api/v1/namespaces', {
      metadata: { name },
      spec: { finalizers: ['example.com/f'] },
    });
    const status = { conditions: [{ type: 'example.com/Ready', status: 'True' }] };
    await server.patch(`${path}/status?fieldManager=reporter`, { status }, 'merge');
    const body = { metadata: { name }, spec: { finalizers: [] } };
    const finalized = await server.put(`${path}/finalize?fieldManager=finalizer`, body);
    expect(managersOf(finalized)).not.toContain('finalizer/Update/finalize');
    expect(ownedBy(finalized, 'reporter', 'Update')).toHaveProperty('f:status');
  });

  test('MF-2: the server manages the labels of the namespaces that it makes', async () => {
    for (const name of ['default', 'svc-system', 'svc-public', 'svc-node-lease']) {
      const { body } = await server.get(`/api/v1/namespaces/${name}`);
      const labels = { '.': {}, 'f:svc.io/metadata.name': {} };
      expect(body.metadata.managedFields, name).toMatchObject([
        { operation: 'Update', fieldsV1: { 'f:metadata': { 'f:labels': labels } } },
      ]);
    }
  });

  test('MF-2: create, update, and patch record the writer under Update', async () => {
    const name = freshName();
    const created = await server.post(`${maps}?fieldManager=one`, dataMap(name, { a: '1' }));
    expect(managersOf(created)).toEqual(['one/Update']);
    const body = { ...created.body, data: { a: '1', b: '2' } };
    const put = await server.put(`${maps}/${name}?fieldManager=two`, body);
    expect(ownedBy(put, 'two', 'Update')).toEqual({ 'f:data': { 'f:b': {} } });
    const patched = await server.patch(
      `${maps}/${name}?fieldManager=three`,
      { data: { c: '3' } },
      'merge',
    );
    expect(ownedBy(patched, 'three', 'Update')).toEqual({ 'f:data': { 'f:c': {} } });
    const ops = [{ op: 'remove', path: '/data/b' }];
    const removed = await server.patch(`${maps}/${name}?fieldManager=four`, ops, 'json');
    expect(managersOf(removed).sort()).toEqual(['one/Update', 'three/Update']);
  });

  test('MF-2: a full write of a DaemonSet owns its template generation', async () => {
    const name = freshName();
    const counted = { 'f:deprecated.daemonset.template.generation': {} };
    const daemons = `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
    const daemon = (image: string) => ({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name },
      spec: selecting({ app: name }, { name: 'c', image }),
    });
    const made = await server.post(`${daemons}?fieldManager=maker`, daemon('i:1'));
    const annotations = (answer: Answer) => answer.body.metadata.annotations;
    expect(annotations(made)).toEqual({ 'deprecated.daemonset.template.generation': '1' });
    expect(ownedBy(made, 'maker', 'Update')?.['f:metadata']).toEqual({
      'f:annotations': { '.': {}, ...counted },
    });
    const put = await server.put(`${daemons}/${name}?fieldManager=putter`, daemon('i:2'));
    expect(annotations(put)).toEqual({ 'deprecated.daemonset.template.generation': '2' });
    expect(ownedBy(put, 'putter', 'Update')?.['f:metadata']).toEqual({ 'f:annotations': counted });
    expect(ownedBy(put, 'maker', 'Update')?.['f:metadata']).toEqual({ 'f:annotations': {} });
    const status = await server.put(`${daemons}/${name}/status`, {
      ...daemon('i:3'),
      status: { numberReady: 1 },
    });
    expect(status.status, status.text).toBe(200);
    expect(annotations(status)).toEqual({ 'deprecated.daemonset.template.generation': '2' });
  });

  test.each([
    ['probe/v1.2 (linux)', 'probe'],
    ['probe', 'probe'],
    ['', 'unknown'],
    ['/x', 'unknown'],
  ])('MF-2: User-Agent %j makes the manager %j', async (agent, manager) => {
    const name = freshName();
    const headers = { 'user-agent': agent };
    const answer = await server.post(maps, configMap(name), { headers });
    expect(managersOf(answer)).toEqual([`${manager}/Update`]);
  });

  test('MF-2: fieldManager precedes the User-Agent and is validated', async () => {
    const headers = { 'user-agent': 'agent/1' };
    const answer = await server.post(`${maps}?fieldManager=me`, configMap(freshName()), {
      headers,
    });
    expect(managersOf(answer)).toEqual(['me/Update']);
    const long = await server.post(
      `${maps}?fieldManager=${'x'.repeat(129)}`,
      configMap(freshName()),
    );
    expect(long.status).toBe(422);
    expect(long.body.message).toContain('fieldManager: Too long: may not be more than 128 bytes');
    const odd = await server.post(`${maps}?fieldManager=a%07`, configMap(freshName()));
    expect(odd.status).toBe(422);
    expect(odd.body.message).toContain('invalid character U+0007 (at position 1)');
  });
});

describe('resets', () => {
  const made = async (name: string) => {
    await apply(server, `${maps}/${name}`, dataMap(name, { a: '1' }));
    return (await server.get(`${maps}/${name}`)).body;
  };

  test('MF-3: one empty entry resets all, in PUT and patches', async () => {
    const name = freshName();
    const live = await made(name);
    const metadata = { ...live.metadata, managedFields: [{}] };
    const put = await server.put(`${maps}/${name}`, { ...live, metadata });
    expect(put.status).toBe(200);
    expect(put.body.metadata.managedFields).toBeUndefined();
    for (const [type, patch] of [
      ['merge', { metadata: { managedFields: [{}] } }],
      ['json', [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }]],
      ['strategic', { metadata: { managedFields: [{}] } }],
    ] as const) {
      const patchedName = freshName();
      await made(patchedName);
      const answer = await server.patch(`${maps}/${patchedName}`, patch, type);
      expect(answer.status, type).toBe(200);
      expect(answer.body.metadata.managedFields, type).toBeUndefined();
    }
  });

  test.each([[[null]], [[{ manager: '', time: null }]]])(
    'MF-3: %j is an empty entry, too',
    async (managedFields) => {
      const name = freshName();
      const live = await made(name);
      const metadata = { ...live.metadata, managedFields };
      const put = await server.put(`${maps}/${name}`, { ...live, metadata });
      expect(put.status, put.text).toBe(200);
      expect(put.body.metadata.managedFields).toBeUndefined();
    },
  );

  test('MF-3: an empty list does not reset', async () => {
    const name = freshName();
    const live = await made(name);
    const { managedFields } = live.metadata;
    const put = await server.put(`${maps}/${name}`, {
      ...live,
      metadata: { ...live.metadata, managedFields: [] },
    });
    expect(put.body.metadata.managedFields).toEqual(managedFields);
    expect(put.body.metadata.resourceVersion).toBe(live.metadata.resourceVersion);
    const patched = await server.patch(
      `${maps}/${name}`,
      { metadata: { managedFields: [] } },
      'merge',
    );
    expect(patched.body.metadata.managedFields).toEqual(managedFields);
  });

  test('MF-3: the reset precedes other changes of the request', async () => {
    const name = freshName();
    const live = await made(name);
    const put = await server.put(`${maps}/${name}?fieldManager=editor`, {
      ...live,
      data: { a: '1', b: '2' },
      metadata: { ...live.metadata, managedFields: [{}] },
    });
    expect(managersOf(put)).toEqual(['editor/Update']);
    expect(ownedBy(put, 'editor', 'Update')).toEqual({ 'f:data': { 'f:b': {} } });
  });

  test('MF-4: an apply body with managedFields is 400', async () => {
    const name = freshName();
    for (const managedFields of [[{}], []]) {
      const body = { ...configMap(name), metadata: { name, managedFields } };
      const answer = await apply(server, `${maps}/${name}`, body);
      expect(answer.status).toBe(400);
      expect(answer.body.message).toBe('metadata.managedFields must be nil');
    }
  });
});

describe('merging', () => {
  const item = {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' }, size: { type: 'integer' }, unit: { type: 'string' } },
  };
  const properties = {
    plain: { type: 'array', items: { type: 'string' } },
    set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    numbers: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'number' } },
    keyed: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: item,
    },
    atoms: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: item.properties },
    free: { type: 'object', additionalProperties: { type: 'string' } },
    loose: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  };
  let kind: Awaited<ReturnType<typeof defineThing>>;
  beforeAll(async () => {
    kind = await defineThing(server, [{ properties }]);
  });
  const send = (name: string, more: JsonObject, manager = 'alice', force = false) =>
    apply(server, `${kind.path(namespace)}/${name}`, kind.body(name, more), { manager, force });

  test('MF-5: an atomic list or map has one owner and is replaced whole', async () => {
    const name = freshName();
    await send(name, { plain: ['a'], atoms: { name: 'x', size: 1 } });
    const refused = await send(name, { plain: ['a', 'b'] }, 'bob');
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes).toEqual([
      { reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.plain' },
    ]);
    const forced = await send(name, { atoms: { unit: 'm' } }, 'bob', true);
    expect(forced.body.atoms).toEqual({ unit: 'm' });
    expect(ownedBy(forced, 'bob')).toEqual({ 'f:atoms': {} });
    expect(ownedBy(forced, 'alice')).toEqual({ 'f:plain': {} });
  });

  test('MF-5: items of a set and of a keyed list have their own owners', async () => {
    const name = freshName();
    await send(name, { set: ['a'], keyed: [{ name: 'x', size: 1 }] });
    const both = await send(name, { set: ['b'], keyed: [{ name: 'x', unit: 'm' }] }, 'bob');
    expect(both.status).toBe(200);
    expect(both.body.set).toEqual(['a', 'b']);
    expect(both.body.keyed).toEqual([{ name: 'x', size: 1, unit: 'm' }]);
    expect(ownedBy(both, 'bob')).toEqual({
      'f:keyed': { 'k:{"name":"x"}': { '.': {}, 'f:name': {}, 'f:unit': {} } },
      'f:set': { 'v:"b"': {} },
    });
    const gone = await send(name, { set: ['a'] });
    expect(gone.body.keyed).toEqual([{ name: 'x', unit: 'm' }]);
    expect(gone.body.set).toEqual(['a', 'b']);
  });

  test('MF-5: numbers of a set are written with exponents of two digits', async () => {
    const name = freshName();
    const numbers = [1e-7, 1.5e-10, 1e-6, 1e21, -3, 0.1];
    const answer = await send(name, { numbers });
    const items = ['1e-07', '1.5e-10', '0.000001', '1e+21', '-3', '0.1'];
    const owned = Object.fromEntries(items.map((item) => [`v:${item}`, {}]));
    expect(ownedBy(answer, 'alice')).toEqual({ 'f:numbers': owned });
    const kept = await send(name, { numbers: [1e-7] });
    expect(kept.body.numbers).toEqual([1e-7]);
  });

  test('MF-5: duplicates in sets and keyed lists are refused, never 500', async () => {
    const name = freshName();
    const set = await send(name, { set: ['a', 'a'] });
    expect(set.status).toBe(400);
    expect(set.body.message).toContain('.set: duplicate entries for key [="a"]');
    const keyed = await send(name, { keyed: [{ name: 'x' }, { name: 'x' }] });
    expect(keyed.status).toBe(400);
    expect(keyed.body.message).toContain('.keyed: duplicate entries for key [name="x"]');
    const unkeyed = await send(name, { keyed: [{ size: 1 }] });
    expect(unkeyed.status).toBe(400);
    expect(unkeyed.body.message).toContain('element 0: associative list with keys has an element');
    const posted = await server.post(kind.path(namespace), kind.body(name, { set: ['a', 'a'] }));
    expect(posted.status).toBe(422);
  });

  test('SSA-2, FV-2: a kind without properties has no fields that an apply could set', async () => {
    const bare = await defineThing(server, [{ properties: {} }]);
    const name = freshName();
    const path = `${bare.path(namespace)}/${name}`;
    for (const query of ['fieldValidation=Warn', 'fieldValidation=Strict']) {
      const refused = await apply(server, path, bare.body(name, { spec: { a: 1 } }), { query });
      expect(refused.status).toBe(400);
      expect(refused.body.message).toContain(': .spec: field not declared in schema');
    }
    const labels = { a: '1' };
    const applied = await apply(server, path, bare.body(name, { metadata: { name, labels } }));
    expect(applied.status, applied.text).toBe(201);
    expect(ownedBy(applied, 'alice')).toEqual({ 'f:metadata': { 'f:labels': { 'f:a': {} } } });
  });

  test('MF-7: without markers keys are fields and lists are atomic', async () => {
    const name = freshName();
    await send(name, { free: { a: '1' }, loose: { deep: { list: [1, 2], x: 1 } } });
    const merged = await send(name, { free: { b: '1' }, loose: { deep: { y: 1 } } }, 'bob');
    expect(merged.status).toBe(200);
    expect(merged.body.loose).toEqual({ deep: { list: [1, 2], x: 1, y: 1 } });
    const refused = await send(name, { loose: { deep: { list: [1, 3] } } }, 'bob');
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes[0].field).toBe('.loose.deep.list');
  });

  test('MF-7: a field without a type may be a text, a list, or an object', async () => {
    const any = {
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { a: { type: 'string' } },
    };
    const kind = await defineThing(server, [{ properties: { any } }]);
    const sendAny = (name: string, any: JsonValue, manager = 'alice') =>
      apply(server, `${kind.path(namespace)}/${name}`, kind.body(name, { any }), { manager });
    for (const [index, value] of ['text', ['x'], { a: 'x', b: 1 }].entries()) {
      const made = await sendAny(`any${index}`, value);
      expect(made.status, made.text).toBe(201);
      expect(made.body['any']).toEqual(value);
    }
    const refused = await sendAny('any2', { a: 'x', b: 2 }, 'bob');
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes[0].field).toBe('.any.b');
    const other = await sendAny('any0', { a: 'x' }, 'bob');
    expect(other.status).toBe(409);
    expect(other.body.details.causes[0].field).toBe('.any');
  });

  test('MF-6: patchStrategy=merge means a list keyed by patchMergeKey', async () => {
    const name = freshName();
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`;
    const body = (secret: string) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name },
      secrets: [{ name: secret }],
    });
    await apply(server, path, body('a'));
    const both = await apply(server, path, body('b'), { manager: 'bob' });
    expect(both.status).toBe(200);
    expect(both.body.secrets).toEqual([{ name: 'a' }, { name: 'b' }]);
    expect(ownedBy(both, 'bob')?.['f:secrets']).toEqual({ 'k:{"name":"b"}': {} });
  });

  test('MF-5: a field may declare granular a reference that is atomic elsewhere', async () => {
    const name = freshName();
    const path = `/api/v1/persistentvolumes/${name}`;
    const volume = (claimRef: JsonObject) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        hostPath: { path: '/x' },
        claimRef,
      },
    });
    const claim = { name: 'c', namespace: 'default' };
    expect((await apply(server, path, volume(claim))).status).toBe(201);
    // A binder adds fields that only it can know, and the applier keeps its own fields.
    const bound = await server.patch(
      `${path}?fieldManager=binder`,
      { spec: { claimRef: { uid: 'u' } } },
      'merge',
    );
    expect(ownedBy(bound, 'binder', 'Update')).toEqual({
      'f:spec': { 'f:claimRef': { 'f:uid': {} } },
    });
    const again = await apply(server, path, volume(claim));
    expect(again.status, again.text).toBe(200);
    expect(again.body.spec.claimRef).toEqual({ ...claim, uid: 'u' });
    expect(ownedBy(again, 'alice')?.['f:spec']?.['f:claimRef']).toEqual({
      'f:name': {},
      'f:namespace': {},
    });
  });

  test('MF-6: members of an atomic value are owned with it', async () => {
    const name = freshName();
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`;
    const answer = await apply(server, path, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: selecting({ a: 'b' }, { name: 'c', image: 'i', command: ['x', 'y'] }),
    });
    const spec = ownedBy(answer, 'alice')?.['f:spec'];
    expect(spec?.['f:selector']).toEqual({});
    const containers = spec?.['f:template']?.['f:spec']?.['f:containers'] ?? {};
    const [container] = Object.values(containers);
    expect(container).toMatchObject({ 'f:command': {} });
  });
});

describe('schemas that change', () => {
  test('MF-8: granular to atomic: the owner of an element owns the whole', async () => {
    const parts = { type: 'object', additionalProperties: { type: 'string' } };
    const kind = await defineThing(server, [{ properties: { parts } }]);
    const path = `${kind.path(namespace)}/one`;
    await apply(server, path, kind.body('one', { parts: { a: '1' } }));
    await kind.change((crd) => {
      const { properties } = crd.spec.versions[0].schema.openAPIV3Schema;
      properties!['parts']!['x-kubernetes-map-type'] = 'atomic';
    });
    const refused = await apply(server, path, kind.body('one', { parts: { b: '1' } }), {
      manager: 'bob',
    });
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes[0].field).toBe('.parts');
    const own = await apply(server, path, kind.body('one', { parts: { c: '1' } }));
    expect(own.body.parts).toEqual({ c: '1' });
    expect(ownedBy(own, 'alice')).toEqual({ 'f:parts': {} });
  });

  test('MF-8: granular to atomic: owners of values of any type keep their members', async () => {
    const date = { type: 'string', format: 'date-time' };
    const values = {
      limits: [{ 'x-kubernetes-int-or-string': true }, 1],
      times: [date, '2020-01-01T00:00:00Z'],
      texts: [{ type: 'string' }, 'a'],
    } as const;
    const properties: JsonObject = {};
    for (const [name, [additionalProperties]] of Object.entries(values)) {
      properties[name] = { type: 'object', additionalProperties };
    }
    const kind = await defineThing(server, [{ properties }]);
    const path = `${kind.path(namespace)}/one`;
    const of = (member: string) =>
      Object.fromEntries(Object.entries(values).map(([name, [, v]]) => [name, { [member]: v }]));
    await apply(server, path, kind.body('one', of('a')));
    await kind.change((crd) => {
      const { properties } = crd.spec.versions[0].schema.openAPIV3Schema;
      for (const name of Object.keys(values)) {
        properties![name]!['x-kubernetes-map-type'] = 'atomic';
      }
    });
    const refused = await apply(server, path, kind.body('one', of('b')), { manager: 'bob' });
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes.map(({ field }) => field)).toEqual(['.texts']);
    const { texts: _, ...untyped } = of('b');
    const applied = await apply(server, path, kind.body('one', untyped), { manager: 'bob' });
    expect(applied.status).toBe(200);
    expect(applied.body).toMatchObject(untyped);
  });

  test('MF-8: atomic to granular: the owner has the top field only', async () => {
    const parts = {
      type: 'object',
      'x-kubernetes-map-type': 'atomic',
      additionalProperties: { type: 'string' },
    };
    const kind = await defineThing(server, [{ properties: { parts } }]);
    const path = `${kind.path(namespace)}/one`;
    await apply(server, path, kind.body('one', { parts: { a: '1' } }));
    await kind.change((crd) => {
      const { properties } = crd.spec.versions[0].schema.openAPIV3Schema;
      properties!['parts']!['x-kubernetes-map-type'] = 'granular';
    });
    const merged = await apply(server, path, kind.body('one', { parts: { a: '2', b: '1' } }), {
      manager: 'bob',
    });
    expect(merged.status).toBe(200);
    expect(merged.body.parts).toEqual({ a: '2', b: '1' });
    expect(ownedBy(merged, 'alice')).toEqual({ 'f:parts': {} });
    expect(ownedBy(merged, 'bob')).toEqual({ 'f:parts': { 'f:a': {}, 'f:b': {} } });
  });
});

describe('time', () => {
  test('MF-9: the eleventh updater merges the oldest into ancient-changes', async () => {
    const clock = new FakeClock(Date.parse('2030-01-01T00:00:00Z'));
    const timed = await withServer({ clock });
    const path = `/api/v1/namespaces/${await freshNamespace(timed)}/configmaps`;
    await timed.post(`${path}?fieldManager=u0`, dataMap('one', { k0: '0' }));
    for (let at = 1; at < 12; at += 1) {
      clock.advance(1000);
      const patch = { data: { [`k${at}`]: String(at) } };
      await timed.patch(`${path}/one?fieldManager=u${at}`, patch, 'merge');
    }
    const answer = await timed.get(`${path}/one`);
    const managers = managersOf(answer);
    expect(managers).toHaveLength(10);
    expect(managers[0]).toBe('ancient-changes/Update');
    expect(managers.at(-1)).toBe('u11/Update');
    expect(ownedBy(answer, 'ancient-changes', 'Update')?.['f:data']).toEqual({
      '.': {},
      'f:k0': {},
      'f:k1': {},
      'f:k2': {},
    });
  });

  test('MF-9: ancient-changes stays one of ten updaters when it is not the oldest', async () => {
    const clock = new FakeClock(Date.parse('2030-01-01T00:00:00Z'));
    const timed = await withServer({ clock });
    const path = `/api/v1/namespaces/${await freshNamespace(timed)}/configmaps`;
    await timed.post(`${path}?fieldManager=a0`, dataMap('one', { k: '0' }));
    // Within a second, names decide which updater is the oldest.
    const managers = [...Array.from({ length: 10 }, (_, index) => `b${index}`), 'a1'];
    for (const manager of managers) {
      const patch = { data: { [manager]: '1' } };
      await timed.patch(`${path}/one?fieldManager=${manager}`, patch, 'merge');
    }
    const answer = await timed.get(`${path}/one`);
    expect(managersOf(answer)).toHaveLength(10);
    expect(ownedBy(answer, 'ancient-changes', 'Update')?.['f:data']).toEqual({
      '.': {},
      'f:b0': {},
      'f:b1': {},
      'f:k': {},
    });
    expect(ownedBy(answer, 'a1', 'Update')).toEqual({ 'f:data': { 'f:a1': {} } });
  });

  test('MF-9, META-6: time changes only when the set does', async () => {
    const clock = new FakeClock(Date.parse('2030-01-01T00:00:00Z'));
    const timed = await withServer({ clock });
    const path = `/api/v1/namespaces/${await freshNamespace(timed)}/configmaps`;
    const created = await timed.post(`${path}?fieldManager=m`, dataMap('one', { a: '1' }));
    clock.advance(5000);
    const same = await timed.put(`${path}/one?fieldManager=m`, created.body);
    expect(same.text).toBe(created.text);
    const patch = { data: { b: '1' } };
    const changed = await timed.patch(`${path}/one?fieldManager=m`, patch, 'merge');
    expect(changed.body.metadata.managedFields[0].time).toBe('2030-01-01T00:00:05Z');
    clock.advance(5000);
    const again = await timed.patch(`${path}/one?fieldManager=m`, patch, 'merge');
    expect(again.text).toBe(changed.text);
    const given = again.body.metadata.managedFields.map((entry: JsonObject) => ({
      ...entry,
      time: '2031-01-01T00:00:00Z',
    }));
    const touched = { ...again.body, metadata: { ...again.body.metadata, managedFields: given } };
    const put = await timed.put(`${path}/one?fieldManager=m`, touched);
    expect(put.text).toBe(changed.text);
  });
});
