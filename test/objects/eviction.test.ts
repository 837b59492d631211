import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import type { PodDisruptionBudget } from '@wheelhouse/kinds/types/policy/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let made = 0;
let pods = '';
let budgets = '';

const server = await withServer({ dialect: 'kubernetes' });

/** Each test has its own namespace, which isolates its budgets. */
beforeEach(async () => {
  made += 1;
  const name = `evictions-${made}`;
  await server.post('/api/v1/namespaces', { metadata: { name } });
  pods = `/api/v1/namespaces/${name}/pods`;
  budgets = `/apis/policy/v1/namespaces/${name}/poddisruptionbudgets`;
});

/** Creates a pod that a finalizer keeps, so that the effects of an eviction are visible. */
async function makePod(status: object): Promise<void> {
  const metadata = { name: 'p', labels: { app: 'a' }, finalizers: ['example.com/seen'] };
  const spec = { containers: [{ name: 'a', image: 'i:1' }], nodeName: 'n' };
  const answer = await server.post(pods, { metadata, spec });
  expect(answer.status, answer.text).toBe(201);
  const patched = await server.patch(`${pods}/p/status`, { status }, 'merge');
  expect(patched.status, patched.text).toBe(200);
}

async function makeBudget(name: string, status: object, spec: object = {}): Promise<void> {
  const selector = { matchLabels: { app: 'a' } };
  const answer = await server.post(budgets, { metadata: { name }, spec: { selector, ...spec } });
  expect(answer.status, answer.text).toBe(201);
  const counted = { status: { observedGeneration: 1, expectedPods: 2, ...status } };
  const patched = await server.patch(`${budgets}/${name}/status`, counted, 'merge');
  expect(patched.status, patched.text).toBe(200);
}

const evict = (deleteOptions?: JsonObject) =>
  server.post(`${pods}/p/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'p' },
    ...(deleteOptions === undefined ? {} : { deleteOptions }),
  });

const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const unready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] };
const marked = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' };
const none = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 2 };
const enough = { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 };

async function isGoing(): Promise<boolean> {
  const { body } = await server.get<ResponseOf<Pod>>(`${pods}/p`);
  const isMarked = (body.status.conditions ?? []).some(
    (condition) => condition.type === marked.type,
  );
  const isDeleted = body.metadata.deletionTimestamp !== undefined;
  expect(isMarked, 'both or neither').toBe(isDeleted);
  return isDeleted;
}

describe('the pod', () => {
  test('API-6: is evicted by an Eviction of either version', async () => {
    await makePod(ready);
    for (const [version, status] of [
      ['v1alpha1', 400],
      ['v1beta1', 201],
    ]) {
      const body = { apiVersion: `policy/${version}`, kind: 'Eviction', metadata: { name: 'p' } };
      expect((await server.post(`${pods}/p/eviction`, body)).status).toBe(status);
    }
  });

  test('API-6: records the eviction in its status', async () => {
    await makePod(ready);
    expect((await evict()).status).toBe(201);
    const { body } = await server.get(`${pods}/p`);
    expect(body.metadata.deletionTimestamp).toBeDefined();
    const message = 'Eviction API: evicting';
    const condition = { ...marked, message, lastProbeTime: null };
    expect(body.status.conditions).toMatchObject([{ type: 'Ready' }, condition]);
    const writers = (body.metadata.managedFields ?? []).map(
      (managedField: { subresource: string }) => managedField.subresource,
    );
    expect(writers).toEqual([undefined, 'status']);
  });

  test('API-6: is unchanged by a dry run, whichever side requests it', async () => {
    await makePod(ready);
    expect((await evict({ dryRun: ['All'] })).status).toBe(201);
    expect(await isGoing()).toBe(false);
  });

  test('API-6: may be missing, which precedes invalid options', async () => {
    const invalid = { propagationPolicy: 'Never' };
    expect((await evict(invalid)).status).toBe(404);
    await makePod(ready);
    const answer = await evict(invalid);
    expect([answer.status, answer.body.reason]).toEqual([422, 'Invalid']);
    expect(await isGoing()).toBe(false);
  });

  test('API-6: must meet the client’s preconditions', async () => {
    await makePod(ready);
    for (const preconditions of [{ uid: 'other' }, { resourceVersion: '1' }]) {
      const answer = await evict({ preconditions });
      expect([answer.status, answer.body.reason]).toEqual([409, 'Conflict']);
    }
    expect(await isGoing()).toBe(false);
    const { resourceVersion, uid } = (await server.get(`${pods}/p`)).body.metadata;
    expect((await evict({ preconditions: { resourceVersion, uid } })).status).toBe(201);
    expect(await isGoing()).toBe(true);
  });
});

describe('its budget', () => {
  test.each([
    ['a ready pod', ready, none, {}, false],
    ['an unready pod, too few healthy', unready, none, {}, false],
    ['an unready pod, enough healthy', unready, enough, {}, true],
    [
      'an unready pod that may always go',
      unready,
      none,
      { unhealthyPodEvictionPolicy: 'AlwaysAllow' },
      true,
    ],
    [
      'a ready pod of such a budget',
      ready,
      none,
      { unhealthyPodEvictionPolicy: 'AlwaysAllow' },
      false,
    ],
    ['a pending pod', { phase: 'Pending' }, none, {}, true],
    ['a pod that has ended', { phase: 'Failed' }, none, {}, true],
  ])('API-6: counts or not: %s', async (_, status, counts, spec, goes) => {
    await makePod(status);
    await makeBudget('b', counts, spec);
    const answer = await evict();
    expect(answer.status, answer.text).toBe(goes ? 201 : 429);
    expect(await isGoing()).toBe(goes);
    expect((await server.get(`${budgets}/b`)).body.status.disruptedPods).toBeUndefined();
  });

  test('API-6: reports its last allowed disruption in a condition', async () => {
    await makePod(ready);
    await makeBudget('b', { disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2 });
    expect((await evict()).status).toBe(201);
    const { metadata, status } = (await server.get<ResponseOf<PodDisruptionBudget>>(`${budgets}/b`))
      .body;
    expect(metadata.managedFields).toContainEqual(
      expect.objectContaining({ manager: 'kube-apiserver', subresource: 'status' }),
    );
    expect(Object.keys(status.disruptedPods)).toEqual(['p']);
    expect(status.disruptionsAllowed).toBe(0);
    expect(status.conditions).toMatchObject([
      { type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods' },
    ]);
  });

  const failed = { type: 'DisruptionAllowed', status: 'False', message: 'no scale' };
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const needs = (healthy: number) =>
    `The disruption budget b needs 2 healthy pods and has ${healthy} currently`;
  test.each([
    [none, needs(1)],
    [{ ...none, currentHealthy: 3 }, needs(3)],
    [{ ...none, conditions: [{ ...failed, reason: 'SyncFailed', lastTransitionTime }] }, needs(1)],
    [
      {
        ...none,
        currentHealthy: 3,
        conditions: [{ ...failed, reason: 'Other', lastTransitionTime }],
      },
      needs(3),
    ],
  ])('API-6: %j explains the refusal', async (counts, message) => {
    await makePod(ready);
    await makeBudget('b', counts);
    const answer = await evict();
    expect(answer.body).toMatchObject({
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      reason: 'TooManyRequests',
      details: { causes: [{ reason: 'DisruptionBudget', message }] },
      code: 429,
    });
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  test('API-6: is at most one', async () => {
    await makePod(ready);
    for (const name of ['b', 'c']) await makeBudget(name, { ...none, disruptionsAllowed: 1 });
    const answer = await evict();
    expect([answer.status, answer.body.message]).toEqual([
      500,
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    ]);
  });
});
