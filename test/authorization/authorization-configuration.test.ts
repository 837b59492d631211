import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Logger, silentLogger } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, type TestServer } from '../support/harness.ts';
import { buildPrograms, run } from '../support/program.ts';
import { type QuickClock, quickClock } from '../support/quick-clock.ts';
import {
  type Reply,
  startWebhookService,
  type WebhookService,
} from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';

const apiVersion = 'apiserver.config.svc.io/v1';
const review = (status: object) => ({
  kind: 'SubjectAccessReview',
  apiVersion: 'authorization.svc.io/v1',
  status,
});
const allow = review({ allowed: true });
const pass = review({ allowed: false, reason: 'passed' });
const deny = review({ allowed: false, denied: true, reason: 'denied' });
const rbac = { type: 'RBAC', name: 'rbac' };

let service: WebhookService;
let clock: QuickClock;
let configFile: string;
let server: TestServer;
let errors: string[];

beforeEach(async () => {
  service = await untilEnd(startWebhookService());
  clock = quickClock(20);
  errors = [];
});

const configuration = (authorizers: readonly object[]) =>
  JSON.stringify({ apiVersion, kind: 'AuthorizationConfiguration', authorizers });

/** A webhook at a path of the service, by which the service distinguishes several webhooks. */
function webhook(name: string, change: object = {}): object {
  return {
    type: 'Webhook',
    name,
    webhook: {
      timeout: '20s',
      authorizedTTL: '1ns',
      unauthorizedTTL: '1ns',
      subjectAccessReviewVersion: 'v1',
      matchConditionSubjectAccessReviewVersion: 'v1',
      failurePolicy: 'NoOpinion',
      connectionInfo: {
        type: 'KubeConfigFile',
        kubeConfigFile: service.kubeconfig({ path: `/${name}` }),
      },
      ...change,
    },
  };
}
const when = (...expressions: string[]) => ({
  matchConditions: expressions.map((expression) => ({ expression })),
});

async function start(authorizers: readonly object[] | string, change: object = {}) {
  const text = typeof authorizers === 'string' ? authorizers : configuration(authorizers);
  configFile = service.file('authorization.yaml', text);
  const tokenFile = service.file('tokens.csv', 'amy-token,amy,1\nbob-token,bob,2\n');
  const logger: Logger = {
    ...silentLogger,
    error: (message, fields) => errors.push(`${message}: ${String(fields?.['error'])}`),
  };
  server = await withServer({
    clock,
    logger,
    authorizationModes: [],
    authorization: { configFile },
    authentication: { tokenFile },
    ...change,
  });
  return server;
}

/** Sets the reply of each webhook, by its name. */
function answers(replies: Readonly<Record<string, Reply>>): void {
  service.answer = ({ path }) => replies[path.split('?')[0]?.slice(1) ?? ''] ?? { status: 404 };
}
const asked = () => service.received.map(({ path }) => path.split('?')[0]?.slice(1));
const amy = { token: 'amy-token' };
const list = '/api/v1/namespaces';
const status = async (path = list) => (await server.get(path, amy))?.status;
async function metric(series: string, label = ''): Promise<number> {
  const lines = ((await server.get('/metrics'))?.text ?? '').split('\n');
  return Number(
    lines
      .find((line) => line.startsWith(series) && line.includes(label))
      ?.split(' ')
      .at(-1) ?? 0,
  );
}

describe('AUTHZ-3: a chain', () => {
  test('AUTHZ-3: runs in order until one authorizer decides', async () => {
    await start([webhook('one'), webhook('two'), rbac]);
    answers({ one: pass, two: allow });
    expect(await status()).toBe(200);
    expect(asked()).toEqual(['one', 'two']);
    service.received.length = 0;
    answers({ one: deny, two: allow });
    expect(await status()).toBe(403);
    expect(asked()).toEqual(['one']);
    answers({ one: pass, two: pass });
    const refused = await server.get(list, amy);
    expect(refused?.status).toBe(403);
    expect(refused?.body.message).toMatch(/ at the cluster scope: passed\npassed$/);
    expect(await status('/apis')).toBe(200);
    expect((await server.get(list))?.status).toBe(200);
  });

  test('AUTHZ-3: sets the version, timeout, and connection of each webhook', async () => {
    const older = { subjectAccessReviewVersion: 'v1beta1', timeout: '10500ms' };
    await start([webhook('one', older), rbac]);
    service.answer = () => ({ ...allow, apiVersion: 'authorization.svc.io/v1beta1' });
    expect(await status()).toBe(200);
    expect(service.received[0]).toMatchObject({
      path: '/one?timeout=10.5s',
      body: { apiVersion: 'authorization.svc.io/v1beta1' },
    });
    service.answer = () => 'stall';
    clock.waits.length = 0;
    expect(await status()).toBe(403);
    expect(clock.waits).toContain(10_500);
  });

  test('AUTHZ-3: sets how long verdicts are cached', async () => {
    const kept = { authorizedTTL: '10m', unauthorizedTTL: undefined };
    await start([webhook('one', kept), rbac]);
    answers({ one: allow });
    await status();
    answers({ one: pass });
    await status('/api/v1/nodes');
    clock.skip(29_000);
    expect(await status()).toBe(200);
    expect(await status('/api/v1/nodes')).toBe(403);
    expect(asked()).toHaveLength(2);
    clock.skip(1000);
    expect(await status('/api/v1/nodes')).toBe(403);
    expect(asked()).toHaveLength(3);
    clock.skip(569_000);
    expect(await status()).toBe(200);
    clock.skip(1000);
    expect(await status()).toBe(403);
  });

  test.each<[string, Reply]>([
    ['an error', { status: 400 }],
    ['nonsense', { status: 200, text: 'nonsense' }],
    ['silence', 'stall'],
    ['a malformed answer', review({ allowed: 'yes' })],
  ])('AUTHZ-3: the failure policy decides the outcome of %s', async (_, reply) => {
    await start([
      webhook('closed', { failurePolicy: 'Deny', ...when('request.user == "bob"') }),
      webhook('open'),
      rbac,
    ]);
    answers({ closed: reply, open: reply });
    expect(await status('/apis')).toBe(200);
    expect(asked()).toEqual(['open']);
    expect((await server.get('/apis', { token: 'bob-token' }))?.status).toBe(403);
    expect(asked()).toEqual(['open', 'closed']);
    const failOpen = 'apiserver_authorization_webhook_evaluations_fail_open_total';
    expect(await metric(`${failOpen}{name="open"`)).toBe(1);
    expect(await metric(`${failOpen}{name="closed"`)).toBe(0);
  });
});

describe('AUTHZ-3: match conditions', () => {
  test('AUTHZ-3: a false condition skips the webhook; if all are true it is called', async () => {
    const conditions = when(
      'has(request.resourceAttributes)',
      'request.resourceAttributes.namespace == "secret"',
    );
    await start([webhook('one', { failurePolicy: 'Deny', ...conditions }), rbac]);
    answers({ one: deny });
    expect(await status('/apis')).toBe(200);
    expect(await status(list)).toBe(403);
    expect(asked()).toEqual([]);
    expect(await status('/api/v1/namespaces/secret/pods')).toBe(403);
    expect(asked()).toEqual(['one']);
    const excluded = 'apiserver_authorization_match_condition_exclusions_total';
    expect(await metric(`${excluded}{name="one",type="Webhook"}`)).toBe(2);
    const timed = 'apiserver_authorization_match_condition_evaluation_seconds_count';
    expect(await metric(`${timed}{name="one",type="Webhook"}`)).toBe(3);
  });

  test.each([
    ['Deny', 403],
    ['NoOpinion', 200],
  ])('AUTHZ-3: a failing condition follows the failure policy %s', async (failurePolicy, code) => {
    const conditions = when('request.resourceAttributes.verb == "list"', 'request.user != "bob"');
    await start([webhook('one', { failurePolicy, ...conditions }), rbac]);
    answers({ one: allow });
    expect(await status('/apis')).toBe(code);
    expect(asked()).toEqual([]);
    expect((await server.get('/apis', { token: 'bob-token' }))?.status).toBe(200);
    expect(asked()).toEqual([]);
    const failures = 'apiserver_authorization_match_condition_evaluation_errors_total';
    expect(await metric(`${failures}{name="one",type="Webhook"}`)).toBe(1);
  });
});

describe('AUTHZ-3: a changed file', () => {
  const reloads = 'apiserver_authorization_config_controller_automatic_reloads_total';
  const succeeded = () => metric(`${reloads}{`, 'status="success"');
  const failed = () => metric(`${reloads}{`, 'status="failure"');
  const write = (authorizers: readonly object[] | string) => {
    const text = typeof authorizers === 'string' ? authorizers : configuration(authorizers);
    writeFileSync(configFile, text);
  };

  test('AUTHZ-3: is reloaded without a restart, and counted', async () => {
    await start([webhook('one'), rbac]);
    answers({ one: allow, two: deny });
    expect(await status('/apis')).toBe(200);
    const before = Date.now() / 1000;
    write([webhook('two'), rbac]);
    await eventually(async () => (await status('/apis')) === 403, 'the new file');
    await eventually(async () => (await succeeded()) === 1, 'the count');
    const last =
      'apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds';
    expect(await metric(`${last}{`, 'status="success"')).toBeGreaterThanOrEqual(Math.floor(before));
    expect((await server.get('/metrics'))?.text).toMatch(
      /automatic_reloads_total\{apiserver_id_hash="sha256:[0-9a-f]{64}",status="success"\} 1\n/,
    );
    expect(await failed()).toBe(0);
    const replacement = join(service.directory, 'other.yaml');
    writeFileSync(replacement, configuration([rbac]));
    renameSync(replacement, configFile);
    await eventually(async () => (await status('/apis')) === 200, 'the file in its place');
  });

  test('AUTHZ-3: with the same meaning keeps the cached verdicts', async () => {
    await start([webhook('one', { authorizedTTL: '10m' }), rbac]);
    answers({ one: allow });
    expect(await status()).toBe(200);
    const text = readFileSync(configFile, 'utf8');
    write(text.replaceAll(',', ',\n').replace('"10m"', '"600s"'));
    const { ticks } = clock;
    await eventually(async () => clock.ticks >= ticks + 20, 'looks at the file');
    await status();
    expect(await status()).toBe(200);
    expect(asked()).toEqual(['one']);
    expect(await succeeded()).toBe(0);
  });

  test('AUTHZ-3: with an error changes nothing and is logged', async () => {
    await start([webhook('one'), rbac]);
    answers({ one: deny, two: allow });
    expect(await status('/apis')).toBe(403);
    const wrong: readonly [readonly object[] | string, RegExp][] = [
      ['nonsense: [', /failed to load AuthorizationConfiguration/],
      [[webhook('two', { timeout: '1h' }), rbac], /must be > 0s and <= 30s/],
      [[webhook('two')], /missing required types: \[RBAC\]/],
      [
        [webhook('two'), rbac, { type: 'ABAC', name: 'abac' }],
        /authorizer type ABAC is not allowed if it was not enabled at initial server startup/,
      ],
      [[webhook('two', when('nope')), rbac], /undeclared reference to 'nope'/],
      ['', /at least one authorization mode must be defined/],
    ];
    for (const [index, [text, message]] of wrong.entries()) {
      write(text);
      await eventually(async () => (await failed()) === index + 1, String(message));
      expect(errors.at(-1)).toMatch(message);
      expect(await status('/apis')).toBe(403);
    }
    expect(await succeeded()).toBe(0);
    write([webhook('two'), rbac]);
    await eventually(async () => (await status('/api/v1/nodes')) === 200, 'the file mended');
    expect(await succeeded()).toBe(1);
  });

  test('AUTHZ-3: that is missing changes nothing', async () => {
    await start([webhook('one'), rbac]);
    answers({ one: deny });
    expect(await status('/apis')).toBe(403);
    rmSync(configFile);
    await eventually(async () => (await failed()) > 0, 'the failure');
    expect(await status('/apis')).toBe(403);
  });

  test('AUTHZ-3: requests finish with the webhook for which they wait', async () => {
    await start([webhook('one'), rbac]);
    service.answer = () => 'stall';
    const waiting = server.get('/api/v1/nodes', amy);
    await eventually(async () => service.received.length > 0, 'the call');
    answers({ one: deny, two: allow });
    write([webhook('two'), rbac]);
    await eventually(async () => (await succeeded()) === 1, 'the reload');
    expect(await status('/api/v1/nodes')).toBe(200);
    expect((await waiting)?.status).toBe(403);
  });
});

describe('AUTHZ-3: startup', () => {
  test('AUTHZ-3: fails on an invalid file', async () => {
    await expect(start([{ type: 'RBAC', name: 'x' }])).rejects.toThrow(
      'expected name rbac for authorizer RBAC instead of x',
    );
    await expect(start('{')).rejects.toThrow('failed to load AuthorizationConfiguration');
    await expect(start([rbac, { type: 'ABAC', name: 'abac' }])).rejects.toThrow();
    const missing = { authorization: { configFile: join(service.directory, 'none') } };
    await expect(start([rbac], missing)).rejects.toThrow(
      /failed to load AuthorizationConfiguration from file: .*no such file/,
    );
    const inCluster = { connectionInfo: { type: 'InClusterConfig' } };
    await expect(start([webhook('one', inCluster), rbac])).rejects.toThrow(
      'unable to load in-cluster configuration',
    );
    const unusable = service.file('unusable', '{}');
    const connectionInfo = { type: 'KubeConfigFile', kubeConfigFile: unusable };
    await expect(start([webhook('one', { connectionInfo })])).rejects.toThrow('no server found');
  });

  const conflict =
    '--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined';
  test.each([
    ['--authorization-mode=RBAC'],
    ['--authorization-webhook-config-file=k'],
    ['--authorization-webhook-version=v1'],
    ['--authorization-webhook-cache-authorized-ttl=1m'],
    ['--authorization-webhook-cache-unauthorized-ttl=1m'],
  ])('AUTHZ-3: fails on the file together with %s', async (flag) => {
    expect(() => readOptions(['--authorization-config=a', flag])).toThrow(conflict);
  });

  test('AUTHZ-3: accepts the flag', () => {
    const outcome = readOptions(['--authorization-config=/a/b']);
    if (outcome.kind !== 'options') throw new Error(outcome.kind);
    expect(outcome.options.config).toMatchObject({
      authorizationModes: [],
      authorization: { configFile: '/a/b' },
      authentication: { anonymous: true },
    });
  });

  test('AUTHZ-3: exits with 1 and one line on an invalid file', async () => {
    const wrong = service.file('wrong.yaml', configuration([webhook('one', when('1 +'))]));
    const programs = await untilEnd(buildPrograms());
    const flags = [`--authorization-config=${wrong}`, `--data-dir=${service.directory}/data`];
    const ended = await run(programs.wheelhouse, ['serve', '--secure-port=0', ...flags]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(
      /^error: authorizers\[0\]\.matchConditions\[0\]\.expression: Invalid value: "1 \+": compilation failed: .*\n$/,
    );
  });

  test('AUTHZ-3: creates the default roles when the file has RBAC', async () => {
    await start([rbac]);
    const roles = await server.get('/apis/rbac.authorization.svc.io/v1/clusterroles/admin');
    expect(roles?.status).toBe(200);
    expect(await status('/apis')).toBe(200);
    expect(await status()).toBe(403);
  });
});
