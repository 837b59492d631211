import { isDeepStrictEqual } from 'node:util';
import { type ApiObject, cloneJson, dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { builtinKinds } from './builtin-kinds.ts';
import { pod as podKind } from './core/pod.ts';
import { resourceClaim } from './resource/resource-claim.ts';
import { resourceSlice } from './resource/resource-slice.ts';
import type { MaybeSteps, StrategyContext } from './resource-def.ts';
import { same, sameSteps } from './rules/checks.ts';
import { created, defaulted, plainPod } from './rules/rules.suite.ts';

/** Preparing large objects in steps (TRUST-2). */

const dialect = dialectOf('kubernetes');
const optional = [resourceSlice(dialect), resourceClaim(dialect, {})];
const kinds = [...builtinKinds(dialect), ...optional];

const context: StrategyContext = {
  user: { name: 'tester', uid: '', groups: [], extra: {} },
  nowMs: 0,
  dryRun: false,
  subresource: '',
};

const strategyOf = (kind: string) => {
  const def = kinds.find((candidate) => candidate.kind === kind);
  if (def === undefined) throw new Error(`no kind ${kind}`);
  return def.strategy;
};

const repeated = <Item>(count: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: count }, (_, at) => make(at));

/** Runs a preparation and returns its number of steps. */
function stepsOf(preparation: MaybeSteps<void>): number {
  if (!preparation) return 1;
  for (let steps = 1; ; steps += 1) if (preparation.next().done === true) return steps;
}

const createSteps = (object: ApiObject): number =>
  stepsOf(strategyOf(object.kind).prepareForCreate?.(context, object));

const updateSteps = (object: ApiObject, old: ApiObject, subresource = ''): number =>
  stepsOf(strategyOf(object.kind).prepareForUpdate?.({ ...context, subresource }, object, old));

const containers = repeated(3_000, (at) => ({ name: `c${at}`, image: 'i' }));
const labels = Object.fromEntries(repeated(3_000, (at) => [`l${at}`, 'v']));
const limits = Object.fromEntries(repeated(3_000, (at) => [`a.io/${at}`, '1']));

const limited = [{ name: 'a', resources: { limits } }];

const podOf = (spec: JsonObject = { containers }): JsonObject => ({
  ...plainPod(),
  spec: { containers: [{ name: 'a', image: 'i' }], ...spec },
});
const workload = (kind: string): JsonObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'wide', namespace: 'default' },
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers } },
  },
});
const podTemplate: JsonObject = {
  apiVersion: 'v1',
  kind: 'PodTemplate',
  metadata: { name: 'wide', namespace: 'default' },
  template: { spec: { containers } },
};
const endpointSlice: JsonObject = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'wide', namespace: 'default' },
  addressType: 'IPv4',
  endpoints: repeated(3_000, () => ({
    addresses: ['10.0.0.1'],
    deprecatedTopology: { 'kubernetes.io/hostname': 'n' },
  })),
};
const attributes = Object.fromEntries(repeated(3_000, (at) => [`a${at}`, { int: 1 }]));
const slice: ApiObject = {
  apiVersion: 'resource.k8s.io/v1beta1',
  kind: 'ResourceSlice',
  metadata: { name: 'wide', generation: 1 },
  spec: { driver: 'd', pool: { name: 'p' }, devices: [{ name: 'd', basic: { attributes } }] },
};

test.each<[string, JsonObject, number]>([
  ['a Pod', podOf(), 10],
  ['a PodTemplate', podTemplate, 8],
  ['a Deployment', workload('Deployment'), 8],
  ['an EndpointSlice', endpointSlice, 3],
])('TRUST-2: a large new object is prepared in steps: %s', (_, object, least) => {
  expect(createSteps(defaulted(object))).toBeGreaterThanOrEqual(least);
});

test.each<[string, ApiObject]>([
  ['a PodTemplate', created(podTemplate)],
  ['a Deployment', created(workload('Deployment'))],
  ['a DaemonSet', created(workload('DaemonSet'))],
  ['an EndpointSlice', created(endpointSlice)],
  ['a ResourceSlice', slice],
])('TRUST-2: an update of a large object is compared in steps: %s', (_, old) => {
  const same = cloneJson(old);
  expect(updateSteps(same, old)).toBeGreaterThan(15);
  expect(same.metadata.generation).toBe(old.metadata.generation);
});

test.each<[string, ApiObject, (object: JsonObject) => void]>([
  [
    'the last container of a Deployment',
    created(workload('Deployment')),
    ({ spec }) => {
      const { template } = spec as { template: { spec: { containers: JsonObject[] } } };
      template.spec.containers[2_999] = { name: 'c', image: 'j' };
    },
  ],
  [
    'an attribute of a ResourceSlice',
    slice,
    ({ spec }) => {
      const { devices } = spec as { devices: { basic: { attributes: JsonObject } }[] };
      if (devices[0] !== undefined) devices[0].basic.attributes['a2999'] = { int: 2 };
    },
  ],
  [
    'the last endpoint of an EndpointSlice',
    created(endpointSlice),
    ({ endpoints }) => {
      (endpoints as JsonObject[])[2_999] = { addresses: ['10.0.0.2'] };
    },
  ],
])('TRUST-2: a comparison in steps counts a change of %s', (_, old, change) => {
  const next = cloneJson(old);
  change(next);
  updateSteps(next, old);
  expect(next.metadata.generation).toBe((old.metadata.generation ?? 0) + 1);
});

test.each<[string, ApiObject]>([
  ['the spec of a Pod, by a write to status', created(podOf())],
  ['many limits of a Pod, by a write to status', created(podOf({ containers: limited }))],
  ['the spec of a Pod, by a write to ephemeralcontainers', created(podOf())],
  ['the spec of a Pod, by a write to resize', created(podOf())],
  ['the spec of a Deployment, by a write to status', created(workload('Deployment'))],
])('TRUST-2: %s is kept in steps', (what, old) => {
  const subresource = what.slice(what.lastIndexOf(' ') + 1);
  const next: ApiObject = { ...cloneJson(old), metadata: { name: 'wide' } };
  if (subresource === 'status') next.spec = {};
  expect(updateSteps(next, old, subresource)).toBeGreaterThan(10);
  if (!isDeepStrictEqual(next.spec, old.spec)) expect(next.spec).toEqual(old.spec);
  expect(next.spec).not.toBe(old.spec);
});

test.each(['labels', 'annotations'])('TRUST-2: the %s of an object are kept in steps', (name) => {
  const old: ApiObject = {
    apiVersion: 'resource.k8s.io/v1beta1',
    kind: 'ResourceClaim',
    metadata: { name: 'wide', namespace: 'default', [name]: labels },
    spec: {},
  };
  const next = { ...cloneJson(old), metadata: { name: 'wide', finalizers: ['a/b'] }, status: {} };
  expect(updateSteps(next, old, 'status')).toBeGreaterThan(5);
  expect(next.metadata).toEqual({ name: 'wide', [name]: labels });
});

test('TRUST-2: a resize of many limits compares them in steps', () => {
  const { strategy } = podKind(dialect, { enabled: () => true });
  const pod = (amount: string) =>
    created(
      podOf({ containers: [{ name: 'a', resources: { limits: { ...limits, cpu: amount } } }] }),
    );
  const old = pod('1');
  const resize = (next: ApiObject) =>
    stepsOf(strategy.prepareForUpdate?.({ ...context, subresource: 'resize' }, next, old));
  const next = pod('2');
  expect(resize(next)).toBeGreaterThan(15);
  expect(next.status).toMatchObject({ resize: 'Proposed' });
  const unchanged = pod('1000m');
  resize(unchanged);
  expect(unchanged.status).not.toHaveProperty('resize');
});

test.each(['ConfigMap', 'Lease'])('a %s takes no steps', (kind) => {
  const apiVersion = kind === 'Lease' ? 'coordination.k8s.io/v1' : 'v1';
  const object = defaulted({ apiVersion, kind, metadata: { name: 'a', namespace: 'default' } });
  const strategy = strategyOf(kind);
  expect(strategy.prepareForCreate?.(context, object)).toBeUndefined();
  expect(strategy.prepareForUpdate?.(context, object, object)).toBeUndefined();
});

const wide = (parts: JsonObject): JsonObject => ({ wide: labels, ...parts });

test.each<[JsonObject, JsonObject, boolean]>([
  [wide({ a: 1 }), wide({ a: 1 }), true],
  [wide({ a: undefined }), wide({ b: undefined }), true],
  [wide({}), wide({ a: 1 }), false],
  [wide({}), { wide: { ...labels, l: 'v' } }, false],
  [wide({}), { wide: [] }, false],
  [{ wide: containers }, { wide: labels }, false],
  [{ wide: containers }, { wide: [...containers.slice(1), 1] }, false],
  [wide({ limits: { cpu: '1' } }), wide({ limits: { cpu: '1000m' } }), true],
  [wide({ labels: { cpu: '1' } }), wide({ labels: { cpu: '1000m' } }), false],
  [{ limits: { ...limits, cpu: '1' } }, { limits: { ...limits, cpu: '1000m' } }, true],
])('TRUST-2: large objects are compared in steps with the same result (%#)', (...row) => {
  const [left, right, expected] = row;
  for (const [one, other] of [
    [left, cloneJson(right)],
    [cloneJson(right), left],
  ] as const) {
    expect(same(one, other)).toBe(expected);
    const work = sameSteps(one, other);
    let steps = 0;
    let step = work.next();
    for (; step.done !== true; step = work.next()) steps += 1;
    expect(step.value).toBe(expected);
    if (expected) expect(steps).toBeGreaterThan(5);
  }
});
