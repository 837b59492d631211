import { type ApiObject, type ManagedFieldsEntry, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { applyPatch } from './apply-patch.ts';
import { annotation, mapOf, object, text } from './apply-script.fixture.ts';
import { recordSteps, type TrackedKind } from './field-manager.ts';

const texts = object({ name: text, uid: text });
const schema = object({ apiVersion: text, kind: text, data: mapOf(text) });
const kind: TrackedKind = {
  apiVersion: 'v1',
  kind: 'Thing',
  subresource: '',
  schemaFor: () => schema,
  metadataSchema: texts,
  convert: (value) => value,
  lastApplied: { annotation, manager: 'tool' },
};
const nowMs = 1_700_000_000_000;

/** Runs work and returns how many elements of maps it reads and writes. */
function mapOperations(run: () => void): number {
  const { get, set } = Map.prototype;
  let operations = 0;
  Map.prototype.get = function (key) {
    operations += 1;
    return get.call(this, key);
  };
  Map.prototype.set = function (key, value) {
    operations += 1;
    return set.call(this, key, value);
  };
  try {
    run();
  } finally {
    Map.prototype.get = get;
    Map.prototype.set = set;
  }
  return operations;
}

/** Entries of managers that each own seven other keys of `data`. */
function entriesOf(operation: 'Apply' | 'Update', count: number): ManagedFieldsEntry[] {
  return Array.from({ length: count }, (_, manager) => ({
    manager: `m${manager}`,
    operation,
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: {
      'f:data': Object.fromEntries(Array.from({ length: 7 }, (_, k) => [`f:${manager}-${k}`, {}])),
    },
  }));
}

interface Sides {
  readonly before: Record<string, string>;
  readonly after: Record<string, string>;
  readonly entries: ManagedFieldsEntry[];
}

/** The object after an update of `data` whose body contains managed fields. */
function updated({ before, after, entries }: Sides, size?: 'large'): ApiObject {
  const metadata = { name: 'a', uid: 'u' };
  const live = { apiVersion: 'v1', kind: 'Thing', metadata, data: before };
  const object = { ...live, metadata: { ...metadata, managedFields: entries }, data: after };
  const update = { live, object, manager: 'w', nowMs };
  const steps = recordSteps(kind, size === undefined ? update : { ...update, size });
  expect(runInOnePiece(steps)).toBeUndefined();
  return object;
}

const sizes = [undefined, 'large'] as const;

test('TRUST-2, MF-9: old updates of many managers are merged in linear time', () => {
  const merge = (count: number, size?: 'large') =>
    updated({ before: { a: '' }, after: { a: 'b' }, entries: entriesOf('Update', count) }, size);
  for (const size of sizes) {
    const few = mapOperations(() => merge(200, size));
    expect(mapOperations(() => merge(800, size))).toBeLessThan(5 * few);
    const managed = merge(200, size).metadata.managedFields ?? [];
    expect(managed).toHaveLength(10);
    const old = managed.find(({ manager }) => manager === 'ancient-changes');
    expect(Object.keys(Object(old?.fieldsV1['f:data']))).toHaveLength(7 * 192);
  }
});

test('TRUST-2: the fields that a write takes are not visited for each manager', () => {
  const keys = (count: number, prefix: string, value: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, key) => [`${prefix}${key}`, value]));
  const change = (fields: number, size?: 'large') => {
    const kept = keys(7, '0-', 'x');
    const before = { ...kept, ...keys(fields, 'a', 'x'), ...keys(7, '1-', 'x') };
    const after = { ...kept, ...keys(fields / 2, 'a', 'y'), ...keys(7, '1-', 'y') };
    const entries = entriesOf('Apply', 300);
    return updated({ before, after: { ...after, ...keys(fields / 2, 'b', 'z') }, entries }, size);
  };
  for (const size of sizes) {
    const few = mapOperations(() => change(100, size));
    // With each manager, the difference would cost three operations for each field.
    expect(mapOperations(() => change(1_100, size)) - few).toBeLessThan(1_000 * 100);
    const owners = change(100, size).metadata.managedFields?.map(({ manager }) => manager);
    expect(owners).toContain('m0');
    expect(owners).not.toContain('m1');
    expect(owners?.at(-1)).toBe('w');
  }
});

test('TRUST-2: fields that other managers keep from an apply are united in linear time', () => {
  const apply = (count: number, size?: 'large') => {
    const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a' } };
    const live = updated({
      before: { a: '' },
      after: { a: 'b' },
      entries: entriesOf('Apply', count),
    });
    const base = { manager: 'w', nowMs, force: true, ...(size === undefined ? {} : { size }) };
    const whole = applyPatch(kind, { ...base, live, patch: { ...object, data: { b: '', c: '' } } });
    let applied = whole;
    const operations = mapOperations(() => {
      applied = applyPatch(kind, { ...base, live: whole, patch: { ...object, data: { b: '' } } });
    });
    expect(applied['data']).toEqual({ a: 'b', b: '' });
    return operations;
  };
  for (const size of sizes) expect(apply(800, size)).toBeLessThan(5 * apply(200, size));
});
