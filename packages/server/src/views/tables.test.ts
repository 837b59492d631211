import type { ColumnDef } from '@wheelhouse/kinds';
import { describe, expect, test } from 'vitest';
import { columnDefinitions, defaultColumns, partialObject, tableRow } from './tables.ts';

const nowMs = Date.UTC(2030, 0, 1);
const object = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'one', creationTimestamp: '2029-12-31T00:00:00Z' },
  data: { a: 'b' },
};
const columns: readonly ColumnDef[] = [
  { name: 'Data', type: 'integer', format: '', description: 'd', priority: 1, cell: () => 1 },
  {
    name: 'None',
    type: 'string',
    format: '',
    description: '',
    priority: 0,
    cell: () => undefined,
  },
];
const row = { columns, metaVersion: 'meta.svc.io/v1', nowMs } as const;

describe('CODEC-5: a table', () => {
  test('describes its columns without their cell paths', () => {
    expect(columnDefinitions(columns)[0]).toEqual({
      name: 'Data',
      type: 'integer',
      format: '',
      description: 'd',
      priority: 1,
    });
  });

  test('has null for an absent cell', () => {
    expect(tableRow(object, { ...row, include: 'None' }).cells).toEqual([1, null]);
  });

  test('shows name and age of kinds without columns', () => {
    const { cells } = tableRow(object, { ...row, columns: defaultColumns, include: 'None' });
    expect(cells).toEqual(['one', object.metadata.creationTimestamp]);
  });

  test('has the included object in each row', () => {
    expect(tableRow(object, { ...row, include: 'None' }).object).toBeNull();
    expect(tableRow(object, { ...row, include: 'Object' }).object).toBe(object);
    expect(tableRow(object, { ...row, include: 'Metadata' }).object).toEqual({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.svc.io/v1',
      metadata: object.metadata,
    });
  });

  test('has conditions in a row only if there are any', () => {
    expect(tableRow(object, { ...row, include: 'None' })).not.toHaveProperty('conditions');
    const conditions = [{ type: 'Completed', status: 'True' }];
    expect(tableRow(object, { ...row, include: 'None', conditions })).toMatchObject({ conditions });
  });
});

test('CODEC-6: the metadata of an object without metadata is empty', () => {
  expect(partialObject({ apiVersion: 'v1', kind: 'Any' }, 'meta.svc.io/v1').metadata).toEqual({});
});
