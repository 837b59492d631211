import { expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';

/** Conditional requests for OpenAPI documents (API-12). */

const server = await withServer();
const path = '/openapi/v3/apis/batch/v1';

test.each([
  ['the tag', (etag: string) => etag],
  ['a weak tag', (etag: string) => `W/${etag}`],
  ['one of several', (etag: string) => `"other", ${etag}`],
  ['any', () => '*'],
])('API-12: If-None-Match with %s is answered 304', async (_, header) => {
  const { headers } = await server.get(path);
  const etag = String(headers['etag']);
  const again = await server.get(path, { headers: { 'if-none-match': header(etag) } });
  expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', etag]);
});

test('API-12: a stale ETag gets the whole document, regardless of its date', async () => {
  const answer = await server.get(path, {
    headers: { 'if-none-match': '"old"', 'if-modified-since': new Date().toUTCString() },
  });
  expect(answer.status).toBe(200);
});

test('API-12: If-Modified-Since is answered 304 unless the document is newer', async () => {
  const date = String((await server.get(path)).headers['last-modified']);
  const earlier = new Date(Date.parse(date) - 1000).toUTCString();
  const answers = [date, earlier, 'yesterday'].map((since) =>
    server.get(path, { headers: { 'if-modified-since': since } }),
  );
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses).toEqual([304, 200, 200]);
});
