import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { matcherFor } from './classifier.ts';
import type { FlowInfo } from './contract.ts';
import { readSchema } from './settings.ts';
import { infoOf, userOf } from './testing.ts';

const all = ['*'];

/** Whether a rule with these members matches a request. */
function matches(rule: JsonObject, info: Partial<FlowInfo>, user = userOf('alice', ['staff'])) {
  const subjects = [{ kind: 'User', user: { name: '*' } }];
  const { rules } = readSchema({
    apiVersion: 'v1',
    kind: 'FlowSchema',
    metadata: { name: 'schema' },
    spec: { rules: [{ subjects, ...rule }] },
  });
  return matcherFor(rules, user)?.matches(infoOf(info));
}

const resource = (more: JsonObject): JsonObject => ({
  resourceRules: [
    { verbs: all, apiGroups: all, resources: all, namespaces: all, clusterScope: true, ...more },
  ],
});
const url = (nonResourceURLs: string[], verbs = all): JsonObject => ({
  nonResourceRules: [{ verbs, nonResourceURLs }],
});
const path = (at: string, verb = 'get') => ({ isResourceRequest: false, path: at, verb });

describe('OPS-3: rules for', () => {
  test.each<[string, JsonObject, Partial<FlowInfo>, boolean]>([
    ['everything', resource({}), {}, true],
    ['a verb', resource({ verbs: ['list', 'get'] }), {}, true],
    ['another verb', resource({ verbs: ['list'] }), {}, false],
    ['a group', resource({ apiGroups: ['apps', ''] }), {}, true],
    ['another group', resource({ apiGroups: ['apps'] }), {}, false],
    ['a resource', resource({ resources: ['configmaps'] }), {}, true],
    [
      'a resource, not its subresource',
      resource({ resources: ['pods'] }),
      { subresource: 'status' },
      false,
    ],
    [
      'a subresource',
      resource({ resources: ['pods/status'] }),
      { resource: 'pods', subresource: 'status' },
      true,
    ],
    ['a namespace', resource({ namespaces: ['n'], clusterScope: false }), {}, true],
    ['another namespace', resource({ namespaces: ['m'] }), {}, false],
    ['the cluster scope', resource({ namespaces: ['m'] }), { namespace: '' }, true],
    ['all but the cluster scope', resource({ clusterScope: false }), { namespace: '' }, false],
    ['resources, not URLs', resource({}), path('/version'), false],
    ['every URL', url(['*']), path('/version'), true],
    ['a URL', url(['/version']), path('/version'), true],
    ['a path below a URL', url(['/healthz']), path('/healthz/ping'), true],
    ['a path below a URL with a star', url(['/healthz/*']), path('/healthz/ping'), true],
    ['another path with the same prefix', url(['/healthz']), path('/healthzero'), false],
    ['a verb of a URL', url(['/version'], ['get']), path('/version', 'post'), false],
    ['URLs, not resources', url(['*']), {}, false],
  ])('OPS-3: %s', (_, rule, info, expected) => {
    expect(matches(rule, info)).toBe(expected);
  });

  const account = userOf('system:serviceaccount:ns:robot');
  test.each<[string, JsonObject, ReturnType<typeof userOf>, boolean]>([
    ['a user', { kind: 'User', user: { name: 'alice' } }, userOf('alice'), true],
    ['another user', { kind: 'User', user: { name: 'bob' } }, userOf('alice'), false],
    ['a group', { kind: 'Group', group: { name: 'b' } }, userOf('x', ['a', 'b']), true],
    ['another group', { kind: 'Group', group: { name: 'c' } }, userOf('x', ['a', 'b']), false],
    ['any group', { kind: 'Group', group: { name: '*' } }, userOf('x'), true],
    [
      'an account',
      { kind: 'ServiceAccount', serviceAccount: { namespace: 'ns', name: 'robot' } },
      account,
      true,
    ],
    [
      'any account of a namespace',
      { kind: 'ServiceAccount', serviceAccount: { namespace: 'ns', name: '*' } },
      account,
      true,
    ],
    [
      'any account of another namespace',
      { kind: 'ServiceAccount', serviceAccount: { namespace: 'n', name: '*' } },
      account,
      false,
    ],
    ['an unknown kind', { kind: 'Odd', user: { name: '*' } }, userOf('alice'), false],
  ])('OPS-3: a subject: %s', (_, subject, user, expected) => {
    const found = matches({ subjects: [subject], ...resource({}) }, {}, user);
    expect(found ?? false).toBe(expected);
  });
});
