import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { silentLogger } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { sample } from '../operations/metric-samples.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { startTestServer } from '../support/harness.ts';
import { startKubelet } from '../support/kubelet.ts';
import { onceWithin } from '../support/once-within.ts';
import { quickClock } from '../support/quick-clock.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import { whoAmI } from './who-am-i.ts';

const audience = 'https://our.example';
const group = 'authentication.svc.io';
const cacheTtlMs = 60_000;
const service = await untilEnd(startWebhookService());
const clock = quickClock(20);
const logged: string[] = [];

type Status = Record<string, unknown>;
const review = (status: Status, version = 'v1') => ({
  apiVersion: `${group}/${version}`,
  kind: 'TokenReview',
  status,
});
const amy = { username: 'amy', uid: '7', groups: ['dev'], extra: { 'example.org/a': ['1', '2'] } };
const isAmy = { authenticated: true, user: amy };

function start(
  version: string,
  options: { readonly audiences?: readonly string[]; readonly anonymous?: boolean } = {},
) {
  const { audiences = [audience], anonymous = true } = options;
  return withServer({
    clock,
    logger: {
      ...silentLogger,
      error: (message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`),
    },
    authentication: {
      anonymous,
      webhook: { configFile: service.kubeconfig({ path: '/authn' }), version, cacheTtlMs },
    },
    serviceAccounts: { issuer: audience, audiences },
  });
}

const v1 = await start('v1');
let tokens = 0;
/** A token that has not been reviewed before. */
const fresh = () => `token-${++tokens}`;

beforeEach(() => {
  service.received.length = 0;
  service.answer = () => review(isAmy);
});

describe('AUTHN-9: a token', () => {
  test('AUTHN-9: is sent in a TokenReview, byte for byte as by kube-apiserver', async () => {
    const answer = await whoAmI(v1, 'a<b>&c');
    expect(answer.status).toBe(201);
    expect(answer.body.status.userInfo).toEqual({
      ...amy,
      groups: ['dev', 'system:authenticated'],
    });
    const [received] = service.received;
    expect(received).toMatchObject({ method: 'POST', path: '/authn?timeout=30s' });
    expect(received?.text).toBe(
      '{"kind":"TokenReview","apiVersion":"authentication.svc.io/v1",' +
        '"metadata":{"creationTimestamp":null},' +
        '"spec":{"token":"a\\u003cb\\u003e\\u0026c","audiences":["https://our.example"]},' +
        '"status":{"user":{}}}\n',
    );
  });

  test('AUTHN-9: is sent in v1beta1 if the flag selects it', async () => {
    const server = await start('v1beta1');
    service.answer = () => review(isAmy, 'v1beta1');
    expect((await whoAmI(server, fresh())).status).toBe(201);
    expect(service.received[0]?.body.apiVersion).toBe(`${group}/v1beta1`);
    service.answer = () => review(isAmy, 'v1');
    expect((await whoAmI(server, fresh())).status).toBe(401);
  });

  test('AUTHN-9: may be answered without apiVersion and kind', async () => {
    service.answer = () => ({ status: isAmy });
    // A reply whose status is not a number is sent as the body.
    expect((await whoAmI(v1, fresh())).status).toBe(201);
  });

  test('AUTHN-9: may be redirected within the server, and its answer compressed', async () => {
    service.answer = ({ path }) =>
      path === '/there'
        ? { status: 200, headers: { 'content-encoding': 'gzip' }, text: gzipSync(accepted) }
        : { status: 307, headers: { location: '/there' } };
    const accepted = JSON.stringify(review(isAmy));
    expect((await whoAmI(v1, fresh())).status).toBe(201);
    expect(service.received.map(({ method }) => method)).toEqual(['POST', 'POST']);
    expect(service.received[1]?.text).toBe(service.received[0]?.text);
  });

  test('AUTHN-9: that the webhook refuses is 401, even with anonymous requests on', async () => {
    service.answer = () => review({ authenticated: false });
    const answer = await whoAmI(v1, fresh());
    expect(answer.status).toBe(401);
    expect(answer.body).toMatchObject({ kind: 'Status', reason: 'Unauthorized' });
    expect(answer.body.message).toBe('Unauthorized');
    expect((await v1.get('/version', { token: undefined })).status).toBe(200);
    expect(service.received).toHaveLength(1);
  });

  test('AUTHN-9: of the server itself is not sent to the webhook', async () => {
    expect((await v1.get('/api')).status).toBe(200);
    expect(service.received).toEqual([]);
  });
});

describe('AUTHN-9: audiences', () => {
  test.each<[string, Status, number]>([
    ['none: the webhook knows of none', isAmy, 201],
    ['ours', { ...isAmy, audiences: ['x', audience] }, 201],
    ['others', { ...isAmy, audiences: ['x'] }, 401],
  ])('AUTHN-9: %s', async (_, status, code) => {
    service.answer = () => review(status);
    expect((await whoAmI(v1, fresh())).status).toBe(code);
  });

  test('AUTHN-9: a TokenReview for other audiences gets theirs', async () => {
    const ask = async (audiences: string[]) => {
      const body = {
        apiVersion: `${group}/v1`,
        kind: 'TokenReview',
        spec: { token: fresh(), audiences },
      };
      return (await v1.post(`/apis/${group}/v1/tokenreviews`, body)).body.status;
    };
    service.answer = () => review({ ...isAmy, audiences: ['x', 'z'] });
    expect(await ask(['x', 'y'])).toMatchObject({ authenticated: true, audiences: ['x'] });
    expect(service.received[0]?.body.spec.audiences).toEqual(['x', 'y']);
    expect((await ask(['y'])).authenticated).toBeUndefined();
    service.answer = () => review({ audiences: ['x'], error: 'token has been revoked' });
    expect((await ask(['x'])).error).toContain('token has been revoked');
  });
});

describe('AUTHN-9: a faulty webhook refuses the token', () => {
  test.each<[string, unknown]>([
    ['another kind', { ...review(isAmy), kind: 'SubjectAccessReview' }],
    ['another group', { ...review(isAmy), apiVersion: 'v1' }],
    ['no status', { apiVersion: `${group}/v1`, kind: 'TokenReview' }],
    ['a status that is text', review('yes' as never)],
    ['authenticated as text', review({ ...isAmy, authenticated: 'true' })],
    ['no user', review({ authenticated: true })],
    ['a user without a name', review({ authenticated: true, user: { ...amy, username: '' } })],
    ['groups as text', review({ ...isAmy, user: { ...amy, groups: 'system:masters' } })],
    ['extra of numbers', review({ ...isAmy, user: { ...amy, extra: { a: [1] } } })],
    ['an error', { status: 403 }],
    ['a status that is no success', { status: 226, text: JSON.stringify(review(isAmy)) }],
    ['a redirect', { status: 302, headers: { location: 'https://127.0.0.1:1/' } }],
    ['a Status', { kind: 'Status', apiVersion: 'v1', status: 'Failure' }],
    ['a reset connection', 'reset'],
    ['silence', 'stall'],
    ['too much', { status: 200, text: `{"a":"${'x'.repeat(2 ** 20)}"}` }],
  ])('AUTHN-9: %s', async (_, reply) => {
    service.answer = () => reply as never;
    const answer = await whoAmI(v1, fresh());
    expect(answer.status).toBe(401);
    expect(answer.text).not.toContain('webhook');
  });

  test('AUTHN-9: the log has the failure but not the token', async () => {
    logged.length = 0;
    const token = fresh();
    service.answer = () => ({ status: 403 });
    await whoAmI(v1, token);
    expect(logged).toEqual([
      'the authentication webhook failed {"error":"WebhookError: the webhook answered with status 403"}',
    ]);
  });

  test('AUTHN-9: a failure is not cached', async () => {
    const token = fresh();
    service.answer = () => ({ status: 403 });
    expect((await whoAmI(v1, token)).status).toBe(401);
    service.answer = () => review({ authenticated: false, error: 'not now' });
    expect((await whoAmI(v1, token)).status).toBe(401);
    service.answer = () => review(isAmy);
    expect((await whoAmI(v1, token)).status).toBe(201);
    expect(service.received).toHaveLength(3);
  });

  test('AUTHN-9: a temporary failure is retried', async () => {
    service.answer = () => (service.received.length < 3 ? { status: 500 } : review(isAmy));
    expect((await whoAmI(v1, fresh())).status).toBe(201);
    expect(service.received).toHaveLength(3);
  });
});

describe('AUTHN-9: cached verdicts', () => {
  test('AUTHN-9: valid tokens are cached for the flag’s duration', async () => {
    const token = fresh();
    for (let times = 0; times < 3; times += 1) await whoAmI(v1, token);
    expect(service.received).toHaveLength(1);
    clock.skip(cacheTtlMs - 5000);
    expect((await whoAmI(v1, token)).status).toBe(201);
    expect(service.received).toHaveLength(1);
    service.answer = () => review({ authenticated: false });
    clock.skip(5000);
    expect((await whoAmI(v1, token)).status).toBe(401);
    expect(service.received).toHaveLength(2);
  });

  test('AUTHN-9: the cache and its users are counted', async () => {
    const look = async () => {
      const { text } = await v1.get('/metrics');
      const of = (name: string, status: string) =>
        sample(text, `authentication_token_cache_${name}`, { status }) || 0;
      return [
        of('request_total', 'hit'),
        of('request_total', 'miss'),
        of('fetch_total', 'ok'),
        of('fetch_total', 'error'),
        of('active_fetch_count', 'in_flight'),
      ];
    };
    const token = fresh();
    const before = await look();
    await Promise.all([whoAmI(v1, token), whoAmI(v1, token)]);
    await whoAmI(v1, token);
    service.answer = () => ({ kind: 'Odd' });
    expect((await whoAmI(v1, fresh())).status).toBe(401);
    const after = await look();
    const grown = after.map((count, index) => count - (before[index] ?? 0));
    const [hits = 0, misses = 0, ...rest] = grown;
    // The webhook's cache and the gate count each lookup, and the gate counts the repeated one.
    expect(hits + misses).toBe(4 + 4 + 1);
    expect(misses).toBeGreaterThanOrEqual(2 + 2);
    expect(rest).toEqual([1 + 1, 1 + 1, 0]);
  });

  test('AUTHN-9: invalid tokens are cached as well', async () => {
    const token = fresh();
    service.answer = () => review({ authenticated: false });
    for (let times = 0; times < 3; times += 1) expect((await whoAmI(v1, token)).status).toBe(401);
    expect(service.received).toHaveLength(1);
    service.answer = () => review(isAmy);
    expect((await whoAmI(v1, token)).status).toBe(401);
    clock.skip(cacheTtlMs);
    expect((await whoAmI(v1, token)).status).toBe(201);
  });

  test('AUTHN-9: concurrent requests share one call', async () => {
    const token = fresh();
    const answers = await Promise.all(Array.from({ length: 20 }, () => whoAmI(v1, token)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(service.received).toHaveLength(1);
  });
});

test('AUTHN-9: other requests do not wait for a silent webhook', async () => {
  service.answer = () => 'stall';
  const round = async () => {
    const strangers = Array.from({ length: 50 }, () => whoAmI(v1, fresh()));
    const startMs = performance.now();
    expect((await v1.get('/api/v1/namespaces')).status).toBe(200);
    expect((await v1.get('/healthz', { token: undefined })).status).toBe(200);
    const tookMs = performance.now() - startMs;
    for (const answer of await Promise.all(strangers)) expect(answer.status).toBe(401);
    return tookMs;
  };
  expect(await onceWithin(5000, round)).toBe(true);
});

test('AUTHN-9: a renewed client certificate is presented to the webhook', async () => {
  const [reviewer, renewed] = await Promise.all([
    untilEnd(startKubelet()),
    untilEnd(startKubelet()),
  ]);
  reviewer.answer = (_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(review(isAmy)));
  };
  const folder = temporaryFolder();
  const path = (name: string) => join(folder, name);
  const install = ({ pair }: typeof reviewer) => {
    writeFileSync(path('client.pem'), pair.certificatePem);
    writeFileSync(path('client.key'), pair.keyPem);
  };
  install(reviewer);
  writeFileSync(path('ca.pem'), reviewer.caPem);
  const server = `https://127.0.0.1:${reviewer.port}`;
  const configuration = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority': 'ca.pem' } }],
    users: [
      { name: 'u', user: { 'client-certificate': 'client.pem', 'client-key': 'client.key' } },
    ],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  const configFile = path('kubeconfig');
  writeFileSync(configFile, JSON.stringify(configuration));
  const asking = await withServer({
    authentication: { webhook: { configFile, version: 'v1', cacheTtlMs: 0 } },
  });
  const presented = async () => {
    expect((await whoAmI(asking, fresh())).status).toBe(201);
    return reviewer.clientFingerprint;
  };
  const fingerprint = ({ pair }: typeof reviewer) =>
    new X509Certificate(pair.certificatePem).fingerprint256;
  expect(await presented()).toBe(fingerprint(reviewer));
  writeFileSync(path('client.key'), 'half');
  expect(await presented()).toBe(fingerprint(reviewer));
  install(renewed);
  expect(await presented()).toBe(fingerprint(renewed));
});

describe('AUTHN-9: startup', () => {
  test('AUTHN-9: knows the review versions', async () => {
    await expect(start('v2')).rejects.toThrow(
      'unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"',
    );
  });

  test('AUTHN-9: fails on an unusable kubeconfig', async () => {
    const webhook = { configFile: '/nowhere/kubeconfig', version: 'v1', cacheTtlMs };
    await expect(startTestServer({ authentication: { webhook } })).rejects.toThrow(
      'webhook kubeconfig /nowhere/kubeconfig: ',
    );
  });

  test('AUTHN-9: has the flags’ defaults', () => {
    const webhookOf = (...args: string[]) => {
      const outcome = readOptions(args);
      if (outcome.kind !== 'options') throw new Error(outcome.kind);
      return outcome.options.config.authentication.webhook;
    };
    expect(webhookOf()).toBeUndefined();
    const file = '--authentication-token-webhook-config-file=k';
    expect(webhookOf(file)).toEqual({ configFile: 'k', version: 'v1beta1', cacheTtlMs: 120_000 });
    expect(
      webhookOf(
        file,
        '--authentication-token-webhook-version=v1',
        '--authentication-token-webhook-cache-ttl=10s',
      ),
    ).toEqual({ configFile: 'k', version: 'v1', cacheTtlMs: 10_000 });
  });
});
