import { dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../../registry/permit.ts';
import { type AbacPolicy, createAbacAuthorizer, parseAbacPolicies } from './abac-authorizer.ts';

const dialect = dialectOf('kubernetes');
const apiVersion = 'abac.authorization.kubernetes.io/v1beta1';
const warnings: string[] = [];
const parse = (text: string) =>
  parseAbacPolicies({ file: 'p.jsonl', text, dialect, warn: (line) => warnings.push(line) });
const versioned = (spec: object) => JSON.stringify({ apiVersion, kind: 'Policy', spec });

const nothing: AbacPolicy = {
  user: '',
  group: '',
  readonly: false,
  apiGroup: '',
  resource: '',
  namespace: '',
  nonResourcePath: '',
};
const everything = { apiGroup: '*', resource: '*', namespace: '*', nonResourcePath: '*' };

describe('lines', () => {
  test.each<[string, Partial<AbacPolicy>]>([
    [versioned({ user: 'a', readonly: true }), { user: 'a', readonly: true }],
    [versioned({ user: '*', resource: 'x' }), { group: 'system:authenticated', resource: 'x' }],
    [versioned({ user: 'a', group: '*' }), { group: 'system:authenticated' }],
    [versioned({ unknown: 1, namespace: 'n' }), { namespace: 'n' }],
    [`{"apiVersion":"${apiVersion}","kind":"Policy"}`, {}],
    ['{}', { ...everything, group: 'system:authenticated' }],
    ['{"user":"a"}', { ...everything, user: 'a' }],
    ['{"user":"a","spec":{"user":"b"}}', { ...everything, user: 'a' }],
    [
      '{"kind":"Policy","group":"g","readonly":true}',
      { ...everything, group: 'g', readonly: true },
    ],
    [
      '{"user":"*","namespace":"n"}',
      { ...everything, group: 'system:authenticated', namespace: 'n', nonResourcePath: '' },
    ],
    [
      '{"user":"a","resource":"pods"}',
      { ...everything, user: 'a', resource: 'pods', nonResourcePath: '' },
    ],
    [
      '{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","user":"a"}',
      { ...everything, user: 'a' },
    ],
  ])('%s', (line, policy) => {
    expect(parse(line)).toEqual([{ ...nothing, ...policy }]);
  });

  test('blank lines and comments are skipped, and unversioned rules cause a warning', () => {
    warnings.length = 0;
    const text = `\n  # comment {\r\n${versioned({ user: 'a' })}\r\n\t\n`;
    expect(parse(text)).toHaveLength(1);
    expect(warnings).toEqual([]);
    parse(`${text}{"user":"b"}\n{"user":"c"}`);
    expect(warnings).toEqual(['Policy file p.jsonl contained unversioned rules.']);
  });

  test.each([
    ['nonsense', 1, /^error reading policy file p\.jsonl, line 1: nonsense: /],
    ['\n\n{"user":', 3, /^error reading policy file p\.jsonl, line 3: \{"user":: /],
    ['[]', 1, / line 1: \[\]: not a JSON object$/],
    ['null', 1, / line 1: null: not a JSON object$/],
    [
      '{"user":1}',
      1,
      /json: cannot unmarshal number into Go struct field Policy\.user of type string/,
    ],
    [
      '{"readonly":"yes"}',
      1,
      /cannot unmarshal string into Go struct field Policy\.readonly of type bool/,
    ],
    [
      versioned({ readonly: 1 }),
      1,
      /cannot unmarshal number into Go struct field \S+\.readonly of type bool/,
    ],
    ['{"apiVersion":"v1","kind":"Pod"}', 1, /no kind "Pod" is registered for version "v1"/],
    [`{"apiVersion":"${apiVersion}","kind":"Role"}`, 1, /no kind "Role" is registered for version/],
    [`{"apiVersion":"${apiVersion}","spec":{"user":"a"}}`, 1, /Object 'Kind' is missing in/],
    ['{"kind":"Role","user":"a"}', 1, /no kind "Role" is registered/],
    ['{"apiVersion":"a/b/c","kind":"Policy"}', 1, /unexpected GroupVersion string: a\/b\/c/],
    ['{"apiVersion":1}', 1, /json parse error/],
    [
      `{"user":"${'x'.repeat(70_000)}"}`,
      1,
      /^error reading policy file p\.jsonl: bufio\.Scanner: token too long$/,
    ],
  ])('line %# is rejected', (text, _, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  test('the group is that of the dialect', () => {
    const text = versioned({ user: 'a' });
    const svc = dialectOf('svc');
    expect(() => parseAbacPolicies({ file: 'f', text, dialect: svc, warn: () => {} })).toThrow();
    const ours = text.replace('kubernetes.io', 'svc.io');
    expect(parseAbacPolicies({ file: 'f', text: ours, dialect: svc, warn: () => {} })).toHaveLength(
      1,
    );
  });
});

const pods: Attributes = {
  user: { name: 'amy', uid: '', groups: ['dev', 'ops'], extra: {} },
  verb: 'create',
  isResourceRequest: true,
  group: '',
  version: 'v1',
  resource: 'pods',
  subresource: 'log',
  namespace: 'n',
  name: 'x',
  path: '/api/v1/namespaces/n/pods/x/log',
};
const path = {
  isResourceRequest: false,
  verb: 'get',
  path: '/logs/a',
  resource: '',
  namespace: '',
};

describe('matching', () => {
  test.each<[Partial<AbacPolicy>, Partial<Attributes>, boolean]>([
    [{ user: 'amy', resource: 'pods', namespace: 'n' }, {}, true],
    [{ user: 'amy', resource: 'pods', namespace: '*', apiGroup: '*' }, {}, true],
    [{ user: 'amy', resource: 'pods', namespace: 'n', apiGroup: 'apps' }, {}, false],
    [{ user: 'amy', resource: 'pods/log', namespace: 'n' }, {}, false],
    [{ user: 'amy', resource: '*', namespace: '' }, {}, false],
    [{ user: 'bob', resource: 'pods', namespace: 'n' }, {}, false],
    [{ user: 'amy', group: 'dev', resource: 'pods', namespace: 'n' }, {}, true],
    [{ user: 'amy', group: 'qa', resource: 'pods', namespace: 'n' }, {}, false],
    [{ user: 'bob', group: 'dev', resource: 'pods', namespace: 'n' }, {}, false],
    [{ group: 'ops', resource: 'pods', namespace: 'n' }, {}, true],
    [{ resource: 'pods', namespace: 'n' }, {}, false],
    [{ user: 'amy', resource: 'pods', namespace: 'n', readonly: true }, {}, false],
    [{ user: 'amy', resource: 'pods', namespace: 'n', readonly: true }, { verb: 'watch' }, true],
    [{ user: 'amy', resource: 'pods', namespace: 'n', readonly: true }, { verb: 'list' }, true],
    [{ user: 'amy', nonResourcePath: '*' }, {}, false],
    [{ user: 'amy', nonResourcePath: '*' }, path, true],
    [{ user: 'amy', nonResourcePath: '/logs/a' }, path, true],
    [{ user: 'amy', nonResourcePath: '/logs' }, path, false],
    [{ user: 'amy', nonResourcePath: '/logs/*' }, path, true],
    [{ user: 'amy', nonResourcePath: '/log**' }, path, true],
    [{ user: 'amy', nonResourcePath: '*s/a' }, path, false],
    [{ user: 'amy', resource: '*', namespace: '*', apiGroup: '*' }, path, false],
    [{ user: 'amy', nonResourcePath: '*', readonly: true }, { ...path, verb: 'post' }, false],
  ])('%j and %j: %s', (policy, change, allowed) => {
    const { authorize } = createAbacAuthorizer([{ ...nothing, ...policy }]);
    expect(authorize({ ...pods, ...change })).toEqual(
      allowed
        ? { decision: 'allow', reason: '' }
        : { decision: 'no-opinion', reason: 'No policy matched.' },
    );
  });

  test('rules of a user', () => {
    const { rulesFor } = createAbacAuthorizer([
      { ...nothing, user: 'amy', namespace: 'n', resource: 'pods', readonly: true },
      { ...nothing, group: 'ops', namespace: '*', apiGroup: 'apps', resource: '*' },
      { ...nothing, user: 'amy', namespace: '*', nonResourcePath: '/x' },
      { ...nothing, user: 'amy', namespace: 'other', resource: '*' },
      { ...nothing, user: 'bob', namespace: '*', resource: '*' },
    ]);
    const none = { apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };
    expect(rulesFor(pods.user, 'n')).toEqual([
      { ...none, verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['pods'] },
      { ...none, verbs: ['*'], apiGroups: ['apps'], resources: ['*'] },
      { ...none, verbs: ['*'], nonResourceURLs: ['/x'] },
    ]);
  });
});
