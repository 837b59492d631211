import { beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/harness.ts';
import { apiServices, type Got, handOver, json, withExtension } from './extension-server.ts';

const group = 'metrics.example.com';
const things = `/apis/${group}/v1/namespaces/default/things`;

const { server, extension } = await withExtension();
await handOver(server, extension, { group });
beforeEach(extension.reset);

const headerOf = ({ request }: Got, name: string) => request.headers[name];

test('ADM-4: a request reaches the other server with its user, and the answer returns', async () => {
  extension.answer = ({ response }) => {
    response.writeHead(203, {
      'content-type': 'text/x',
      'x-own': ['a', 'b'],
      connection: 'x-hop',
      'x-hop': '1',
    });
    response.end('hello');
  };
  const answer = await server.get(`${things}/a%20b?limit=1&x=%2F`, {
    headers: {
      'x-remote-user': 'root',
      'x-remote-group': 'system:masters',
      'x-remote-extra-scope': 'all',
      'x-remote-uid': '1',
      'x-mine': 'yes',
      'audit-id': 'my-id',
    },
  });
  expect(answer.status).toBe(203);
  expect(answer.text).toBe('hello');
  expect(answer.headers['content-type']).toBe('text/x');
  expect(answer.headers['x-own']).toBe('a, b');
  expect(answer.headers['x-hop']).toBeUndefined();
  expect(answer.headers['audit-id']).toBe('my-id');
  const [got] = extension.got as [Got];
  expect(got.path).toBe(`${things}/a%20b`);
  expect([...got.query]).toEqual([
    ['limit', '1'],
    ['x', '/'],
  ]);
  expect(headerOf(got, 'x-remote-user')).toBe('system:admin');
  expect(headerOf(got, 'x-remote-group')).toContain('system:masters');
  expect(headerOf(got, 'x-remote-group')).toContain('system:authenticated');
  expect(headerOf(got, 'x-remote-extra-scope')).toBeUndefined();
  expect(headerOf(got, 'x-remote-uid')).toBeUndefined();
  expect(headerOf(got, 'authorization')).toBeUndefined();
  expect(headerOf(got, 'x-mine')).toBe('yes');
  expect(headerOf(got, 'audit-id')).toBe('my-id');
  expect(headerOf(got, 'x-forwarded-for')).toBe('127.0.0.1');
  expect(headerOf(got, 'x-forwarded-proto')).toBe('https');
});

test('ADM-4: bodies pass both ways', async () => {
  extension.answer = ({ request, response }) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => json(response, { length: Buffer.concat(chunks).length }, 201));
  };
  const body = Buffer.alloc(5 * 1024 * 1024, 'x');
  const answer = await server.post(things, body);
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({ length: body.length });
});

test('ADM-4: deleting the APIService removes the route', async () => {
  await handOver(server, extension, { group: 'gone.example.com' });
  const path = '/apis/gone.example.com/v1/things';
  extension.answer = ({ response }) => json(response, {});
  expect((await server.get(path)).status).toBe(200);
  await server.remove(`${apiServices}/v1.gone.example.com`);
  const answer = await eventually(async () => {
    const found = await server.get(path);
    return found.status === 404 && found;
  }, '404');
  expect(answer.body.message).toBe('the server could not find the requested resource');
});
