import https from 'node:https';
import { decodeCbor, decodeJson, decodeYaml } from '@wheelhouse/codec';
import {
  type ApiObject,
  dialectOf,
  type JsonValue,
  type MaybePromise,
} from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { definitionOf, versionOf } from '../custom-kinds/custom-kinds.ts';
import { adminToken, configMap, eventually, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const servers = {
  svc: await withServer({ dialect: 'svc', cborServed: true }),
  kubernetes: await withServer({ dialect: 'kubernetes', cborServed: true }),
};

const builtin = {
  'a built-in kind': '/api/v1/namespaces/default/configmaps',
  'a built-in kind in its stored version':
    '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers',
  'a built-in kind in another version':
    '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers',
};
const custom = {
  'a custom kind': '/apis/example.com/v1/namespaces/default/widgets',
  'a custom kind in another version': '/apis/example.com/v2/namespaces/default/widgets',
};

const decoders: Readonly<Record<string, (bytes: Buffer) => MaybePromise<JsonValue>>> = {
  'application/json': (bytes) => decodeJson(bytes).value,
  'application/json;pretty=1': (bytes) => decodeJson(bytes).value,
  'application/yaml': async (bytes) => (await decodeYaml(bytes)).value,
  'application/cbor': decodeCbor,
};
const encodings = Object.keys(decoders);

function bytesOf(server: TestServer, path: string, accept: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${adminToken}`, accept };
    const options = { headers, rejectUnauthorized: false, agent: false };
    const sent = https.get(server.url + path, options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => resolve(Buffer.concat(chunks)));
      answer.on('error', reject);
    });
    sent.on('error', reject);
  });
}

describe.each(['svc', 'kubernetes'] as const)('in dialect %s', (dialectName) => {
  const server = servers[dialectName];
  const dialect = dialectOf(dialectName);
  const form = (as: string) => `application/json;as=${as};v=v1;g=${dialect.group('meta')}`;

  const itemsIn = async (path: string, accept: string): Promise<readonly ApiObject[]> => {
    const value = await decoders[accept]?.(await bytesOf(server, path, accept));
    return (value as { items: ApiObject[] }).items;
  };
  const objectsAt = async (path: string, names: readonly string[]): Promise<ApiObject[]> =>
    Promise.all(names.map(async (name) => (await server.get(`${path}/${name}`)).body));
  const names = ['a', 'b', 'c'];

  beforeAll(async () => {
    const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const versions = [versionOf('v1', schema, { storage: true }), versionOf('v2', schema)];
    const definition = {
      ...definitionOf({ group: 'example.com', plural: 'widgets', kind: 'Widget', versions }),
      apiVersion: `${dialect.group('apiextensions')}/v1`,
    };
    const group = `/apis/${dialect.group('apiextensions')}/v1`;
    expect((await server.post(`${group}/customresourcedefinitions`, definition)).status).toBe(201);
    const served = '/apis/example.com/v2/widgets';
    await eventually(async () => (await server.get(served)).status === 200, 'the custom kind');
    for (const name of names) {
      const maps = builtin['a built-in kind'];
      // A type inside an object is not the item's own.
      const data = { kind: '{"kind":"ConfigMap",', metadata: '"metadata":{' };
      expect((await server.post(maps, configMap(name, { data }))).status).toBe(201);
      const scalers = builtin['a built-in kind in its stored version'];
      const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' };
      const spec = { maxReplicas: 3, scaleTargetRef };
      expect((await server.post(scalers, { metadata: { name }, spec })).status).toBe(201);
      const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name } };
      expect((await server.post(custom['a custom kind'], widget)).status).toBe(201);
    }
  });

  describe.each(Object.entries(builtin))('%s', (_, path) => {
    test.each(encodings)('API-2, CODEC-2, CODEC-4: items omit their type in %s', async (accept) => {
      const objects = await objectsAt(path, names);
      for (const object of objects) expect(object.kind).toEqual(expect.any(String));
      const bare = objects.map(({ apiVersion: _, kind: __, ...rest }) => rest);
      const filter = '?labelSelector=!absent&limit=500';
      for (const query of ['', filter]) {
        const items = await itemsIn(path + query, accept);
        expect(items.filter(({ metadata }) => names.includes(metadata.name ?? ''))).toEqual(bare);
        for (const item of items) expect(item).not.toHaveProperty('kind');
      }
    });
  });

  describe.each(Object.entries(custom))('%s', (_, path) => {
    test.each(encodings)('API-2, CRD-1: items include their type in %s', async (accept) => {
      expect(await itemsIn(path, accept)).toEqual(await objectsAt(path, names));
    });
  });

  test('CODEC-5, CODEC-6: metadata and table objects include their type', async () => {
    const all = { ...builtin, ...custom };
    for (const path of Object.values(all)) {
      const [object] = await objectsAt(path, ['a']);
      const { kind, apiVersion } = object ?? {};
      const query = '?fieldSelector=metadata.name%3Da';
      const accept = form('PartialObjectMetadataList');
      const { items } = (await server.get(path + query, { accept })).body;
      const partial = {
        kind: 'PartialObjectMetadata',
        apiVersion: `${dialect.group('meta')}/v1`,
        metadata: object?.metadata,
      };
      expect(items).toEqual([partial]);
      const rowsOf = async (include: string) =>
        (
          await server.get(`${path}${query}&includeObject=${include}`, { accept: form('Table') })
        ).body.rows.map((row: { object: JsonValue }) => row.object);
      expect(await rowsOf('Metadata')).toEqual([partial]);
      expect(await rowsOf('Object')).toEqual([expect.objectContaining({ kind, apiVersion })]);
    }
  });

  test('WATCH-1: watch events include the type of their object', async () => {
    const path = builtin['a built-in kind in another version'];
    const watch = await server.watch(`${path}?watch=1`);
    await watch.until((events) => events.length >= names.length);
    watch.close();
    expect(watch.events.map(({ object }) => object)).toEqual(await objectsAt(path, names));
  });
});
