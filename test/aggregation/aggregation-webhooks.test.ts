import { dialectOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { configure, webhook } from '../admission/admission-service.ts';
import { configMap, eventually } from '../support/harness.ts';
import { handOver, json, withExtension } from './extension-server.ts';

/** Servers of admission reviews that are reached through this server's own Service. */

const group = 'checks.example.com';
const { server, extension } = await withExtension();

test('ADM-2, ADM-4: a webhook at this server’s own Service reaches the aggregated server', async () => {
  await handOver(server, extension, { group });
  let users: unknown[] = [];
  let isAllowed = true;
  let redirects = 0;
  extension.answer = ({ request, response, path, query }) => {
    if (path !== `/apis/${group}/v1/reviews`) return false;
    if (redirects > 0) {
      redirects -= 1;
      response.writeHead(307, { location: path }).end();
      return true;
    }
    let text = '';
    request.on('data', (piece: Buffer) => {
      text += piece;
    });
    request.on('end', () => {
      const { apiVersion, kind, request: review } = JSON.parse(text);
      users = [
        request.method,
        query.get('timeout'),
        request.headers['x-remote-user'],
        request.headers['x-remote-group'],
        request.headers.authorization,
      ];
      const verdict = { uid: review.uid, allowed: isAllowed };
      json(response, { apiVersion, kind, response: verdict });
    });
    return true;
  };
  const name = dialectOf('svc').productName;
  const service = { namespace: 'default', name, path: `/apis/${group}/v1/reviews` };
  const hook = webhook({ url: '', caBundle: '' }, { path: '', clientConfig: { service } });
  await configure(server, 'validating', [hook]);
  const create = (name: string) =>
    server.post('/api/v1/namespaces/default/configmaps', configMap(name));
  expect((await create('a')).status).toBe(201);
  expect(users).toEqual([
    'POST',
    '10s',
    'system:apiserver',
    'system:authenticated, system:masters',
    undefined,
  ]);
  isAllowed = false;
  expect((await create('b')).body.message).toBe(
    'admission webhook "a.example.com" denied the request without explanation',
  );

  isAllowed = true;
  redirects = 1;
  expect((await create('b')).body.message).toContain(
    'the backend attempted to redirect this request, which is not permitted',
  );

  await server.remove('/api/v1/namespaces/default/services/ext');
  await eventually(async () => {
    const { message } = (await create('c')).body;
    return message?.includes('the server is currently unable to handle the request');
  }, 'the server to be unavailable');
});
