import https from 'node:https';
import { gunzipSync } from 'node:zlib';
import type { ApiObject } from '@wheelhouse/machinery';
import { beforeAll, expect, test } from 'vitest';
import { adminToken, configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let path: string;
const count = 90;
const table = 'application/json;as=Table;v=v1;g=meta.svc.io';

/** Sizes below and above each threshold for joining, dividing, and copying pieces. */
const sizeOf = (n: number) => [1, 300, 1024, 9000, 17_000, 70_000][n % 6] ?? 1;

const server = await withServer();

beforeAll(async () => {
  path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  const sign = 'é"{[\\';
  const made = Array.from({ length: count }, (_, n) =>
    server.post(path, configMap(`map-${n}`, { data: { text: sign.repeat(sizeOf(n) / 5 + 1) } })),
  );
  for (const answer of await Promise.all(made)) expect(answer.status).toBe(201);
});

function overHttp1(url: string, headers: Record<string, string> = {}): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const options = {
      headers: { authorization: `Bearer ${adminToken}`, ...headers },
      rejectUnauthorized: false,
      agent: false,
    };
    const sent = https.get(`${server.url}${url}`, options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => resolve(Buffer.concat(chunks)));
      answer.on('error', reject);
    });
    sent.on('error', reject);
  });
}

test.each(['', '?limit=50', '?labelSelector=app!%3Dother', '?fieldSelector=metadata.name%3Dmap-5'])(
  'API-2: the list%s has the same bytes over HTTP/1.1 and HTTP/2, and compressed',
  async (query) => {
    const { text, body } = await server.get(path + query);
    expect((await overHttp1(path + query)).toString()).toBe(text);
    const packed = await overHttp1(path + query, { 'accept-encoding': 'gzip' });
    const isPacked = packed[0] === 0x1f;
    expect((isPacked ? gunzipSync(packed) : packed).toString()).toBe(text);
    expect(JSON.stringify(body)).toBe(text.trim());
  },
);

test('API-2: items of a list and of its pages equal those of a get', async () => {
  const whole = (await server.get(path)).body.items;
  expect(whole).toHaveLength(count);
  for (const item of whole.slice(0, 12)) {
    const { body } = await server.get(`${path}/${item.metadata.name}`);
    const type = { apiVersion: 'v1', kind: 'ConfigMap' };
    expect(Object.assign(type, item)).toEqual(body);
  }
  const paged: ApiObject[] = [];
  let token = '';
  do {
    const { body } = await server.get(`${path}?limit=13&continue=${encodeURIComponent(token)}`);
    paged.push(...body.items);
    token = body.metadata.continue ?? '';
  } while (token !== '' && paged.length < 2 * count);
  expect(paged).toEqual(whole);
});

interface Row {
  readonly cells: readonly unknown[];
  readonly object: ApiObject;
}

test('CODEC-5: a table includes each item, whole or as metadata', async () => {
  const items = (await server.get(path)).body.items;
  const accept = { accept: table };
  const rowsOf = async (query: string) =>
    (await server.get<{ rows: Row[] }>(path + query, accept)).body.rows;
  const whole = await rowsOf('?includeObject=Object');
  expect(whole.map(({ object }) => object['data'])).toEqual(items.map((item) => item['data']));
  const rows = await rowsOf('');
  expect(rows.map(({ object }) => object.metadata)).toEqual(items.map(({ metadata }) => metadata));
  expect(rows.map(({ cells }) => cells.slice(0, 2))).toEqual(
    items.map(({ metadata }) => [metadata.name, 1]),
  );
});
