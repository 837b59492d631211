import { dialectOf, type JsonObject, runInOnePiece, systemClock } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import type { AuthorizerType } from './authorization.ts';
import { loadAuthorizationConfiguration } from './authorization-configuration.ts';

const dialect = dialectOf('kubernetes');
const group = 'apiserver.config.k8s.io';
const load = (text: string, required: readonly AuthorizerType[] = [], clock = systemClock) =>
  loadAuthorizationConfiguration(text, {
    dialect,
    selectors: 'included',
    fileProblem: (path) => (path === '/there' ? undefined : `error loading file: stat ${path}`),
    requiredTypes: new Set(required),
    clock,
  });
const file = (authorizers: unknown, version = 'v1') =>
  JSON.stringify({
    apiVersion: `${group}/${version}`,
    kind: 'AuthorizationConfiguration',
    authorizers,
  });

const plain = {
  timeout: '3s',
  subjectAccessReviewVersion: 'v1',
  failurePolicy: 'Deny',
  connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/there' },
};
const webhook = (change: object = {}, name = 'w') => ({
  type: 'Webhook',
  name,
  webhook: { ...plain, ...change },
});
const conditions = (...expressions: string[]) => ({
  matchConditionSubjectAccessReviewVersion: 'v1',
  matchConditions: expressions.map((expression) => ({ expression })),
});
const rbac = { type: 'RBAC', name: 'rbac' };

describe('AUTHZ-3: a valid file', () => {
  test.each(['v1alpha1', 'v1beta1', 'v1'])('in version %s', async (version) => {
    const node = { type: 'Node', name: 'node' };
    const [first, ...more] = await load(file([webhook({}, 'a.b-c'), node, rbac], version));
    expect(more).toEqual([node, rbac]);
    expect(first).toEqual({
      type: 'Webhook',
      name: 'a.b-c',
      webhook: {
        name: 'a.b-c',
        version: 'v1',
        timeoutMs: 3000,
        authorizedTtlMs: 300_000,
        unauthorizedTtlMs: 30_000,
        failurePolicy: 'Deny',
        kubeConfigFile: '/there',
        matches: undefined,
        expressions: [],
      },
    });
  });

  test('in YAML, with every member', async () => {
    const text = `
apiVersion: ${group}/v1
kind: AuthorizationConfiguration
authorizers:
  - type: Webhook
    name: w
    webhook:
      authorizedTTL: 1m
      unauthorizedTTL: 1.5s
      timeout: 30s
      subjectAccessReviewVersion: v1beta1
      matchConditionSubjectAccessReviewVersion: v1
      failurePolicy: NoOpinion
      connectionInfo:
        type: InClusterConfig
      matchConditions:
        - expression: has(request.resourceAttributes)
`;
    const [only] = await load(text);
    expect(only).toMatchObject({
      webhook: {
        version: 'v1beta1',
        timeoutMs: 30_000,
        authorizedTtlMs: 60_000,
        unauthorizedTtlMs: 1500,
        failurePolicy: 'NoOpinion',
        kubeConfigFile: undefined,
      },
    });
  });
});

const duplicateNames = [webhook(), webhook()];
const at = 'authorizers[0]';
const texts = 'a lowercase RFC 1123 subdomain must consist of';

describe('AUTHZ-3: errors in kube-apiserver’s wording', () => {
  test.each<[unknown, string]>([
    [[], 'authorizers: Required value: at least one authorization mode must be defined'],
    [null, 'authorizers: Required value: at least one authorization mode must be defined'],
    [[{ name: 'x' }], `${at}.type: Required value`],
    [
      [{ type: 'Foo', name: 'x' }],
      `${at}.type: Unsupported value: "Foo": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"`,
    ],
    [[rbac, { ...rbac, name: 'x' }], 'authorizers[1].type: Duplicate value: "RBAC"'],
    [[{ type: 'RBAC' }], `${at}.name: Required value`],
    [duplicateNames, 'authorizers[1].name: Duplicate value: "w"'],
    [
      [webhook({}, 'A_b')],
      `${at}.name: Invalid value: "A_b": authorizer name is invalid: ${texts}`,
    ],
    [[webhook({}, 'x'.repeat(254))], 'must be no more than 253 characters'],
    [[{ type: 'Webhook', name: 'x' }], `${at}.webhook: Required value: required when type=Webhook`],
    [
      [{ ...rbac, webhook: plain }],
      `${at}.webhook: Invalid value: "non-null": may only be specified when type=Webhook`,
    ],
    [[{ ...rbac, name: 'other' }], 'expected name rbac for authorizer RBAC instead of other'],
    [[webhook({ timeout: undefined })], `${at}.timeout: Required value`],
    [[webhook({ timeout: '0s' })], `${at}.timeout: Required value`],
    [[webhook({ timeout: '31s' })], `${at}.timeout: Invalid value: "31s": must be > 0s and <= 30s`],
    [[webhook({ timeout: '-1s' })], `${at}.timeout: Invalid value: "-1s": must be > 0s and <= 30s`],
    [
      [webhook({ authorizedTTL: '-1m' })],
      `${at}.authorizedTTL: Invalid value: "-1m0s": must be > 0s`,
    ],
    [
      [webhook({ unauthorizedTTL: '-1ns' })],
      `${at}.unauthorizedTTL: Invalid value: "-1ns": must be > 0s`,
    ],
    [
      [webhook({ subjectAccessReviewVersion: '' })],
      `${at}.subjectAccessReviewVersion: Required value`,
    ],
    [
      [webhook({ subjectAccessReviewVersion: 'v2' })],
      `${at}.subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1"`,
    ],
    [
      [webhook({ ...conditions('true'), matchConditionSubjectAccessReviewVersion: '' })],
      `${at}.matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified`,
    ],
    [
      [webhook({ matchConditionSubjectAccessReviewVersion: 'v1beta1' })],
      `${at}.matchConditionSubjectAccessReviewVersion: Unsupported value: "v1beta1": supported values: "v1"`,
    ],
    [[webhook({ failurePolicy: null })], `${at}.failurePolicy: Required value`],
    [
      [webhook({ failurePolicy: 'Allow' })],
      `${at}.failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", "Deny"`,
    ],
    [[webhook({ connectionInfo: {} })], `${at}.connectionInfo.type: Required value`],
    [
      [webhook({ connectionInfo: { type: 'Url' } })],
      `${at}.connectionInfo.type: Unsupported value: "Url": supported values: "InClusterConfig", "KubeConfigFile"`,
    ],
    [
      [webhook({ connectionInfo: { type: 'InClusterConfig', kubeConfigFile: '/there' } })],
      `${at}.connectionInfo.kubeConfigFile: Invalid value: "/there": can only be set when type=KubeConfigFile`,
    ],
    [
      [webhook({ connectionInfo: { type: 'KubeConfigFile' } })],
      `${at}.connectionInfo.kubeConfigFile: Required value`,
    ],
    [
      [webhook({ connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: 'a/b' } })],
      `${at}.connectionInfo.kubeConfigFile: Invalid value: "a/b": must be an absolute path`,
    ],
    [
      [webhook({ connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/gone' } })],
      `${at}.connectionInfo.kubeConfigFile: Invalid value: "/gone": error loading file: stat /gone`,
    ],
    [
      [webhook(conditions(...Array.from({ length: 65 }, (_, index) => `${index} > 0`)))],
      `${at}.matchConditions: Too many: 65: must have at most 64 items`,
    ],
    [[webhook(conditions(' '))], `${at}.matchConditions[0].expression: Required value`],
    [
      [webhook(conditions('true', 'true'))],
      `${at}.matchConditions[1].expression: Duplicate value: "true"`,
    ],
    [
      [webhook(conditions('request.nope'))],
      `${at}.matchConditions[0].expression: Invalid value: "request.nope": compilation failed: ERROR: <input>:1:8: undefined field 'nope'`,
    ],
    [
      [webhook(conditions('request.user'))],
      `${at}.matchConditions[0].expression: Invalid value: "request.user": must evaluate to bool but got string`,
    ],
    [[webhook(conditions('dyn(true)'))], `must evaluate to bool but got dyn`],
    [[webhook(conditions('object.x == 1'))], "undeclared reference to 'object'"],
    [[webhook(conditions('"a" < 1'))], 'found no matching overload'],
  ])('case %#', async (authorizers, message) => {
    await expect(load(file(authorizers))).rejects.toThrow(message);
  });

  test('all errors are reported at once', async () => {
    const text = file([{ type: 'Foo' }, { type: 'RBAC', name: 'x', webhook: {} }]);
    await expect(load(text)).rejects.toThrow(
      /^\[authorizers\[0\]\.type: .*, authorizers\[1\]\.webhook: /,
    );
  });

  const head = 'failed to load AuthorizationConfiguration from file: ';
  const meta = `"apiVersion":"${group}/v1","kind":"AuthorizationConfiguration"`;
  test.each([
    ['', 'authorizers: Required value'],
    ['{', `${head}`],
    ['[]', `${head}Object 'Kind' is missing`],
    ['{"kind":"AuthorizationConfiguration"}', `${head}Object 'apiVersion' is missing`],
    [file([rbac], 'v2'), `${head}no kind "AuthorizationConfiguration" is registered for version`],
    [file([rbac]).replace('k8s.io', 'svc.io'), `${head}no kind "AuthorizationConfiguration"`],
    [
      `{${meta},"authorizers":[{"type":"RBAC","name":"rbac","x":1}]}`,
      `${head}strict decoding error: unknown field "authorizers[0].x"`,
    ],
    [`{${meta},"authorizers":[],"authorizers":[]}`, `${head}strict decoding error: `],
    [file([webhook({ timeout: 3 })]), `${head}json: cannot unmarshal number`],
    [file([webhook({ timeout: '3' })]), `${head}time: missing unit in duration "3"`],
    [file('x'), `${head}json: cannot unmarshal string`],
    [file([webhook({ cacheAuthorizedRequests: true })]), 'unknown field'],
  ])('text %#', async (text, message) => {
    await expect(load(text)).rejects.toThrow(message);
  });

  test('a reload must not remove a required authorizer type', async () => {
    await expect(load(file([webhook()]), ['RBAC', 'Node'])).rejects.toThrow(
      'missing required types: [Node RBAC]',
    );
    expect(await load(file([webhook(), rbac]), ['RBAC'])).toHaveLength(2);
  });
});

describe('AUTHZ-3: match conditions', () => {
  const matchOf = async (...expressions: string[]) => {
    const [only] = await load(file([webhook(conditions(...expressions))]));
    if (only?.type !== 'Webhook' || only.webhook.matches === undefined) throw new Error('none');
    const { matches } = only.webhook;
    return (spec: JsonObject) => runInOnePiece(matches(spec));
  };
  const spec = {
    resourceAttributes: { namespace: 'n', verb: 'list', resource: 'pods' },
    user: 'amy',
    groups: ['dev'],
    extra: { 'example.org/a': ['1'] },
  };

  test.each([
    ['request.user == "amy"', true],
    ['request.uid == ""', true],
    ['"dev" in request.groups', true],
    ['request.groups.exists(g, g.startsWith("system:"))', false],
    ['request.extra["example.org/a"] == ["1"]', true],
    ['has(request.resourceAttributes) && request.resourceAttributes.namespace == "n"', true],
    ['request.resourceAttributes.subresource == ""', true],
    ['has(request.nonResourceAttributes)', false],
    ['has(request.resourceAttributes.fieldSelector)', false],
    ['request.?nonResourceAttributes.?path.orValue("none") == "none"', true],
    ['request.resourceAttributes.group in ["", "apps"]', true],
    ['!("x" in request.extra)', true],
    ['request.user.matches("^a.*y$")', true],
  ])('%s: %s', async (expression, expected) => {
    const matches = await matchOf(expression);
    expect(matches(spec)).toBe(expected);
  });

  test('for another path, without a user', async () => {
    const matches = await matchOf(
      'request.nonResourceAttributes.path == "/x" && request.nonResourceAttributes.verb == ""',
      'size(request.groups) == 0 && size(request.extra) == 0 && request.user == ""',
    );
    expect(matches({ nonResourceAttributes: { path: '/x' } })).toBe(true);
  });

  test('for selectors', async () => {
    const selector = { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n'] }] };
    const matches = await matchOf(
      'request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == "spec.nodeName")',
      'request.resourceAttributes.fieldSelector.requirements.all(r, r.operator == "In")',
      'request.resourceAttributes.fieldSelector.requirements[0].values == ["n"]',
    );
    const resourceAttributes = { ...spec.resourceAttributes, fieldSelector: selector };
    expect(matches({ ...spec, resourceAttributes })).toBe(true);
    expect(() => matches(spec)).toThrow('no such key: fieldSelector');
    const labelSelector = { requirements: [{ key: 'a', operator: 'Exists' }] };
    const ofLabels = await matchOf(
      'request.resourceAttributes.labelSelector.requirements.all(r, r.values.size() == 0)',
    );
    const labeled = { ...spec, resourceAttributes: { ...spec.resourceAttributes, labelSelector } };
    expect(ofLabels(labeled)).toBe(true);
  });

  test('without selectors when the gate is off', async () => {
    const text = file([webhook(conditions('has(request.resourceAttributes.labelSelector)'))]);
    const rules = {
      dialect,
      fileProblem: () => undefined,
      requiredTypes: new Set<never>(),
      clock: systemClock,
    };
    const off = loadAuthorizationConfiguration(text, { ...rules, selectors: 'omitted' });
    await expect(off).rejects.toThrow("undefined field 'labelSelector'");
    await loadAuthorizationConfiguration(text, { ...rules, selectors: 'included' });
  });

  test('a false condition takes precedence over errors', async () => {
    const fails = 'request.nonResourceAttributes.path == "/x"';
    const alsoFails = 'request.extra["none"] == []';
    expect((await matchOf(fails, 'request.user == "bob"'))(spec)).toBe(false);
    expect((await matchOf('request.user == "bob"', fails))(spec)).toBe(false);
    const single = await matchOf('true', fails);
    expect(() => single(spec)).toThrow(
      `cel evaluation error: expression '${fails}' resulted in error: no such key: nonResourceAttributes`,
    );
    const both = await matchOf(fails, alsoFails);
    expect(() => both(spec)).toThrow(/^\[cel evaluation error: .*, cel evaluation error: .*\]$/);
  });

  test('an overly expensive condition is an error', async () => {
    const list = `[${Array.from({ length: 100 }, (_, index) => index).join(',')}]`;
    const matches = await matchOf(
      `${list}.all(a, ${list}.all(b, ${list}.all(c, ${list}.all(d, a + b + c + d >= 0))))`,
    );
    expect(() => matches(spec)).toThrow('actual cost limit exceeded');
  });

  test('names of Object.prototype are unknown', async () => {
    const matches = await matchOf(
      '!("constructor" in request.extra)',
      '!("__proto__" in request.extra)',
    );
    expect(matches(spec)).toBe(true);
  });
});

test('TRUST-2: the conditions of a file are compiled in steps', async () => {
  const long = `request.user in [${Array(3_000).fill(`'a'`).join()}]`;
  let nowMs = 0;
  let turns = 0;
  const loaded = load(file([webhook(conditions(long, `${long} || true`))]), [], {
    ...systemClock,
    monotonic: () => {
      nowMs += 10;
      return nowMs;
    },
  });
  let isLoaded = false;
  const turn = () => {
    turns += 1;
    if (!isLoaded) setImmediate(turn);
  };
  turn();
  expect(await loaded).toHaveLength(1);
  isLoaded = true;
  expect(turns).toBeGreaterThan(5);
});
