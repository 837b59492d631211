import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { admissionCall, admissionTools, dialect, type WriteFixture } from '../testing.ts';
import { defaultTolerationSeconds } from './default-toleration-seconds.ts';

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
