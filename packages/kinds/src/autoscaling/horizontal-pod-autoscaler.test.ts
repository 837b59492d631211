import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { decoded, kindOf, mutated, type Row, testCreates, updateErrors } from '../kind.suite.ts';

const def = kindOf('HorizontalPodAutoscaler');
const good: JsonObject = {
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
    maxReplicas: 3,
  },
};
const metric = (more: JsonObject) => ({ 'spec.metrics': [more] });
const target = (more: JsonObject = {}) => ({ type: 'AverageValue', averageValue: '1', ...more });
const types = 'supported values: "ContainerResource", "External", "Object", "Pods", "Resource"';

const creates: readonly Row[] = [
  [{}, []],
  [
    { 'spec.maxReplicas': 0 },
    [
      'spec.maxReplicas: Invalid value: 0: must be greater than 0',
      'spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`',
    ],
  ],
  [
    { 'spec.minReplicas': 0 },
    [
      'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
      'spec.metrics: Forbidden: must specify at least one Object or External metric to support ' +
        'scaling to zero replicas',
    ],
  ],
  [
    { 'spec.scaleTargetRef': { kind: 'a/b', name: '..' } },
    [
      'spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain \'/\'',
      'spec.scaleTargetRef.name: Invalid value: "..": may not be \'..\'',
    ],
  ],
  [
    { 'spec.scaleTargetRef': {} },
    ['spec.scaleTargetRef.kind: Required value', 'spec.scaleTargetRef.name: Required value'],
  ],
  [
    metric({}),
    [
      'spec.metrics[0].type: Required value: must specify a metric source type',
      `spec.metrics[0].type: Unsupported value: "": ${types}`,
      `spec.metrics[0].type: Unsupported value: "": ${types}`,
    ],
  ],
  [
    metric({ type: 'Pods' }),
    ['spec.metrics[0].pods: Required value: must populate information for the given metric source'],
  ],
  [
    metric({
      type: 'Pods',
      pods: { metric: { name: 'm' }, target: target() },
      resource: { name: 'cpu', target: target() },
    }),
    ['spec.metrics[0].resource: Forbidden: must populate the given metric source only'],
  ],
  [
    metric({ type: 'Pods', pods: { metric: { name: '' }, target: { type: 'Value', value: '0' } } }),
    [
      'spec.metrics[0].pods.metric.name: Required value: must specify a metric name',
      'spec.metrics[0].pods.target.value: Invalid value: resource.Quantity{' +
        'i:resource.int64Amount{value:0, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, ' +
        's:"0", Format:"DecimalSI"}: must be positive',
      'spec.metrics[0].pods.target.averageValue: Required value: ' +
        'must specify a positive target averageValue',
    ],
  ],
  [
    metric({
      type: 'Object',
      object: {
        describedObject: { kind: 'K', name: 'n' },
        metric: { name: 'm' },
        target: { type: 'Value' },
      },
    }),
    [
      'spec.metrics[0].object.target.averageValue: Required value: ' +
        'must set either a target value or averageValue',
    ],
  ],
  [
    metric({
      type: 'External',
      external: { metric: { name: 'm' }, target: target({ value: '1' }) },
    }),
    [
      'spec.metrics[0].external.target.value: Forbidden: ' +
        'may not set both a target value for metric and a per-pod target',
    ],
  ],
  [
    metric({ type: 'Resource', resource: { target: { type: 'Odd', averageUtilization: 0 } } }),
    [
      'spec.metrics[0].resource.name: Required value: must specify a resource name',
      'spec.metrics[0].resource.target.type: Invalid value: "Odd": ' +
        'must be either Utilization, Value, or AverageValue',
      'spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0',
    ],
  ],
  [
    metric({
      type: 'Resource',
      resource: { name: 'cpu', target: target({ averageUtilization: 1 }) },
    }),
    [
      'spec.metrics[0].resource.target.averageValue: Forbidden: ' +
        'may not set both a target raw value and a target utilization',
    ],
  ],
  [
    metric({
      type: 'ContainerResource',
      containerResource: { name: 'pods', target: { type: 'Utilization' } },
    }),
    [
      'spec.metrics[0].containerResource.name: Invalid value: pods: ' +
        'must be a standard resource for containers',
      'spec.metrics[0].containerResource.container: Required value: must specify a container',
      'spec.metrics[0].containerResource.target.averageUtilization: Required value: ' +
        'must set either a target raw value or a target utilization',
    ],
  ],
  [
    {
      'spec.behavior.scaleUp': {
        policies: [],
        selectPolicy: 'Most',
        stabilizationWindowSeconds: 3601,
      },
    },
    [
      'spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: ' +
        'must be less than or equal to 3600',
      'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Most": ' +
        'supported values: "Disabled", "Max", "Min"',
      'spec.behavior.scaleUp.policies: Required value: must specify at least one Policy',
    ],
  ],
  [
    { 'spec.behavior.scaleDown.policies': [{ type: 'Nodes', value: 0, periodSeconds: 1801 }] },
    [
      'spec.behavior.scaleDown.policies[0].type: Unsupported value: "Nodes": ' +
        'supported values: "Percent", "Pods"',
      'spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero',
      'spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: ' +
        'must be less than or equal to 1800',
    ],
  ],
];

describe('creates', () => {
  testCreates(def, good, creates);
});

test('an update may keep minReplicas of zero', () => {
  const external = metric({
    type: 'External',
    external: { metric: { name: 'm' }, target: target() },
  });
  const from = mutated(good, { 'spec.minReplicas': 0, ...external });
  const to = mutated(from, { 'spec.maxReplicas': 4 });
  expect(updateErrors(def, { from, to })).toEqual([]);
});

test('counts in status cannot be negative', () => {
  const to = mutated(good, { 'status.currentReplicas': -1, 'status.desiredReplicas': -2 });
  expect(updateErrors(def, { from: good, to }, { subresource: 'status' })).toEqual([
    'status.currentReplicas: Invalid value: -1: must be greater than or equal to 0',
    'status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0',
  ]);
});

describe('v1', () => {
  const v1 = def.versions.find(({ version }) => version === 'v1');
  const roundTrip = (body: JsonObject) => {
    const stored = decoded(def, body);
    const flat = v1?.fromStorage?.(structuredClone(stored)) as ApiObject;
    return { stored, flat, back: v1?.toStorage?.(structuredClone(flat)) };
  };
  const selector = { matchLabels: { a: 'b' } };

  test.each<[string, JsonObject]>([
    ['cpu alone', {}],
    ['pods', metric({ type: 'Pods', pods: { metric: { name: 'm', selector }, target: target() } })],
    [
      'an object',
      metric({
        type: 'Object',
        object: {
          describedObject: { kind: 'Service', name: 's' },
          metric: { name: 'm' },
          target: { type: 'Value', value: '5' },
        },
      }),
    ],
    [
      'external',
      metric({ type: 'External', external: { metric: { name: 'm', selector }, target: target() } }),
    ],
    [
      'a container',
      metric({
        type: 'ContainerResource',
        containerResource: {
          name: 'cpu',
          container: 'c',
          target: { type: 'Utilization', averageUtilization: 3 },
        },
      }),
    ],
    ['behavior', { 'spec.behavior.scaleDown': { selectPolicy: 'Min' } }],
    [
      'status',
      {
        'status.currentMetrics': [
          {
            type: 'Resource',
            resource: { name: 'cpu', current: { averageUtilization: 7, averageValue: '1' } },
          },
        ],
        'status.conditions': [{ type: 'AbleToScale', status: 'True' }],
      },
    ],
  ])('%s survives conversion in both directions', (_, mutation) => {
    const { stored, back } = roundTrip(mutated(good, mutation));
    // The current form always has this member.
    const status = { currentMetrics: null, ...(stored['status'] as JsonObject) };
    expect(back).toEqual({ ...stored, status });
  });

  test('uses the form of kube-apiserver for annotations', () => {
    const { flat } = roundTrip(
      mutated(good, {
        ...metric({ type: 'Pods', pods: { metric: { name: 'm' }, target: target() } }),
        'spec.behavior.scaleDown.selectPolicy': 'Min',
      }),
    );
    const annotations = flat.metadata.annotations ?? {};
    expect(JSON.parse(annotations['autoscaling.alpha.svc.io/metrics'] ?? '')).toEqual([
      { type: 'Pods', pods: { metricName: 'm', targetAverageValue: '1' } },
    ]);
    expect(JSON.parse(annotations['autoscaling.alpha.svc.io/behavior'] ?? '')).toMatchObject({
      ScaleDown: { SelectPolicy: 'Min' },
    });
    expect(flat['spec']).not.toHaveProperty('metrics');
  });

  test('an unreadable annotation is ignored and removed', () => {
    const annotations = { 'autoscaling.alpha.svc.io/metrics': '{', other: 'x' };
    const stored = decoded(def, { ...good, metadata: { annotations } }, { version: 'v1' });
    expect(stored.metadata.annotations).toEqual({ other: 'x' });
    expect(stored['spec']).toMatchObject({ metrics: [{ type: 'Resource' }], minReplicas: 1 });
  });

  const storedFrom = (name: string, text: string) => {
    const annotations = { [`autoscaling.alpha.svc.io/${name}`]: text };
    return decoded(def, { ...good, metadata: { annotations } }, { version: 'v1' });
  };

  test.each([
    ['of other members', { foo: 1 }],
    ['without rules', { ScaleUp: null }],
    ['with rules of a wrong type', { ScaleUp: 5 }],
    ['with a policy of a wrong type', { ScaleUp: { Policies: [5] } }],
    ['with a fraction', { ScaleUp: { StabilizationWindowSeconds: 5.5 } }],
    ['beyond 32 bits', { ScaleUp: { StabilizationWindowSeconds: 2 ** 32 } }],
  ])('ignores behavior %s', (_, behavior) => {
    expect(storedFrom('behavior', JSON.stringify(behavior))['spec']).not.toHaveProperty('behavior');
  });

  test('adds no default policies to behavior from an annotation', () => {
    const window = { stabilizationwindowseconds: 5, other: 1 };
    const texts = [window, { Policies: null }].map((rules) => JSON.stringify({ scaleup: rules }));
    const [first, second] = texts.map((text) => storedFrom('behavior', text)['spec']);
    expect(first).toMatchObject({
      behavior: { scaleUp: { stabilizationWindowSeconds: 5, selectPolicy: 'Max', policies: [] } },
    });
    expect(second).toMatchObject({ behavior: { scaleUp: { policies: [] } } });
    expect(storedFrom('behavior', '{"ScaleUp":{"Policies":[null]}}')['spec']).toMatchObject({
      behavior: { scaleUp: { policies: [{ type: '', value: 0, periodSeconds: 0 }] } },
    });
  });

  test('reads member names of annotations in any letter case', () => {
    const metrics = [{ TYPE: 'Pods', Pods: { MetricName: 'm', targetAverageValue: '1' } }];
    expect(storedFrom('metrics', JSON.stringify(metrics))['spec']).toMatchObject({
      metrics: [{ type: 'Pods', pods: { metric: { name: 'm' } } }],
    });
  });

  test('reports the last of several CPU utilizations', () => {
    const used = (averageUtilization: number) => ({
      type: 'Resource',
      resource: { name: 'cpu', current: { averageUtilization } },
    });
    const { flat } = roundTrip(mutated(good, { 'status.currentMetrics': [used(10), used(20)] }));
    expect(flat['status']).toMatchObject({ currentCPUUtilizationPercentage: 20 });
  });
});
