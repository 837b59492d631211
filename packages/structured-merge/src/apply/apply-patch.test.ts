import type { ApiObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { refreshLastApplied } from './apply-patch.ts';

const annotation = 'example.com/last-applied';
const kind = { apiVersion: 'v1', lastApplied: { annotation, manager: 'tool' } };

test('SSA-1: a refreshed last-applied annotation has the escapes of kubectl', () => {
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name: 'a', annotations: { [annotation]: '{}' } },
  };
  const patch = { kind: 'Thing', apiVersion: 'v1', data: { '&': '>=6.0.0 <7.0.0\u2028"' } };
  refreshLastApplied(kind, { object, patch });
  expect(object.metadata.annotations?.[annotation]).toBe(
    '{"apiVersion":"v1","data":{"\\u0026":"\\u003e=6.0.0 \\u003c7.0.0\\u2028\\""},' +
      '"kind":"Thing","metadata":{}}\n',
  );
});

test('SSA-1: a refreshed last-applied annotation records the other annotations', () => {
  for (const others of [{}, { b: '1' }]) {
    const annotations = { [annotation]: '{}', ...others };
    const object: ApiObject = { apiVersion: 'v1', kind: 'Thing', metadata: { annotations } };
    refreshLastApplied(kind, { object, patch: { metadata: { annotations } } });
    expect(JSON.parse(object.metadata.annotations?.[annotation] ?? '')).toEqual({
      metadata: { annotations: others },
    });
  }
});
