import { humanDuration, type JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  createErrors,
  decoded,
  kindOf,
  plainContext,
  runPreparation,
  updateErrors,
} from './kind.suite.ts';

const badKey =
  "Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

describe('creates', () => {
  const cases: readonly [string, JsonObject, readonly string[]][] = [
    ['ConfigMap', { data: { 'a b': '' } }, [`data[a b]: ${badKey}`]],
    [
      'ConfigMap',
      { data: { k: '' }, binaryData: { k: '' } },
      ['data[k]: Invalid value: "k": duplicate of key present in binaryData'],
    ],
    [
      'ConfigMap',
      { data: { k: 'x'.repeat(1024 * 1024 + 1) } },
      ['[]: Too long: may not be more than 1048576 bytes'],
    ],
    [
      'Secret',
      { type: 'svc.io/tls' },
      ['data[tls.crt]: Required value', 'data[tls.key]: Required value'],
    ],
    ['Secret', { type: 'svc.io/tls', stringData: { 'tls.crt': 'c', 'tls.key': 'k' } }, []],
    [
      'Secret',
      { type: 'svc.io/service-account-token' },
      ['metadata.annotations[svc.io/service-account.name]: Required value'],
    ],
    [
      'Lease',
      { spec: { leaseDurationSeconds: 0 } },
      ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'],
    ],
    [
      'Deployment',
      { spec: { template: { spec: { containers: [{ name: 'a', image: 'i' }] } } } },
      [
        'spec.selector: Required value',
        'spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`',
      ],
    ],
    [
      'Deployment',
      {
        spec: {
          selector: { matchLabels: { app: 'a' } },
          template: {
            metadata: { labels: { app: 'b' } },
            spec: { containers: [{ name: 'a', image: 'i' }] },
          },
        },
      },
      [
        'spec.template.metadata.labels: Invalid value: map[string]string{"app":"b"}: `selector` does not match template `labels`',
      ],
    ],
    ['Pod', { spec: {} }, ['spec.containers: Required value']],
    [
      'Node',
      { spec: { taints: [{ key: 'k', effect: 'Never' }] } },
      [
        'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      ],
    ],
  ];
  test.each(cases)('%s $1', (kind, more, expected) => {
    expect(createErrors(kindOf(kind), more)).toEqual(expected);
  });
});

describe('updates', () => {
  const frozen = 'Forbidden: field is immutable when `immutable` is set';
  const cases: readonly [string, JsonObject, JsonObject, readonly string[]][] = [
    [
      'ConfigMap',
      { immutable: true, data: { a: '1' } },
      { data: { a: '2' } },
      [`immutable: ${frozen}`, `data: ${frozen}`],
    ],
    ['Secret', { type: 'a' }, { type: 'b' }, ['type: Invalid value: "b": field is immutable']],
    [
      'Node',
      { spec: { providerID: 'a' } },
      { spec: { providerID: 'b' } },
      [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
      ],
    ],
  ];
  test.each(cases)('%s %j to %j', (kind, old, next, expected) => {
    expect(updateErrors(kindOf(kind), { from: old, to: next })).toEqual(expected);
  });
});

describe('defaults', () => {
  test('a Secret keeps no stringData', () => {
    const secret = decoded(kindOf('Secret'), {
      data: { a: 'AA==' },
      stringData: { a: 'x', b: 'y' },
    });
    expect(secret['data']).toEqual({ a: 'eA==', b: 'eQ==' });
    expect(secret['stringData']).toBeUndefined();
    expect(secret['type']).toBe('Opaque');
  });

  test('a new Namespace is active, labeled with its name, and has a finalizer', () => {
    const object = decoded(kindOf('Namespace'), {});
    const { strategy } = kindOf('Namespace');
    runPreparation(strategy.prepareForCreate?.(plainContext, object));
    expect(object).toMatchObject({
      metadata: { labels: { 'svc.io/metadata.name': 'x' } },
      spec: { finalizers: ['svc'] },
      status: { phase: 'Active' },
    });
    expect(strategy.mayRemove?.(object)).toBe(false);
    expect(strategy.beforeDelete?.(plainContext, object)).toBe('finalize');
    expect(object['status']).toMatchObject({ phase: 'Terminating' });
  });

  test('a status update changes nothing else, including generation', () => {
    const spec = { replicas: 1, selector: {}, template: {} };
    const old = decoded(kindOf('Deployment'), { spec });
    const { strategy } = kindOf('Deployment');
    runPreparation(strategy.prepareForCreate?.(plainContext, old));
    expect(old.metadata.generation).toBe(1);
    const next = decoded(kindOf('Deployment'), {
      spec: { ...spec, replicas: 5 },
      status: { replicas: 1 },
    });
    next.metadata.generation = 1;
    const status = structuredClone(next);
    runPreparation(
      strategy.prepareForUpdate?.({ ...plainContext, subresource: 'status' }, status, old),
    );
    expect(status['spec']).toEqual(old['spec']);
    expect(status['status']).toEqual({ replicas: 1 });
    expect(status.metadata.generation).toBe(1);
    runPreparation(strategy.prepareForUpdate?.(plainContext, next, old));
    expect(next['status']).toEqual(old['status']);
    expect(next.metadata.generation).toBe(2);
  });
});

test.each([
  [-5000, '<invalid>'],
  [0, '0s'],
  [119_000, '119s'],
  [120_000, '2m'],
  [599_000, '9m59s'],
  [10_700_000, '178m'],
  [3 * 3_600_000, '3h'],
  [8 * 3_600_000, '8h'],
  [3 * 86_400_000 + 3_600_000, '3d1h'],
  [800 * 86_400_000, '2y70d'],
])('a duration of %d ms prints as %s', (ms, text) => {
  expect(humanDuration(ms)).toBe(text);
});
