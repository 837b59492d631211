import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { adminToken, configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const run = promisify(execFile);
const client = join(import.meta.dirname, 'reusing-client.mjs');

let path: string;

const server = await withServer();

beforeAll(async () => {
  path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
});

async function makeMap(name: string, length: number): Promise<void> {
  const map = configMap(name, { data: { text: 'x'.repeat(length) } });
  expect((await server.post(path, map)).status).toBe(201);
}

test.each([20_000, 60_000, 200_000])(
  'API-1: a body of %i bytes can follow an equally long answer on one HTTP/1.1 connection',
  async (length) => {
    await makeMap(`reused-${length}`, length);
    const url = `${server.url}${path}/reused-${length}`;
    const { stdout } = await run(process.execPath, [client, url, adminToken, '25']);
    expect(JSON.parse(stdout)).toEqual({ counts: { 200: 25 }, sockets: 1 });
  },
);

test('API-1: large bodies can be pipelined', async () => {
  await makeMap('ahead', 100_000);
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  const ask = (method: string, body: string, last = '') =>
    socket.write(
      `${method} ${path}/ahead HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminToken}\r\n` +
        `Content-Length: ${body.length}\r\n${last}\r\n${body}`,
    );
  for (let turn = 0; turn < 6; turn += 1) {
    const data = { text: 'x'.repeat(100_000), turn: `${turn}` };
    ask('GET', '');
    ask('PUT', JSON.stringify(configMap('ahead', { data })));
  }
  ask('GET', '', 'Connection: close\r\n');
  const parts: string[] = [];
  for await (const part of socket) parts.push(String(part));
  const statuses = parts.join('').match(/HTTP\/1\.1 \d{3}/g);
  expect(statuses).toEqual(Array.from({ length: 13 }, () => 'HTTP/1.1 200'));
});
