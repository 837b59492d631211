import { expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const volume = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/data' },
    ...spec,
  },
});
const claim = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } }, ...spec },
});

test('errors of a volume are reported together, each with its field', async () => {
  const answer = await server.post(
    '/api/v1/persistentvolumes',
    volume('v-bad', { accessModes: ['Odd'], hostPath: { path: '../x' }, volumeMode: 'Odd' }),
  );
  expect(answer.status).toBe(422);
  expect(answer.body.details.causes).toEqual([
    {
      reason: 'FieldValueNotSupported',
      field: 'spec.accessModes',
      message:
        'Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", ' +
        '"ReadWriteOnce", "ReadWriteOncePod"',
    },
    {
      reason: 'FieldValueInvalid',
      field: 'spec.hostPath.path',
      message: 'Invalid value: "../x": must not contain \'..\'',
    },
    {
      reason: 'FieldValueNotSupported',
      field: 'spec.volumeMode',
      message: 'Unsupported value: "Odd": supported values: "Block", "Filesystem"',
    },
  ]);
});

test('a volume’s source is immutable', async () => {
  const path = '/api/v1/persistentvolumes';
  expect((await server.post(path, volume('v-kept'))).status).toBe(201);
  const change = { spec: { hostPath: { path: '/other' } } };
  const answer = await server.patch(`${path}/v-kept`, change, 'merge');
  expect(answer.status).toBe(422);
  expect(answer.body.details.causes[0].field).toBe('spec.persistentvolumesource');
  expect(answer.body.message).toContain('is immutable after creation');
});

test('a claim is bound, grows, and can shrink to its capacity', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
  // Admission allows growth only for claims whose class allows it.
  await server.post('/apis/storage.svc.io/v1/storageclasses', {
    apiVersion: 'storage.svc.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'grows' },
    provisioner: 'example.com/p',
    allowVolumeExpansion: true,
  });
  const made = await server.post(path, claim('c', { storageClassName: 'grows' }));
  expect(made.body.status.phase).toBe('Pending');
  const bound = await server.patch(`${path}/c`, { spec: { volumeName: 'v' } }, 'merge');
  expect(bound.status).toBe(200);
  const status = { status: { phase: 'Bound', capacity: { storage: '2Gi' } } };
  expect((await server.patch(`${path}/c/status`, status, 'merge')).status).toBe(200);
  const size = (storage: string) =>
    server.patch(`${path}/c`, { spec: { resources: { requests: { storage } } } }, 'merge');
  expect((await size('5Gi')).status).toBe(200);
  expect((await size('3Gi')).status).toBe(200);
  const smaller = await size('1Gi');
  expect(smaller.body.message).toBe(
    'PersistentVolumeClaim "c" is invalid: spec.resources.requests.storage: Forbidden: ' +
      'field can not be less than status.capacity',
  );
});

test('a claim’s two data sources must agree', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
  const dataSource = { kind: 'PersistentVolumeClaim', name: 'other' };
  const made = await server.post(path, claim('c', { dataSource }));
  expect(made.body.spec.dataSourceRef).toMatchObject(dataSource);
  const odd = { apiGroup: 'example.com', kind: 'Odd', name: 'x' };
  const dropped = await server.post(path, claim('d', { dataSource: odd }));
  expect(dropped.body.spec).not.toHaveProperty('dataSource');
  const kept = await server.post(path, claim('e', { dataSourceRef: odd }));
  expect(kept.body.spec.dataSource).toMatchObject(odd);
});

test('a StorageClass is immutable', async () => {
  const path = '/apis/storage.svc.io/v1/storageclasses';
  const body = {
    apiVersion: 'storage.svc.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fast' },
    provisioner: 'example.com/p',
  };
  expect((await server.post(path, body)).status).toBe(201);
  const answer = await server.patch(`${path}/fast`, { reclaimPolicy: 'Retain' }, 'merge');
  expect(answer.body.message).toBe(
    'StorageClass.storage.svc.io "fast" is invalid: ' +
      'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
  );
});
