import { type ApiObject, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { dialect } from '../testing.ts';
import { crossesNamespaces, quotaEvaluator, scopesOf, selectsPriority } from './quota-usage.ts';

const nowMs = Date.UTC(2030, 0, 1);
const evaluator = (resource: string, group = '') => quotaEvaluator({ group, resource }, dialect);

/** The usage of an object as text, by name. */
function usage(resource: string, object: ApiObject, group = ''): Record<string, string> {
  const found = evaluator(resource, group).usage(object, nowMs);
  const amounts = 'next' in found ? runInOnePiece(found) : found;
  return Object.fromEntries([...amounts].map(([name, { text }]) => [name, text]));
}

const object = (spec: JsonObject, more: JsonObject = {}): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Any',
  metadata: { name: 'one', namespace: 'default' },
  spec,
  ...more,
});

const container = (name: string, resources: JsonObject) => ({ name, resources });
const cpu = (request: string, limit?: string): JsonObject => ({
  requests: { cpu: request },
  ...(limit === undefined ? {} : { limits: { cpu: limit } }),
});

describe('ADM-1: the usage of a Pod', () => {
  const pod = (spec: JsonObject, more: JsonObject = {}) => usage('pods', object(spec, more));

  test('is the sum of its containers or the largest init container, plus overhead', () => {
    const spec = {
      containers: [container('a', cpu('100m', '200m')), container('b', cpu('150m', '1'))],
      initContainers: [container('i', cpu('500m'))],
      overhead: { cpu: '10m' },
    };
    expect(pod(spec)).toMatchObject({
      'count/pods': '1',
      pods: '1',
      cpu: '510m',
      'requests.cpu': '510m',
      'limits.cpu': '1210m',
    });
  });

  test('has no overhead for a limit of zero', () => {
    const spec = { containers: [container('a', cpu('0', '0'))], overhead: { cpu: '1' } };
    expect(pod(spec)).toMatchObject({ 'requests.cpu': '1', 'limits.cpu': '0' });
  });

  test('has no overhead for limits that it does not set', () => {
    const spec = { containers: [container('a', cpu('1'))], overhead: { cpu: '1', memory: '1Mi' } };
    expect(pod(spec)).not.toHaveProperty(['limits.cpu']);
    expect(pod(spec)).toMatchObject({ cpu: '2', memory: '1Mi' });
  });

  test('counts devices by their requests, and huge pages twice', () => {
    const requests = { 'example.com/gpu': '2', 'hugepages-2Mi': '4Mi' };
    const spec = { containers: [container('a', { requests })] };
    expect(pod(spec)).toEqual({
      'count/pods': '1',
      pods: '1',
      'requests.example.com/gpu': '2',
      'hugepages-2Mi': '4Mi',
      'requests.hugepages-2Mi': '4Mi',
    });
  });

  test.each(['Failed', 'Succeeded'])('is only its count when it has %s', (phase) => {
    const spec = { containers: [container('a', cpu('1'))] };
    expect(pod(spec, { status: { phase } })).toEqual({ 'count/pods': '1' });
    expect(pod(spec, { status: { phase: 'Running' } })).toHaveProperty('cpu');
  });

  test('is only its count once it overstays its deletion', () => {
    const spec = { containers: [container('a', cpu('1'))] };
    const deletedAgo = (ms: number) => ({
      metadata: {
        name: 'one',
        deletionTimestamp: new Date(nowMs - ms).toISOString(),
        deletionGracePeriodSeconds: 30,
      },
    });
    expect(pod(spec, deletedAgo(30_000))).toHaveProperty('cpu');
    expect(pod(spec, deletedAgo(30_001))).toEqual({ 'count/pods': '1' });
  });

  test('must set what a quota counts, for every container', () => {
    const missing = (pod: ApiObject) => {
      const missingIn = evaluator('pods').missing?.(pod);
      return (names: readonly string[]) => missingIn && runInOnePiece(missingIn(names));
    };
    const spec = {
      containers: [container('b', cpu('1')), container('a', {})],
      initContainers: [container('i', {})],
    };
    const names = ['requests.memory', 'pods', 'requests.cpu'];
    expect(missing(object(spec))(names)).toBe(
      'must specify requests.cpu for: a,i; requests.memory for: a,b,i',
    );
    expect(missing(object({ containers: [container('b', cpu('1'))] }))(['cpu'])).toBeUndefined();
    expect(missing(object(spec))(['pods', 'requests.ephemeral-storage'])).toBeUndefined();
  });

  test('TRUST-2: of many containers or resources is found in steps', () => {
    const pods = evaluator('pods');
    const names = Array.from({ length: 3_000 }, (_, at) => `c${String(at).padStart(4, '0')}`);
    const many = object({ containers: names.map((name) => container(name, cpu('2m', '3m'))) });
    const devices = Object.fromEntries(names.map((name) => [`example.com/${name}`, '1']));
    const wide = object({ containers: [container('a', { requests: devices })] });
    const stepsOf = <Result>(work: Generator<void, Result>) => {
      for (let steps = 0; ; steps += 1) {
        const step = work.next();
        if (step.done === true) return { steps, result: step.value };
      }
    };
    const usageIn = (pod: ApiObject) => {
      const found = pods.usage(pod, nowMs);
      if (!('next' in found)) throw new Error('not in steps');
      return stepsOf(found);
    };
    const sum = usageIn(many);
    expect(sum.steps).toBeGreaterThan(2 * names.length);
    expect(sum.result.get('requests.cpu')?.text).toBe('6');
    expect(sum.result.get('limits.cpu')?.text).toBe('9');
    const counted = usageIn(wide);
    expect(counted.steps).toBeGreaterThan(10);
    expect(counted.result.size).toBe(names.length + 2);
    const missing = pods.missing?.(many)(['requests.memory']);
    if (missing === undefined) throw new Error('nothing is demanded');
    const silent = stepsOf(missing);
    expect(silent.steps).toBeGreaterThan(names.length);
    expect(silent.result).toBe(`must specify requests.memory for: ${names.join(',')}`);
  });

  test.each<[string, JsonObject, boolean]>([
    ['Terminating', { activeDeadlineSeconds: 0 }, true],
    ['Terminating', {}, false],
    ['NotTerminating', {}, true],
    ['NotTerminating', { activeDeadlineSeconds: 5 }, false],
    ['BestEffort', { containers: [container('a', {})] }, true],
    ['BestEffort', { containers: [container('a', cpu('1'))] }, false],
    ['NotBestEffort', { containers: [container('a', cpu('1'))] }, true],
    ['OfTheFuture', {}, false],
  ])('scope %s of %j: %s', (scopeName, spec, expected) => {
    const requirement = { scopeName, operator: 'Exists', values: [] };
    expect(evaluator('pods').matchesScope(object(spec), requirement)).toBe(expected);
  });
});

describe('ADM-1: the usage of a Service', () => {
  const ports = [{ port: 80, nodePort: 30000 }, { port: 443 }];
  test.each<[JsonObject, [string, string]]>([
    [{ type: 'ClusterIP', ports }, ['0', '0']],
    [{ type: 'NodePort', ports }, ['0', '2']],
    [{ type: 'LoadBalancer', ports }, ['1', '2']],
    [{ type: 'LoadBalancer', ports, allocateLoadBalancerNodePorts: false }, ['1', '1']],
  ])('%j', (spec, [balancers, nodePorts]) => {
    expect(usage('services', object(spec))).toEqual({
      'count/services': '1',
      services: '1',
      'services.loadbalancers': balancers,
      'services.nodeports': nodePorts,
    });
  });
});

describe('ADM-1: the usage of a claim', () => {
  const storage = (size: string, more: JsonObject = {}) =>
    object({ resources: { requests: { storage: size } }, ...more });

  test('counts again for its class', () => {
    const suffix = `.storageclass.${dialect.group('storage')}`;
    expect(usage('persistentvolumeclaims', storage('2Gi', { storageClassName: 'fast' }))).toEqual({
      'count/persistentvolumeclaims': '1',
      persistentvolumeclaims: '1',
      'requests.storage': '2Gi',
      [`fast${suffix}/persistentvolumeclaims`]: '1',
      [`fast${suffix}/requests.storage`]: '2Gi',
    });
  });

  test('is its storage in whole bytes, or what its volume has if that is more', () => {
    const stored = (size: string, allocated: string) => {
      const status = { allocatedResources: { storage: allocated } };
      const claim = { ...storage(size), status };
      return usage('persistentvolumeclaims', claim)['requests.storage'];
    };
    expect(stored('1500m', '0')).toBe('2');
    expect(stored('1.5Ki', '0')).toBe('1536');
    expect(stored('1Gi', '2Gi')).toBe('2Gi');
    expect(stored('2Gi', '1Gi')).toBe('2Gi');
  });

  test('matches names of any class', () => {
    const suffix = `.storageclass.${dialect.group('storage')}`;
    const names = ['pods', 'requests.storage', `slow${suffix}/requests.storage`];
    expect(evaluator('persistentvolumeclaims').matching(names)).toEqual(names.slice(1));
  });
});

describe('ADM-1: the usage of other objects', () => {
  test('is their count, under both names if there are two', () => {
    expect(usage('secrets', object({}))).toEqual({ 'count/secrets': '1', secrets: '1' });
    expect(usage('deployments', object({}), 'apps')).toEqual({ 'count/deployments.apps': '1' });
    const names = ['secrets', 'count/secrets', 'pods'];
    expect(evaluator('secrets').matching(names)).toEqual(names.slice(0, 2));
  });
});

test('ADM-1: the scopes of a quota, in both forms', () => {
  const matchExpressions = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }];
  const spec = { scopes: ['BestEffort'], scopeSelector: { matchExpressions } };
  expect(scopesOf(object(spec))).toEqual([
    { scopeName: 'BestEffort', operator: 'Exists', values: [] },
    ...matchExpressions,
  ]);
});

describe('ADM-1: the priority classes that a scope selects', () => {
  test.each<[string, readonly string[], string, boolean]>([
    ['In', ['high'], 'high', true],
    ['In', ['high'], 'low', false],
    ['In', [''], '', false],
    ['NotIn', ['high'], 'low', true],
    ['NotIn', ['high'], '', true],
    ['NotIn', ['high'], 'high', false],
    ['Exists', [], 'low', true],
    ['Exists', [], '', false],
    ['DoesNotExist', [], '', true],
    ['DoesNotExist', [], 'low', false],
    ['Gt', ['high'], 'high', false],
  ])('%s %j, class "%s": %s', (operator, values, className, expected) => {
    const requirement = { scopeName: 'PriorityClass', operator, values };
    expect(selectsPriority(requirement, className)).toBe(expected);
  });
});

describe('ADM-1: affinity across namespaces', () => {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  test.each<[string, JsonObject, boolean]>([
    ['no affinity', {}, false],
    ['a term of its own namespace', { podAffinity: { [required]: [{ topologyKey: 'z' }] } }, false],
    ['named namespaces', { podAffinity: { [required]: [{ namespaces: ['b'] }] } }, true],
    ['an empty selector', { podAntiAffinity: { [required]: [{ namespaceSelector: {} }] } }, true],
    [
      'a preferred term',
      { podAntiAffinity: { [preferred]: [{ weight: 1, podAffinityTerm: { namespaces: ['b'] } }] } },
      true,
    ],
    [
      'a preferred term of its own namespace',
      { podAffinity: { [preferred]: [{ weight: 1, podAffinityTerm: { topologyKey: 'z' } }] } },
      false,
    ],
    ['a term for nodes', { nodeAffinity: { [required]: [{ namespaces: ['b'] }] } }, false],
  ])('%s: crosses namespaces: %s', (_, affinity, expected) => {
    expect(crossesNamespaces({ affinity })).toBe(expected);
  });
});
