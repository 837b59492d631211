import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  admissionCall,
  admissionTools,
  dialect,
  refusalOf,
  type WriteFixture,
} from '../testing.ts';
import { limitRanger } from './limit-ranger.ts';

const pod = (spec: JsonObject, more: object = {}): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', ...more },
  spec,
});
const range = (...limits: JsonObject[]): ApiObject => ({
  apiVersion: 'v1',
  kind: 'LimitRange',
  metadata: { name: 'limits', namespace: 'default' },
  spec: { limits },
});
const plugin = (...ranges: ApiObject[]) => limitRanger(admissionTools({ limitranges: ranges }));
const annotation = dialect.label('limit-ranger');

const admit = (ranges: readonly ApiObject[], write: Omit<WriteFixture, 'resource'>) =>
  refusalOf(plugin(...ranges).validate, admissionCall({ resource: 'pods', ...write }));

describe('ADM-1: defaults of a LimitRange', () => {
  const defaults = range({
    type: 'Container',
    default: { cpu: '1', memory: '1Gi' },
    defaultRequest: { cpu: '100m' },
  });

  test('fill what containers omit, noted in an annotation', async () => {
    const own = { name: 'a', resources: { limits: { cpu: '2' } } };
    const object = pod({ containers: [own, { name: 'b' }], initContainers: [{ name: 'i' }] });
    await plugin(defaults).mutate?.(admissionCall({ resource: 'pods', object }));
    const both = { requests: { cpu: '100m' }, limits: { cpu: '1', memory: '1Gi' } };
    expect(object).toMatchObject({
      spec: {
        containers: [
          { resources: { requests: { cpu: '100m' }, limits: { cpu: '2', memory: '1Gi' } } },
          { resources: both },
        ],
        initContainers: [{ resources: both }],
      },
    });
    expect(object.metadata.annotations?.[annotation]).toBe(
      'LimitRanger plugin set: cpu request for container a; memory limit for container a; ' +
        'cpu request for container b; cpu, memory limit for container b; ' +
        'cpu request for init container i; cpu, memory limit for init container i',
    );
  });

  test('TRUST-2: of all LimitRanges together cost a Pod a bounded number of steps', async () => {
    const names = Array.from({ length: 300 }, (_, at) => [`example.com/r${at}`, '1']);
    const many = () => range({ type: 'Container', defaultRequest: Object.fromEntries(names) });
    const containers = Array.from({ length: 400 }, (_, at) => ({ name: `c${at}` }));
    const cost = (...ranges: ApiObject[]) =>
      refusalOf(
        plugin(...ranges).mutate,
        admissionCall({ resource: 'pods', object: pod({ containers }) }),
      );
    expect(await cost(many())).toBeUndefined();
    expect(await cost(many(), many())).toBe(
      'the check of limits needs more work than one request may cost',
    );
  });

  test('do not change a complete Pod', async () => {
    const resources = { requests: { cpu: '1' }, limits: { cpu: '1', memory: '1Gi' } };
    const object = pod({ containers: [{ name: 'a', resources }] });
    const before = structuredClone(object);
    await plugin(defaults).mutate?.(admissionCall({ resource: 'pods', object }));
    expect(object).toEqual(before);
  });

  test('do not apply to updates', async () => {
    const object = pod({ containers: [{ name: 'a' }] });
    const call = admissionCall({ resource: 'pods', operation: 'UPDATE', object, old: object });
    await plugin(defaults).mutate?.(call);
    expect(object).toEqual(pod({ containers: [{ name: 'a' }] }));
  });
});

describe('ADM-1: bounds of a LimitRange', () => {
  const podWith = (resources: JsonObject) => pod({ containers: [{ name: 'a', resources }] });

  test.each<[string, JsonObject, JsonObject, string | undefined]>([
    ['a request at the minimum', { min: { cpu: '1' } }, { requests: { cpu: '1000m' } }, undefined],
    [
      'a request below the minimum',
      { min: { cpu: '1' } },
      { requests: { cpu: '999m' } },
      'minimum cpu usage per Container is 1, but request is 999m',
    ],
    [
      'a limit below the minimum',
      { min: { cpu: '1' } },
      { requests: { cpu: '1' }, limits: { cpu: '500m' } },
      'minimum cpu usage per Container is 1, but limit is 500m',
    ],
    [
      'no limit under a maximum',
      { max: { cpu: '1' } },
      { requests: { cpu: '1' } },
      'maximum cpu usage per Container is 1.  No limit is specified',
    ],
    [
      'a request above the maximum',
      { max: { cpu: '1' } },
      { requests: { cpu: '2' }, limits: { cpu: '1' } },
      'maximum cpu usage per Container is 1, but request is 2',
    ],
    [
      'a ratio at its bound',
      { maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '1' }, limits: { cpu: '2' } },
      undefined,
    ],
    [
      'a ratio above its bound',
      { maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '300m' }, limits: { cpu: '1' } },
      'cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333',
    ],
    [
      'a ratio to a request of 0',
      { maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '0' }, limits: { cpu: '1' } },
      'cpu max limit to request ratio per Container is 2, but no request is specified or request is 0',
    ],
    [
      'a ratio without a limit',
      { maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '1' } },
      'cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0',
    ],
  ])('enforces %s', async (_, limit, resources, expected) => {
    const ranges = [range({ type: 'Container', ...limit })];
    expect(await admit(ranges, { object: podWith(resources) })).toBe(expected);
  });

  test('on a Pod limit the sum of its containers', async () => {
    const ranges = [range({ type: 'Pod', max: { cpu: '1' } })];
    const half = { limits: { cpu: '600m' } };
    const containers = [
      { name: 'a', resources: half },
      { name: 'b', resources: half },
    ];
    expect(await admit(ranges, { object: pod({ containers }) })).toBe(
      'maximum cpu usage per Pod is 1, but limit is 1200m',
    );
    expect(await admit(ranges, { object: pod({ containers: containers.slice(1) }) })).toBe(
      undefined,
    );
  });

  test('stop at the first violated LimitRange and report a problem once', async () => {
    const container = range({ type: 'Container', max: { cpu: '1' } });
    const later = range({ type: 'Pod', max: { cpu: '500m' } });
    const resources = { limits: { cpu: '2' } };
    const containers = ['a', 'b'].map((name) => ({ name, resources }));
    expect(await admit([container, later], { object: pod({ containers }) })).toBe(
      'maximum cpu usage per Container is 1, but limit is 2',
    );
  });

  test('apply to resizes, but to no other update and no terminating Pod', async () => {
    const ranges = [range({ type: 'Container', max: { cpu: '1' } })];
    const object = podWith({ limits: { cpu: '2' } });
    const update = { operation: 'UPDATE', object, old: object } as const;
    expect(await admit(ranges, update)).toBeUndefined();
    expect(await admit(ranges, { ...update, subresource: 'status' })).toBeUndefined();
    expect(await admit(ranges, { ...update, subresource: 'resize' })).toMatch(/^maximum cpu/);
    const deletionTimestamp = '2030-01-01T00:00:00Z';
    const old = pod({}, { deletionTimestamp });
    expect(await admit(ranges, { object, old })).toBeUndefined();
    const resize = { ...update, old, subresource: 'resize' };
    expect(await admit(ranges, resize)).toBeUndefined();
  });
});
