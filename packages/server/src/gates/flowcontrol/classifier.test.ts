import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { dealHand, flowHash, matcherFor } from './classifier.ts';
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

test('OPS-3: a hand depends only on its hash and has distinct cards', () => {
  expect(dealHand(97n, { queues: 5, handSize: 3 })).toEqual([2, 4, 1]);
  expect(dealHand(0n, { queues: 3, handSize: 3 })).toEqual([0, 1, 2]);
  const deck = { queues: 64, handSize: 6 };
  for (let flow = 0; flow < 500; flow += 1) {
    const hand = dealHand(flowHash('schema', `user-${flow}`), deck);
    expect(new Set(hand).size).toBe(6);
    expect(Math.min(...hand)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...hand)).toBeLessThan(64);
  }
});

test('OPS-3: flows spread over all queues and rarely share all of them', () => {
  const deck = { queues: 32, handSize: 4 };
  const hands = Array.from({ length: 2000 }, (_, flow) => dealHand(flowHash('s', `${flow}`), deck));
  const uses = Array.from({ length: 32 }, () => 0);
  for (const card of hands.flat()) uses[card] = (uses[card] ?? 0) + 1;
  // 250 each on average; a deviation of six standard deviations is practically impossible.
  for (const use of uses) expect(Math.abs(use - 250)).toBeLessThan(6 * Math.sqrt(250));
  const [first = [], ...others] = hands;
  const same = others.filter((hand) => hand.every((card) => first.includes(card)));
  expect(same.length).toBeLessThan(5);
});

test('OPS-3: the hash covers schema and distinguisher and equals kube-apiserver’s', () => {
  expect(flowHash('a', 'bc')).not.toBe(flowHash('ab', 'c'));
  // The digest of one zero byte begins with 6e 34 0b 9c ff b3 7a 98, which kube-apiserver reads as
  // little-endian.
  expect(flowHash('', '')).toBe(0x987a_b3ff_9c0b_346en);
});
