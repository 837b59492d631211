import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import {
  type Changes,
  changed,
  created,
  createErrors,
  createWarnings,
  updated,
  updateErrors,
} from '../../rules/rules.suite.ts';

const volume = (changes: Changes = {}): JsonObject =>
  changed(
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'v' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/d' },
      },
    },
    changes,
  );
const claim = (changes: Changes = {}): JsonObject =>
  changed(
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'c', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    changes,
  );
const onLabel = (key: string) => ({
  'spec.nodeAffinity.required.nodeSelectorTerms': [
    { matchExpressions: [{ key, operator: 'In', values: ['x'] }] },
  ],
});
const then = '2030-01-01T00:00:00Z';

test('a volume records the time at which it entered its phase', () => {
  const old = created(volume());
  expect(old['status']).toEqual({ phase: 'Pending', lastPhaseTransitionTime: then });
  const before = changed(old, { 'status.lastPhaseTransitionTime': '2020-01-01T00:00:00Z' });
  const moved = updated(before, changed(before, { 'status.phase': 'Bound' }), 'status');
  expect(moved['status']).toEqual({ phase: 'Bound', lastPhaseTransitionTime: then });
  const withOwnTime = {
    'status.phase': 'Bound',
    'status.lastPhaseTransitionTime': '2021-01-01T00:00:00Z',
  };
  const withTime = updated(before, changed(before, withOwnTime), 'status');
  expect(withTime['status']).toHaveProperty('lastPhaseTransitionTime', '2021-01-01T00:00:00Z');
  const same = { 'status.message': 'm', 'status.lastPhaseTransitionTime': undefined };
  expect(updated(before, changed(before, same), 'status')['status']).toHaveProperty(
    'lastPhaseTransitionTime',
    '2020-01-01T00:00:00Z',
  );
});

test('a deprecated node label may be replaced only by its new name', () => {
  const old = created(volume(onLabel('failure-domain.beta.kubernetes.io/zone')));
  const change = (key: string) => updateErrors(old, changed(old, onLabel(key)));
  expect(change('topology.kubernetes.io/zone')).toEqual([]);
  expect(change('topology.kubernetes.io/region')).toHaveLength(1);
});

test('an update may add only the secret with which the controller expands a volume', () => {
  const driver = { 'spec.hostPath': undefined, 'spec.csi': { driver: 'a.b', volumeHandle: 'h' } };
  const old = created(volume(driver));
  const secret = { name: 's', namespace: 'n' };
  const add = (name: string) => updateErrors(old, changed(old, { [`spec.csi.${name}`]: secret }));
  expect(add('controllerExpandSecretRef')).toEqual([]);
  expect(add('nodeExpandSecretRef')).toEqual([
    expect.stringContaining('spec.persistentvolumesource is immutable after creation'),
  ]);
});

test('an update reports unsupported mount options once', () => {
  const old = created(volume());
  const options = { 'metadata.annotations': { 'volume.beta.kubernetes.io/mount-options': 'ro' } };
  expect(updateErrors(old, changed(old, { ...options, 'spec.accessModes': [] }))).toEqual([
    'spec.accessModes: Required value',
    expect.stringContaining('may not specify mount options for this volume type'),
    'spec.accessModes: Required value',
  ]);
});

test('deprecated members of volumes cause warnings', () => {
  const label = 'beta.kubernetes.io/os';
  const changes = {
    ...onLabel(label),
    'metadata.annotations': { 'volume.beta.kubernetes.io/mount-options': 'x' },
    'spec.persistentVolumeReclaimPolicy': 'Recycle',
    'spec.hostPath': undefined,
    'spec.glusterfs': { endpoints: 'e', path: 'p' },
  };
  expect(createWarnings(volume(changes))).toEqual([
    'metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead',
    'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
    `spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: ${label} is deprecated since v1.14; use "kubernetes.io/os" instead`,
    'spec.glusterfs: deprecated in v1.25, non-functional in v1.26+',
  ]);
});

test('deprecated annotations and fractional bytes of claims cause warnings', () => {
  const changes = {
    'metadata.annotations': { 'volume.beta.kubernetes.io/storage-class': 'x' },
    'spec.resources.requests.storage': '1500m',
  };
  expect(createWarnings(claim(changes))).toEqual([
    'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
    'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
  ]);
});

test('an empty volume mode is rejected, unlike an absent one', () => {
  const refused = 'spec.volumeMode: Unsupported value: "": supported values: "Block", "Filesystem"';
  expect(createErrors(claim({ 'spec.volumeMode': '' }))).toEqual([refused]);
  expect(createErrors(volume({ 'spec.volumeMode': '' }))).toEqual([refused]);
});

test('a data source in another namespace is dropped entirely', () => {
  const source = { kind: 'PersistentVolumeClaim', name: 'o', namespace: 'other' };
  const spec = created(claim({ 'spec.dataSourceRef': source }))['spec'];
  expect(spec).not.toHaveProperty('dataSourceRef');
  expect(spec).not.toHaveProperty('dataSource');
});

test('an empty API group of a data source differs from an absent one', () => {
  const source = { kind: 'PersistentVolumeClaim', name: 'o' };
  const both = { 'spec.dataSource': { ...source, apiGroup: '' }, 'spec.dataSourceRef': source };
  expect(createErrors(claim(both))).toEqual([
    'spec: Invalid value: "spec.dataSource": must match dataSourceRef',
  ]);
});

test('resources and resize states in the status of a claim are validated', () => {
  const old = created(claim());
  const next = changed(old, {
    'status.allocatedResources': { cpu: '1', 'example.com/x': '-1' },
    'status.allocatedResourceStatuses': { storage: 'Odd' },
  });
  expect(updateErrors(old, next, 'status')).toEqual([
    'status.allocatedResourceStatus: Unsupported value: storage: supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"',
    'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
    'status.allocatedResources[example.com/x]: Invalid value: -1: must be a valid resource quantity',
  ]);
});
