import { dialectOf, runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { readAuthenticationConfiguration } from './configuration.ts';
import { validateAuthentication } from './validate.ts';

const dialect = dialectOf('svc');

type Part = Record<string, unknown>;

/** A valid authenticator, with changes. */
function authenticator(change: { issuer?: Part; claimMappings?: Part } & Part = {}): Part {
  const { issuer, claimMappings, ...rest } = change;
  return {
    issuer: { url: 'https://issuer.example', audiences: ['us'], ...issuer },
    claimMappings: { username: { claim: 'sub', prefix: '' }, ...claimMappings },
    ...rest,
  };
}

async function problemsOf(
  content: Part,
  options: { readonly anonymousConfigurable?: boolean; readonly dialectName?: 'kubernetes' } = {},
): Promise<string[]> {
  const { anonymousConfigurable = true, dialectName = 'svc' } = options;
  const file = {
    apiVersion: 'apiserver.config.svc.io/v1beta1',
    kind: 'AuthenticationConfiguration',
    ...content,
  };
  const configuration = await readAuthenticationConfiguration(JSON.stringify(file), dialect);
  const validation = validateAuthentication(configuration, {
    disallowedIssuers: ['https://own.example', 'https://also.example'],
    dialect: dialectOf(dialectName),
    anonymousConfigurable,
  });
  const { errors } = runInOnePiece(validation);
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

const single = async (change: Parameters<typeof authenticator>[0]) =>
  (await problemsOf({ jwt: [authenticator(change)] })).map((problem) =>
    problem.replace(/^jwt\[0\]\./, ''),
  );

const username = (expression: string) => ({ claimMappings: { username: { expression } } });
const claimRules = (...rules: Part[]) => ({ claimValidationRules: rules });
const userRules = (...rules: Part[]) => ({ userValidationRules: rules });
const extra = (...mappings: Part[]) => ({
  claimMappings: { username: { claim: 'sub', prefix: '' }, extra: mappings },
});

describe('AUTHN-8: a configuration', () => {
  test.each([
    ['nothing', {}],
    ['no authenticators', { jwt: [] }],
    ['one authenticator', { jwt: [authenticator()] }],
    ['anonymous on paths', { anonymous: { enabled: true, conditions: [{ path: '/livez' }] } }],
    ['anonymous access disabled', { anonymous: { enabled: false } }],
    ['64 authenticators', { jwt: issuers(64) }],
  ])('AUTHN-8: with %s is valid', async (_, content) => {
    expect(await problemsOf(content)).toEqual([]);
  });

  test('AUTHN-8: has at most 64 authenticators', async () => {
    expect(await problemsOf({ jwt: issuers(65) })).toEqual([
      'jwt: Too many: 65: must have at most 64 items',
    ]);
  });

  test('AUTHN-8: has unique issuers and discovery URLs', async () => {
    const issuer = { discoveryURL: 'https://discovery.example/x' };
    expect(
      await problemsOf({ jwt: [authenticator({ issuer }), authenticator({ issuer })] }),
    ).toEqual([
      'jwt[1].issuer.url: Duplicate value: "https://issuer.example"',
      'jwt[1].issuer.discoveryURL: Duplicate value: "https://discovery.example/x"',
    ]);
  });

  test('AUTHN-8: configures anonymous requests only with the gate', async () => {
    const anonymous = { enabled: false, conditions: [{ path: '/livez' }] };
    expect(await problemsOf({ anonymous }, { anonymousConfigurable: false })).toEqual([
      'anonymous: Forbidden: anonymous is not supported when AnonymousAuthConfigurableEndpoints feature gate is disabled',
      'anonymous.conditions: Invalid value: [{"path":"/livez"}]: enabled should be set to true when conditions are defined',
    ]);
  });
});

function issuers(count: number): Part[] {
  return Array.from({ length: count }, (_, index) =>
    authenticator({ issuer: { url: `https://issuer-${index}.example` } }),
  );
}

test('AUTHN-8: a configuration has the API group of the dialect', async () => {
  const file = (group: string) =>
    `{"apiVersion":"${group}/v1beta1","kind":"AuthenticationConfiguration"}`;
  const upstream = dialectOf('kubernetes');
  const read = await readAuthenticationConfiguration(file('apiserver.config.k8s.io'), upstream);
  expect(read).toMatchObject({ jwt: null, anonymous: null });
  await expect(
    readAuthenticationConfiguration(file('apiserver.config.k8s.io'), dialect),
  ).rejects.toThrow('no kind "AuthenticationConfiguration" is registered for version');
});

const urls: readonly (readonly [string, readonly string[]])[] = [
  ['https://issuer.example:8443/path/', []],
  ['https://issuer.example?', []],
  ['', ['issuer.url: Required value: URL is required']],
  ['http://issuer.example', ['URL scheme must be https']],
  ['issuer', ['URL scheme must be https']],
  ['https://a:b@issuer.example', ['URL must not contain a username or password']],
  ['https://issuer.example?a=b', ['URL must not contain a query']],
  ['https://issuer.example#a', ['URL must not contain a fragment']],
  [
    'ftp://a@issuer.example?a=b#c',
    [
      'URL scheme must be https',
      'URL must not contain a username or password',
      'URL must not contain a query',
      'URL must not contain a fragment',
    ],
  ],
  [
    'https://own.example',
    ['URL must not overlap with disallowed issuers: [https://also.example https://own.example]'],
  ],
  [
    'https://issuer.example:port',
    ['parse "https://issuer.example:port": invalid port ":port" after host'],
  ],
  ['https://issuer.example/%zz', ['parse "https://issuer.example/%zz": invalid URL escape "%zz"']],
  ['://issuer', ['parse "://issuer": missing protocol scheme']],
  ['https://[::1', ['parse "https://[::1": missing \']\' in host']],
  [
    'https://issuer\u0001',
    ['parse "https://issuer\\x01": net/url: invalid control character in URL'],
  ],
];

test.each(urls)('AUTHN-8: the issuer %j', async (url, expected) => {
  const shown = JSON.stringify(url).replace('\\u0001', '\\x01');
  expect(await single({ issuer: { url } })).toEqual(
    expected.map((problem) =>
      problem.startsWith('issuer.') ? problem : `issuer.url: Invalid value: ${shown}: ${problem}`,
    ),
  );
});

const ca = '-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----';
const audienceRequired =
  'issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required';

test.each<[Part, string[]]>([
  [
    { discoveryURL: 'https://issuer.example/' },
    [
      'issuer.discoveryURL: Invalid value: "https://issuer.example/": discoveryURL must be different from URL',
    ],
  ],
  [
    { discoveryURL: 'http://x.example' },
    ['issuer.discoveryURL: Invalid value: "http://x.example": URL scheme must be https'],
  ],
  [{ discoveryURL: 'https://own.example' }, []],
  [{ audiences: [] }, [audienceRequired]],
  [{ audiences: [''] }, ["issuer.audiences[0]: Required value: audience can't be empty"]],
  [
    { audiences: ['a', 'a'] },
    [
      'issuer.audiences[1]: Duplicate value: "a"',
      'issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences',
    ],
  ],
  [{ audiences: ['a', 'b'], audienceMatchPolicy: 'MatchAny' }, []],
  [{ audienceMatchPolicy: 'MatchAny' }, []],
  [
    { audienceMatchPolicy: 'MatchAll' },
    [
      'issuer.audienceMatchPolicy: Invalid value: "MatchAll": audienceMatchPolicy must be empty or MatchAny for single audience',
    ],
  ],
  [
    { certificateAuthority: 'x' },
    [
      'issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates',
    ],
  ],
  [
    { certificateAuthority: ca },
    ['issuer.certificateAuthority: Invalid value: "<omitted>": x509: malformed certificate'],
  ],
])('AUTHN-8: an issuer with %j', async (issuer, expected) => {
  expect(await single({ issuer })).toEqual(expected);
});

const twice = 'claims.a == "b"';

test.each<[Part[], string[]]>([
  [[{ claim: 'a', requiredValue: 'b' }, { claim: 'c' }, { expression: twice, message: 'm' }], []],
  [[{}], ['[0]: Required value: claim or expression is required']],
  [
    [{ claim: 'a', expression: twice }],
    ['[0]: Invalid value: "a": claim and expression can\'t both be set'],
  ],
  [
    [{ claim: 'a', message: 'm' }],
    ['[0].message: Invalid value: "m": message can\'t be set when claim is set'],
  ],
  [[{ claim: 'a' }, { claim: 'a' }], ['[1].claim: Duplicate value: "a"']],
  [
    [{ expression: twice, requiredValue: 'v' }],
    ['[0].requiredValue: Invalid value: "v": requiredValue can\'t be set when expression is set'],
  ],
  [
    [{ expression: twice }, { expression: twice }],
    [`[1].expression: Duplicate value: ${JSON.stringify(twice)}`],
  ],
  [
    [{ expression: 'claims.a' }],
    ['[0].expression: Invalid value: "claims.a": must evaluate to bool'],
  ],
  [
    [{ expression: 'user.a' }],
    [
      `[0].expression: Invalid value: "user.a": compilation failed: ERROR: <input>:1:1: undeclared reference to 'user' (in container '')\n | user.a\n | ^`,
    ],
  ],
  [[{ expression: '[claims.a, dyn(1)][5] == 1' }], []],
])('AUTHN-8: claim rules %j', async (rules, expected) => {
  expect(await single(claimRules(...rules))).toEqual(
    expected.map((problem) => `claimValidationRules${problem}`),
  );
});

test.each<[Part[], string[]]>([
  [[{ expression: "!user.username.startsWith('system:')", message: 'm' }], []],
  [[{ expression: "user.groups.all(g, g != 'a') && user.extra['a'][0] == user.uid" }], []],
  [[{ message: 'm' }], ['[0].expression: Required value: expression is required']],
  [[{ expression: 'true' }, { expression: 'true' }], ['[1].expression: Duplicate value: "true"']],
  [
    [{ expression: 'user.uid' }],
    ['[0].expression: Invalid value: "user.uid": must evaluate to bool'],
  ],
  [
    [{ expression: 'user.name == ""' }],
    [
      `[0].expression: Invalid value: "user.name == \\"\\"": compilation failed: ERROR: <input>:1:5: undefined field 'name'\n | user.name == ""\n | ....^`,
    ],
  ],
])('AUTHN-8: user rules %j', async (rules, expected) => {
  expect(await single(userRules(...rules))).toEqual(
    expected.map((problem) => `userValidationRules${problem}`),
  );
});

const both = 'Invalid value: "": claim and expression can\'t both be set';

test.each<[Part, string[]]>([
  [{ username: {} }, ['username: Required value: claim or expression is required']],
  [
    { username: { claim: 'sub' } },
    [
      'username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing',
    ],
  ],
  [{ username: { claim: 'a', expression: 'claims.a' } }, [`username: ${both}`]],
  [
    { username: { expression: 'claims.a', prefix: '' } },
    ['username.prefix: Invalid value: "": prefix can\'t be set when expression is set'],
  ],
  [
    { username: { expression: '', prefix: 'p' } },
    ['username: Required value: claim or expression is required'],
  ],
  [
    { groups: { claim: 'g' } },
    [
      'groups.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing',
    ],
  ],
  [{ groups: { claim: 'g', prefix: '', expression: 'claims.g' } }, [`groups: ${both}`]],
  [{ uid: { claim: 'u', expression: 'claims.u' } }, [`uid: ${both}`]],
  [{ uid: { claim: 'u' }, groups: { expression: '[claims.g]' } }, []],
])('AUTHN-8: mappings %j', async (mappings, expected) => {
  const change = { claimMappings: { username: { claim: 'sub', prefix: '' }, ...mappings } };
  const prefixed = expected.map((problem) => `claimMappings.${problem}`);
  expect(await single(change)).toEqual(prefixed);
});

test('AUTHN-8: a syntax error in an expression is reported with its position', async () => {
  const [problem, ...more] = await single({
    claimMappings: { username: { expression: 'claims.' } },
  });
  expect(more).toEqual([]);
  expect(problem).toMatch(
    /^claimMappings\.username\.expression: Invalid value: "claims\.": compilation failed: ERROR: <input>:1:\d: Syntax error: .*\n \| claims\.\n \| \.+\^$/,
  );
});

const reserved = 'svc.io and its subdomains are reserved for Svc use';
const key = (index: number, value: string) =>
  `claimMappings.extra[${index}].key: Invalid value: "${value}": `;

test.each<[Part[], string[]]>([
  [[{ key: 'example.org/a%20b', valueExpression: "'x'" }], []],
  [[{ key: '', valueExpression: "'x'" }], ['claimMappings.extra[0].key: Required value']],
  [
    [{ key: 'a', valueExpression: "'x'" }],
    [`${key(0, 'a')}must be a domain-prefixed path (such as "acme.io/foo")`],
  ],
  [
    [{ key: 'example.org/a b', valueExpression: "'x'" }],
    [
      `${key(0, 'a b')}Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')`,
    ],
  ],
  [
    [{ key: 'example.org/A', valueExpression: "'x'" }],
    [`${key(0, 'example.org/A')}key must be lowercase`],
  ],
  [[{ key: 'svc.io/a', valueExpression: "'x'" }], [`${key(0, 'svc.io/a')}${reserved}`]],
  [[{ key: 'a.svc.io/a', valueExpression: "'x'" }], [`${key(0, 'a.svc.io/a')}${reserved}`]],
  [[{ key: 'asvc.io/a', valueExpression: "'x'" }], []],
  [
    [{ key: 'a.b/c' }],
    ['claimMappings.extra[0].valueExpression: Required value: valueExpression is required'],
  ],
  [
    [
      { key: 'a.b/c', valueExpression: "'x'" },
      { key: 'a.b/c', valueExpression: "'y'" },
    ],
    ['claimMappings.extra[1].key: Duplicate value: "a.b/c"'],
  ],
])('AUTHN-8: extra %j', async (mappings, expected) => {
  expect(await single(extra(...mappings))).toEqual(expected);
});

test('AUTHN-8: reserved domains are those of the dialect', async () => {
  const jwt = ['a.k8s.io/a', 'kubernetes.io/a', 'svc.io/a'].map((extraKey, index) => ({
    ...authenticator(extra({ key: extraKey, valueExpression: "'x'" })),
    issuer: { url: `https://issuer-${index}.example`, audiences: ['us'] },
  }));
  const detail = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use';
  expect(await problemsOf({ jwt }, { dialectName: 'kubernetes' })).toEqual([
    `jwt[0].claimMappings.extra[0].key: Invalid value: "a.k8s.io/a": ${detail}`,
    `jwt[1].claimMappings.extra[0].key: Invalid value: "kubernetes.io/a": ${detail}`,
  ]);
});

describe('AUTHN-8: claims.email in the username', () => {
  const unverified = (expression: string) => [
    `claimMappings.username.expression: Invalid value: ${JSON.stringify(expression)}: ` +
      'claims.email_verified must be used in claimMappings.username.expression or ' +
      'claimMappings.extra[*].valueExpression or claimValidationRules[*].expression ' +
      'when claims.email is used in claimMappings.username.expression',
  ];

  test.each([
    'claims.email',
    'claims.?email.orValue("")',
    'has(claims.email) ? "a" : "b"',
    '[claims.email][0]',
    '{"a": claims.email}["a"]',
    '["a"].map(x, claims.email)[0]',
    'claims.email.lowerAscii()',
  ])('AUTHN-8: needs email_verified: %s', async (expression) => {
    expect(await single(username(expression))).toEqual(unverified(expression));
    const rule = 'claims.?email_verified.orValue(true) == true';
    expect(await single({ ...username(expression), ...claimRules({ expression: rule }) })).toEqual(
      [],
    );
  });

  test.each(['claims["email"]', 'claims.other.email', '"claims.email"', 'claims.email_address'])(
    'AUTHN-8: is not %s',
    async (expression) => {
      expect(await single(username(expression))).toEqual([]);
    },
  );

  test('AUTHN-8: may be verified in the username or an extra value, but nowhere else', async () => {
    const own = 'claims.email_verified ? claims.email : claims.sub';
    expect(await single(username(own))).toEqual([]);
    const mappings = {
      username: { expression: 'claims.email' },
      extra: [{ key: 'a.b/c', valueExpression: 'string(claims.email_verified)' }],
    };
    expect(await single({ claimMappings: mappings })).toEqual([]);
    const uid = { expression: 'string(claims.email_verified)' };
    expect(
      await single({ claimMappings: { username: { expression: 'claims.email' }, uid } }),
    ).toEqual(unverified('claims.email'));
    const userRule = { expression: 'user.username != "claims.email_verified"' };
    expect(await single({ ...username('claims.email'), ...userRules(userRule) })).toEqual(
      unverified('claims.email'),
    );
  });
});

test('TRUST-2: the expressions of a file are compiled in steps', async () => {
  const long = `claims.sub in [${Array(3_000).fill(`'a'`).join()}]`;
  const file = {
    apiVersion: 'apiserver.config.svc.io/v1beta1',
    kind: 'AuthenticationConfiguration',
    jwt: [authenticator(claimRules({ expression: long }, { expression: `${long} || true` }))],
  };
  const configuration = await readAuthenticationConfiguration(JSON.stringify(file), dialect);
  const options = { disallowedIssuers: [], dialect, anonymousConfigurable: true };
  const work = validateAuthentication(configuration, options);
  let steps = 1;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value.errors).toEqual([]);
  expect(steps).toBeGreaterThan(5);
});
