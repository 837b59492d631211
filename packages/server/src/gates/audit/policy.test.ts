import { ConfigurationError } from '@wheelhouse/codec';
import { dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type AuditedRequest, auditPolicy, loadAuditPolicy } from './policy.ts';

const dialect = dialectOf('svc');
const warnings: string[] = [];
const load = (policy: object) =>
  loadAuditPolicy(JSON.stringify({ apiVersion: 'audit.svc.io/v1', kind: 'Policy', ...policy }), {
    dialect,
    warn: (message) => warnings.push(message),
  });

const user = { name: 'ann', uid: '', groups: ['writers', 'system:authenticated'], extra: {} };
const pods: AuditedRequest = {
  verb: 'get',
  path: '/api/v1/namespaces/n/pods/p',
  isResourceRequest: true,
  group: '',
  version: 'v1',
  namespace: 'n',
  resource: 'pods',
  subresource: '',
  name: 'p',
};
const path = (at: string): AuditedRequest => ({
  ...pods,
  path: at,
  isResourceRequest: false,
  resource: '',
  namespace: '',
  name: '',
});
const scale: AuditedRequest = {
  ...pods,
  group: 'apps',
  resource: 'deployments',
  subresource: 'scale',
};

/** Whether a rule with these fields matches the request. */
async function isMatch(rule: object, request: AuditedRequest, by = user): Promise<boolean> {
  const policy = await load({ rules: [{ level: 'Request', ...rule }, { level: 'Metadata' }] });
  return auditPolicy(policy)(request, by).level === 'Request';
}

describe('OPS-2: rules', () => {
  const core = (more: object) => ({ resources: [{ group: '', ...more }] });
  const cases: readonly [what: string, rule: object, request: AuditedRequest, expected: boolean][] =
    [
      ['everything', {}, pods, true],
      ['a user', { users: ['bob', 'ann'] }, pods, true],
      ['another user', { users: ['bob'] }, pods, false],
      ['a group', { userGroups: ['writers'] }, pods, true],
      ['another group', { userGroups: ['readers'] }, pods, false],
      ['a verb', { verbs: ['list', 'get'] }, pods, true],
      ['another verb', { verbs: ['list'] }, pods, false],
      ['a namespace', { namespaces: ['n'] }, pods, true],
      ['another namespace', { namespaces: ['m', ''] }, pods, false],
      ['no namespace', { namespaces: [''] }, { ...pods, namespace: '' }, true],
      ['no namespace, for a path', { namespaces: [''] }, path('/version'), false],
      ['a whole group', core({}), pods, true],
      ['another API group', { resources: [{ group: 'apps' }] }, pods, false],
      ['a resource', core({ resources: ['pods'] }), pods, true],
      [
        'a resource, for its subresource',
        core({ resources: ['pods'] }),
        { ...pods, subresource: 'log' },
        false,
      ],
      ['a subresource', core({ resources: ['pods/log'] }), { ...pods, subresource: 'log' }, true],
      ['any subresource', core({ resources: ['pods/*'] }), { ...pods, subresource: 'log' }, true],
      ['any subresource, for the resource', core({ resources: ['pods/*'] }), pods, true],
      [
        'a subresource of any resource',
        { resources: [{ group: 'apps', resources: ['*/scale'] }] },
        scale,
        true,
      ],
      [
        'a subresource of any resource, for a resource',
        core({ resources: ['*/log'] }),
        pods,
        false,
      ],
      ['any resource', core({ resources: ['*'] }), pods, true],
      ['a name', core({ resources: ['pods'], resourceNames: ['q', 'p'] }), pods, true],
      ['another name', core({ resources: ['pods'], resourceNames: ['q'] }), pods, false],
      ['a path', { nonResourceURLs: ['/version'] }, path('/version'), true],
      ['paths below', { nonResourceURLs: ['/healthz*'] }, path('/healthz/ping'), true],
      ['another path', { nonResourceURLs: ['/healthz'] }, path('/healthz/ping'), false],
      ['any path', { nonResourceURLs: ['*'] }, path('/x'), true],
      ['any path, for an object', { nonResourceURLs: ['*'] }, pods, false],
    ];
  test.each(cases)('a rule for %s', async (_what, rule, request, expected) => {
    expect(await isMatch(rule, request)).toBe(expected);
  });

  test('a rule for users never matches unauthenticated requests', async () => {
    const policy = await load({ rules: [{ level: 'Request', userGroups: ['writers'] }] });
    expect(auditPolicy(policy)(pods, undefined).level).toBe('None');
    const nameless = await load({ rules: [{ level: 'Request', users: [''] }] });
    expect(auditPolicy(nameless)(pods, undefined).level).toBe('None');
  });

  test('the first match decides, and its omitted stages add to the policy’s', async () => {
    const policy = await load({
      omitStages: ['RequestReceived'],
      omitManagedFields: true,
      rules: [
        { level: 'Metadata', verbs: ['list'], omitStages: ['Panic'], omitManagedFields: false },
        { level: 'RequestResponse' },
      ],
    });
    const decide = auditPolicy(policy);
    const forList = decide({ ...pods, verb: 'list' }, user);
    expect(forList.level).toBe('Metadata');
    expect([...forList.omitStages].sort()).toEqual(['Panic', 'RequestReceived']);
    expect(forList.omitManagedFields).toBe(false);
    const forGet = decide(pods, user);
    expect(forGet.level).toBe('RequestResponse');
    expect([...forGet.omitStages]).toEqual(['RequestReceived']);
    expect(forGet.omitManagedFields).toBe(true);
  });
});

describe('OPS-2: an invalid policy is reported in one line', () => {
  const fails = async (policy: object, message: string) => {
    const error = await load(policy).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect((error as Error).message).toBe(message);
  };
  test('without rules', () => fails({ rules: [] }, 'loaded illegal policy with 0 rules'));
  test('without a level', () => fails({ rules: [{}] }, 'rules[0].level: Required value'));
  test('with an unknown level', () =>
    fails(
      { rules: [{ level: 'All' }] },
      'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse"',
    ));
  test('with an unknown stage', () =>
    fails(
      { rules: [{ level: 'None' }], omitStages: ['Sent'] },
      'omitStages[0]: Invalid value: "Sent": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic',
    ));
  test('with invalid paths', () =>
    fails(
      { rules: [{ level: 'None', nonResourceURLs: ['a', '/*/b'] }] },
      `[rules[0].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/*/b": non-resource URL wildcards '*' must be the final character of the rule]`,
    ));
  test('with a rule for both objects and paths', () =>
    fails(
      { rules: [{ level: 'None', nonResourceURLs: ['/a'], namespaces: ['n'] }] },
      'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs',
    ));
  test('with a group that includes a version', () =>
    fails(
      { rules: [{ level: 'None', resources: [{ group: 'apps/v1' }] }] },
      `rules[0].resources.group: Invalid value: "apps/v1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    ));
  test('with a wildcard as a group', () =>
    fails(
      { rules: [{ level: 'None', resources: [{ group: '*', resources: ['*'] }] }] },
      `rules[0].resources.group: Invalid value: "*": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    ));
  test('with invalid resource names', () =>
    fails(
      { rules: [{ level: 'None', resources: [{ group: '', resourceNames: ['a'] }] }] },
      'rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource',
    ));
  test('of another kind', () =>
    fails(
      { kind: 'Event', rules: [] },
      'no kind "Event" is registered for version "audit.svc.io/v1" where Policy of audit.svc.io/v1 is expected',
    ));
});

test('OPS-2: unknown members of a policy are ignored with a warning', async () => {
  const policy = await load({ rules: [{ level: 'Metadata', verb: 'get' }] });
  expect(auditPolicy(policy)({ ...pods, verb: 'list' }, user).level).toBe('Metadata');
  expect(warnings).toEqual([
    'Audit policy contains errors, falling back to lenient decoding: strict decoding error: unknown field "rules[0].verb"',
  ]);
});
