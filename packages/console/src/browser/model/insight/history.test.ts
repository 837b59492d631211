import type { JsonObject } from '@wheelhouse/machinery/browser';
import { expect, test } from 'vitest';
import { pathText } from '../changes.ts';
import { changesByManager, ObjectHistory } from './history.ts';

type Fields = Readonly<Record<string, JsonObject>>;

/** An object whose managers own members of its data; entries are in order of their times. */
function objectOf(data: JsonObject, managers: Readonly<Record<string, Fields>>): JsonObject {
  const managedFields = Object.entries(managers).map(([manager, fields]) => ({
    ...{ manager, operation: 'Update', time: '2026-01-01T00:00:00Z' },
    fieldsV1: { 'f:data': { ...fields } },
  }));
  return { metadata: { managedFields }, data };
}

function attributed(before: JsonObject, after: JsonObject): string[] {
  return changesByManager(before, after).map(
    ({ manager, changes }) => `${manager}: ${changes.map(({ path }) => pathText(path))}`,
  );
}

test('CLIENT-4: the creator of a map is not the writer of members that others add', () => {
  const before = objectOf({ a: '1' }, { creator: { '.': {}, 'f:a': {} } });
  const after = objectOf(
    { a: '2', y: '1' },
    { creator: { '.': {} }, beta: { 'f:a': {}, 'f:y': {} } },
  );
  expect(attributed(before, after)).toEqual(['beta: data.a,data.y']);
});

test('CLIENT-4: a field whose name is a prefix of another has its own writer', () => {
  const before = objectOf({ a: '1' }, { alpha: { 'f:a': {} } });
  const after = objectOf({ ab: '1' }, { alpha: { 'f:c': {} }, beta: { 'f:ab': {} } });
  expect(attributed(before, after)).toEqual(['alpha: data.a', 'beta: data.ab']);
});

test('CLIENT-4: a part of a value is attributed to the owner of the value', () => {
  const before = objectOf({ list: ['1'] }, { alpha: { 'f:list': {} } });
  const after = objectOf({ list: ['2'] }, { alpha: { 'f:x': {} }, beta: { 'f:list': {} } });
  expect(attributed(before, after)).toEqual(['beta: data.list[0]']);
});

test('CLIENT-4: a removed field is attributed to its previous owner', () => {
  const before = objectOf(
    { a: '1', b: '1' },
    { alpha: { '.': {} }, beta: { 'f:a': {}, 'f:b': {} } },
  );
  const after = objectOf({ b: '1' }, { alpha: { 'f:z': {} }, beta: { 'f:b': {} } });
  expect(attributed(before, after)).toEqual(['beta: data.a']);
});

test('CLIENT-4: the writers of thousands of changes are found at once', () => {
  const names = Array.from({ length: 4_000 }, (_, index) => `name-${index}`);
  const data = (value: string): JsonObject => Object.fromEntries(names.map((n) => [n, value]));
  const fields = Object.fromEntries(names.map((name) => [`f:${name}`, {}]));
  const startMs = performance.now();
  const [first, ...others] = changesByManager(
    objectOf(data('1'), { alpha: { '.': {} } }),
    objectOf(data('2'), { alpha: { '.': {} }, beta: fields }),
  );
  expect(first).toMatchObject({ manager: 'beta' });
  expect(first?.changes).toHaveLength(names.length);
  expect(others).toEqual([]);
  expect(performance.now() - startMs).toBeLessThan(2_000);
});

test('CLIENT-4: a write that removes fields of many managers takes linear time', () => {
  const count = 300;
  let reads = 0;
  const versionOf = (resourceVersion: string, prefixes: readonly string[]) => ({
    metadata: {
      resourceVersion,
      managedFields: Array.from({ length: count }, (_, at) => ({
        ...{ manager: `m${at}`, operation: 'Apply', time: '2026-01-01T00:00:00Z' },
        get fieldsV1() {
          reads += 1;
          const names = prefixes.map((prefix) => [`f:${prefix}${at}`, {}]);
          return { 'f:data': Object.fromEntries(names) };
        },
      })),
    },
    data: Object.fromEntries(
      prefixes.flatMap((prefix) =>
        Array.from({ length: count }, (_, at) => [`${prefix}${at}`, '1'] as const),
      ),
    ),
  });
  const history = new ObjectHistory();
  history.record(versionOf('1', ['a', 'b']), '');
  history.record(versionOf('2', ['b']), '');
  const [last] = history.revisions;
  expect(new Set(last?.changes.map(({ manager }) => manager)).size).toBe(count);
  expect(reads).toBeLessThan(20 * count);
});
