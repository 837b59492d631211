import type { APIResource, TableColumnDefinition } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import type { DiscoveredGroups } from '../support/discovered-groups.ts';
import { eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { causesOf, definitions, establish, redefine, versionOf } from './custom-kinds.ts';

const server = await withServer();

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const table = { accept: 'application/json;as=Table;v=v1;g=meta.svc.io' };

describe('several versions', () => {
  test('CRD-4: every version serves every object by its own schema', async () => {
    const group = 'several.example.com';
    const v1 = { type: 'object', properties: { spec: open } };
    const v2spec = {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { default: 'new', type: 'string' } },
    };
    const v2 = { type: 'object', properties: { spec: v2spec } };
    const versions = [versionOf('v1', v1, { storage: true }), versionOf('v2', v2)];
    await establish(server, { group, plural: 'cars', kind: 'Car', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/cars`;
    const car = { apiVersion: `${group}/v1`, kind: 'Car', metadata: { name: 'a' } };
    await server.post(at('v1'), { ...car, spec: { a: 1, x: 2 } });
    const inV1 = await server.get(`${at('v1')}/a`);
    expect(inV1.body).toMatchObject({ apiVersion: `${group}/v1`, spec: { a: 1, x: 2 } });
    const inV2 = await server.get(`${at('v2')}/a`);
    expect(inV2.body.apiVersion).toBe(`${group}/v2`);
    // Defaults of another version apply to requests in that version, not to reads.
    expect(inV2.body.spec).toEqual({ a: 1 });
    expect(inV2.body.metadata.resourceVersion).toBe(inV1.body.metadata.resourceVersion);
    const sent = await server.patch(`${at('v2')}/a`, { metadata: { labels: { p: 'q' } } }, 'merge');
    expect(sent.body.spec).toEqual({ a: 1, b: 'new' });
    const list = await server.get(at('v2'));
    expect(list.body).toMatchObject({ apiVersion: `${group}/v2`, kind: 'CarList' });
    expect(list.body.items[0]).toMatchObject({ apiVersion: `${group}/v2`, spec: { a: 1 } });
    const watch = await server.watch(`${at('v2')}?watch=1&resourceVersion=0`);
    await watch.until((events) => events.length === 1);
    expect(watch.events[0]?.object.apiVersion).toBe(`${group}/v2`);
    watch.close();
    const wrong = await server.patch(`${at('v2')}/a`, { spec: { a: 'x' } }, 'merge');
    expect(wrong.status).toBe(422);
    const mismatch = await server.post(at('v2'), car);
    expect(mismatch.status).toBe(400);
  });

  test('CRD-4: an object is validated in the version it is sent in', async () => {
    const group = 'validated.example.com';
    const whole = (properties: object, required: readonly string[]) => ({
      type: 'object',
      properties: { spec: { type: 'object', properties, required }, status: open },
    });
    const number = { type: 'integer' };
    const shared = { type: 'string' };
    const newer = whole({ new: { ...number, minimum: 5 }, shared }, ['new']);
    const older = whole(
      { old: { ...number, maximum: 9 }, shared: { ...shared, maxLength: 3, nullable: true } },
      ['old'],
    );
    const withStatus = { subresources: { status: {} } };
    const versions = [
      { ...versionOf('v2', newer, { storage: true }), ...withStatus },
      { ...versionOf('v1', older), ...withStatus },
    ];
    await establish(server, { group, plural: 'cars', kind: 'Car', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/cars`;
    const post = async (version: string, name: string, spec: object) => {
      const apiVersion = `${group}/${version}`;
      return server.post(at(version), { apiVersion, kind: 'Car', metadata: { name }, spec });
    };
    expect(causesOf(await post('v1', 'none', {}))).toEqual(['spec.old: Required value']);
    expect(causesOf(await post('v1', 'none', { old: 10 }))).toEqual([
      'spec.old: Invalid value: 10: spec.old in body should be less than or equal to 9',
    ]);
    expect(causesOf(await post('v2', 'none', { old: 1 }))).toEqual(['spec.new: Required value']);
    // Fields that the stored version lacks are dropped, and fields that it requires are not
    // demanded.
    const made = await post('v1', 'a', { old: 1, shared: null });
    expect(made.status, made.text).toBe(201);
    expect(made.body).toMatchObject({ apiVersion: `${group}/v1`, spec: {} });
    expect((await server.get(`${at('v2')}/a`)).body.spec).toEqual({});
    const [long, short] = [{ spec: { shared: 'long' } }, { spec: { shared: 'ab' } }];
    await post('v2', 'b', { new: 6, ...long.spec });
    expect(causesOf(await server.patch(`${at('v1')}/b`, short, 'merge'))).toEqual([
      'spec.old: Required value',
    ]);
    const status = await server.patch(`${at('v1')}/b/status`, { status: { x: 1 } }, 'merge');
    expect(status.status, status.text).toBe(200);
    const patched = await server.patch(`${at('v2')}/b`, { spec: { new: 7, shared: 'x' } }, 'merge');
    expect(patched.body).toMatchObject({ spec: { new: 7, shared: 'x' }, status: { x: 1 } });
  });

  test('CODEC-5, CODEC-6: tables and metadata of a version other than the stored one', async () => {
    const group = 'rows.example.com';
    const size = { type: 'string', default: 'small' };
    const sized = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { size } } },
    };
    const additionalPrinterColumns = [
      { name: 'Size', type: 'string', jsonPath: '.spec.size' },
      { name: 'Writer', type: 'string', jsonPath: '.metadata.managedFields[0].manager' },
    ];
    const versions = [
      versionOf('v1', { ...open, ...sized }, { storage: true }),
      versionOf('v2', sized, { additionalPrinterColumns }),
    ];
    await establish(server, { group, plural: 'rows', kind: 'Row', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/rows`;
    const row = { apiVersion: `${group}/v1`, kind: 'Row', metadata: { name: 'a' } };
    const made = await server.post(`${at('v1')}?fieldManager=me`, { ...row, spec: { other: 1 } });
    const partial = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.svc.io' };
    const { metadata } = made.body;
    expect((await server.get(at('v2'), partial)).body.items).toEqual([
      { kind: 'PartialObjectMetadata', apiVersion: 'meta.svc.io/v1', metadata },
    ]);
    for (const path of [at('v2'), `${at('v2')}/a`]) {
      const { rows } = (await server.get(path, table)).body;
      expect(rows).toMatchObject([{ cells: ['a', 'small', 'me'], object: { metadata } }]);
      const whole = (await server.get(`${path}?includeObject=Object`, table)).body;
      expect(whole.rows[0].object).toEqual((await server.get(`${at('v2')}/a`)).body);
    }
  });

  test('CODEC-8: a column shows large integers exactly', async () => {
    const group = 'long.example.com';
    const additionalPrinterColumns = [{ name: 'Spec', type: 'string', jsonPath: '.spec' }];
    const versions = [versionOf('v1', open, { storage: true, additionalPrinterColumns })];
    await establish(server, { group, plural: 'longs', kind: 'Long', versions });
    const at = `/apis/${group}/v1/namespaces/default/longs`;
    const text =
      `{"apiVersion":"${group}/v1","kind":"Long","metadata":{"name":"a"},` +
      '"spec":{"n":9007199254740993}}';
    expect((await server.post(at, text)).status).toBe(201);
    const { body } = await server.get(at, table);
    expect(body.rows[0].cells).toEqual(['a', '{"n":9007199254740993}']);
  });

  test('CRD-4: objects of an earlier storage version stay readable', async () => {
    const group = 'moves.example.com';
    const versions = [versionOf('v1', open, { storage: true }), versionOf('v2', open)];
    await establish(server, { group, plural: 'ants', kind: 'Ant', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/ants`;
    const ant = { apiVersion: `${group}/v1`, kind: 'Ant', metadata: { name: 'a' }, spec: { n: 1 } };
    await server.post(at('v1'), ant);
    await redefine(server, `ants.${group}`, (spec) => {
      spec.versions[0].storage = false;
      spec.versions[1]!.storage = true;
    });
    const { body: definition } = await server.get(`${definitions}/ants.${group}`);
    expect(definition.status.storedVersions).toEqual(['v1', 'v2']);
    for (const version of ['v1', 'v2']) {
      const { body } = await server.get(`${at(version)}/a`);
      expect(body).toMatchObject({ apiVersion: `${group}/${version}`, spec: { n: 1 } });
    }
    const changed = await server.patch(`${at('v1')}/a`, { spec: { n: 2 } }, 'merge');
    expect(changed.body).toMatchObject({ apiVersion: `${group}/v1`, spec: { n: 2 } });
    const second = { ...ant, apiVersion: `${group}/v2`, metadata: { name: 'b' } };
    expect((await server.post(at('v2'), second)).status).toBe(201);
    const list = await server.get(at('v1'));
    expect(list.body.items.map((item: ApiObject) => item.apiVersion)).toEqual([
      `${group}/v1`,
      `${group}/v1`,
    ]);
  });

  test('CRD-4: objects of an earlier storage version keep members that only it has', async () => {
    const group = 'kept.example.com';
    const text = { type: 'string' };
    const withSpec = (properties: object) => ({
      type: 'object',
      properties: { spec: { type: 'object', properties } },
    });
    const fill = (value: string) => ({ ...text, default: value });
    const v1 = versionOf('v1', withSpec({ old: text, both: text, d1: fill('one') }));
    const v2 = versionOf('v2', withSpec({ new: text, both: text, d2: fill('two') }));
    const names = { group, plural: 'jars', kind: 'Jar' };
    await establish(server, { ...names, versions: [{ ...v1, storage: true }, v2] });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/jars`;
    const spec = { old: 'a', both: 'b' };
    for (const name of ['kept', 'moved']) {
      const jar = { apiVersion: `${group}/v1`, kind: 'Jar', metadata: { name }, spec };
      expect((await server.post(at('v1'), jar)).status).toBe(201);
    }
    await redefine(server, `jars.${group}`, (changed) => {
      changed.versions = [v1, { ...v2, storage: true }];
    });
    const inV1 = { ...spec, d1: 'one' };
    const merge = { metadata: { labels: { a: 'b' } } };
    const move = await eventually(async () => {
      const moved = await server.patch(`${at('v1')}/moved`, merge, 'merge');
      const { spec: now } = (await server.get(`${at('v2')}/moved`)).body;
      return moved.status === 200 && now.d2 === 'two' ? now : undefined;
    }, 'objects to be stored in v2');
    expect(move).toEqual({ both: 'b', d2: 'two' });
    expect((await server.get(`${at('v1')}/kept`)).body.spec).toEqual(inV1);
    expect((await server.get(`${at('v2')}/kept`)).body.spec).toEqual({ both: 'b' });
    const specsOf = (items: readonly ApiObject[]) => items.map((item) => item['spec']);
    for (const [version, specs] of [
      ['v1', [inV1, { both: 'b' }]],
      ['v2', [{ both: 'b' }, { both: 'b', d2: 'two' }]],
    ] as const) {
      expect(specsOf((await server.get(at(version))).body.items)).toEqual(specs);
      const watch = await server.watch(`${at(version)}?watch=1`);
      await watch.until((events) => events.length === 2);
      expect(specsOf(watch.events.map(({ object }) => object))).toEqual(specs);
      watch.close();
    }
  });

  test('CRD-4: an unchanged write moves an object to the current version and encoding', async () => {
    const group = 'comes.example.com';
    const versions = [versionOf('v1', open, { storage: true }), versionOf('v2', open)];
    await establish(server, { group, plural: 'ants', kind: 'Ant', versions });
    const at = `/apis/${group}/v1/namespaces/default/ants`;
    const ant = { apiVersion: `${group}/v1`, kind: 'Ant', metadata: { name: 'a' }, spec: { n: 1 } };
    const made = await server.post(at, ant);
    const touch = async () => {
      const { status, body } = await server.patch(`${at}/a`, {}, 'merge');
      expect(status).toBe(200);
      return body.metadata.resourceVersion;
    };
    expect(await touch()).toBe(made.body.metadata.resourceVersion);
    await redefine(server, `ants.${group}`, (spec) => {
      for (const version of spec.versions) version.storage = version.name === 'v2';
    });
    const moved = await eventually(async () => {
      const version = await touch();
      return version !== made.body.metadata.resourceVersion && version;
    }, 'the object to be written in the other version');
    expect(await touch()).toBe(moved);
    const spec = { type: 'object', properties: { more: { type: 'string', default: 'x' } } };
    await redefine(server, `ants.${group}`, (definition) => {
      for (const version of definition.versions) {
        version.schema.openAPIV3Schema = { type: 'object', properties: { spec } };
      }
    });
    await eventually(async () => (await touch()) !== moved, 'the default to be written');
  });

  test('CRD-4: each version has its own selectable fields', async () => {
    const group = 'chosen.example.com';
    const text = { type: 'string' };
    const spec = { type: 'object', properties: { a: text, b: text } };
    const schema = { type: 'object', properties: { spec } };
    const described = { ...schema, description: 'Other.' };
    const versions = [
      versionOf('v1', schema, { storage: true, selectableFields: [{ jsonPath: '.spec.a' }] }),
      versionOf('v2', described, { selectableFields: [{ jsonPath: '.spec.b' }] }),
    ];
    await establish(server, { group, plural: 'owls', kind: 'Owl', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/owls`;
    for (const name of ['x', 'y']) {
      const metadata = { name };
      const body = { apiVersion: `${group}/v1`, kind: 'Owl', metadata, spec: { a: name, b: name } };
      expect((await server.post(at('v1'), body)).status).toBe(201);
    }
    const chosen = async (version: string, selector: string) => {
      const { status, body } = await server.get(`${at(version)}?fieldSelector=${selector}`);
      return status === 200 ? body.items.map((item: ApiObject) => item.metadata.name) : status;
    };
    expect(await chosen('v1', 'spec.a=x')).toEqual(['x']);
    expect(await chosen('v2', 'spec.b=y')).toEqual(['y']);
    expect(await chosen('v1', 'spec.b=x')).toBe(400);
    expect(await chosen('v2', 'spec.a=x')).toBe(400);
  });

  test('CRD-4: a version in status.storedVersions cannot be removed', async () => {
    const group = 'stuck.example.com';
    const versions = [versionOf('v1', open), versionOf('v2', open, { storage: true })];
    await establish(server, { group, plural: 'bugs', kind: 'Bug', versions });
    const only = versionOf('v1', open, { storage: true });
    const refused = await redefine(server, `bugs.${group}`, (spec) => {
      spec.versions = [only];
    });
    expect(refused.status).toBe(422);
    expect(causesOf(refused)).toEqual([
      expect.stringContaining('status.storedVersions[0]: Invalid value: "v2"'),
    ]);
  });

  test('CRD-4: deprecated versions warn', async () => {
    const group = 'aged.example.com';
    const versions = [
      versionOf('v1', open, { storage: true }),
      versionOf('v1beta1', open, { deprecated: true }),
      versionOf('v1alpha1', open, { deprecated: true, deprecationWarning: 'do not' }),
    ];
    await establish(server, { group, plural: 'inks', kind: 'Ink', versions });
    const warned = async (version: string) =>
      (await server.get(`/apis/${group}/${version}/inks`)).warnings;
    expect(await warned('v1')).toEqual([]);
    expect(await warned('v1beta1')).toEqual([
      `${group}/v1beta1 Ink is deprecated; use ${group}/v1 Ink`,
    ]);
    expect(await warned('v1alpha1')).toEqual(['do not']);
  });
});

describe('subresources', () => {
  test('CRD-4: status is written separately', async () => {
    const group = 'states.example.com';
    const schema = {
      type: 'object',
      properties: {
        spec: open,
        status: { type: 'object', properties: { n: { type: 'integer' } } },
      },
    };
    const versions = [versionOf('v1', schema, { storage: true, subresources: { status: {} } })];
    await establish(server, { group, plural: 'jobs', kind: 'Job', versions });
    const at = `/apis/${group}/v1/namespaces/default/jobs`;
    const job = { apiVersion: `${group}/v1`, kind: 'Job', metadata: { name: 'a' } };
    const created = await server.post(at, { ...job, spec: { a: 1 }, status: { n: 1 } });
    expect(created.body.status).toBeUndefined();
    expect(created.body.metadata.generation).toBe(1);
    const whole = { ...created.body, spec: { a: 2 }, status: { n: 2 } };
    const stated = await server.put(`${at}/a/status`, whole);
    expect(stated.status).toBe(200);
    expect(stated.body).toMatchObject({ spec: { a: 1 }, status: { n: 2 } });
    expect(stated.body.metadata.generation).toBe(1);
    const main = await server.patch(`${at}/a`, { spec: { a: 3 }, status: { n: 9 } }, 'merge');
    expect(main.body).toMatchObject({ spec: { a: 3 }, status: { n: 2 } });
    expect(main.body.metadata.generation).toBe(2);
    const wrong = await server.patch(`${at}/a/status`, { status: { n: 'x' } }, 'merge');
    expect(wrong.status).toBe(422);
    const apply = { ...job, status: { n: 5 } };
    const applied = await server.patch(`${at}/a/status?fieldManager=m`, apply, 'apply');
    expect(applied.status).toBe(409);
    const forced = await server.patch(`${at}/a/status?fieldManager=m&force=true`, apply, 'apply');
    expect(forced.body.status).toEqual({ n: 5 });
    expect((await server.get(`${at}/a/status`)).body.status).toEqual({ n: 5 });
  });

  test('CRD-4: each version has exactly the subresources that it declares', async () => {
    const group = 'parts.example.com';
    const scale = { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' };
    const versions = [
      versionOf('v1', open, { storage: true, subresources: { status: {}, scale } }),
      versionOf('v2', open, { subresources: { status: {} } }),
      versionOf('v3', open),
    ];
    await establish(server, { group, plural: 'parts', kind: 'Part', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/parts`;
    const part = { apiVersion: `${group}/v1`, kind: 'Part', metadata: { name: 'a' } };
    await server.post(at('v1'), { ...part, spec: { n: 1 } });
    const discovered = await server.get<DiscoveredGroups>('/apis', {
      accept: 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList',
    });
    const listed = discovered.body.items.find((item) => item.metadata.name === group);
    for (const [version, expected] of [
      ['v1', ['status', 'scale']],
      ['v2', ['status']],
      ['v3', []],
    ] as const) {
      const { resources } = (await server.get(`/apis/${group}/${version}`)).body;
      const names = resources.map((resource: { name: string }) => resource.name);
      expect(names).toEqual(['parts', ...expected.map((name) => `parts/${name}`)]);
      const aggregated = listed?.versions.find((entry) => entry.version === version);
      const subresources = aggregated?.resources[0].subresources ?? [];
      expect(
        subresources.map((subresource: { subresource: string }) => subresource.subresource),
      ).toEqual(expected);
      const own = { group, version, kind: 'Part' };
      const kinds = { status: own, scale: { group: 'autoscaling', version: 'v1', kind: 'Scale' } };
      expect(subresources.map((subresource: JsonObject) => subresource.responseKind)).toEqual(
        expected.map((name) => kinds[name]),
      );
      const status = resources.find((resource: APIResource) => resource.name === 'parts/status');
      expect(Object.keys(status ?? {})).not.toContain('version');
      for (const name of ['status', 'scale'] as const) {
        const has = (expected as readonly string[]).includes(name);
        const answer = await server.get(`${at(version)}/a/${name}`);
        expect(answer.status).toBe(has ? 200 : 404);
        if (has) continue;
        expect(answer.body).toMatchObject({
          message: `parts.${group} "a" not found`,
          details: { name: 'a', group, kind: 'parts' },
        });
      }
    }
  });

  test('CRD-1: a namespaced kind has only lists outside of a namespace', async () => {
    const group = 'within.example.com';
    const versions = [versionOf('v1', open, { storage: true, subresources: { status: {} } })];
    await establish(server, { group, plural: 'pens', kind: 'Pen', versions });
    const outside = `/apis/${group}/v1/pens`;
    const pen = { apiVersion: `${group}/v1`, kind: 'Pen', metadata: { name: 'a' } };
    const made = await server.post(`/apis/${group}/v1/namespaces/default/pens`, pen);
    expect(made.status).toBe(201);
    for (const answer of [
      await server.post(outside, pen),
      await server.remove(outside),
      await server.get(`${outside}/a`),
      await server.put(`${outside}/a`, pen),
      await server.patch(`${outside}/a/status`, {}, 'merge'),
      await server.remove(`${outside}/a`),
    ]) {
      expect(answer.status).toBe(404);
    }
    expect((await server.get(outside)).body.items).toHaveLength(1);
    const watch = await server.watch(`${outside}?watch=1`);
    await watch.until((events) => events.length === 1);
    watch.close();
  });

  test('CRD-4: without the subresource, status is an ordinary member', async () => {
    const group = 'plain.example.com';
    await establish(server, { group, plural: 'nuts', kind: 'Nut', schema: open });
    const at = `/apis/${group}/v1/namespaces/default/nuts`;
    const nut = {
      apiVersion: `${group}/v1`,
      kind: 'Nut',
      metadata: { name: 'a' },
      status: { n: 1 },
    };
    expect((await server.post(at, nut)).body.status).toEqual({ n: 1 });
    expect((await server.get(`${at}/a/status`)).status).toBe(404);
    const changed = await server.patch(`${at}/a`, { status: { n: 2 } }, 'merge');
    expect(changed.body.metadata.generation).toBe(2);
  });

  test('CRD-4: scale reads and writes replicas', async () => {
    const group = 'scales.example.com';
    const scale = {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    };
    const versions = [
      versionOf('v1', open, { storage: true, subresources: { status: {}, scale } }),
    ];
    await establish(server, { group, plural: 'sets', kind: 'Set', versions });
    const at = `/apis/${group}/v1/namespaces/default/sets`;
    const set = { apiVersion: `${group}/v1`, kind: 'Set', metadata: { name: 'a' } };
    await server.post(at, { ...set, spec: { replicas: 2 } });
    const status = { replicas: 1, selector: 'app=a' };
    await server.patch(`${at}/a/status`, { status }, 'merge');
    const { columnDefinitions } = (await server.get(`${at}/a/scale`, table)).body;
    expect(
      columnDefinitions.map((columnDefinition: TableColumnDefinition) => [
        columnDefinition.name,
        columnDefinition.type,
        columnDefinition.format,
      ]),
    ).toEqual([
      ['Name', 'string', 'name'],
      ['Desired', 'integer', ''],
      ['Available', 'integer', ''],
      ['Age', 'date', ''],
    ]);
    const { body } = await server.get(`${at}/a/scale`);
    expect(body).toMatchObject({
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      spec: { replicas: 2 },
      status: { replicas: 1, selector: 'app=a' },
    });
    body.spec.replicas = 4;
    expect((await server.put(`${at}/a/scale`, body)).body.spec.replicas).toBe(4);
    expect((await server.get(`${at}/a`)).body.spec.replicas).toBe(4);
    const patched = await server.patch(`${at}/a/scale`, { spec: { replicas: 5 } }, 'merge');
    expect(patched.body.spec.replicas).toBe(5);
    const wrong = await server.patch(`${at}/a/scale`, { spec: { replicas: -1 } }, 'merge');
    expect(wrong.status).toBe(422);
    expect(causesOf(wrong)).toEqual([
      '.spec.replicas: Invalid value: -1: should be a non-negative integer',
    ]);
    const desired = async () => (await server.get(`${at}/a/scale`, table)).body.rows[0].cells[1];
    expect(await desired()).toBe(5);
    await server.patch(`${at}/a/scale`, { spec: { replicas: 0 } }, 'merge');
    expect(await desired()).toBeNull();
  });
});

describe('columns, selectors and names', () => {
  test('CRD-4: tables have the version’s columns', async () => {
    const group = 'columns.example.com';
    const additionalPrinterColumns = [
      { name: 'Size', type: 'integer', jsonPath: '.spec.size', description: 'how big' },
      { name: 'Hidden', type: 'string', jsonPath: '.spec.hidden', priority: 1 },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ];
    const versions = [
      versionOf('v1', open, { storage: true, additionalPrinterColumns }),
      versionOf('v2', open),
    ];
    await establish(server, { group, plural: 'pads', kind: 'Pad', versions });
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/pads`;
    const pad = { apiVersion: `${group}/v1`, kind: 'Pad', metadata: { name: 'a' } };
    await server.post(at('v1'), { ...pad, spec: { size: 3 } });
    const { body } = await server.get(at('v1'), table);
    expect(
      body.columnDefinitions.map(
        (columnDefinition: { name: string; type: string; priority: unknown }) => [
          columnDefinition.name,
          columnDefinition.type,
          columnDefinition.priority,
        ],
      ),
    ).toEqual([
      ['Name', 'string', 0],
      ['Size', 'integer', 0],
      ['Hidden', 'string', 1],
      ['Age', 'date', 0],
    ]);
    expect(body.rows[0].cells.slice(0, 3)).toEqual(['a', 3, null]);
    const plain = await server.get(at('v2'), table);
    expect(
      plain.body.columnDefinitions.map(
        (columnDefinition: { name: string }) => columnDefinition.name,
      ),
    ).toEqual(['Name', 'Age']);
  });

  test('CRD-4: columns evaluate JSONPath as kube-apiserver does', async () => {
    const group = 'paths.example.com';
    const cells: readonly (readonly [type: string, jsonPath: string, cell: unknown])[] = [
      ['string', '.spec.steps[-1:].name', 'last'],
      ['string', '.spec.steps[?(@.count>1)].name', 'last'],
      ['string', '.spec.steps[?(@.name!="first")].name', 'last'],
      ['integer', '..count', 1],
      ['string', '.spec.steps[7].name', null],
      ['string', '.spec.nothing', '<no value>'],
      ['integer', '.spec.nothing', null],
      ['date', '.spec.when', '<invalid>'],
      ['date', '.spec.never', '<unknown>'],
      ['string', ".metadata.labels['example.com/a']", null],
      ['string', '.metadata.labels.example\\.com/a', 'labelled'],
    ];
    const additionalPrinterColumns = cells.map(([type, jsonPath], index) => ({
      name: `C${index}`,
      type,
      jsonPath,
    }));
    const versions = [versionOf('v1', open, { storage: true, additionalPrinterColumns })];
    await establish(server, { group, plural: 'tracks', kind: 'Track', versions });
    const steps = [
      { name: 'first', count: 1 },
      { name: 'last', count: 2 },
    ];
    const made = await server.post(`/apis/${group}/v1/namespaces/default/tracks`, {
      apiVersion: `${group}/v1`,
      kind: 'Track',
      metadata: { name: 'a', labels: { 'example.com/a': 'labelled' } },
      spec: { steps, nothing: null, when: '12', never: '' },
    });
    expect(made.status).toBe(201);
    const { body } = await server.get(`/apis/${group}/v1/tracks`, table);
    expect(body.rows[0].cells.slice(1)).toEqual(cells.map(([, , cell]) => cell));
  });

  test('CRD-4: declared fields select in lists and watches, others do not', async () => {
    const group = 'fields.example.com';
    const spec = {
      type: 'object',
      properties: { color: { type: 'string' }, n: { type: 'integer' } },
    };
    const schema = { type: 'object', properties: { spec } };
    const selectableFields = [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.n' }];
    const versions = [versionOf('v1', schema, { storage: true, selectableFields })];
    await establish(server, { group, plural: 'dyes', kind: 'Dye', versions });
    const at = `/apis/${group}/v1/namespaces/default/dyes`;
    for (const [name, color] of [
      ['a', 'red'],
      ['b', 'blue'],
      ['c', 'red'],
    ] as const) {
      const dye = {
        apiVersion: `${group}/v1`,
        kind: 'Dye',
        metadata: { name },
        spec: { color, n: 1 },
      };
      expect((await server.post(at, dye)).status).toBe(201);
    }
    const namesOf = (list: { items: readonly ApiObject[] }) =>
      list.items.map((item: ApiObject) => item.metadata.name);
    const red = await server.get(`${at}?fieldSelector=spec.color%3Dred,spec.n%3D1`);
    expect(namesOf(red.body)).toEqual(['a', 'c']);
    const rest = await server.get(`${at}?fieldSelector=spec.color!%3Dred`);
    expect(namesOf(rest.body)).toEqual(['b']);
    const { resourceVersion } = rest.body.metadata;
    const watch = await server.watch(
      `${at}?watch=1&fieldSelector=spec.color%3Dred&resourceVersion=${resourceVersion}`,
    );
    await server.patch(`${at}/a`, { spec: { color: 'blue' } }, 'merge');
    await server.patch(`${at}/b`, { spec: { color: 'red' } }, 'merge');
    await watch.until((events) => events.length === 2);
    expect(watch.events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
      ['DELETED', 'a'],
      ['ADDED', 'b'],
    ]);
    watch.close();
    const refused = await server.get(`${at}?fieldSelector=spec.other%3Dx`);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain('field label not supported: spec.other');
    await redefine(server, `dyes.${group}`, (definition) => {
      delete definition.versions[0].selectableFields;
    });
    await eventually(
      async () => (await server.get(`${at}?fieldSelector=spec.color%3Dred`)).status === 400,
    );
  });

  test('CRD-4: cluster-scoped kinds have no namespace', async () => {
    const group = 'wide.example.com';
    await establish(server, { group, plural: 'seas', kind: 'Sea', scope: 'Cluster', schema: open });
    const sea = { apiVersion: `${group}/v1`, kind: 'Sea', metadata: { name: 'a' } };
    expect((await server.post(`/apis/${group}/v1/seas`, sea)).status).toBe(201);
    expect((await server.get(`/apis/${group}/v1/namespaces/default/seas/a`)).status).toBe(404);
  });
});
