import { request } from 'node:https';
import { expect, test } from 'vitest';
import { adminToken, configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

/** The bytes of an answer, as sent. */
function textOf(path: string, accept = 'application/json'): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${adminToken}`, accept };
    const options = { headers, rejectUnauthorized: false };
    request(`${server.url}${path}`, options, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()));
    })
      .on('error', reject)
      .end();
  });
}

const tables = 'application/json;as=Table;v=v1;g=meta.svc.io';

test.each([
  ['/api/v1/namespaces/default'],
  ['/api/v1/namespaces'],
  ['/api/v1/namespaces/absent'],
  ['/apis/none/v1/things/absent'],
  ['/api'],
  ['/apis'],
  ['/apis/apps'],
  ['/apis/apps/v1'],
  ['/api/v1/namespaces', tables],
  ['/api/v1/namespaces/default', tables],
  ['/api/v1/namespaces/default', 'application/json;as=PartialObjectMetadata;v=v1;g=meta.svc.io'],
])('CODEC-1: the JSON of %s %s ends with a newline', async (path, accept?: string) => {
  expect((await textOf(path, accept)).slice(-2)).toBe('}\n');
});

test.each(['/api/v1/namespaces', '/api/v1/namespaces/default', '/api/v1/namespaces/absent'])(
  'CODEC-1: the indented JSON of %s ends with its last brace',
  async (path) => {
    expect((await textOf(`${path}?pretty=true`)).slice(-2)).toBe('\n}');
  },
);

test('CODEC-1: string maps are sorted by key', async () => {
  const maps = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  const unsorted = { z: '1', b: '2', a: '3' };
  const metadata = { name: 'm', labels: unsorted, annotations: unsorted };
  const object = configMap('m', { metadata, data: unsorted });
  await server.post(maps, object);
  const sorted = '{"a":"3","b":"2","z":"1"}';
  const text = await textOf(`${maps}/m`);
  for (const field of ['labels', 'annotations', 'data']) {
    expect(text).toContain(`"${field}":${sorted}`);
  }
  const patch = { metadata: { labels: { aa: '4' } }, data: { c: '5' } };
  for (const kind of ['merge', 'strategic'] as const) {
    await server.patch(`${maps}/m`, patch, kind);
    const patched = await textOf(`${maps}/m`);
    expect(patched).toContain('"labels":{"a":"3","aa":"4","b":"2","z":"1"}');
    expect(patched).toContain('"data":{"a":"3","b":"2","c":"5","z":"1"}');
    await server.put(`${maps}/m`, object);
  }
  const applied = configMap('m', { data: { ab: '6' } });
  await server.patch(`${maps}/m?fieldManager=a`, applied, 'apply');
  expect(await textOf(`${maps}/m`)).toContain('"data":{"a":"3","ab":"6","b":"2","z":"1"}');
});
