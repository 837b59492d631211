import { ConfigurationError } from '@wheelhouse/codec';
import {
  dialectOf,
  type JsonObject,
  type Random,
  randomOf,
  runInOnePiece,
  systemClock,
  type Webhook,
  WebhookError,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import {
  AbacPolicyError,
  type Attributes,
  createAbacAuthorizer,
  createWebhookAuthorizer,
  createWebhookTokenAuthenticator,
  loadAuthorizationConfiguration,
  parseAbacPolicies,
} from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';

const dialect = dialectOf('svc');
const clock = new FakeClock();
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

const tokens = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\n',
  '\\',
  ' ',
  '*',
  '#',
  '-',
  '&a',
  '*a',
  '!!str',
  '|',
  '>',
  'null',
  'true',
  'false',
  '0',
  '-1',
  '1e999',
  '9'.repeat(30),
  '"__proto__"',
  '"constructor"',
  '"user"',
  '"readonly":true',
  '"kind":"Policy"',
  '"allowed":true',
  '"authenticated":true',
  '\0',
  '\ufeff',
  '\u2028',
  'é',
  '😀',
  '${',
  '{{',
  '"apiVersion"',
  '"spec":',
  '[[[[[[[[',
  '{"a":{"a":',
];

/** A text with some characters or words removed, duplicated, inserted, or replaced. */
function mutated(text: string, random: Random): string {
  let changed = text;
  for (let times = 1 + random.below(4); times > 0; times -= 1) {
    const from = random.below(changed.length + 1);
    const to = Math.min(changed.length, from + random.below(random.below(3) === 0 ? 60 : 3));
    const word = tokens[random.below(tokens.length)] ?? '';
    const put = [
      word,
      '',
      changed.slice(from, to).repeat(2),
      String.fromCharCode(random.below(256)),
    ];
    changed = changed.slice(0, from) + (put[random.below(put.length)] ?? '') + changed.slice(to);
  }
  return changed;
}

const condition = 'has(request.resourceAttributes) && request.user.startsWith("system:")';
const webhook = {
  authorizedTTL: '1m',
  unauthorizedTTL: '30s',
  timeout: '3s',
  subjectAccessReviewVersion: 'v1',
  matchConditionSubjectAccessReviewVersion: 'v1',
  failurePolicy: 'Deny',
  connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/kubeconfig' },
  matchConditions: [{ expression: condition }],
};
const configuration = {
  apiVersion: 'apiserver.config.svc.io/v1',
  kind: 'AuthorizationConfiguration',
  authorizers: [
    { type: 'Webhook', name: 'one', webhook },
    { type: 'RBAC', name: 'rbac' },
  ],
};
const yaml = `apiVersion: apiserver.config.svc.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: one
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: { type: KubeConfigFile, kubeConfigFile: /kubeconfig }
    matchConditions:
    - expression: >-
        has(request.resourceAttributes)
- { type: Node, name: node }
`;

const stranger: Attributes = {
  user: { name: 'stranger', uid: '', groups: ['system:unauthenticated'], extra: {} },
  verb: 'get',
  isResourceRequest: true,
  group: '',
  version: 'v1',
  resource: 'secrets',
  subresource: '',
  namespace: 'n',
  name: 'x',
  path: '/api/v1/namespaces/n/secrets/x',
};

describe(`AUTHZ-3: files of configuration, seed ${seed}`, () => {
  test('AUTHZ-3: any text is a valid chain or refused with one line', async () => {
    const random = randomOf(seed);
    let accepted = 0;
    for (let round = 0; round < 600; round += 1) {
      const text = mutated(random.below(2) === 0 ? yaml : JSON.stringify(configuration), random);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(text)}`;
      try {
        const authorizers = await loadAuthorizationConfiguration(text, {
          dialect,
          selectors: 'included',
          fileProblem: (path) => (path === '/kubeconfig' ? undefined : 'not there'),
          requiredTypes: new Set(),
          clock: systemClock,
        });
        accepted += 1;
        expect(authorizers.length, where).toBeGreaterThan(0);
        const names = authorizers.map(({ name }) => name);
        expect(new Set(names).size, where).toBe(names.length);
        for (const authorizer of authorizers) {
          if (authorizer.type !== 'Webhook')
            expect(authorizer.name, where).toBe(authorizer.type.toLowerCase());
          else keepsRules(authorizer.webhook, where);
        }
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw new Error(where, { cause: error });
        expect(error.message, where).not.toContain('\n');
      }
    }
    expect(accepted).toBeGreaterThan(0);
  });
});

type WebhookRules = Extract<
  Awaited<ReturnType<typeof loadAuthorizationConfiguration>>[number],
  { readonly type: 'Webhook' }
>['webhook'];

function keepsRules(webhook: WebhookRules, where: string): void {
  expect(webhook.timeoutMs, where).toBeGreaterThan(0);
  expect(webhook.timeoutMs, where).toBeLessThanOrEqual(30_000);
  expect(webhook.authorizedTtlMs, where).toBeGreaterThan(0);
  expect(webhook.unauthorizedTtlMs, where).toBeGreaterThan(0);
  expect(['v1', 'v1beta1'], where).toContain(webhook.version);
  expect(['Deny', 'NoOpinion'], where).toContain(webhook.failurePolicy);
  expect(['/kubeconfig', undefined], where).toContain(webhook.kubeConfigFile);
  try {
    const { matches } = webhook;
    const isMatch = matches === undefined ? true : runInOnePiece(matches({ user: 'x' }));
    expect(typeof isMatch, where).toBe('boolean');
  } catch (error) {
    expect(String(error), where).toContain('cel evaluation error');
  }
}

describe(`AUTHZ-2: policy files, seed ${seed}`, () => {
  const apiVersion = 'abac.authorization.svc.io/v1beta1';
  const everything = { namespace: '*', resource: '*', apiGroup: '*', nonResourcePath: '*' };
  const text = [
    '# policies',
    JSON.stringify({ apiVersion, kind: 'Policy', spec: { user: 'amy', ...everything } }),
    JSON.stringify({ apiVersion, kind: 'Policy', spec: { group: 'dev', ...everything } }),
    JSON.stringify({ user: 'bob', readonly: true }),
    '{}',
  ].join('\n');

  test('AUTHZ-2: no policy text grants a stranger access or crashes', () => {
    const random = randomOf(seed);
    let refused = 0;
    for (let round = 0; round < 1500; round += 1) {
      const changed = mutated(text, random);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(changed)}`;
      try {
        const warn = () => {};
        const policies = parseAbacPolicies({ file: 'f', text: changed, dialect, warn });
        const { authorize } = createAbacAuthorizer(policies);
        expect(authorize(stranger), where).toMatchObject({ decision: 'no-opinion' });
        const path = { ...stranger, isResourceRequest: false };
        expect(authorize(path), where).toMatchObject({ decision: 'no-opinion' });
      } catch (error) {
        if (!(error instanceof AbacPolicyError)) throw new Error(where, { cause: error });
        refused += 1;
        expect(error.message, where).toMatch(/^error reading policy file f(, line \d+)?: /);
      }
    }
    expect(refused).toBeGreaterThan(0);
  });
});

/** A webhook whose answers are texts, parsed as the client parses them. */
function webhookOf(answer: () => string): Webhook {
  return {
    async call(_, read) {
      try {
        const value = JSON.parse(answer()) as JsonObject;
        if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error();
        return read(value);
      } catch (error) {
        throw new WebhookError('not understood', { outcome: 'error', cause: error });
      }
    },
  };
}

/** The members of a review in an answer that the tests read. */
interface ReviewAnswer {
  readonly apiVersion?: string;
  readonly status: {
    readonly allowed?: boolean;
    readonly denied?: boolean;
    readonly authenticated?: boolean;
    readonly user: { readonly username: string; readonly groups?: readonly string[] };
    readonly audiences?: readonly string[];
  };
}

function parsed(text: string): ReviewAnswer | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

describe(`AUTHN-9, AUTHZ-2: answers of webhooks, seed ${seed}`, () => {
  test('AUTHZ-2: only an explicit answer allows', async () => {
    const random = randomOf(seed);
    let answer = '';
    const settings = {
      name: 'w',
      version: 'v1',
      authorizedTtlMs: 0,
      unauthorizedTtlMs: 0,
      failurePolicy: 'NoOpinion',
      selectors: 'included',
    } as const;
    const ports = { dialect, clock, onError: () => {}, onFailOpen: () => {} };
    const authorizer = createWebhookAuthorizer(settings, {
      ...ports,
      webhook: webhookOf(() => answer),
    });
    const apiVersion = 'authorization.svc.io/v1';
    const kind = 'SubjectAccessReview';
    let allowed = 0;
    for (let round = 0; round < 2000; round += 1) {
      const status = { allowed: random.below(2) === 0, denied: random.below(4) === 0, reason: 'r' };
      answer = mutated(JSON.stringify({ apiVersion, kind, status }), random);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(answer)}`;
      const { decision } = await authorizer.authorize(stranger);
      if (decision !== 'allow') continue;
      allowed += 1;
      const reviewed = parsed(answer);
      expect(reviewed?.status?.allowed, where).toBe(true);
      expect(reviewed?.status?.denied ?? false, where).toBe(false);
      expect([undefined, null, '', apiVersion], where).toContain(reviewed?.apiVersion);
    }
    expect(allowed).toBeGreaterThan(0);
  });

  test('AUTHN-9: only an explicit answer authenticates, as its user', async () => {
    const random = randomOf(seed);
    let answer = '';
    const authenticator = createWebhookTokenAuthenticator({
      webhook: webhookOf(() => answer),
      version: 'v1',
      dialect,
      audiences: ['us'],
      ttlMs: 0,
      clock,
    });
    const apiVersion = 'authentication.svc.io/v1';
    const user = { username: 'amy', groups: ['dev'], extra: { a: ['1'] } };
    let accepted = 0;
    for (let round = 0; round < 2000; round += 1) {
      const audiences = [random.below(2) === 0 ? 'us' : 'them'];
      const status = { authenticated: random.below(2) === 0, user, audiences };
      answer = mutated(JSON.stringify({ apiVersion, kind: 'TokenReview', status }), random);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(answer)}`;
      try {
        const verdict = await authenticator.reviewToken?.('t', ['us']);
        if (verdict === undefined) continue;
        accepted += 1;
        const reviewed = parsed(answer)?.status;
        expect(reviewed?.authenticated, where).toBe(true);
        expect(verdict.user.name, where).toBe(reviewed?.user.username);
        expect(verdict.user.groups, where).toEqual(reviewed?.user.groups ?? []);
        if ((reviewed?.audiences ?? []).length > 0)
          expect(reviewed?.audiences, where).toContain('us');
      } catch (error) {
        if (
          !(error instanceof Error) ||
          error instanceof TypeError ||
          error instanceof RangeError
        ) {
          throw new Error(where, { cause: error });
        }
        if (error.name === 'AssertionError') throw error;
      }
    }
    expect(accepted).toBeGreaterThan(0);
  });
});
