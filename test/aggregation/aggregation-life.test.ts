import https from 'node:https';
import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { auditFolder } from '../audit/audit-run.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import type { DiscoveredGroups } from '../support/discovered-groups.ts';
import { adminToken, type ConfigChange, eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  apiService,
  apiServices,
  condition,
  handOver,
  json,
  resourceList,
  withExtension,
} from './extension-server.ts';

const group = 'metrics.example.com';
const things = `/apis/${group}/v1/namespaces/default/things`;
const accept = 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';

async function start(change?: ConfigChange): ReturnType<typeof withExtension> {
  const { server, extension } = await withExtension(change);
  await handOver(server, extension, { group });
  return { server, extension };
}

test('ADM-4: after a restart aggregated paths work from the first request on', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  const { server, extension } = await start({ store });
  await server.stop();
  extension.answer = ({ path, response }) => {
    if (path !== things) return false;
    json(response, { found: true });
    return true;
  };
  const again = await withServer({ store });
  expect((await again.get(things)).body).toEqual({ found: true });
  const { body } = await again.get<DiscoveredGroups>('/apis', { accept });
  const item = body.items.find(({ metadata }) => metadata.name === group);
  expect(item?.versions[0]).toMatchObject({ version: 'v1', freshness: 'Current' });
  expect(item?.versions[0].resources[0].resource).toBe('things');
});

test('ADM-4: a stopping server ends its proxied requests', async () => {
  const { server, extension } = await start();
  let gone = 0;
  extension.answer = ({ response }) => {
    response.on('close', () => {
      gone += 1;
    });
    response.writeHead(200);
    response.write('{"type":"ADDED","object":{}}\n');
  };
  extension.upgrade = (_, socket) => {
    socket.on('close', () => {
      gone += 1;
    });
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  };
  const watch = await server.watch(`${things}?watch=1`);
  await watch.until((events) => events.length === 1);
  const socket = await new Promise<Duplex>((resolve) => {
    const request = https.request(`${server.url + things}/a/attach`, {
      rejectUnauthorized: false,
      agent: false,
      headers: { authorization: `Bearer ${adminToken}`, connection: 'Upgrade', upgrade: 'x' },
    });
    request.on('upgrade', (_, taken) => resolve(taken));
    request.end();
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.resume();
  const before = performance.now();
  await server.server.stop();
  expect(performance.now() - before).toBeLessThan(5_000);
  await watch.ended;
  await closed;
  await eventually(async () => gone === 2, 'the other server to see both end');
});

test('ADM-4: a disconnecting client ends its proxied request', async () => {
  const { server, extension } = await start();
  let gone = false;
  extension.answer = ({ response }) => {
    response.on('close', () => {
      gone = true;
    });
  };
  const request = https.request(server.url + things, {
    rejectUnauthorized: false,
    agent: false,
    headers: { authorization: `Bearer ${adminToken}` },
  });
  request.on('error', () => {});
  request.end();
  await eventually(async () => extension.got.length === 1, 'the request');
  request.destroy();
  await eventually(async () => gone, 'the other server to see that nobody waits');
});

test('ADM-4: proxied requests are audited with user and status', async () => {
  const folder = untilEnd(auditFolder({ rules: [{ level: 'RequestResponse' }] }));
  const { server, extension } = await start({ audit: folder.settings });
  extension.answer = ({ response }) => json(response, {}, 418);
  await server.get(`${things}/a`, { headers: { 'audit-id': 'passed' } });
  const events = await folder.of('passed');
  expect(events.map(({ stage }) => stage)).toEqual(['RequestReceived', 'ResponseComplete']);
  expect(events[1]).toMatchObject({
    user: { username: 'system:admin' },
    objectRef: { resource: 'things', namespace: 'default', name: 'a', apiGroup: group },
    responseStatus: { code: 418 },
  });
  extension.answer = ({ response }) => {
    response.writeHead(200);
    response.write('{"type":"ADDED","object":{}}\n');
  };
  const headers = { 'audit-id': 'watched' };
  const watch = await server.watch(`${things}?watch=1`, { headers });
  await folder.of('watched', 'ResponseStarted');
  watch.close();
  const stages = (await folder.of('watched')).map(({ stage }) => stage);
  expect(stages).toEqual(['RequestReceived', 'ResponseStarted', 'ResponseComplete']);
});

test('ADM-4: authorization and impersonation precede the proxy', async () => {
  const { server, extension } = await start();
  extension.answer = ({ response }) => json(response, resourceList(`${group}/v1`));
  extension.got.length = 0;
  expect((await server.get(things, { token: undefined })).status).toBe(403);
  expect((await server.get(things, { token: 'wrong' })).status).toBe(401);
  const headers = { 'impersonate-user': 'bob' };
  const refused = await server.get(things, { headers });
  expect(refused.status).toBe(403);
  expect(refused.body.message).toContain('User "bob" cannot list resource "things"');
  expect(extension.got).toEqual([]);
  const master = { ...headers, 'impersonate-group': 'system:masters' };
  expect((await server.get(things, { headers: master })).status).toBe(200);
  const [got] = extension.got;
  expect(got?.request.headers).toMatchObject({
    'x-remote-user': 'bob',
    'x-remote-group': 'system:masters, system:authenticated',
  });
  expect(got?.request.headers['impersonate-user']).toBeUndefined();
});

test('ADM-4: redirects pass when --aggregator-reject-forwarding-redirect=false', async () => {
  const { server, extension } = await start({ aggregation: { redirects: 'passed' } });
  extension.answer = ({ response }) => {
    response.writeHead(307, { location: '/elsewhere' });
    response.end();
  };
  const answer = await server.get(things);
  expect([answer.status, answer.headers['location']]).toEqual([307, '/elsewhere']);
});

test('ADM-4: with endpoint routing an ExternalName leads nowhere', async () => {
  const { server, extension } = await withExtension({ aggregation: { routing: 'endpoints' } });
  const service = { namespace: 'default', name: 'ext', port: extension.port };
  expect((await server.post(apiServices, apiService(group, { service }))).status).toBe(201);
  const found = await condition(server, `v1.${group}`, { reason: 'FailedDiscoveryCheck' });
  expect(found.message).toBe('unsupported service type "ExternalName"');
});

test('ADM-4: even the core group can be aggregated, and returns', async () => {
  const { server, extension } = await start();
  extension.answerOwn = ({ path, response }) => {
    if (path !== '/api/v1') return false;
    json(response, resourceList('v1', 'pods'));
    return true;
  };
  extension.answer = ({ path, response }) => json(response, { path });
  const service = { namespace: 'default', name: 'ext', port: extension.port };
  const core = apiService('', { service, caBundle: extension.caBundle });
  expect((await server.post(apiServices, core)).status).toBe(201);
  await condition(server, 'v1.', { status: 'True' });
  for (const path of ['/api', '/api/v1', '/api/v1/namespaces/default/pods']) {
    expect((await server.get(path)).body).toEqual({ path });
  }
  expect((await server.get('/apis/apps/v1')).body.kind).toBe('APIResourceList');
  await server.remove(`${apiServices}/v1.`);
  await eventually(
    async () => (await server.get('/api')).body.kind === 'APIVersions',
    'the core group to be back',
  );
});
