import type { ManagedFieldsEntry } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { ownersForScale, ownersFromScale, type ScaleMapping } from './scale-owners.ts';

const mapping: ScaleMapping = {
  scaleVersion: 'autoscaling/v1',
  apiVersion: 'apps/v1',
  replicasPath: (version) => (version === 'apps/v1' ? 'spec.replicas' : undefined),
};
const entry = (more: Partial<ManagedFieldsEntry>): ManagedFieldsEntry => ({
  operation: 'Apply',
  apiVersion: 'apps/v1',
  fieldsType: 'FieldsV1',
  fieldsV1: {},
  ...more,
});
const both = { 'f:spec': { 'f:paused': {}, 'f:replicas': {} } };
const replicas = { 'f:spec': { 'f:replicas': {} } };

test('SSA-10: the managedFields of a Scale list the owners of the replicas in its own version', () => {
  const owners = [
    entry({ manager: 'a', fieldsV1: both }),
    entry({ manager: 'b', fieldsV1: { 'f:data': {} } }),
  ];
  expect(ownersForScale(owners, mapping)).toEqual([
    entry({ manager: 'a', apiVersion: 'autoscaling/v1', fieldsV1: replicas }),
  ]);
});

test('SSA-10: a write of the Scale takes only the replicas from their owner', () => {
  const time = '2024-01-01T00:00:00Z';
  const written = entry({
    manager: 'scaler',
    operation: 'Update',
    apiVersion: 'autoscaling/v1',
    subresource: 'scale',
    fieldsV1: replicas,
    time,
  });
  const { time: _, ...untimed } = written;
  const owners = ownersFromScale([entry({ manager: 'a', fieldsV1: both })], [written], mapping);
  expect(owners).toEqual([
    entry({ manager: 'a', fieldsV1: { 'f:spec': { 'f:paused': {} } } }),
    { ...untimed, apiVersion: 'apps/v1' },
  ]);
});
