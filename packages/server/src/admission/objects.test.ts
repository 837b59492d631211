import type { ApiObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { onlyCollectorsFieldsDiffer } from './objects.ts';

const old: ApiObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'one',
    namespace: 'default',
    uid: '1',
    resourceVersion: '5',
    finalizers: ['orphan'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: '2' }],
    labels: { a: 'b' },
  },
  data: { key: 'value' },
};
const changed = (metadata: Partial<ApiObject['metadata']>, more: object = {}): ApiObject => ({
  ...old,
  ...more,
  metadata: { ...old.metadata, ...metadata },
});

describe('ADM-1: which updates only the garbage collector makes', () => {
  test.each<[string, ApiObject, boolean]>([
    ['no change', changed({}), true],
    ['no owners', changed({ ownerReferences: [] }), true],
    ['no finalizers', changed({ finalizers: [] }), true],
    ['another version', changed({ resourceVersion: '6', generation: 2 }), true],
    ['another label', changed({ labels: { a: 'c' } }), false],
    ['an annotation', changed({ annotations: { a: 'c' } }), false],
    ['other content', changed({}, { data: { key: 'other' } }), false],
    ['a new member', changed({}, { immutable: true }), false],
  ])('%s: %s', (_, object, expected) => {
    expect(onlyCollectorsFieldsDiffer(object, old)).toBe(expected);
  });
});
