import https from 'node:https';
import { type Clock, systemClock } from '@wheelhouse/machinery';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  awaitWebhook,
  configure,
  hooksOf,
  startAdmissionService,
  webhook,
} from '../admission/admission-service.ts';
import { auditFolder, named } from '../audit/audit-run.ts';
import {
  conversionBy,
  establishMulti,
  startConversionService,
} from '../custom-kinds/conversion-service.ts';
import { sample } from '../operations/metric-samples.ts';
import { onEtcd } from '../storage/etcd-config.ts';
import { untilEnd } from '../support/cleanup.ts';
import {
  adminToken,
  configMap,
  eventually,
  freshNamespace,
  itemNames,
} from '../support/harness.ts';
import { passing, skippingClock } from '../support/skipping-clock.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';

const late = {
  write: 'Timeout: request did not complete within requested timeout - context deadline exceeded',
  request: 'Timeout: request did not complete within the allotted timeout',
} as const;

const status504 = (of: keyof typeof late) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: late[of],
  reason: 'Timeout',
  details: {},
  code: 504,
});

let namespace: string;
let maps: string;
let gone: number;
/** Number of calls that the slow webhook answered before it became slow. */
let answered: number;
const { hooked, unhook } = hooksOf(() => ({ server, service: hooks, namespace }));
const isNobody = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenReview', status: {} };

const hooks = await untilEnd(startAdmissionService());
const delegate = await untilEnd(startWebhookService());
const audit = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
const users = delegate.file('tokens.csv', 'amy-token,amy,1\n');
const images = { kubeConfigFile: delegate.kubeconfig({ path: '/images' }), retryBackoff: 1 };
const plugin = { name: 'ImagePolicyWebhook', configuration: { imagePolicy: images } };
const configuration = { apiVersion: 'apiserver.config.svc.io/v1', kind: 'AdmissionConfiguration' };
const clock = skippingClock();
const server = await withServer({
  clock,
  audit: audit.settings,
  authorizationModes: ['RBAC', 'Webhook'],
  authorization: {
    webhook: {
      configFile: delegate.kubeconfig({ path: '/authorize' }),
      version: 'v1',
      authorizedTtlMs: 0,
      unauthorizedTtlMs: 0,
    },
  },
  authentication: {
    tokenFile: users,
    webhook: {
      configFile: delegate.kubeconfig({ path: '/authenticate' }),
      version: 'v1',
      cacheTtlMs: 0,
    },
  },
  admission: {
    disabled: ['ServiceAccount', 'StorageObjectInUseProtection'],
    enabled: ['ImagePolicyWebhook'],
    configFile: delegate.file(
      'admission.json',
      JSON.stringify({ ...configuration, plugins: [plugin] }),
    ),
  },
});
beforeEach(async () => {
  await unhook();
  hooks.forget();
  delegate.received.length = 0;
  delegate.answer = () => 'stall';
  gone = 0;
  answered = 0;
  const onGone = () => {
    gone += 1;
  };
  delegate.onGone = onGone;
  hooks.onGone(onGone);
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

/** Configures a webhook for ConfigMaps that no longer answers. */
async function stalled(type: 'mutating' | 'validating', more: object = {}): Promise<void> {
  await hooked(type, { path: '/slow', timeoutSeconds: 30, ...more });
  await awaitWebhook(server, { service: hooks, path: '/slow', namespace });
  answered = hooks.at('/slow').length;
  hooks.reply('/slow', () => 'stall');
}

/** Number of calls that reached a webhook which does not answer them. */
const callsReceived = () => hooks.at('/slow').length - answered + delegate.received.length;

/** Waits until requests have called webhooks, then lets the requests time out. */
async function timedOut<T>(pending: Promise<T>, options: { readonly calls: number }): Promise<T> {
  await eventually(async () => callsReceived() >= options.calls, 'the calls of webhooks');
  return passing(clock, pending);
}

const scrape = async () => (await server.get('/metrics')).text;
/** Waits until every received call has been aborted. */
const callsEnded = () => eventually(async () => gone >= callsReceived(), 'a call went on');

describe('a request past its deadline', () => {
  test.each([
    ['mutating', 'Fail'],
    ['mutating', 'Ignore'],
    ['validating', 'Fail'],
    ['validating', 'Ignore'],
  ] as const)(
    'API-10: a write delayed by a webhook is 504 and not stored (%s, %s)',
    async (type, failurePolicy) => {
      await server.post(maps, configMap('there'));
      await stalled(type, { failurePolicy });
      const query = '?timeout=2s';
      const sent = Promise.all([
        server.post(`${maps}${query}`, configMap('new')),
        server.put(`${maps}/there${query}`, configMap('there', { data: { a: '2' } })),
        server.patch(`${maps}/there${query}`, { data: { a: '3' } }, 'merge'),
        server.patch(`${maps}/applied${query}&fieldManager=me`, configMap('applied'), 'apply'),
        server.remove(`${maps}/there${query}`),
        server.remove(`${maps}${query}`),
      ]);
      const startMs = clock.monotonic();
      const answers = await timedOut(sent, { calls: 6 });
      expect(clock.monotonic() - startMs).toBeLessThan(10_000);
      for (const { status, body, headers } of answers) {
        expect(status).toBe(504);
        expect(body).toEqual(status504('write'));
        expect(headers['content-type']).toBe('application/json');
        expect(headers['audit-id']).toMatch(/.+/);
      }
      await callsEnded();
      const { body } = await server.get(maps);
      expect(body.items.map((item) => [item.metadata.name, item['data']])).toEqual([
        ['there', { a: '1' }],
      ]);
    },
  );

  test('API-10: a request delayed in authentication or authorization is 504', async () => {
    const sent = Promise.all(
      ['unknown-token', 'amy-token'].flatMap((token) => [
        server.get(`${maps}?timeout=2s`, { token }),
        server.post(`${maps}?timeout=2s`, configMap(token), { token }),
      ]),
    );
    // Both requests with the unknown token wait for one review.
    const answers = await timedOut(sent, { calls: 3 });
    for (const { status, body } of answers) {
      expect(status).toBe(504);
      expect(body).toEqual(status504('request'));
    }
    const paths = new Set(delegate.received.map(({ path }) => path.split('?')[0]));
    expect([...paths].sort()).toEqual(['/authenticate', '/authorize']);
    // All requests with a token share its review, which therefore outlives each of them.
    const authorizing = delegate.received.filter(({ path }) => path.startsWith('/authorize'));
    await eventually(async () => gone >= authorizing.length, 'a call went on');
    delegate.answer = () => isNobody;
    expect((await server.get(maps)).body.items).toEqual([]);
  });

  test('API-10: a verdict after the deadline stores nothing', async () => {
    let allow = () => {};
    const asked = new Promise<void>((resolve) => {
      delegate.answer = () =>
        new Promise((answer) => {
          const status = {
            authenticated: true,
            user: { username: 'x', groups: ['system:masters'] },
          };
          allow = () => answer({ ...isNobody, status });
          resolve();
        });
    });
    const pending = server.post(`${maps}?timeout=2s`, configMap('late'), { token: 'late-token' });
    await asked;
    expect((await passing(clock, pending)).status).toBe(504);
    allow();
    const source = { source: 'timeout-handler', status: 'error' };
    const name = 'apiserver_request_post_timeout_total';
    await eventually(async () => sample(await scrape(), name, source) >= 1);
    expect((await server.get(maps)).body.items).toEqual([]);
  });

  test('API-10: a pod delayed by the image policy webhook is 504', async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'x:1' }] },
    };
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const answer = await timedOut(server.post(`${pods}?timeout=2s`, pod), { calls: 1 });
    expect([answer.status, answer.body]).toEqual([504, status504('write')]);
    await callsEnded();
    expect((await server.get(`${pods}/p`)).status).toBe(404);
  });

  test('API-10: objects delayed by a conversion webhook are 504', async () => {
    const conversion = await untilEnd(startConversionService());
    const multi = await establishMulti(server, conversionBy(conversion));
    const [stored, converted] = ['v1beta1', 'v1beta2'].map((version) =>
      multi.at(version, namespace),
    );
    expect((await server.post(`${stored}`, multi.object('v1beta1', 'a'))).status).toBe(201);
    conversion.reply = () => 'stall';
    const [read, write] = await passing(
      clock,
      Promise.all([
        server.get(`${converted}/a?timeout=2s`),
        server.post(`${converted}?timeout=2s`, multi.object('v1beta2', 'b')),
      ]),
    );
    expect([read.status, read.body]).toEqual([504, status504('request')]);
    expect([write.status, write.body]).toEqual([504, status504('write')]);
    expect(itemNames(await server.get(`${stored}`))).toEqual(['a']);
  });

  test('API-10: a body that never arrives is not awaited (HTTP/1.1)', async () => {
    const sent = new Promise<string>((resolve, reject) => {
      const request = https.request(`${server.url}${maps}?timeout=2s`, {
        method: 'POST',
        rejectUnauthorized: false,
        headers: {
          authorization: `Bearer ${adminToken}`,
          'content-type': 'application/json',
          'content-length': 1000,
        },
      });
      request.on('error', reject);
      request.on('response', (response) => {
        let text = '';
        response.on('data', (piece) => {
          text += piece;
        });
        response.on('end', () => resolve(`${response.statusCode} ${JSON.parse(text).message}`));
      });
      request.write('{"apiVersion":');
    });
    expect(await passing(clock, sent)).toBe(`504 ${late.write}`);
  });

  test('API-10: a longer timeout is capped, and 0 means the default', async () => {
    const ownClock = skippingClock();
    const requestTimeoutMs = 20_000;
    const short = await withServer({ clock: ownClock, limits: { requestTimeoutMs } });
    await configure(short, 'validating', [webhook(hooks, { path: '/slow', timeoutSeconds: 30 })]);
    hooks.reply('/slow', () => 'stall');
    const path = '/api/v1/namespaces/default/configmaps';
    for (const query of ['', '?timeout=1h', '?timeout=0', '?timeout=-1s']) {
      const calls = hooks.at('/slow').length;
      let isAnswered = false;
      const pending = short.post(`${path}${query}`, configMap('a')).finally(() => {
        isAnswered = true;
      });
      await eventually(async () => hooks.at('/slow').length > calls, 'the call of the webhook');
      ownClock.skip(requestTimeoutMs / 2);
      expect((await short.get('/version')).status).toBe(200);
      expect(isAnswered).toBe(false);
      ownClock.skip(requestTimeoutMs / 2);
      const answer = await pending;
      expect([answer.status, answer.body]).toEqual([504, status504('write')]);
    }
    const watch = await short.watch(`${path}?watch=true&timeout=100ms&timeoutSeconds=1`);
    const startMs = ownClock.monotonic();
    await passing(ownClock, watch.ended);
    expect(ownClock.monotonic() - startMs).toBeGreaterThan(700);
  });

  test('OPS-2: the audit log records the timeout once', async () => {
    await stalled('validating');
    const sent = named();
    const answer = await timedOut(server.post(`${maps}?timeout=2s`, configMap('a'), sent), {
      calls: 1,
    });
    expect(answer.status).toBe(504);
    const events = await audit.of(sent.id);
    expect(events.map(({ stage }) => stage)).toEqual(['RequestReceived', 'ResponseComplete']);
    expect(events[1]?.responseStatus).toMatchObject({
      code: 504,
      reason: 'Timeout',
      message: late.write,
    });
    const unknown = named();
    const options = { ...unknown, token: 'nobody' };
    const refused = timedOut(server.get(`${maps}?timeout=2s`, options), { calls: 2 });
    expect((await refused).status).toBe(504);
    const [started] = await audit.of(unknown.id, 'ResponseStarted');
    expect(started?.responseStatus).toMatchObject({ code: 504, message: late.request });
  });

  test('OPS-1: metrics count the timeout and what ran after it', async () => {
    await stalled('validating');
    const asked = await scrape();
    const pending = timedOut(server.post(`${maps}?timeout=2s`, configMap('a')), { calls: 1 });
    expect((await pending).status).toBe(504);
    const of = { verb: 'POST', group: '', version: 'v1', resource: 'configmaps', code: '504' };
    const more = { subresource: '', scope: 'resource', component: 'apiserver' };
    const growth = (text: string, name: string, labels: Record<string, string>) =>
      sample(text, name, labels) - (sample(asked, name, labels) || 0);
    const text = await scrape();
    expect(growth(text, 'apiserver_request_terminations_total', { ...of, ...more })).toBe(1);
    expect(growth(text, 'apiserver_request_total', { ...of, dry_run: '' })).toBe(1);
    const behind = { source: 'rest-handler', status: 'error' };
    await eventually(
      async () => growth(await scrape(), 'apiserver_request_post_timeout_total', behind) === 1,
    );
  });
});

/**
 * A clock whose timers of about a second fire 1.9 ms early, as timers of whole milliseconds may.
 * What they start sees that time for a while, even on a slow machine.
 */
function earlyClock(): Clock {
  let shownMs: number | undefined;
  let lastMs = 0;
  return {
    ...systemClock,
    monotonic() {
      lastMs = shownMs ?? systemClock.monotonic();
      return lastMs;
    },
    after(delayMs, task) {
      if (delayMs < 600 || delayMs > 1000) return systemClock.after(delayMs, task);
      const dueMs = lastMs + delayMs;
      return systemClock.after(delayMs, () => {
        shownMs = dueMs - 1.9;
        setTimeout(() => {
          shownMs = undefined;
        }, 300);
        task();
      });
    },
  };
}

test('API-10: a call cut off at the deadline is not ignored by its failure policy', async () => {
  const own = await withServer({ clock: earlyClock() });
  for (const type of ['mutating', 'validating'] as const) {
    await configure(own, type, [
      webhook(hooks, { path: '/slow', timeoutSeconds: 30, failurePolicy: 'Ignore' }),
    ]);
    hooks.reply('/slow', () => 'stall');
    const path = '/api/v1/namespaces/default/configmaps';
    const answer = await own.post(`${path}?timeout=1s`, configMap(type));
    expect([answer.status, answer.body]).toEqual([504, status504('write')]);
    expect(itemNames(await own.get(path))).not.toContain(type);
    await configure(own, type, []);
  }
});

test('ADM-2, AUTHZ-3: a disconnecting client ends the calls made for it', async () => {
  await stalled('validating');
  for (const token of [adminToken, 'amy-token']) {
    const before = gone;
    const calls = hooks.received.length + delegate.received.length;
    const request = https.request(`${server.url}${maps}`, {
      method: 'POST',
      rejectUnauthorized: false,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
    request.on('error', () => {});
    request.end(JSON.stringify(configMap('left')));
    await eventually(async () => hooks.received.length + delegate.received.length > calls);
    request.destroy();
    await eventually(async () => gone > before, 'a call went on');
  }
  await unhook();
  expect((await server.get(maps)).body.items).toEqual([]);
});

test.skipIf(!hasEtcd)(
  'STORE-2: a write to a stalled store is stored whole or not at all',
  async () => {
    const etcd = await untilEnd(startTestEtcd());
    const ownClock = skippingClock();
    const own = await withServer({ ...onEtcd(etcd), clock: ownClock });
    const path = '/api/v1/namespaces/default/configmaps';
    await own.post(path, configMap('a'));
    await etcd.pause();
    const [read, write] = await passing(
      ownClock,
      Promise.all([
        own.get(`${path}/a?timeout=2s`),
        own.put(`${path}/a?timeout=2s`, configMap('a', { data: { a: '2', b: '2' } })),
      ]),
    );
    expect([read.status, read.body.message]).toEqual([504, late.request]);
    expect([write.status, write.body.message]).toEqual([504, late.write]);
    etcd.resume();
    const { data } = await eventually(async () => {
      const answer = await own.get(`${path}/a`);
      return answer.status === 200 ? answer.body : undefined;
    });
    expect([{ a: '1' }, { a: '2', b: '2' }]).toContainEqual(data);
  },
);
