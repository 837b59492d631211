import type { ApiObject } from '@wheelhouse/machinery';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import { sharedReservations } from './quota-ledger.ts';

const prefix = '/registry/reservations/';

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a', uid: '1', annotations: { note: 'hidden' } },
  spec: {
    priorityClassName: 'high',
    containers: [
      {
        name: 'c',
        resources: { requests: { cpu: '1' } },
        env: [{ name: 'PASSWORD', value: 'hidden' }],
      },
    ],
  },
  status: { phase: 'Running', message: 'hidden' },
} as ApiObject;

const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's', namespace: 'a', uid: '2' },
  data: { password: 'hidden' },
} as ApiObject;

test('servers share what quotas count, and nothing that may be secret', async () => {
  const store = createMemoryStore();
  const [first, second] = [sharedReservations(store, prefix), sharedReservations(store, prefix)];
  await first.put('a', 'pods', pod);
  await first.put('a', 'secrets', secret);
  const { records } = await store.range({ prefix: '' });
  for (const { value } of records) expect(value.toString()).not.toContain('hidden');
  expect(await second.list('a', 'pods')).toMatchObject([
    {
      uid: '1',
      revision: 1,
      object: {
        metadata: { name: 'p' },
        spec: {
          priorityClassName: 'high',
          containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }],
        },
        status: { phase: 'Running' },
      },
    },
  ]);
  expect(await second.list('a', 'secrets')).toMatchObject([{ uid: '2' }]);
  expect(await second.list('b', 'pods')).toEqual([]);
  // A server does not list its own reservations, and the newest one counts.
  expect(await first.list('a', 'pods')).toEqual([]);
  await first.put('a', 'pods', pod);
  expect((await second.list('a', 'pods')).map(({ revision }) => revision)).toEqual([3]);
  await first.remove('a', 'pods', pod);
  expect(await second.list('a', 'pods')).toEqual([]);
});

test('a claim keeps the class of its annotation', async () => {
  const store = createMemoryStore();
  const annotations = { 'volume.beta.kubernetes.io/storage-class': 'fast' };
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c', namespace: 'a', uid: '3', annotations },
    spec: { resources: { requests: { storage: '1Gi' } } },
  } as ApiObject;
  await sharedReservations(store, prefix).put('a', 'persistentvolumeclaims', claim);
  const listed = await sharedReservations(store, prefix).list('a', 'persistentvolumeclaims');
  expect(listed).toMatchObject([{ object: { metadata: { annotations }, spec: claim['spec'] } }]);
});
