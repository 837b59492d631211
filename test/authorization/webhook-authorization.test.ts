import type { SelfSubjectRulesReview } from '@wheelhouse/kinds/types/authorization/v1';
import { readFeatureGates, readOptions } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import {
  type ConfigChange,
  eventually,
  type ResponseOf,
  type TestServer,
} from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';
import { quickClock } from '../support/quick-clock.ts';
import { type Received, startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';

const group = 'authorization.svc.io';
const review = (status: object, version = 'v1') => ({
  kind: 'SubjectAccessReview',
  apiVersion: `${group}/${version}`,
  status,
});
const allowed = review({ allowed: true });
const ttlMs = 60_000;
const service = await untilEnd(startWebhookService());
const clock = quickClock(20);
const tokenFile = service.file('tokens.csv', 'amy-token,amy,uid-1,"dev,<ops>"\nbob-token,bob,2\n');

function start(settings: object = {}, change: ConfigChange = {}): Promise<TestServer> {
  return withServer({
    clock,
    authorizationModes: ['Webhook', 'RBAC'],
    authorization: {
      webhook: {
        configFile: service.kubeconfig({ user: { token: 'my-secret' } }),
        version: 'v1',
        authorizedTtlMs: 0,
        unauthorizedTtlMs: 0,
        ...settings,
      },
    },
    authentication: { tokenFile },
    ...change,
  });
}

const server = await start();
beforeEach(() => {
  service.received.length = 0;
  service.answer = () => allowed;
});

const amy = { token: 'amy-token' };
const last = (): Received => {
  const found = service.received.at(-1);
  if (found === undefined) throw new Error('nothing was received');
  return found;
};
/** The value of a series of the metrics; 0 if absent. */
async function metric(of: TestServer, series: string): Promise<number> {
  const lines = (await of.get('/metrics')).text.split('\n');
  return Number(lines.find((line) => line.startsWith(`${series} `))?.slice(series.length) ?? 0);
}

describe('AUTHZ-2: the review that a webhook receives', () => {
  test('AUTHZ-2: covers a resource, byte for byte as kube-apiserver sends it', async () => {
    const answer = await server.get('/apis/apps/v1/namespaces/y/deployments/web/status', amy);
    expect(answer.status).toBe(404);
    expect(last()).toMatchObject({ method: 'POST', path: '/authorize?timeout=30s' });
    expect(last().headers.authorization).toBe('Bearer my-secret');
    expect(last().text).toBe(
      '{"kind":"SubjectAccessReview","apiVersion":"authorization.svc.io/v1",' +
        '"metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":"y",' +
        '"verb":"get","group":"apps","version":"v1","resource":"deployments",' +
        '"subresource":"status","name":"web"},"user":"amy",' +
        '"groups":["dev","\\u003cops\\u003e","system:authenticated"],"uid":"uid-1"},' +
        '"status":{"allowed":false}}\n',
    );
  });

  test('AUTHZ-2: covers another path, in v1beta1', async () => {
    const older = await start({ version: 'v1beta1' });
    service.answer = () => review({ allowed: true }, 'v1beta1');
    const headers = {
      'impersonate-user': 'jane',
      'impersonate-extra-b': '2',
      'impersonate-extra-a': '1',
    };
    expect((await older.get('/version', { headers })).status).toBe(200);
    expect(last().text).toBe(
      '{"kind":"SubjectAccessReview","apiVersion":"authorization.svc.io/v1beta1",' +
        '"metadata":{"creationTimestamp":null},"spec":{"nonResourceAttributes":' +
        '{"path":"/version","verb":"get"},"user":"jane","group":["system:authenticated"],' +
        '"extra":{"a":["1"],"b":["2"]}},"status":{"allowed":false}}\n',
    );
    service.answer = () => allowed;
    expect((await older.get('/api/v1/nodes', amy)).status).toBe(403);
  });

  test('AUTHZ-2: names a version only for impersonated kinds of an API group', async () => {
    const headers = {
      'impersonate-user': 'jane',
      'impersonate-group': 'devs',
      'impersonate-uid': '7',
      'impersonate-extra-a': '1',
    };
    expect((await server.get('/version', { headers, ...amy })).status).toBe(200);
    const reviewed = service.received.map(({ text }) => JSON.parse(text).spec.resourceAttributes);
    const own = { verb: 'impersonate', group: 'authentication.svc.io', version: 'v1' };
    expect(reviewed.slice(0, 4)).toEqual([
      { verb: 'impersonate', resource: 'users', name: 'jane' },
      { verb: 'impersonate', resource: 'groups', name: 'devs' },
      { ...own, resource: 'userextras', subresource: 'a', name: '1' },
      { ...own, resource: 'uids', name: '7' },
    ]);
  });

  test.each([
    [
      'fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase!%3DFailed',
      {
        fieldSelector: {
          requirements: [
            { key: 'spec.nodeName', operator: 'In', values: ['n1'] },
            { key: 'status.phase', operator: 'NotIn', values: ['Failed'] },
          ],
        },
      },
    ],
    [
      'labelSelector=a%3D1%2Cb%20in%20(y%2Cx)%2Cc%20notin%20(z)%2Cd%2C!e%2Cf%3E1',
      {
        labelSelector: {
          requirements: [
            { key: 'a', operator: 'In', values: ['1'] },
            { key: 'b', operator: 'In', values: ['x', 'y'] },
            { key: 'c', operator: 'NotIn', values: ['z'] },
            { key: 'd', operator: 'Exists' },
            { key: 'e', operator: 'DoesNotExist' },
          ],
        },
      },
    ],
    ['labelSelector=%3D%3D', {}],
    ['labelSelector=f%3E1', {}],
    ['limit=1', {}],
  ])('AUTHZ-2: covers a list with %s', async (query, selectors) => {
    await server.get(`/api/v1/namespaces/y/pods?${query}`, amy);
    const plain = { namespace: 'y', verb: 'list', version: 'v1', resource: 'pods' };
    expect(last().body.spec.resourceAttributes).toEqual({ ...plain, ...selectors });
    await server.get(`/api/v1/namespaces/y/pods/x?${query}`, amy);
    const { verb, name } = { verb: 'get', name: 'x' };
    expect(last().body.spec.resourceAttributes).toEqual({ ...plain, verb, name });
  });

  test.each<[string, object, object, string | undefined]>([
    [
      'raw selectors',
      { fieldSelector: { rawSelector: 'a=b' }, labelSelector: { rawSelector: 'x,!y' } },
      {
        fieldSelector: { requirements: [{ key: 'a', operator: 'In', values: ['b'] }] },
        labelSelector: {
          requirements: [
            { key: 'x', operator: 'Exists' },
            { key: 'y', operator: 'DoesNotExist' },
          ],
        },
      },
      undefined,
    ],
    [
      'requirements, some of them of the future',
      {
        fieldSelector: {
          requirements: [
            { key: 'a', operator: 'NotIn', values: ['b'] },
            { key: 'c', operator: 'In', values: ['d', 'e'] },
          ],
        },
        labelSelector: { requirements: [{ key: 'x', operator: 'Like', values: ['y'] }] },
      },
      { fieldSelector: { requirements: [{ key: 'a', operator: 'NotIn', values: ['b'] }] } },
      'spec.resourceAttributes.fieldSelector partially ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error',
    ],
    [
      'selectors that cannot be read',
      { fieldSelector: { rawSelector: 'a' } },
      {},
      'spec.resourceAttributes.fieldSelector ignored due to parse error',
    ],
  ])('AUTHZ-8: about a review with %s', async (_, given, reviewedAs, evaluationError) => {
    const attributes = { verb: 'list', resource: 'pods' };
    const spec = { user: 'amy', resourceAttributes: { ...attributes, ...given } };
    const body = { apiVersion: `${group}/v1`, kind: 'SubjectAccessReview', spec };
    const answer = await server.post(`/apis/${group}/v1/subjectaccessreviews`, body);
    expect(answer.body.status).toEqual({ allowed: true, evaluationError });
    const expected = { ...attributes, version: '*', ...reviewedAs };
    expect(last().body.spec.resourceAttributes).toEqual(expected);
  });

  test('AUTHZ-2: has no selectors when the gate is off', async () => {
    const { gates } = readFeatureGates(['AuthorizeWithSelectors=false']);
    const without = await start({}, { featureGates: gates });
    await without.get('/api/v1/pods?labelSelector=a', amy);
    expect(last().body.spec.resourceAttributes).toEqual({
      verb: 'list',
      version: 'v1',
      resource: 'pods',
    });
    const attributes = { verb: 'list', resource: 'pods' };
    const requirements = [{ key: 'a', operator: 'In' }];
    // Not evaluated: otherwise this spec would be rejected.
    const fieldSelector = { rawSelector: 'a=b', requirements };
    const resourceAttributes = { ...attributes, fieldSelector, labelSelector: fieldSelector };
    for (const [path, spec] of [
      ['subjectaccessreviews', { user: 'amy' }],
      ['selfsubjectaccessreviews', {}],
    ] as const) {
      const answer = await without.post(`/apis/${group}/v1/${path}`, {
        spec: { ...spec, resourceAttributes },
      });
      expect(answer.status, path).toBe(201);
      expect(answer.body.spec).toEqual({ ...spec, resourceAttributes: attributes });
      expect(answer.body.status.allowed).toBe(true);
    }
  });
});

describe('AUTHZ-2: the meaning of its answer', () => {
  const path = '/api/v1/namespaces';

  test('AUTHZ-2: allowed ends the chain', async () => {
    expect((await server.get(path, amy)).status).toBe(200);
  });

  test('AUTHZ-2: not allowed passes to the next mode', async () => {
    service.answer = () => review({ allowed: false, reason: 'I do not know her' });
    expect((await server.get('/apis', amy)).status).toBe(200);
    const refused = await server.get(path, amy);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      'namespaces is forbidden: User "amy" cannot list resource "namespaces" in API group "" at the cluster scope: I do not know her',
    );
  });

  test('AUTHZ-2: denied ends the chain', async () => {
    service.answer = () => review({ allowed: false, denied: true, reason: 'never' });
    const refused = await server.get('/apis', amy);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toMatch(/ cannot get path "\/apis": never$/);
    service.answer = () => review({ allowed: true, denied: true });
    expect((await server.get('/apis', amy)).status).toBe(403);
  });

  test('AUTHZ-10: system:masters does not reach the webhook', async () => {
    service.answer = () => review({ allowed: false, denied: true });
    expect((await server.get(path)).status).toBe(200);
    expect(service.received).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['status 403', { status: 403 }],
    ['no JSON', { status: 200, text: 'allowed' }],
    ['another kind', { ...allowed, kind: 'TokenReview' }],
    ['another version', review({ allowed: true }, 'v1beta1')],
    ['allowed as text', review({ allowed: 'true' })],
    ['a list', { status: 200, text: '[]' }],
    ['silence', 'stall'],
    ['a reset connection', 'reset'],
  ])('AUTHZ-2: %s is no opinion', async (_, reply) => {
    service.answer = () => reply as never;
    expect((await server.get('/apis', amy)).status).toBe(200);
    const refused = await server.get(path, amy);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toMatch(/ at the cluster scope$/);
    expect(refused.text).not.toContain('webhook');
  });

  test('AUTHZ-8: an access review reports that the webhook failed, without its address', async () => {
    service.answer = () => ({ status: 403 });
    const body = {
      apiVersion: `${group}/v1`,
      kind: 'SubjectAccessReview',
      spec: { user: 'amy', resourceAttributes: { verb: 'get', resource: 'pods' } },
    };
    const answer = await server.post(`/apis/${group}/v1/subjectaccessreviews`, body);
    expect(answer.body.status).toEqual({
      allowed: false,
      evaluationError: 'authorization webhook "default" failed',
    });
  });

  test('AUTHZ-8: a rules review is incomplete', async () => {
    const url = `/apis/${group}/v1/selfsubjectrulesreviews`;
    const body = {
      apiVersion: `${group}/v1`,
      kind: 'SelfSubjectRulesReview',
      spec: { namespace: 'y' },
    };
    const { status } = (await server.post<ResponseOf<SelfSubjectRulesReview>>(url, body, amy)).body;
    expect(status).toMatchObject({
      incomplete: true,
      evaluationError: 'webhook authorizer does not support user rule resolution',
    });
    expect(status.nonResourceRules.length).toBeGreaterThan(0);
  });

  test('AUTHZ-3: calls are counted', async () => {
    const counted = 'apiserver_authorization_webhook_evaluations_total{name="default",result=';
    const failOpen = 'apiserver_authorization_webhook_evaluations_fail_open_total{name="default",';
    const before = await Promise.all([
      metric(server, `${counted}"success"}`),
      metric(server, `${counted}"error"}`),
      metric(server, `${failOpen}result="error"}`),
    ]);
    await server.get(path, amy);
    service.answer = () => ({ status: 400 });
    await server.get(path, amy);
    expect(await metric(server, `${counted}"success"}`)).toBe((before[0] ?? 0) + 1);
    expect(await metric(server, `${counted}"error"}`)).toBe((before[1] ?? 0) + 1);
    expect(await metric(server, `${failOpen}result="error"}`)).toBe((before[2] ?? 0) + 1);
    const decided = 'apiserver_authorization_decisions_total{';
    expect(
      await metric(server, `${decided}decision="allowed",name="default",type="Webhook"}`),
    ).toBeGreaterThan(0);
    const text = (await server.get('/metrics')).text;
    expect(text).toContain(
      'apiserver_authorization_webhook_duration_seconds_count{name="default",result="success"}',
    );
  });
});

describe('AUTHZ-2: cached verdicts', () => {
  test('AUTHZ-2: allowed and denied have their own lifetimes', async () => {
    const keeping = await start({ authorizedTtlMs: 10 * ttlMs, unauthorizedTtlMs: ttlMs });
    const deniedPath = '/api/v1/namespaces/other';
    for (let times = 0; times < 3; times += 1) await keeping.get('/api/v1/namespaces', amy);
    service.answer = () => review({ allowed: false });
    for (let times = 0; times < 3; times += 1) await keeping.get(deniedPath, amy);
    expect(service.received).toHaveLength(2);
    clock.skip(ttlMs);
    expect((await keeping.get('/api/v1/namespaces', amy)).status).toBe(200);
    expect(service.received).toHaveLength(2);
    expect((await keeping.get(deniedPath, amy)).status).toBe(403);
    expect(service.received).toHaveLength(3);
    clock.skip(9 * ttlMs);
    expect((await keeping.get('/api/v1/namespaces', amy)).status).toBe(403);
    expect(service.received).toHaveLength(4);
    expect((await keeping.get('/api/v1/namespaces', { token: 'bob-token' })).status).toBe(403);
    expect(service.received).toHaveLength(5);
  });

  test('AUTHZ-2: failures are not cached, nor requests that a client makes large', async () => {
    const keeping = await start({ authorizedTtlMs: ttlMs, unauthorizedTtlMs: ttlMs });
    service.answer = () => ({ status: 403 });
    await keeping.get('/api/v1/namespaces', amy);
    await keeping.get('/api/v1/namespaces', amy);
    expect(service.received).toHaveLength(2);
    service.answer = () => allowed;
    const ask = (name: string) => {
      const resourceAttributes = { verb: 'get', resource: 'pods', name };
      const body = {
        apiVersion: `${group}/v1`,
        kind: 'SubjectAccessReview',
        spec: { user: 'amy', resourceAttributes },
      };
      return keeping.post(`/apis/${group}/v1/subjectaccessreviews`, body);
    };
    for (let times = 0; times < 2; times += 1) {
      expect((await ask('short')).body.status).toEqual({ allowed: true });
    }
    expect(service.received).toHaveLength(3);
    for (let times = 0; times < 2; times += 1) await ask('x'.repeat(9992));
    expect(service.received).toHaveLength(5);
    for (let times = 0; times < 2; times += 1) await ask('x'.repeat(9991));
    expect(service.received).toHaveLength(6);
  });
});

test('AUTHZ-2: a silent webhook delays only its own requests', async () => {
  service.answer = ({ body }) => (body.spec.user === 'amy' ? 'stall' : allowed);
  const round = async () => {
    const before = service.received.length;
    const waiting = Array.from({ length: 30 }, () => server.get('/api/v1/namespaces', amy));
    await eventually(async () => service.received.length >= before + 30, 'calls');
    const startMs = performance.now();
    expect((await server.get('/api/v1/namespaces')).status).toBe(200);
    expect((await server.get('/api/v1/namespaces', { token: 'bob-token' })).status).toBe(200);
    const tookMs = performance.now() - startMs;
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(403);
    return tookMs;
  };
  expect(await onceWithin(5000, round)).toBe(true);
});

describe('AUTHZ-2: startup', () => {
  test.each([
    [['Webhook'], "authorization-mode Webhook's authorization config file not passed"],
    [
      ['RBAC', '--authorization-webhook-config-file=k'],
      'cannot specify --authorization-webhook-config-file without mode Webhook',
    ],
    [
      ['Webhook', '--authorization-webhook-config-file=k', '--authorization-webhook-version=v2'],
      'unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"',
    ],
    [['RBAC,Webhook,RBAC'], 'authorization-mode ["RBAC" "Webhook" "RBAC"] has mode specified more'],
    [['RBAC,Other'], 'authorization-mode "Other" is not a valid mode'],
  ])('AUTHZ-2: --authorization-mode=%j is refused', ([modes = '', ...more], message) => {
    expect(() => readOptions([`--authorization-mode=${modes}`, ...more])).toThrow(message);
  });

  test('AUTHZ-2: has the flags’ defaults', () => {
    const webhookOf = (...args: string[]) => {
      const outcome = readOptions(['--authorization-mode=Webhook', ...args]);
      if (outcome.kind !== 'options') throw new Error(outcome.kind);
      return outcome.options.config.authorization?.webhook;
    };
    const flag = (name: string, value: string) => `--authorization-webhook-${name}=${value}`;
    expect(webhookOf(flag('config-file', 'k'))).toEqual({
      configFile: 'k',
      version: 'v1beta1',
      authorizedTtlMs: 300_000,
      unauthorizedTtlMs: 30_000,
    });
    expect(
      webhookOf(
        flag('config-file', 'k'),
        flag('version', 'v1'),
        flag('cache-authorized-ttl', '1m'),
        flag('cache-unauthorized-ttl', '0'),
      ),
    ).toEqual({ configFile: 'k', version: 'v1', authorizedTtlMs: 60_000, unauthorizedTtlMs: 0 });
  });

  test('AUTHZ-2: fails on an unusable kubeconfig', async () => {
    await expect(start({ configFile: '/nowhere/kubeconfig' })).rejects.toThrow(
      'webhook kubeconfig /nowhere/kubeconfig: ',
    );
  });
});
