import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  admissionCall,
  admissionTools,
  dialect,
  refusalOf,
  type WriteFixture,
} from '../testing.ts';
import { defaultTolerationSeconds, podTolerationRestriction } from './tolerations.ts';

const [notReady, unreachable] = ['not-ready', 'unreachable'].map((name) =>
  dialect.label(name, 'node'),
);
const settings = { notReadyTolerationSeconds: 30, unreachableTolerationSeconds: 60 };
const added = (key: string | undefined, tolerationSeconds: number): JsonObject => ({
  key: key ?? '',
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});
const both = [added(notReady, 30), added(unreachable, 60)];

function tolerations(own: JsonObject[], write: Partial<WriteFixture> = {}) {
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { tolerations: own },
  };
  const plugin = defaultTolerationSeconds(admissionTools({}, { settings }));
  void plugin.mutate?.(admissionCall({ resource: 'pods', object, ...write }));
  const spec = object['spec'];
  return spec;
}

describe('ADM-1: tolerations for failing nodes', () => {
  test.each<[string, JsonObject[], JsonObject[]]>([
    ['nothing', [], both],
    ['another taint', [{ key: 'a' }], [{ key: 'a' }, ...both]],
    ['one of them', [{ key: notReady ?? '' }], [{ key: notReady ?? '' }, added(unreachable, 60)]],
    ['all taints', [{ operator: 'Exists' }], [{ operator: 'Exists' }]],
    [
      'one of them for new Pods alone',
      [{ key: notReady ?? '', effect: 'NoSchedule' }],
      [{ key: notReady ?? '', effect: 'NoSchedule' }, ...both],
    ],
  ])('is added where it tolerates %s', (_, own, expected) => {
    expect(tolerations(own)).toEqual({ tolerations: expected });
    expect(tolerations(own, { operation: 'UPDATE' })).toEqual({ tolerations: expected });
  });

  test('are not added through subresources', () => {
    expect(tolerations([], { operation: 'UPDATE', subresource: 'status' })).toEqual({
      tolerations: [],
    });
  });
});

const own = { key: 'own', operator: 'Exists' };
const whitelist = dialect.label('tolerationsWhitelist', 'scheduler.alpha');

test.each([
  ['namespace', { [whitelist]: JSON.stringify([own]) }],
  ['cluster', {}],
])('ADM-1: PodTolerationRestriction names the whitelist of the %s', async (scope, annotations) => {
  const metadata = { name: 'default', annotations };
  const namespace: ApiObject = { apiVersion: 'v1', kind: 'Namespace', metadata };
  const tolerations = { defaults: [], allowed: [own] };
  const tools = admissionTools({ namespaces: [namespace] }, { configurations: { tolerations } });
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { tolerations: [{ key: 'other', operator: 'Exists' }] },
  };
  const { validate } = podTolerationRestriction(tools);
  expect(await refusalOf(validate, admissionCall({ resource: 'pods', object }))).toBe(
    `pod tolerations (possibly merged with namespace default tolerations) conflict with its ${scope} whitelist`,
  );
});
