import { dialectOf, WebhookError } from '@wheelhouse/machinery';
import {
  createWebhook,
  type WebhookAttempt,
  webhookInCluster,
  webhookOfKubeconfig,
} from '@wheelhouse/server/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { type QuickClock, quickClock } from '../support/quick-clock.ts';
import { startWebhookService } from '../support/webhook-service.ts';

let clock: QuickClock;
let attempts: WebhookAttempt[];
let webhook: ReturnType<typeof createWebhook>;

const service = await untilEnd(startWebhookService());
/** Half a minute of the host's time for an answer on a busy machine. */
const timeoutMs = 600_000;
/** For services that do not answer. */
const silenceMs = 30_000;

async function webhookWithin(timeoutMs: number) {
  return createWebhook({
    client: await webhookOfKubeconfig(service.kubeconfig({ path: '' })),
    timeoutMs,
    clock,
    onAttempt: (attempt) => attempts.push(attempt),
  });
}

beforeEach(async () => {
  service.received.length = 0;
  clock = quickClock(20);
  attempts = [];
  webhook = await webhookWithin(timeoutMs);
});
afterEach(() => webhook.close());

const call = () => webhook.call('{"a":1}', (answer) => answer);
const failure = async (): Promise<WebhookError> => {
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof WebhookError) return error;
  throw new Error(`no WebhookError: ${String(error)}`);
};
const outcomes = () => attempts.map(({ outcome }) => outcome);
/** Pauses between attempts, without the time limits of the attempts. */
const pauses = () => clock.waits.filter((wait) => wait !== timeoutMs);

test('a call posts the body and returns the parsed answer', async () => {
  service.answer = () => ({ b: 2 });
  expect(await call()).toEqual({ b: 2 });
  const [received] = service.received;
  expect(received).toMatchObject({ method: 'POST', path: '/?timeout=10m0s', text: '{"a":1}' });
  expect(received?.headers['content-type']).toBe('application/json');
  expect(received?.headers.accept).toBe('application/json, */*');
  expect(outcomes()).toEqual(['success']);
});

test.each([429, 500, 504])(
  'status %d is retried, five attempts in all, with growing delays',
  async (status) => {
    service.answer = () => ({ status });
    expect((await failure()).message).toBe(`the webhook answered with status ${status}`);
    expect(outcomes()).toEqual(Array(5).fill(status === 504 ? 'timeout' : 'error'));
    const bounds = [500, 750, 1125, 1687.5];
    expect(pauses()).toHaveLength(bounds.length);
    for (const [index, pause] of pauses().entries()) {
      expect(pause).toBeGreaterThanOrEqual(bounds[index] ?? 0);
      expect(pause).toBeLessThanOrEqual((bounds[index] ?? 0) * 1.2);
    }
  },
);

test('a reset connection is retried', async () => {
  service.answer = () => (service.received.length < 3 ? 'reset' : { ok: true });
  expect(await call()).toEqual({ ok: true });
  expect(outcomes()).toEqual(['error', 'error', 'success']);
});

test.each([400, 403, 404, 409, 503])('status %d is final', async (status) => {
  service.answer = () => ({ status });
  expect((await failure()).outcome).toBe('error');
  expect(attempts).toHaveLength(1);
});

test('Retry-After is honored within limits', async () => {
  service.answer = () => {
    const seconds = service.received.length === 1 ? '3' : '999999';
    if (service.received.length === 3) return { ok: true };
    return { status: 503, headers: { 'retry-after': seconds } };
  };
  expect(await call()).toEqual({ ok: true });
  expect(pauses()).toEqual([3000, 10_000]);
});

test('a silent service fails the call at its deadline, once', async () => {
  webhook = await webhookWithin(silenceMs);
  service.answer = () => 'stall';
  const error = await failure();
  expect(error.outcome).toBe('timeout');
  expect(error.message).toBe('the webhook did not answer within 30000 ms');
  expect(outcomes()).toEqual(['timeout']);
});

test('an unreachable service fails the call at once, without naming its address', async () => {
  const gone = await startWebhookService();
  const client = await webhookOfKubeconfig(gone.kubeconfig());
  await gone.stop();
  webhook = createWebhook({ client, timeoutMs, clock });
  const error = await failure();
  expect(error.message).toBe('cannot reach the webhook (ECONNREFUSED)');
  expect(error.message).not.toContain('127.0.0.1');
});

test('a certificate of an unknown authority is not trusted', async () => {
  const stranger = await untilEnd(startWebhookService(['127.0.0.1', 'stranger.example.com']));
  const cluster = { server: stranger.url };
  webhook = createWebhook({
    client: await webhookOfKubeconfig(service.kubeconfig({ cluster })),
    timeoutMs,
    clock,
  });
  expect((await failure()).message).toMatch(/^cannot reach the webhook \(/);
  expect(stranger.received).toEqual([]);
});

test.each([
  ['no JSON', { status: 200, text: '{"a":' }],
  ['no object', { status: 200, text: '[1]' }],
  ['nothing', { status: 200, text: '' }],
  ['no text', { status: 200, text: '\u0000\u0001' }],
])('an answer that is %s is an error', async (_, answer) => {
  service.answer = () => answer;
  expect((await failure()).message).toMatch(/^the webhook's answer is invalid: /);
  expect(outcomes()).toEqual(['error']);
});

test('an answer is read up to one megabyte', async () => {
  service.answer = () => ({ status: 200, text: JSON.stringify({ a: 'x'.repeat(2 ** 20) }) });
  expect((await failure()).message).toBe("the webhook's answer exceeds 1048576 bytes");
});

test('an answer that the reader refuses fails the call', async () => {
  service.answer = () => ({ b: 2 });
  const refused = webhook.call('{}', () => {
    throw new Error('not this');
  });
  await expect(refused).rejects.toThrow("the webhook's answer is invalid: not this");
});

test('closing ends calls in flight and pending retries', async () => {
  clock.waits.length = 0;
  service.answer = () => 'stall';
  const stalled = failure();
  while (service.received.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  webhook.close();
  expect((await stalled).outcome).toBe('canceled');
});

test('retiring lets calls in flight finish', async () => {
  webhook = await webhookWithin(silenceMs);
  service.answer = () => 'stall';
  const waiting = call().catch(() => 'failed');
  while (service.received.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  service.answer = () => ({ ok: true });
  webhook.retire();
  expect(await call()).toEqual({ ok: true });
  expect(await waiting).toBe('failed');
});

test('the number of calls in flight is bounded', async () => {
  service.answer = () => 'stall';
  const client = await webhookOfKubeconfig(service.kubeconfig());
  webhook = createWebhook({ client, timeoutMs, clock, callsMax: 3 });
  const calls = Array.from({ length: 3 }, () => call().catch(() => {}));
  expect((await failure()).message).toBe('too many calls to the webhook are in flight');
  webhook.close();
  await Promise.all(calls);
});

test('a workload of another server calls that server', async () => {
  const folder = service.directory;
  service.file('token', 'mine\n');
  const { port } = new URL(service.url);
  const env = { SVC_SERVICE_HOST: '127.0.0.1', SVC_SERVICE_PORT: port };
  service.kubeconfig();
  const asked = { dialect: dialectOf('svc'), version: 'v1' };
  const client = webhookInCluster(asked, { env, folder });
  webhook = createWebhook({ client, timeoutMs, clock });
  service.answer = () => ({ ok: true });
  expect(await call()).toEqual({ ok: true });
  expect(service.received[0]).toMatchObject({
    path: '/apis/authorization.svc.io/v1/subjectaccessreviews?timeout=10m0s',
    headers: { authorization: 'Bearer mine' },
  });
  expect(() => webhookInCluster(asked, { env: {}, folder })).toThrow('must be defined');
});

test.each([
  ['a missing file', '', 'no such file'],
  [
    'no server',
    '{"current-context":"x","contexts":[{"name":"x","context":{}}]}',
    'no server found',
  ],
  ['no context', '{"clusters":[{"name":"c","cluster":{"server":"https://x"}}]}', 'no server found'],
  ['a lost context', '{"current-context":"y"}', 'context was not found'],
  ['no mapping', '[1]', 'webhook kubeconfig'],
])('a kubeconfig with %s is refused', async (what, text, message) => {
  const path = what === 'a missing file' ? `${service.directory}/none` : service.file('bad', text);
  await expect(webhookOfKubeconfig(path)).rejects.toThrow(message);
});
