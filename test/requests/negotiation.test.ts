import type { TableColumnDefinition } from '@wheelhouse/kinds/types/meta/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { establish, versionOf } from '../custom-kinds/custom-kinds.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let maps: string;

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
  for (const name of ['a', 'b']) await server.post(maps, configMap(name));
});

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const types = 'application/json, application/yaml, application/vnd.svc.protobuf';
const served = `only the following media types are accepted: ${types}`;
/** The answer if no type of the header is available for the path. */
const represented = `406: Not Acceptable\n\nAvailable representations: ${types}`;
const watched = ', application/json;stream=watch, application/vnd.svc.protobuf;stream=watch';

describe('the encoding of answers', () => {
  test.each([
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['application/*, application/yaml;q=0.1', 'application/json'],
    ['*', 'application/json'],
    ['', 'application/json'],
    ['application/yaml', 'application/yaml'],
    ['text/html, application/yaml', 'application/yaml'],
    ['application/json;q=0.5, application/yaml', 'application/yaml'],
    ['application/json;q=0.5, application/yaml;q=0.4', 'application/json'],
    ['application/json;q=0, application/yaml;q=0.1', 'application/yaml'],
    ['text/html;q=0.9, */*;q=0.1', 'application/json'],
    ['application/json;q=x', 'application/json'],
    ['application/yaml;q=2', 'application/yaml'],
    ['application/json;q=-1, application/yaml;q=0.1', 'application/yaml'],
    ['application/json;charset=utf-8', 'application/json'],
    ['application/json;stream=watch', 'application/json'],
    ['application/yaml;stream=watch, application/json', 'application/json'],
    ['application/json;as=Nope;g=meta.k8s.io;v=v1, application/yaml', 'application/yaml'],
    ['application/json;as=Table;g=other.io;v=v1, application/yaml', 'application/yaml'],
    ['application/json;sv=v2, application/yaml', 'application/yaml'],
  ])('CODEC-1: Accept %j gets %s', async (accept, type) => {
    for (const path of [`${maps}/a`, maps]) {
      const answer = await server.get(path, { accept });
      expect(answer.status, path).toBe(200);
      expect(answer.headers['content-type'], path).toBe(type);
    }
  });

  test.each([
    'text/html',
    'application/xml, text/*',
    'application/*',
    'text/html, application/*;q=0.8',
    'application/json;q=0',
    'application/json;as=Nope;g=meta.k8s.io;v=v1',
    'application/json;as=Table;g=meta.k8s.io;v=v2',
    'application/json;stream=other',
    'nonsense',
  ])('CODEC-1: Accept %j is 406', async (accept) => {
    for (const [method, path] of [
      ['GET', `${maps}/a`],
      ['GET', maps],
      ['POST', maps],
      ['DELETE', `${maps}/a`],
    ] as const) {
      const answer = await server.request(method, path, {
        accept,
        ...(method === 'POST' ? { body: configMap('refused') } : {}),
      });
      expect(answer.status, `${method} ${path}`).toBe(406);
      expect(answer.headers['content-type']).toBe('application/json');
      expect(answer.body).toMatchObject({ kind: 'Status', reason: 'NotAcceptable', code: 406 });
      const isNamed = /^application\/json;(?!q=0)/.test(accept);
      const isCollection = method === 'GET' && path === maps;
      expect(answer.body.message).toBe(
        isNamed ? served : `${represented}${isCollection ? watched : ''}`,
      );
      expect(answer.body.details).toEqual(isNamed ? undefined : {});
    }
    expect((await server.get(`${maps}/refused`)).status).toBe(404);
  });

  test('CODEC-1: a watch uses only streaming encodings', async () => {
    const answer = await server.get(`${maps}?watch=true`, { accept: 'application/yaml' });
    expect(answer.status).toBe(406);
    expect(answer.text).toContain(
      'only the following media types are accepted: application/json;stream=watch',
    );
    // A header without an acceptable type, with or without a watch, is answered with all types.
    const tables = 'application/json;as=Table';
    for (const path of [`${maps}?watch=true`, `/api/v1/watch/namespaces/${namespace}/configmaps`]) {
      const refused = await server.get(path, { accept: tables });
      expect(refused.body, path).toMatchObject({ code: 406, message: served });
    }
    const old = await server.get(`/api/v1/watch/namespaces/${namespace}/configmaps/a`, {
      accept: 'text/html',
    });
    expect(old.body.message).toBe(represented + watched);
  });

  test('CODEC-1: documents about built-in kinds must be accepted by name', async () => {
    for (const path of ['/api', '/api/v1', '/apis/apps/v1']) {
      for (const accept of ['application/*', 'text/html']) {
        const answer = await server.get(path, { accept });
        expect(answer.body, path).toMatchObject({ code: 406, message: represented });
      }
    }
    const version = await server.get('/version', { accept: 'application/*' });
    expect(version.body.message).toBe(
      '406: Not Acceptable\n\nAvailable representations: application/json',
    );
    for (const accept of [table, 'text/html, */*;q=0.1']) {
      expect((await server.get('/version', { accept })).body['major'], accept).toBe('1');
    }
    for (const path of ['/apis', '/apis/apps', '/openapi/v2']) {
      const { status } = await server.get(path, { accept: 'application/*' });
      expect(status, path).toBe(200);
    }
  });

  test('CODEC-1, API-5: a 406 or 415 of a custom kind lists all types', async () => {
    const group = 'refusals.example.com';
    const more = { storage: true, subresources: { status: {} } };
    const versions = [versionOf('v1', { type: 'object' }, more)];
    await establish(server, { group, plural: 'refusals', kind: 'Refusal', versions });
    const path = `/apis/${group}/v1/namespaces/${namespace}/refusals`;
    await eventually(async () => (await server.get(path)).status === 200);
    const refused = await server.get(path, { accept: 'text/html' });
    expect(refused.body).toMatchObject({ code: 406, message: served });
    const wild = await server.get(path, { accept: 'application/*' });
    expect([wild.status, wild.headers['content-type']]).toEqual([200, 'application/json']);
    const list = await server.get(path);
    expect(list.body.metadata.continue).toBe('');
    const odd = await server.request('OPTIONS', path);
    expect(odd.body).toMatchObject({
      code: 405,
      message: ` is not supported on resources of kind "refusals.${group}"`,
      details: { group, kind: 'refusals' },
    });
    const undeletable = await server.remove(`${path}/a/status`);
    expect(undeletable.body).toMatchObject({
      code: 405,
      message: `delete is not supported on resources of kind "refusals.${group}"`,
    });
  });

  test('CODEC-1, CODEC-2: a request that accepts nothing gets an indented Status', async () => {
    for (const accept of ['text/html', 'application/json;as=Nope', 'application/json;sv=v1']) {
      const { text, body } = await server.get(`${maps}/none`, { accept });
      expect(text.trim(), accept).toBe(JSON.stringify(body, null, 2));
    }
  });

  test('CODEC-1: failures use the requested encoding, or JSON', async () => {
    const yaml = await server.get(`${maps}/none`, { accept: 'application/yaml' });
    expect(yaml.status).toBe(404);
    expect(yaml.headers['content-type']).toBe('application/yaml');
    expect(yaml.text).toContain('reason: NotFound\n');
    const json = await server.get(`${maps}/none`, { accept: table });
    expect(json.body).toMatchObject({ kind: 'Status', reason: 'NotFound' });
  });

  test('CODEC-1: encodings of request and answer are independent', async () => {
    const yaml = 'metadata:\n  name: mixed\n';
    const answer = await server.post(maps, yaml, { type: 'application/yaml' });
    expect(answer.headers['content-type']).toBe('application/json');
    const back = await server.put(`${maps}/mixed`, configMap('mixed'), {
      accept: 'application/yaml',
    });
    expect(back.headers['content-type']).toBe('application/yaml');
    await server.remove(`${maps}/mixed`);
  });

  test('CODEC-2: pretty by query, by parameter, and for browsers and curl', async () => {
    const isPretty = async (path: string, options = {}) => {
      const { text } = await server.get(path, options);
      const pretty = JSON.stringify(JSON.parse(text), null, 2);
      if (text.includes('\n  ')) expect(text).toBe(pretty);
      return text === pretty;
    };
    const objectPath = `${maps}/a`;
    const curl = { headers: { 'user-agent': 'curl/8.0' } };
    expect(await isPretty(objectPath)).toBe(false);
    expect(await isPretty(`${objectPath}?pretty=true`)).toBe(true);
    expect(await isPretty(`${objectPath}?pretty=1`)).toBe(true);
    expect(await isPretty(`${objectPath}?pretty=false`, curl)).toBe(false);
    expect(await isPretty(`${objectPath}?pretty=nonsense`, curl)).toBe(false);
    expect(await isPretty(objectPath, curl)).toBe(true);
    expect(await isPretty(objectPath, { headers: { 'user-agent': 'Mozilla/5.0 (X11)' } })).toBe(
      true,
    );
    expect(await isPretty(objectPath, { headers: { 'user-agent': 'Wget/1' } })).toBe(true);
    expect(await isPretty(objectPath, { accept: 'application/json;pretty=1' })).toBe(true);
    expect(await isPretty(`${maps}?pretty=true`)).toBe(true);
    // The answer does not pass through an encoder of objects.
    const version = await server.get('/version?pretty=true');
    expect(version.text).toBe(JSON.stringify(version.body, null, 2));
    expect(await isPretty(`${maps}/none?pretty=true`)).toBe(true);
  });
});

describe('tables and metadata', () => {
  test('CODEC-5: a list as a table, with either spelling of the group', async () => {
    for (const group of ['meta.svc.io', 'meta.k8s.io']) {
      for (const version of ['v1', 'v1beta1']) {
        const accept = `application/json;as=Table;g=${group};v=${version}`;
        const answer = await server.get(maps, { accept });
        expect(answer.status).toBe(200);
        expect(answer.headers['content-type']).toBe('application/json');
        expect(answer.body).toMatchObject({ kind: 'Table', apiVersion: `meta.svc.io/${version}` });
        const names = answer.body.columnDefinitions.map(
          (columnDefinition: { name: string }) => columnDefinition.name,
        );
        expect(names).toEqual(['Name', 'Data', 'Age']);
        expect(answer.body.rows.map((row: { cells: unknown[] }) => row.cells.slice(0, 2))).toEqual([
          ['a', 1],
          ['b', 1],
        ]);
        expect(answer.body.rows[0].object).toMatchObject({
          kind: 'PartialObjectMetadata',
          apiVersion: `meta.svc.io/${version}`,
          metadata: { name: 'a' },
        });
        expect(answer.body.rows[0].object.data).toBeUndefined();
        expect(Number(answer.body.metadata.resourceVersion)).toBeGreaterThan(0);
      }
    }
  });

  test('CODEC-5: one object, includeObject, limit, and YAML', async () => {
    const single = await server.get(`${maps}/a?includeObject=Object`, { accept: table });
    expect(single.body.rows).toHaveLength(1);
    expect(single.body.rows[0].object).toMatchObject({ kind: 'ConfigMap', data: { a: '1' } });
    expect(single.body.metadata.resourceVersion).toBe(
      single.body.rows[0].object.metadata.resourceVersion,
    );
    const none = await server.get(`${maps}?includeObject=None&limit=1`, { accept: table });
    expect(none.body.rows).toEqual([{ cells: expect.any(Array), object: null }]);
    expect(none.body.metadata.continue).toEqual(expect.any(String));
    expect(none.body.metadata.remainingItemCount).toBe(1);
    const yaml = await server.get(maps, { accept: table.replace('json', 'yaml') });
    expect(yaml.text).toContain('\nkind: Table\n');
    const wrong = await server.get(`${maps}?includeObject=All`, { accept: table });
    expect(wrong.status).toBe(400);
    expect(wrong.body.message).toBe(
      'Unable to convert to Table as requested: includeObject: Invalid value: "All": ' +
        "must be 'Metadata', 'Object', 'None', or empty",
    );
  });

  test('CODEC-5: kubectl’s Accept header: tables first, then JSON', async () => {
    const accept = `${table},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json`;
    expect((await server.get(maps, { accept })).body.kind).toBe('Table');
    expect((await server.get('/api', { accept })).body.kind).toBe('APIVersions');
  });

  test('CODEC-5: writes return tables too, and failures stay a Status', async () => {
    const made = await server.post(maps, configMap('tabled'), { accept: table });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ kind: 'Table', rows: [{ object: {} }] });
    const again = await server.post(maps, configMap('tabled'), { accept: table });
    expect(again.body).toMatchObject({ kind: 'Status', code: 409 });
    await server.remove(`${maps}/tabled`);
  });

  test('CODEC-5: a Scale has its own columns, read or written', async () => {
    const sets = maps.replace('/api/v1', '/apis/apps/v1').replace('configmaps', 'replicasets');
    const labels = { app: 'x' };
    const spec = {
      replicas: 3,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    };
    await server.post(sets, { metadata: { name: 'scaled' }, spec });
    const path = `${sets}/scaled/scale`;
    const patch = { spec: { replicas: 2 } };
    const read = await server.get(path, { accept: table });
    const written = await server.patch(path, patch, 'merge', { accept: table });
    for (const [{ body }, replicas] of [
      [read, 3],
      [written, 2],
    ] as const) {
      const columns = body.columnDefinitions.map(
        (columnDefinition: TableColumnDefinition) =>
          `${columnDefinition.name} ${columnDefinition.type}`,
      );
      expect(columns).toEqual([
        'Name string',
        'Desired integer',
        'Available integer',
        'Age string',
      ]);
      expect(body.rows[0].cells.slice(0, 3)).toEqual(['scaled', replicas, 0]);
      expect(body.rows[0].object).toMatchObject({
        kind: 'PartialObjectMetadata',
        metadata: { name: 'scaled' },
      });
    }
    await server.remove(`${sets}/scaled`);
  });

  test('CODEC-5, CODEC-6: representations of an object that keeps fields in annotations', async () => {
    const scalers = maps.replace('/api/v1', '/apis/autoscaling/v1');
    const path = scalers.replace('configmaps', 'horizontalpodautoscalers');
    const spec = { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'd' } };
    expect((await server.post(path, { metadata: { name: 'h' }, spec })).status).toBe(201);
    const partial = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    const shown = (await server.get(`${path}/h`)).body.metadata;
    expect(shown.managedFields).toHaveLength(1);
    for (const at of [path, `${path}/h`]) {
      const { status, body } = await server.get(at, { accept: table });
      expect(status).toBe(200);
      expect(body.rows[0].object.metadata).toEqual(shown);
    }
    const alone = await server.get(`${path}/h`, { accept: partial });
    expect(alone.body.metadata).toEqual(shown);
    await server.remove(`${path}/h`);
  });

  test('CODEC-5: a watch of tables', async () => {
    const watch = await server.watch(`${maps}?watch=true&fieldSelector=metadata.name=a`, {
      accept: table,
    });
    await watch.until((events) => events.length > 0);
    expect(watch.events[0]).toMatchObject({
      type: 'ADDED',
      object: { kind: 'Table', rows: [{ object: { metadata: { name: 'a' } } }] },
    });
    watch.close();
  });

  test('CODEC-6: metadata of one object and of a list', async () => {
    const partial = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    const list = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    const single = await server.get(`${maps}/a`, { accept: partial });
    expect(single.body).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.svc.io/v1',
      metadata: { name: 'a', namespace },
    });
    expect(Object.keys(single.body).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
    const all = await server.get(maps, { accept: list });
    expect(all.body).toMatchObject({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.svc.io/v1',
      metadata: { resourceVersion: expect.any(String) },
    });
    expect(all.body.items[1]).toMatchObject({
      kind: 'PartialObjectMetadata',
      metadata: { name: 'b' },
    });
    const wrong = await server.get(maps, { accept: partial });
    expect(wrong.status).toBe(406);
    expect(wrong.body.message).toBe(
      'you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)',
    );
    const wrongList = await server.get(`${maps}/a`, { accept: list });
    expect(wrongList.body.message).toBe(
      'you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)',
    );
    const watch = await server.watch(`${maps}?watch=true`, { accept: partial });
    await watch.until((events) => events.length >= 2);
    expect(watch.events[0]?.object.kind).toBe('PartialObjectMetadata');
    watch.close();
  });
});
