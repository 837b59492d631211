import { rmSync, writeFileSync } from 'node:fs';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFile, untilEnd } from '../support/cleanup.ts';
import { eventually, startTestServer, type TestServer } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import {
  clientId,
  collecting,
  makeCertificate,
  signingPair,
  startProvider,
} from './oidc-provider.ts';
import { userOfToken, whoAmI } from './who-am-i.ts';

const authenticated = 'system:authenticated';

type Part = Record<string, unknown>;

const clock = quickClock(20);
const provider = await untilEnd(startProvider());
/** Has its own authority, so that each authenticator must use the right one. */
const secondProvider = await untilEnd(
  startProvider({
    keys: [await signingPair('ES256', 'other')],
    certificateOf: { certificate: makeCertificate() },
  }),
);
// Each server polls its files on the quick clock, so none may outlive its test.

/** An authenticator of a provider, with changes. */
function authenticator(change: { issuer?: Part; claimMappings?: Part } & Part = {}, of = provider) {
  const { issuer, claimMappings, ...rest } = change;
  return {
    issuer: { url: of.issuer, certificateAuthority: of.caPem, audiences: [clientId], ...issuer },
    claimMappings: { username: { claim: 'sub', prefix: '' }, ...claimMappings },
    ...rest,
  };
}

const fileOf = (content: Part, version = 'v1beta1'): string =>
  JSON.stringify({
    apiVersion: `apiserver.config.svc.io/${version}`,
    kind: 'AuthenticationConfiguration',
    ...content,
  });

interface Started {
  readonly server: TestServer;
  readonly path: string;
  readonly lines: string[];
  /** Writes the file again. */
  write(content: Part | string): void;
}

async function start(content: Part | string, flags: readonly string[] = []): Promise<Started> {
  const text = typeof content === 'string' ? content : fileOf(content);
  const path = temporaryFile('authentication.yaml', text);
  const outcome = readOptions([
    `--authentication-config=${path}`,
    '--authorization-mode=RBAC',
    ...flags,
  ]);
  if (outcome.kind !== 'options') throw new Error('no options');
  const { configFile, anonymous } = outcome.options.config.authentication;
  const { featureGates } = outcome.options.config;
  if (configFile === undefined || featureGates === undefined) throw new Error('no file');
  const lines: string[] = [];
  const server = await withServer({
    clock,
    logger: collecting(lines),
    featureGates,
    authentication: { configFile, anonymous },
  });
  const write = (next: Part | string) =>
    writeFileSync(path, typeof next === 'string' ? next : fileOf(next));
  return { server, path, lines, write };
}

const statusOf = async ({ server }: Pick<Started, 'server'>, token: string) =>
  (await whoAmI(server, token)).status;

/** The user of a token, once the server has found the provider. */
const userOf = ({ server }: Pick<Started, 'server'>, token: string) => userOfToken(server, token);

/** Starts with a single authenticator, and waits until it has discovered its provider. */
async function startWith(change: Parameters<typeof authenticator>[0], good: Part = {}) {
  const started = await start({ jwt: [authenticator(change)] });
  await userOf(started, await provider.token({ sub: 'jane', ...good }));
  return started;
}

describe('AUTHN-8: the user of a token', () => {
  test.each(['v1alpha1', 'v1beta1'])('AUTHN-8: is built from the fields of %s', async (version) => {
    const jwt = [
      authenticator({
        issuer: { audiences: ['a', clientId], audienceMatchPolicy: 'MatchAny' },
        claimValidationRules: [
          { claim: 'hd', requiredValue: 'example.com' },
          { expression: 'claims.exp - claims.iat <= 3600', message: 'too long' },
        ],
        claimMappings: {
          username: { expression: "claims.sub + '@' + claims.company.name" },
          groups: { expression: "claims.roles.split(',')" },
          uid: { claim: 'uid' },
          extra: [
            { key: 'example.org/one', valueExpression: 'claims.one' },
            {
              key: 'a.example.org/type',
              valueExpression: 'string([claims.large, claims.larger].all(n, type(n) == double))',
            },
            { key: 'example.org/more', valueExpression: "[claims.one, dyn(''), dyn('two')]" },
            { key: 'example.org/none', valueExpression: "''" },
            { key: 'example.org/null', valueExpression: 'claims.nothing' },
          ],
        },
        userValidationRules: [
          { expression: "!user.username.startsWith('system:')", message: 'reserved' },
          { expression: "user.groups.all(g, !g.startsWith('system:'))", message: 'reserved' },
          { expression: "user.extra['example.org/one'] == ['1']", message: 'extra' },
        ],
      }),
    ];
    const started = await start(fileOf({ jwt }, version));
    const exp = Math.floor(clock.now() / 1000) + 600;
    const claims = {
      sub: 'jane',
      aud: ['z', 'a'],
      hd: 'example.com',
      iat: exp - 600,
      exp,
      company: { name: 'acme' },
      roles: 'dev,ops',
      uid: 'u-1',
      one: '1',
      nothing: null,
      // Beyond 64 bits.
      large: 2 ** 64,
      larger: 12345678901234567000,
      jti: 'id-1',
    };
    const user = await userOf(started, await provider.token(claims));
    expect(Object.keys(user.extra ?? {})).toEqual(Object.keys(user.extra ?? {}).sort());
    expect(user).toEqual({
      username: 'jane@acme',
      uid: 'u-1',
      groups: ['dev', 'ops', authenticated],
      extra: {
        'a.example.org/type': ['true'],
        'authentication.svc.io/credential-id': ['JTI=id-1'],
        'example.org/one': ['1'],
        'example.org/more': ['1', 'two'],
      },
    });
    for (const change of [
      { aud: 'z' },
      { hd: 'example.org' },
      { hd: undefined },
      { iat: exp - 3601 },
      { iat: undefined },
      { company: undefined },
      { company: 'acme' },
      { sub: 'system:admin' },
      { roles: 'system:masters' },
      { roles: ['dev'] },
      { uid: 7 },
      { uid: undefined },
      { one: '2' },
      { one: 1 },
      { nothing: undefined },
    ]) {
      const token = await provider.token({ ...claims, ...change });
      expect(await statusOf(started, token), JSON.stringify(change)).toBe(401);
    }
  });

  test('AUTHN-8: has prefixed claims, and the prefix may be empty', async () => {
    const started = await startWith({
      claimMappings: {
        username: { claim: 'sub', prefix: 'u:' },
        groups: { claim: 'roles', prefix: 'g:' },
      },
    });
    const token = await provider.token({ sub: 'jane', roles: ['a', 'b'] });
    const { username, groups } = await userOf(started, token);
    expect({ username, groups }).toEqual({
      username: 'u:jane',
      groups: ['g:a', 'g:b', authenticated],
    });
  });

  test('AUTHN-8: cannot have an empty name', async () => {
    const byExpression = await startWith({
      claimMappings: { username: { expression: 'claims.sub' } },
    });
    const byClaim = await startWith({});
    for (const sub of ['', 7, ['jane'], null]) {
      const token = await provider.token({ sub } as Part);
      expect(await statusOf(byExpression, token), String(sub)).toBe(401);
      expect(await statusOf(byClaim, token), String(sub)).toBe(401);
    }
  });

  test('AUTHN-8: has the groups of an expression: one, several, or none', async () => {
    const started = await startWith({
      claimMappings: {
        username: { claim: 'sub', prefix: '' },
        groups: { expression: 'claims.?roles.orValue(null)' },
      },
    });
    const groupsOf = async (roles: unknown) =>
      (await userOf(started, await provider.token({ sub: 'jane', roles }))).groups;
    expect(await groupsOf('dev')).toEqual(['dev', authenticated]);
    expect(await groupsOf(['dev', '', 'ops'])).toEqual(['dev', 'ops', authenticated]);
    for (const roles of ['', [], null, undefined]) {
      expect(await groupsOf(roles)).toEqual([authenticated]);
    }
    for (const roles of [7, { a: 'b' }, ['dev', 7], true]) {
      const token = await provider.token({ sub: 'jane', roles });
      expect(await statusOf(started, token), JSON.stringify(roles)).toBe(401);
    }
  });

  test('AUTHN-8: needs a required claim even with an empty value', async () => {
    const started = await startWith({ claimValidationRules: [{ claim: 'kind' }] }, { kind: '' });
    expect(await statusOf(started, await provider.token({ sub: 'x' }))).toBe(401);
    expect(await statusOf(started, await provider.token({ sub: 'x', kind: 'y' }))).toBe(401);
  });

  test('AUTHN-8: needs a verified email, by claim and by expression', async () => {
    const byClaim = await startWith(
      { claimMappings: { username: { claim: 'email', prefix: '' } } },
      { email: 'a@example.com' },
    );
    const byExpression = await startWith(
      {
        claimMappings: { username: { expression: 'claims.email' } },
        claimValidationRules: [{ expression: 'claims.?email_verified.orValue(true) == true' }],
      },
      { email: 'a@example.com' },
    );
    for (const started of [byClaim, byExpression]) {
      const status = async (email_verified: unknown) =>
        statusOf(started, await provider.token({ email: 'b@example.com', email_verified }));
      expect(await status(true)).toBe(201);
      expect(await status(false)).toBe(401);
      expect(await status('true')).toBe(401);
    }
  });

  test('AUTHN-8: may be issued by several providers with any algorithm', async () => {
    const started = await start({ jwt: [authenticator({}), authenticator({}, secondProvider)] });
    expect((await userOf(started, await provider.token({ sub: 'a' }))).username).toBe('a');
    expect((await userOf(started, await secondProvider.token({ sub: 'b' }))).username).toBe('b');
    const [theirs] = secondProvider.keys;
    const crossed = await provider.token({ sub: 'c' }, { by: theirs! });
    expect(await statusOf(started, crossed)).toBe(401);
  });

  test('AUTHN-8: may have a provider with its own discovery URL', async () => {
    const hidden = await untilEnd(startProvider());
    hidden.issuer = 'https://issuer.example/realm';
    let named = hidden.issuer;
    hidden.handler = (request, response) => {
      if (request.url !== '/elsewhere/configuration') return false;
      response.end(JSON.stringify({ issuer: named, jwks_uri: `${hidden.url}/keys` }));
      return true;
    };
    const issuer = { discoveryURL: `${hidden.url}/elsewhere/configuration` };
    const started = await start({ jwt: [authenticator({ issuer }, hidden)] });
    expect((await userOf(started, await hidden.token({ sub: 'a' }))).username).toBe('a');
    expect(hidden.requests[0]).toBe('/elsewhere/configuration');
    named = hidden.url;
    const wrong = await start({ jwt: [authenticator({ issuer }, hidden)] });
    await eventually(async () => wrong.lines.some((line) => line.includes('issuer did not match')));
    expect(await statusOf(wrong, await hidden.token({ sub: 'a' }))).toBe(401);
  });

  test('AUTHN-8: is refused without logging any value of the token', async () => {
    const started = await startWith({
      claimValidationRules: [
        { expression: 'claims.sub == "jane" || claims[claims.marked] == 1' },
        { expression: 'claims.sub == "jane" || int(claims.number) == 1', message: 'a message' },
      ],
    });
    for (const claims of [
      { marked: 'marked-claim' },
      { marked: 'one', one: 1, number: 'marked-claim' },
      { marked: 'one', one: 1, number: 7, other: 'marked-claim' },
      { 'marked-claim': 2 },
    ]) {
      await whoAmI(started.server, await provider.token({ sub: 'x', ...claims }));
    }
    const log = started.lines.join('\n');
    expect(log).toContain('validation expression');
    expect(log).toContain('failed: a message');
    expect(log).not.toContain('marked-claim');
  });
});

describe('AUTHN-8: anonymous requests', () => {
  const anonymousStatus = async ({ server }: Started, path: string) =>
    (await server.get(path, { token: undefined })).status;

  test('AUTHN-8: are accepted or refused as the file says', async () => {
    const nobody = await start({ anonymous: { enabled: false } });
    expect(await anonymousStatus(nobody, '/livez')).toBe(401);
    const anybody = await start({ anonymous: { enabled: true } });
    expect(await anonymousStatus(anybody, '/livez')).toBe(200);
    expect(await anonymousStatus(anybody, '/api/v1/pods')).toBe(403);
    const unsaid = await start({ jwt: [] });
    expect(await anonymousStatus(unsaid, '/livez')).toBe(200);
    const byFlag = await start({ jwt: [] }, ['--anonymous-auth=false']);
    expect(await anonymousStatus(byFlag, '/livez')).toBe(401);
  });

  test('AUTHN-8: are accepted only on the paths of the file', async () => {
    const conditions = [{ path: '/livez' }, { path: '/readyz' }];
    const started = await start({ anonymous: { enabled: true, conditions } });
    for (const path of ['/livez', '/livez?verbose', '/readyz']) {
      expect(await anonymousStatus(started, path), path).toBe(200);
    }
    for (const path of [
      '/version',
      '/livez/ping',
      '/livez/',
      '/%6civez',
      '/api/v1/pods',
      '//livez',
    ]) {
      expect(await anonymousStatus(started, path), path).toBe(401);
    }
    expect((await started.server.get('/version')).status).toBe(200);
  });
});

/** The number of reloads with a status, and the time of the last one in seconds. */
async function reloads({ server }: Started, status: 'success' | 'failure') {
  const { text } = await server.get('/metrics');
  const numberOf = (name: string) => {
    const prefix = `apiserver_authentication_config_controller_${name}{apiserver_id_hash="sha256:`;
    const isWanted = (sample: string) =>
      sample.startsWith(prefix) && sample.includes(`status="${status}"`);
    const line = text.split('\n').find(isWanted);
    return Number(line?.split(' ')[1] ?? 0);
  };
  return {
    total: numberOf('automatic_reloads_total'),
    lastSeconds: numberOf('automatic_reload_last_timestamp_seconds'),
  };
}

/** Waits until so many reloads are counted. Each is logged, so metrics are read only after one. */
async function reloaded(
  started: Started,
  status: 'success' | 'failure',
  total: number,
): Promise<void> {
  const isReload = (line: string) => /^(reloaded|failed to reload) /.test(line);
  let reads: number | undefined;
  await eventually(async () => {
    const logged = started.lines.filter(isReload).length;
    if (logged === reads) return false;
    reads = logged;
    return (await reloads(started, status)).total === total;
  }, `${total} ${status}`);
}

describe('AUTHN-8: the file', () => {
  test('AUTHN-8: is reloaded', async () => {
    const started = await startWith({});
    expect(await reloads(started, 'success')).toEqual({ total: 0, lastSeconds: 0 });
    started.write({ jwt: [authenticator({}, secondProvider)] });
    await reloaded(started, 'success', 1);
    const { lastSeconds } = await reloads(started, 'success');
    expect(Math.abs(lastSeconds - clock.now() / 1000)).toBeLessThan(10);
    expect(await statusOf(started, await secondProvider.token({ sub: 'b' }))).toBe(201);
    expect(await statusOf(started, await provider.token({ sub: 'jane' }))).toBe(401);
    const username = { claim: 'sub', prefix: 'other:' };
    started.write({ jwt: [authenticator({ claimMappings: { username } }, secondProvider)] });
    await reloaded(started, 'success', 2);
    expect((await userOf(started, await secondProvider.token({ sub: 'b' }))).username).toBe(
      'other:b',
    );
    expect(started.lines.join('\n')).toContain('reloaded authentication config');
    expect((await reloads(started, 'failure')).total).toBe(0);
  });

  test('AUTHN-8: may have no authenticators, and may be YAML', async () => {
    const started = await start({ jwt: [] });
    expect(await statusOf(started, await provider.token({ sub: 'jane' }))).toBe(401);
    const pem = provider.caPem.trimEnd().replaceAll('\n', '\n      ');
    started.write(`# a comment
apiVersion: apiserver.config.svc.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: ${provider.url}
    audiences: [${clientId}]
    certificateAuthority: |
      ${pem}
  claimMappings:
    username: {claim: sub, prefix: ''}
`);
    expect((await userOf(started, await provider.token({ sub: 'jane' }))).username).toBe('jane');
  });

  test('AUTHN-8: keeps the previous configuration when it becomes invalid', async () => {
    const started = await startWith({});
    const bad: [string, string][] = [
      ['{', 'yaml: '],
      ['', 'empty config data'],
      [fileOf({ jwts: [] }), 'strict decoding error: unknown field \\"jwts\\"'],
      [fileOf({}, 'v1'), 'no kind \\"AuthenticationConfiguration\\"'],
      [fileOf({ jwt: [{}] }), 'jwt[0].issuer.url: Required value: URL is required'],
      [
        fileOf({ jwt: [], anonymous: { enabled: false } }),
        'anonymous: Forbidden: changed from initial configuration file',
      ],
    ];
    for (const [index, [text, why]] of bad.entries()) {
      started.lines.length = 0;
      started.write(text);
      await reloaded(started, 'failure', index + 1);
      const log = started.lines.find((line) => line.startsWith('failed to reload'));
      expect(log).toContain(why);
      expect(log).toContain(started.path);
      const token = await provider.token({ sub: 'jane', jti: String(index) });
      expect(await statusOf(started, token)).toBe(201);
      expect((await started.server.get('/livez', { token: undefined })).status).toBe(200);
    }
    expect((await reloads(started, 'success')).total).toBe(0);
    started.write({ jwt: [authenticator({}, secondProvider)] });
    await reloaded(started, 'success', 1);
  });

  test('AUTHN-8: keeps the previous configuration when it disappears', async () => {
    const started = await startWith({});
    rmSync(started.path);
    await reloaded(started, 'failure', 1);
    expect(await statusOf(started, await provider.token({ sub: 'jane', jti: 'new' }))).toBe(201);
  });

  test('AUTHN-8: keeps the previous providers until the new ones are reachable', async () => {
    const started = await startWith({});
    const late = await startProvider();
    const port = Number(new URL(late.url).port);
    await late.stop();
    started.write({ jwt: [authenticator({}, late)] });
    await reloaded(started, 'failure', 1);
    expect(started.lines.join('\n')).toContain(`no keys of ${late.url}`);
    expect(await statusOf(started, await provider.token({ sub: 'jane', jti: 'new' }))).toBe(201);
    const back = await untilEnd(startProvider({ port, keys: late.keys, certificateOf: late }));
    clock.skip(61_000);
    await reloaded(started, 'success', 1);
    expect(await statusOf(started, await back.token({ sub: 'late' }))).toBe(201);
    expect(await statusOf(started, await provider.token({ sub: 'jane', jti: 'new' }))).toBe(401);
  });
});

describe('AUTHN-8: startup', () => {
  const problemOf = (content: Part | string, flags: readonly string[] = []) =>
    start(content, flags).then(
      () => 'it started',
      (error: Error) => error.message,
    );

  test('AUTHN-8: fails on an invalid file, naming the file, the field, and the reason', async () => {
    expect(await problemOf({ jwt: [authenticator({ issuer: { audiences: [] } })] })).toMatch(
      /^invalid authentication configuration in file ".*authentication\.yaml": jwt\[0\]\.issuer\.audiences: Required value: at least one jwt\[0\]\.issuer\.audiences is required$/,
    );
    expect(
      await problemOf({ jwt: [authenticator({ issuer: { egressSelectorType: '' } })] }),
    ).toMatch(
      /^failed to load authentication configuration from file ".*authentication\.yaml": strict decoding error: unknown field "jwt\[0\]\.issuer\.egressSelectorType"$/,
    );
    const issuer = { url: 'https://svc.default.svc' };
    expect(await problemOf({ jwt: [authenticator({ issuer })] })).toContain(
      'URL must not overlap with disallowed issuers: [https://svc.default.svc]',
    );
    const entry = authenticator({});
    expect(await problemOf({ jwt: Array.from({ length: 65 }, () => entry) })).toContain(
      'jwt: Too many: 65: must have at most 64 items',
    );
    const username = { expression: 'claims.email' };
    expect(await problemOf({ jwt: [authenticator({ claimMappings: { username } })] })).toContain(
      'claims.email_verified must be used in claimMappings.username.expression',
    );
  });

  test('AUTHN-8: fails on a missing file', async () => {
    const configFile = { path: '/nowhere/file', anonymousFlag: 'absent' as const };
    const started = startTestServer({ authentication: { configFile } });
    await expect(started).rejects.toThrow(
      'failed to load authentication configuration from file "/nowhere/file": ENOENT',
    );
  });

  test('AUTHN-8: fails on flags that contradict the file', async () => {
    for (const flag of ['--oidc-issuer-url=https://x.example', '--oidc-groups-prefix=']) {
      expect(await problemOf({}, [flag])).toBe(
        'authentication-config file and oidc-* flags are mutually exclusive',
      );
    }
    for (const flag of ['--anonymous-auth', '--anonymous-auth=false']) {
      expect(await problemOf({ anonymous: { enabled: true } }, [flag])).toContain(
        'anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file',
      );
    }
  });

  test('AUTHN-8: fails on a file that needs a disabled gate', async () => {
    const gate = 'StructuredAuthenticationConfiguration';
    expect(await problemOf({}, [`--feature-gates=${gate}=false`])).toBe(
      `set --feature-gates=${gate}=true to use authentication-config file`,
    );
    const endpoints = 'AnonymousAuthConfigurableEndpoints';
    const anonymous = { enabled: true };
    expect(await problemOf({ anonymous }, [`--feature-gates=${endpoints}=false`])).toContain(
      `anonymous is not supported when ${endpoints} feature gate is disabled`,
    );
  });
});
