import type { JsonObject } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { strategicMerge, strategicMergeSteps } from './strategic-merge.ts';

const text: Schema = { type: 'string', typed: true };
const item: Schema = {
  type: 'object',
  typeName: 'test.v1.Item',
  properties: new Map([
    ['name', { schema: text }],
    ['value', { schema: text }],
    ['other', { schema: text }],
  ]),
};
const schema: Schema = {
  type: 'object',
  typeName: 'test.v1.Thing',
  properties: new Map<string, { schema: Schema }>([
    ['labels', { schema: { type: 'object', additionalProperties: text } }],
    ['spec', { schema: { ...item, patchStrategies: ['retainKeys'] } }],
    ['whole', { schema: { ...item, patchStrategies: ['replace'] } }],
    ['raw', { schema: { preserveUnknownFields: true } }],
    ['plain', { schema: { type: 'array', items: item } }],
    ['keyless', { schema: { type: 'array', items: item, patchStrategies: ['merge'] } }],
    ['words', { schema: { type: 'array', items: text, patchStrategies: ['merge'] } }],
    [
      'items',
      { schema: { type: 'array', items: item, patchStrategies: ['merge'], patchMergeKey: 'name' } },
    ],
  ]),
};
const merge = (object: JsonObject, patch: JsonObject) => strategicMerge(schema, object, patch);
const a = { name: 'a', value: '1' };
const b = { name: 'b', value: '2' };

test('TRUST-2: wide maps are copied and merged in steps', () => {
  const labels = (value: string) =>
    Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, value]));
  const work = strategicMergeSteps(schema, { labels: labels('a') }, { labels: labels('b') });
  let pauses = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) pauses += 1;
  expect(step.value).toEqual({ labels: labels('b') });
  // Two passes over the patch in steps of 500 members, and a copy of each side.
  expect(pauses).toBe(2 * 10 + 2);
});

const cases: readonly [string, JsonObject, JsonObject, JsonObject][] = [
  [
    'null deletes a member',
    { labels: { x: '1', y: '2' } },
    { labels: { x: null } },
    { labels: { y: '2' } },
  ],
  ['absent nulls are dropped', {}, { labels: { x: null, y: '1' } }, { labels: { y: '1' } }],
  ['lists without a strategy are replaced', { plain: [a] }, { plain: [b] }, { plain: [b] }],
  [
    'objects with strategy replace are replaced',
    { whole: a },
    { whole: { other: 'o' } },
    { whole: { other: 'o' } },
  ],
  [
    'items are merged by key',
    { items: [a, b] },
    { items: [{ name: 'b', other: 'o' }] },
    { items: [a, { ...b, other: 'o' }] },
  ],
  [
    'items are deleted by directive',
    { items: [a, b] },
    { items: [{ name: 'a', $patch: 'delete' }] },
    { items: [b] },
  ],
  [
    'a list is replaced by directive',
    { items: [a] },
    { items: [b, { $patch: 'replace' }] },
    { items: [b] },
  ],
  [
    'an object is replaced by directive',
    { labels: { x: '1' } },
    { labels: { y: '2', $patch: 'replace' } },
    { labels: { y: '2' } },
  ],
  [
    'an object is emptied by directive',
    { labels: { x: '1' } },
    { labels: { $patch: 'delete' } },
    { labels: {} },
  ],
  [
    'scalars are merged as a set',
    { words: ['x', 'y'] },
    { words: ['y', 'z'] },
    { words: ['x', 'y', 'z'] },
  ],
  [
    'scalars are deleted by directive',
    { words: ['x', 'y'] },
    { '$deleteFromPrimitiveList/words': ['x'] },
    { words: ['y'] },
  ],
  [
    'a deletion from no list merges an object, and replaces a scalar of the same type',
    { labels: { x: '1', y: '2' }, spec: a, words: ['x'] },
    {
      '$deleteFromPrimitiveList/labels': { x: null, z: '3' },
      '$deleteFromPrimitiveList/words': 'x',
      spec: { '$deleteFromPrimitiveList/name': 'c', '$deleteFromPrimitiveList/value': 1 },
    },
    { labels: { y: '2', z: '3' }, spec: { name: 'c', value: '1' }, words: ['x'] },
  ],
  [
    'an empty order reverses new items',
    { words: ['x', 'y', 'z'] },
    { '$setElementOrder/words': [], words: ['v', 'u', 'y'] },
    { words: ['x', 'y', 'z', 'u', 'v'] },
  ],
  [
    'an empty order and deletions',
    { items: [b, a] },
    {
      '$setElementOrder/items': [],
      items: [{ name: 'c' }, { name: 'b', $patch: 'delete' }, { name: 'd' }],
    },
    { items: [a, { name: 'd' }, { name: 'c' }] },
  ],
  [
    'items are ordered by directive',
    { items: [a, b] },
    { '$setElementOrder/items': [{ name: 'b' }, { name: 'a' }] },
    { items: [b, a] },
  ],
  [
    'items outside the order stay before the ordered items they preceded',
    { words: ['x', 'y', 'z'] },
    { '$setElementOrder/words': ['z', 'x'] },
    { words: ['y', 'z', 'x'] },
  ],
  [
    'members that $retainKeys omits are removed',
    { spec: { name: 'n', value: 'v' } },
    { spec: { $retainKeys: ['name'], name: 'm' } },
    { spec: { name: 'm' } },
  ],
];

describe('PATCH-3: strategic merge', () => {
  test.each(cases)('%s', (_, object, patch, expected) => {
    const before = structuredClone([object, patch]);
    expect(merge(object, patch)).toEqual(expected);
    expect([object, patch]).toEqual(before);
  });

  test.each<[string, JsonObject, JsonObject, string]>([
    [
      'an unknown directive',
      { labels: {} },
      { labels: { $patch: 'x' } },
      'unknown patch type: x in map: map[$patch:x]',
    ],
    [
      'an item without its key',
      { items: [a] },
      { items: [{ value: '1' }] },
      'map: map[value:1] does not contain declared merge key: name',
    ],
    [
      'a list without a key',
      { keyless: [a] },
      { keyless: [b] },
      'cannot merge lists without merge key for struct',
    ],
    [
      'an unknown field',
      { more: { x: 1 } },
      { more: { y: 1 } },
      'unable to find api field in struct Thing for the json field "more"',
    ],
    [
      'a member of raw JSON',
      { raw: { x: { y: 1 } } },
      { raw: { x: { y: 2 } } },
      'unable to find api field in struct RawExtension for the json field "x"',
    ],
    [
      'mixed items',
      { words: ['x'] },
      { words: [1] },
      'list element types are not identical: [[x] [1]]',
    ],
    ['lists of lists', { words: [] }, { words: [['x']] }, 'lists of lists are not supported'],
    [
      'a malformed order directive',
      { words: ['x'] },
      { $setElementOrder: ['x'] },
      'invalid patch format of setElementOrder list',
    ],
    [
      'an order with an item without its key',
      { items: [a] },
      { '$setElementOrder/items': [{ name: 'a' }, { value: 'x' }] },
      'map: map[value:x] does not contain declared merge key: name',
    ],
    [
      'an order of other values for an emptied list',
      { items: [a] },
      { '$setElementOrder/items': ['a'], items: [{ name: 'a', $patch: 'delete' }] },
      'expected a map[string]interface {}, but received a string',
    ],
    [
      'members that $retainKeys omits',
      { spec: a },
      { spec: { $retainKeys: ['name'], value: 'v' } },
      'invalid patch format of retainKeys',
    ],
  ])('rejects %s', (_, object, patch, message) => {
    expect(() => merge(object, patch)).toThrow(message);
  });
});
