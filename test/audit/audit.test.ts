import { statSync } from 'node:fs';
import { type ApiObject, systemClock } from '@wheelhouse/machinery';
import { expect, test, vi } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, startTestServer } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import { type AuditEvent, auditFolder, named } from './audit-run.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

const core = (resource: string) => [{ group: '', resources: [resource] }];
const folder = untilEnd(
  auditFolder({
    rules: [
      { level: 'None', resources: core('events') },
      { level: 'Metadata', resources: core('secrets'), omitStages: ['RequestReceived'] },
      { level: 'Request', resources: core('serviceaccounts') },
      { level: 'RequestResponse', resources: core('pods'), omitManagedFields: true },
      { level: 'RequestResponse' },
    ],
  }),
);
const server = await withServer({ audit: folder.settings });

const stages = (events: readonly AuditEvent[]) => events.map(({ stage }) => stage);

test('OPS-2: a write is recorded on arrival and on completion, with its objects', async () => {
  const { id, headers } = named();
  const made = await server.post(`${maps}?fieldManager=me`, configMap('a'), {
    headers: {
      ...headers,
      'user-agent': 'tester/1',
      'x-forwarded-for': '203.0.113.7, nonsense, 2001:db8::1',
      'x-real-ip': '198.51.100.1',
    },
  });
  expect(made.headers['audit-id']).toBe(id);
  const events = await folder.of(id);
  expect(stages(events)).toEqual(['RequestReceived', 'ResponseComplete']);
  const [received, complete] = events;
  expect(received).toEqual({
    kind: 'Event',
    apiVersion: 'audit.svc.io/v1',
    level: 'RequestResponse',
    auditID: id,
    stage: 'RequestReceived',
    requestURI: `${maps}?fieldManager=me`,
    verb: 'create',
    user: { username: 'system:admin', groups: ['system:masters', 'system:authenticated'] },
    sourceIPs: ['203.0.113.7', '2001:db8::1', '198.51.100.1', '127.0.0.1'],
    userAgent: 'tester/1',
    objectRef: { resource: 'configmaps', namespace: 'default', apiVersion: 'v1' },
    requestReceivedTimestamp: expect.stringMatching(microTime),
    stageTimestamp: received?.requestReceivedTimestamp,
  });
  expect(complete).toEqual({
    ...received,
    stage: 'ResponseComplete',
    objectRef: { resource: 'configmaps', namespace: 'default', name: 'a', apiVersion: 'v1' },
    responseStatus: { metadata: {}, code: 201 },
    requestObject: configMap('a', { metadata: { name: 'a', creationTimestamp: null } }),
    responseObject: made.body,
    stageTimestamp: expect.stringMatching(microTime),
    annotations: { 'authorization.svc.io/decision': 'allow', 'authorization.svc.io/reason': '' },
  });
  expect(String(complete?.stageTimestamp) >= String(complete?.requestReceivedTimestamp)).toBe(true);
});

test('OPS-2: levels limit what is recorded, and the file is private', async () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } };
  const ofSecret = named();
  const body = { ...secret, stringData: { password: 'hidden-word' } };
  await server.post('/api/v1/namespaces/default/secrets', body, { headers: ofSecret.headers });
  const [metadata, ...more] = await folder.of(ofSecret.id);
  expect(more).toEqual([]);
  expect(metadata).toMatchObject({ level: 'Metadata', stage: 'ResponseComplete' });
  expect(metadata?.objectRef.name).toBe('s');
  expect(JSON.stringify(metadata)).not.toContain('hidden-word');
  expect(metadata).not.toHaveProperty('requestObject');

  const ofAccount = named();
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'sa' } };
  const at = '/api/v1/namespaces/default/serviceaccounts';
  await server.post(at, account, { headers: ofAccount.headers });
  const request = await folder.lastOf(ofAccount.id);
  expect(request.requestObject).toMatchObject(account);
  expect(request).not.toHaveProperty('responseObject');

  const ofToken = named();
  await server.post(`${at}/sa/token`, { spec: {} }, { headers: ofToken.headers });
  const token = await folder.lastOf(ofToken.id);
  expect(token.requestObject).toMatchObject({ spec: { expirationSeconds: 3600 } });

  const ofEvents = named();
  await server.get('/api/v1/events', { headers: ofEvents.headers });
  const after = named();
  await server.get('/version', { headers: after.headers });
  await folder.of(after.id);
  expect(folder.events().some(({ auditID }) => auditID === ofEvents.id)).toBe(false);
  expect(statSync(folder.logPath).mode & 0o777).toBe(0o600);
});

test('OPS-2: patches are recorded as sent, lists and tables as returned', async () => {
  await server.post(maps, configMap('p'));
  const merge = named();
  const patch = { data: { b: '2' } };
  await server.patch(`${maps}/p`, patch, 'merge', { headers: merge.headers });
  const merged = await folder.lastOf(merge.id);
  expect(merged).toMatchObject({ verb: 'patch', requestObject: patch });
  expect(merged.responseObject.data).toEqual({ a: '1', b: '2' });
  expect(merged.responseObject.metadata.managedFields).toBeDefined();

  const apply = named();
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y1\n';
  await server.patch(`${maps}/y1?fieldManager=f`, yaml, 'apply', { headers: apply.headers });
  const applied = await folder.lastOf(apply.id);
  const requested = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'y1' } };
  expect(applied.requestObject).toEqual(requested);

  const list = named();
  const listed = await server.get(maps, { headers: list.headers });
  expect((await folder.lastOf(list.id)).responseObject).toEqual(listed.body);

  const table = named();
  const accept = 'application/json;as=Table;g=meta.svc.io;v=v1';
  const rows = await server.get(maps, { headers: table.headers, accept });
  const { responseObject } = await folder.lastOf(table.id);
  expect(responseObject.kind).toBe('Table');
  expect(responseObject.rows.length).toBe(rows.body.rows.length);

  const encoded = named();
  const protobuf = 'application/vnd.svc.protobuf';
  await server.get(`${maps}/p`, { headers: encoded.headers, accept: protobuf });
  const shown = (await folder.lastOf(encoded.id)).responseObject;
  expect(shown).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'p' } });
});

test('OPS-2: omitManagedFields removes managed fields', async () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'm' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  };
  const pods = '/api/v1/namespaces/default/pods';
  const make = named();
  const made = await server.post(pods, pod, { headers: make.headers });
  expect(made.body.metadata.managedFields).toBeDefined();
  const created = await folder.lastOf(make.id);
  expect(created.responseObject.metadata.name).toBe('m');
  expect(created.responseObject.metadata.managedFields).toBeUndefined();

  const list = named();
  await server.get(pods, { headers: list.headers });
  const { items } = (await folder.lastOf(list.id)).responseObject;
  expect(items.map((item: ApiObject) => item.metadata.name)).toContain('m');
  expect(items.some((item: ApiObject) => item.metadata.managedFields !== undefined)).toBe(false);

  const put = named();
  await server.put(`${pods}/m`, made.body, { headers: put.headers });
  const { requestObject } = await folder.lastOf(put.id);
  expect(requestObject.metadata.managedFields).toBeUndefined();
});

test('OPS-2: large objects and patches are recorded, but not patches of too many values', async () => {
  const dataOf = (letter: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${letter}${at}`, `${at}`]));
  const make = named();
  const object = { ...configMap('large'), data: dataOf('a', 8_000) };
  expect((await server.post(maps, object, { headers: make.headers })).status).toBe(201);
  const made = await folder.lastOf(make.id);
  expect([made.requestObject.data, made.responseObject.data]).toEqual([object.data, object.data]);

  const patched = async (count: number) => {
    const { id, headers } = named();
    const patch = { data: dataOf('b', count) };
    const { status } = await server.patch(`${maps}/large`, patch, 'merge', { headers });
    const { requestObject } = await folder.lastOf(id);
    return { status, requestObject };
  };
  expect(await patched(8_000)).toEqual({
    status: 200,
    requestObject: { data: dataOf('b', 8_000) },
  });
  expect(await patched(100_000)).toEqual({ status: 413, requestObject: undefined });

  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'large' },
    spec: {
      containers: [
        {
          name: 'c',
          image: 'i',
          env: Array.from({ length: 4_000 }, (_, at) => ({
            name: `E${at}`,
            value: 'v'.repeat(40),
          })),
        },
      ],
    },
  };
  const create = named();
  const pods = '/api/v1/namespaces/default/pods';
  const { status, body } = await server.post(pods, pod, { headers: create.headers });
  expect(status).toBe(201);
  const { managedFields, ...metadata } = body.metadata;
  expect(managedFields).toBeDefined();
  expect((await folder.lastOf(create.id)).responseObject).toEqual({ ...body, metadata });
});

test('OPS-2: a deletion is recorded with its options and its Status', async () => {
  await server.post(maps, configMap('d'));
  const { id, headers } = named();
  const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' };
  await server.remove(`${maps}/d`, options, { headers });
  const event = await folder.lastOf(id);
  expect(event.requestObject).toEqual(options);
  expect(event.responseStatus).toMatchObject({ status: 'Success', code: 200, metadata: {} });
  expect(event.responseStatus.details.name).toBe('d');
  expect(event.responseObject.kind).toBe('Status');
});

test('OPS-2: a watch is recorded when it arrives, starts, and ends', async () => {
  const { id, headers } = named();
  const watch = await server.watch(`${maps}?watch=1`, { headers });
  const before = await folder.of(id, 'ResponseStarted');
  expect(stages(before)).toEqual(['RequestReceived', 'ResponseStarted']);
  expect(before.at(-1)).toMatchObject({ verb: 'watch', responseStatus: { code: 200 } });
  watch.close();
  const events = await folder.of(id);
  expect(stages(events)).toEqual(['RequestReceived', 'ResponseStarted', 'ResponseComplete']);
  expect(events.at(-1)?.responseStatus).toEqual({ metadata: {}, code: 200 });

  const bad = named();
  const refused = await server.get(`${maps}?watch=1&resourceVersion=x`, { headers: bad.headers });
  const failed = await folder.of(bad.id);
  expect(stages(failed)).toEqual(['RequestReceived', 'ResponseStarted', 'ResponseComplete']);
  expect(failed.at(-1)?.responseStatus.code).toBe(refused.status);
});

test('OPS-2: failures are recorded with the returned Status', async () => {
  const missing = named();
  const answer = await server.get(`${maps}/none`, { headers: missing.headers });
  const event = await folder.lastOf(missing.id);
  const { kind: _kind, apiVersion: _version, ...status } = answer.body;
  expect(event.responseStatus).toEqual(status);
  expect(event.responseObject).toEqual(answer.body);

  const invalid = named();
  const bad = { ...configMap('X y'), data: { a: '1' } };
  const refused = await server.post(maps, bad, { headers: invalid.headers });
  expect(refused.status).toBe(422);
  const { responseStatus, requestObject } = await folder.lastOf(invalid.id);
  expect(responseStatus).toMatchObject({ code: 422, reason: 'Invalid', status: 'Failure' });
  expect(requestObject.metadata.name).toBe('X y');
});

test('OPS-2: a forbidden request is recorded with the decision and its reason', async () => {
  const { id, headers } = named();
  const answer = await server.get(maps, { token: undefined, headers });
  expect(answer.status).toBe(403);
  const event = await folder.lastOf(id);
  expect(event.user).toEqual({ username: 'system:anonymous', groups: ['system:unauthenticated'] });
  expect(event.annotations).toEqual({
    'authorization.svc.io/decision': 'forbid',
    'authorization.svc.io/reason': '',
  });
  expect(event.responseStatus).toMatchObject({ code: 403, reason: 'Forbidden' });
});

test('OPS-2: an unauthenticated request is recorded once, without a user', async () => {
  const { id, headers } = named();
  const answer = await server.get(`${maps}/a`, { token: 'wrong-token', headers });
  expect(answer.status).toBe(401);
  const events = await folder.of(id, 'ResponseStarted');
  expect(events).toHaveLength(1);
  expect(events[0]).toMatchObject({
    user: {},
    verb: 'get',
    objectRef: { name: 'a' },
    responseStatus: { status: 'Failure', reason: 'Unauthorized', code: 401 },
  });
  expect(JSON.stringify(folder.events())).not.toContain('wrong-token');
});

test('OPS-2: an impersonated user is recorded beside the real one', async () => {
  const { id, headers } = named();
  await server.get('/apis', {
    headers: { ...headers, 'impersonate-user': 'ann', 'impersonate-group': 'writers' },
  });
  const event = await folder.lastOf(id);
  expect(event.user.username).toBe('system:admin');
  expect(event.impersonatedUser).toEqual({
    username: 'ann',
    groups: ['writers', 'system:authenticated'],
  });
});

test('OPS-2: requests without an Audit-Id get one, and long user agents are truncated', async () => {
  const userAgent = 'a'.repeat(2000);
  const answer = await server.get('/api', { headers: { 'user-agent': userAgent } });
  const id = String(answer.headers['audit-id']);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  const event = await folder.lastOf(id);
  expect(event.userAgent).toBe(`${'a'.repeat(1024)}...TRUNCATED`);
  expect(event).not.toHaveProperty('objectRef');
});

test('OPS-2: deprecated versions and issued tokens are annotated', async () => {
  const old = named();
  await server.get('/api/v1/componentstatuses', { headers: old.headers });
  expect((await folder.lastOf(old.id)).annotations['svc.io/deprecated']).toBe('true');

  const token = named();
  const request = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec: {} };
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'issued' } };
  await server.post(accounts, account);
  const issued = await server.post(`${accounts}/issued/token`, request, { headers: token.headers });
  const [, claims = ''] = String(issued.body.status.token).split('.');
  const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString());
  const event = await folder.lastOf(token.id);
  expect(event.annotations['authentication.svc.io/issued-credential-id']).toBe(`JTI=${jti}`);
});

test('OPS-2: use of a Secret-based token is annotated', async () => {
  const own = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
  const auditedServer = await withServer({
    audit: own.settings,
    controllers: ['serviceaccount-controller', 'serviceaccount-token-controller'],
  });
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'svc.io/service-account-token',
    metadata: { name: 't', annotations: { 'svc.io/service-account.name': 'old' } },
  };
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'old' } };
  await auditedServer.post('/api/v1/namespaces/default/serviceaccounts', account);
  await auditedServer.post('/api/v1/namespaces/default/secrets', secret);
  const token = await eventually(async () => {
    const { body } = await auditedServer.get('/api/v1/namespaces/default/secrets/t');
    const held = body.data?.token;
    return held === undefined ? undefined : Buffer.from(held, 'base64').toString();
  }, 'the token in the Secret');
  const { id, headers } = named();
  await auditedServer.get('/api', { token, headers });
  const event = await own.lastOf(id);
  expect(event.annotations['authentication.svc.io/legacy-token']).toBe(
    'system:serviceaccount:default:old',
  );
  expect(event.annotations['authentication.svc.io/legacy-token-manual-secret']).toBe('t');
});

test('OPS-2: an unexpected failure is stage Panic, and only the log has its cause', async () => {
  const own = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
  let isArmed = false;
  const isWriting = () => new Error().stack?.includes('registry/write');
  const now = () => {
    if (isArmed && isWriting()) throw new Error('no time');
    return systemClock.now();
  };
  const auditedServer = await withServer({ audit: own.settings, clock: { ...systemClock, now } });
  isArmed = true;
  const { id, headers } = named();
  const answer = await auditedServer.post(maps, configMap('never'), { headers });
  expect(answer.status).toBe(500);
  expect(answer.text).not.toContain('no time');
  const events = await own.of(id, 'Panic');
  expect(stages(events)).toEqual(['RequestReceived', 'Panic']);
  expect(events.at(-1)?.responseStatus).toEqual({
    metadata: {},
    status: 'Failure',
    reason: 'InternalError',
    message: "APIServer panic'd: no time",
    code: 500,
  });
});

test('OPS-2: a path of - means standard output', async () => {
  const own = auditFolder({ rules: [{ level: 'Metadata' }] }, { path: '-' });
  const lines: string[] = [];
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    lines.push(String(chunk));
    return true;
  });
  try {
    const auditedServer = await startTestServer({ audit: own.settings });
    const { id, headers } = named();
    await auditedServer.get('/version', { headers });
    await auditedServer.stop();
    const events = lines.filter((line) => line.includes(id)).map((line) => JSON.parse(line));
    expect(stages(events)).toEqual(['RequestReceived', 'ResponseComplete']);
  } finally {
    spy.mockRestore();
    own.remove();
  }
});

test('OPS-2: kube-apiserver’s names are used in the kubernetes dialect', async () => {
  const own = untilEnd(
    auditFolder({ apiVersion: 'audit.k8s.io/v1', rules: [{ level: 'Metadata' }] }),
  );
  const auditedServer = await withServer({ audit: own.settings, dialect: 'kubernetes' });
  const { id, headers } = named();
  await auditedServer.get(maps, { headers });
  expect(await own.lastOf(id)).toMatchObject({
    apiVersion: 'audit.k8s.io/v1',
    annotations: { 'authorization.k8s.io/decision': 'allow' },
  });
});

test('OPS-2: a watch is not annotated with the time for which it lasts', async () => {
  const own = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
  const clock = quickClock(1);
  const auditedServer = await withServer({ audit: own.settings, clock });
  const { id, headers } = named();
  const watch = await auditedServer.watch(`${maps}?watch=1`, { headers });
  await own.of(id, 'ResponseStarted');
  clock.skip(90_000);
  watch.close();
  const { annotations } = await own.lastOf(id);
  expect(annotations).not.toHaveProperty('apiserver.latency.svc.io/total');
});

test('OPS-2: a slow request is annotated, and received before its token is reviewed', async () => {
  const own = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
  const clock = quickClock(1);
  const service = await untilEnd(startWebhookService());
  service.answer = () => {
    clock.skip(2000);
    const apiVersion = 'authentication.svc.io/v1';
    const status = { authenticated: true, user: { username: 'amy' } };
    return { apiVersion, kind: 'TokenReview', status };
  };
  const webhook = { configFile: service.kubeconfig(), version: 'v1', cacheTtlMs: 0 };
  const auditedServer = await withServer({
    audit: own.settings,
    clock,
    authentication: { webhook },
  });
  const { id, headers } = named();
  await auditedServer.get(maps, { headers, token: 'of-amy' });
  const { requestReceivedTimestamp, stageTimestamp, annotations, user } = await own.lastOf(id);
  expect(user.username).toBe('amy');
  const tookMs = Date.parse(stageTimestamp) - Date.parse(requestReceivedTimestamp);
  expect(tookMs).toBeGreaterThanOrEqual(2000);
  expect(annotations['apiserver.latency.svc.io/total']).toMatch(/^\d+(\.\d+)?s$/);
});

test('OPS-2: credentials in a query are not recorded', async () => {
  const { id, headers } = named();
  const secret = 'a-secret-of-somebody';
  const query = [
    'limit=1',
    `access_token=${secret}`,
    `ACCESS%5Ftoken=${secret}`,
    `id_token=${secret}`,
    `%zz=${secret}`,
    'labelSelector=a%3Db',
  ];
  await server.get(`${maps}?${query.join('&')}`, { headers });
  const events = await folder.of(id);
  expect(events.length).toBeGreaterThan(0);
  for (const event of events) {
    expect(JSON.stringify(event)).not.toContain(secret);
    expect(event.requestURI).toBe(
      `${maps}?limit=1&access_token=REDACTED&ACCESS%5Ftoken=REDACTED&id_token=REDACTED` +
        '&%zz=REDACTED&labelSelector=a%3Db',
    );
  }
});

test('OPS-2: metrics count events and levels', async () => {
  const text = await eventually(async () => (await server.get('/metrics')).text);
  const count = (name: string) =>
    Number(new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (\\d+)$`, 'm').exec(text)?.[1]);
  expect(count('apiserver_audit_event_total')).toBeGreaterThan(10);
  expect(count('apiserver_audit_level_total{level="None"}')).toBeGreaterThan(0);
  expect(count('apiserver_audit_level_total{level="RequestResponse"}')).toBeGreaterThan(5);
});
