import { type ManagedFieldsEntry, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { ownersForScale, ownersFromScale, type ScaleMapping } from './owners.ts';

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
  expect(runInOnePiece(ownersForScale(owners, mapping))).toEqual([
    entry({ manager: 'a', apiVersion: 'autoscaling/v1', fieldsV1: replicas }),
  ]);
});

test('TRUST-2: owners of many fields are read and written in many steps', () => {
  const count = 2_000;
  const many = Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`k:{"name":"i${index}"}`, { 'f:value': {} }]),
  );
  const owners = [
    entry({ manager: 'a', fieldsV1: { ...both, 'f:items': many } }),
    entry({ manager: 'b', fieldsV1: { 'f:items': many } }),
  ];
  let pauses = 0;
  const steps = <Result>(work: Generator<void, Result>): Result => {
    for (;;) {
      const step = work.next();
      if (step.done === true) return step.value;
      pauses += 1;
    }
  };
  const shown = steps(ownersForScale(owners, mapping));
  expect(shown?.map(({ manager }) => manager)).toEqual(['a']);
  // Both entries have two fields per item, and each step handles 250 of them.
  expect(pauses).toBeGreaterThanOrEqual((2 * 2 * count) / 250);
  pauses = 0;
  const after = steps(ownersFromScale(owners, undefined, mapping));
  expect(after?.[0]?.fieldsV1['f:spec']).toEqual({ 'f:paused': {} });
  expect(after?.[1]).toBe(owners[1]);
  expect(pauses).toBeGreaterThanOrEqual((2 * count) / 250);
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
  const before = [entry({ manager: 'a', fieldsV1: both })];
  const owners = runInOnePiece(ownersFromScale(before, [written], mapping));
  expect(owners).toEqual([
    entry({ manager: 'a', fieldsV1: { 'f:spec': { 'f:paused': {} } } }),
    { ...untimed, apiVersion: 'apps/v1' },
  ]);
});
