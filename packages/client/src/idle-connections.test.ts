import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpClient } from './http-client.ts';

test.each([
  ['is reused before the timeout that the server announces', 60_000, 1],
  ['is not reused if the server may close it at any time', 1_000, 3],
])('a connection %s', async (_, keepAliveTimeout, connections) => {
  const ports = new Set<number | undefined>();
  const server = createServer({ keepAliveTimeout }, (request, response) => {
    ports.add(request.socket.remotePort);
    response.end('answer');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({ server: `http://127.0.0.1:${port}` });
  onTestFinished(() => {
    client.close();
    server.close();
  });
  for (let calls = 0; calls < 3; calls += 1) {
    const { body } = await client.request({ method: 'POST', path: '/', body: 'question' });
    expect(body.toString()).toBe('answer');
  }
  expect(ports.size).toBe(connections);
});

test('a client that is closed finishes its requests, and then closes their connections', async () => {
  const waiting: ServerResponse[] = [];
  const server = createServer((_, response) => void waiting.push(response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({ server: `http://127.0.0.1:${port}` });
  onTestFinished(() => void server.close());
  const request = client.request({ method: 'GET', path: '/' });
  await expect.poll(() => waiting.length).toBe(1);
  client.close();
  waiting[0]?.end('answer');
  expect((await request).body.toString()).toBe('answer');
  const connections = () =>
    new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  await expect.poll(connections).toBe(0);
});
