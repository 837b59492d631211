import type { JsonObject } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import {
  patchesConflict,
  strategicPatchBetween,
  threeWayStrategicPatch,
} from './strategic-diff.ts';
import { strategicMerge } from './strategic-merge.ts';

const text: Schema = { type: 'string', typed: true };
const words: Schema = { type: 'array', items: text, patchStrategies: ['merge'] };
const item: Schema = {
  type: 'object',
  typeName: 'test.v1.Item',
  properties: new Map<string, { schema: Schema }>([
    ['name', { schema: text }],
    ['value', { schema: text }],
    ['words', { schema: words }],
  ]),
};
const merged = { type: 'array', items: item, patchMergeKey: 'name' } as const;
const schema: Schema = {
  type: 'object',
  typeName: 'test.v1.Thing',
  properties: new Map<string, { schema: Schema }>([
    ['text', { schema: text }],
    ['labels', { schema: { type: 'object', additionalProperties: text } }],
    ['spec', { schema: { ...item, patchStrategies: ['retainKeys'] } }],
    ['whole', { schema: { ...item, patchStrategies: ['replace'] } }],
    ['plain', { schema: { type: 'array', items: text } }],
    ['words', { schema: words }],
    ['items', { schema: { ...merged, patchStrategies: ['merge'] } }],
    ['alone', { schema: { ...merged, patchStrategies: ['merge', 'retainKeys'] } }],
  ]),
};
const a = { name: 'a', value: '1' };
const b = { name: 'b', value: '2' };
const c = { name: 'c', value: '3' };
const keys = (...names: string[]) => names.map((name) => ({ name }));
const gone = (name: string) => ({ name, $patch: 'delete' });

interface Case {
  readonly last?: JsonObject;
  readonly desired: JsonObject;
  readonly live: JsonObject;
  readonly patch: JsonObject;
  /** The live object after the patch. */
  readonly after: JsonObject;
}

const cases: Record<string, Case> = {
  'nothing changes': {
    last: { text: 'x' },
    desired: { text: 'x' },
    live: { text: 'x' },
    patch: {},
    after: { text: 'x' },
  },
  'a field of another client stays': {
    last: {},
    desired: { labels: { a: '1' } },
    live: { text: 'theirs', labels: { a: '2', b: '2' } },
    patch: { labels: { a: '1' } },
    after: { text: 'theirs', labels: { a: '1', b: '2' } },
  },
  'a member that is no longer desired is deleted, even if it is absent': {
    last: { text: 'x', labels: { a: '1', b: '1' } },
    desired: { labels: { b: '1' } },
    live: { labels: { b: '1', c: '1' } },
    patch: { text: null, labels: { a: null } },
    after: { labels: { b: '1', c: '1' } },
  },
  'a null is kept': {
    last: {},
    desired: { text: null },
    live: { text: 'x' },
    patch: { text: null },
    after: {},
  },
  'a list without a strategy is set as a whole': {
    last: { plain: ['a'] },
    desired: { plain: ['b'] },
    live: { plain: ['a', 'theirs'] },
    patch: { plain: ['b'] },
    after: { plain: ['b'] },
  },
  'an object with strategy replace is set as a whole, even if it does not change': {
    last: {},
    desired: { whole: { name: 'n' } },
    live: { whole: { name: 'n', value: 'theirs' } },
    patch: { whole: { name: 'n' } },
    after: { whole: { name: 'n' } },
  },
  'an item of another client keeps its place': {
    last: { items: [a, b] },
    desired: { items: [a, { ...b, value: 'new' }] },
    live: { items: [a, { name: 'theirs' }, b] },
    patch: { $setElementOrder_items: keys('a', 'b'), items: [{ name: 'b', value: 'new' }] },
    after: { items: [a, { name: 'theirs' }, { ...b, value: 'new' }] },
  },
  'an item is deleted by a directive after the items that are set': {
    last: { items: [a, b] },
    desired: { items: [c, b] },
    live: { items: [a, b, { name: 'theirs' }] },
    patch: { $setElementOrder_items: keys('c', 'b'), items: [c, gone('a')] },
    after: { items: [{ name: 'theirs' }, c, b] },
  },
  'one field of an item is deleted and another is set': {
    last: { items: [{ ...a, words: ['x'] }] },
    desired: { items: [{ name: 'a', words: ['y'] }] },
    live: { items: [{ ...a, words: ['x'] }] },
    patch: {
      $setElementOrder_items: keys('a'),
      items: [
        {
          name: 'a',
          value: null,
          words: ['y'],
          $setElementOrder_words: ['y'],
          $deleteFromPrimitiveList_words: ['x'],
        },
      ],
    },
    after: { items: [{ name: 'a', words: ['y'] }] },
  },
  'only the order of items changes': {
    last: { items: [a, b] },
    desired: { items: [b, a] },
    live: { items: [a, b] },
    patch: { $setElementOrder_items: keys('b', 'a') },
    after: { items: [b, a] },
  },
  'a new list has no order directive': {
    last: {},
    desired: { items: [b, a], words: ['z', 'y'] },
    live: {},
    patch: { items: [b, a], words: ['z', 'y'] },
    after: { items: [b, a], words: ['z', 'y'] },
  },
  'a list that is no longer desired is deleted': {
    last: { items: [a], words: ['x'] },
    desired: {},
    live: { items: [a, b], words: ['x', 'theirs'] },
    patch: { items: null, words: null },
    after: {},
  },
  'the applied items of a list that becomes empty are deleted': {
    last: { items: [a], words: ['x'] },
    desired: { items: [], words: [] },
    live: { items: [a, b], words: ['x', 'theirs'] },
    patch: { items: [gone('a')], $deleteFromPrimitiveList_words: ['x'] },
    after: { items: [b], words: ['theirs'] },
  },
  'scalars are added and deleted': {
    last: { words: ['x', 'y'] },
    desired: { words: ['z', 'y'] },
    live: { words: ['theirs', 'x', 'y'] },
    patch: {
      $setElementOrder_words: ['z', 'y'],
      words: ['z'],
      $deleteFromPrimitiveList_words: ['x'],
    },
    after: { words: ['z', 'theirs', 'y'] },
  },
  'unsorted scalars have an order directive even if nothing changes': {
    last: { words: ['y', 'x'] },
    desired: { words: ['y', 'x'] },
    live: { words: ['y', 'x'] },
    patch: { $setElementOrder_words: ['y', 'x'] },
    after: { words: ['y', 'x'] },
  },
  'the members of an object with strategy retainKeys are listed': {
    last: { spec: { name: 'n', value: '1' } },
    desired: { spec: { name: 'n' } },
    live: { spec: { name: 'n', value: '1', words: ['theirs'] } },
    patch: { spec: { value: null, $retainKeys: ['name'] } },
    after: { spec: { name: 'n' } },
  },
  'the members of items with strategy retainKeys are listed': {
    last: { alone: [a] },
    desired: { alone: [{ name: 'a', words: ['w'] }] },
    live: { alone: [a] },
    patch: {
      $setElementOrder_alone: keys('a'),
      alone: [{ name: 'a', words: ['w'], value: null, $retainKeys: ['name', 'words'] }],
    },
    after: { alone: [{ name: 'a', words: ['w'] }] },
  },
};

/** Replaces underscores in the names of directives by slashes, which would need quotes above. */
function withSlashes<T extends JsonObject>(patch: T): T {
  return JSON.parse(
    JSON.stringify(patch).replaceAll(/"(\$\w+?)_(\w+)":/g, (_, head, name) => `"${head}/${name}":`),
  );
}

describe('CLIENT-1: the patch of a client-side apply', () => {
  test.each(Object.entries(cases))('%s', (_, { last = {}, desired, live, patch, after }) => {
    const before = structuredClone([last, desired, live]);
    const actual = threeWayStrategicPatch(schema, { last, desired, live });
    expect(actual).toEqual(withSlashes(patch));
    expect(strategicMerge(schema, live, actual)).toEqual(after);
    expect([last, desired, live]).toEqual(before);
    // A second apply changes nothing.
    const again = threeWayStrategicPatch(schema, { last: desired, desired, live: after });
    expect(strategicMerge(schema, after, again)).toEqual(after);
  });

  test.each<[string, JsonObject, JsonObject, string]>([
    ['an item without its key', { items: [a] }, { items: [{ value: '1' }] }, 'merge key: name'],
    ['mixed items', { words: ['x'] }, { words: [a] }, 'list element types are not identical'],
    ['a list of lists', { words: [['x']] }, { words: [['y']] }, 'lists of lists'],
    ['a field that the kind does not have', { x: { y: '1' } }, { x: { y: '2' } }, 'json field "x"'],
  ])('cannot contain %s', (_, live, desired, message) => {
    expect(() => threeWayStrategicPatch(schema, { last: {}, desired, live })).toThrow(message);
  });

  test('may omit an unknown field that does not change', () => {
    const both = { x: { y: '1' }, z: ['1'] };
    expect(threeWayStrategicPatch(schema, { last: both, desired: both, live: both })).toEqual({});
  });
});

describe('CLIENT-1: the patch between two objects', () => {
  test.each(Object.entries(cases))('transforms one into the other: %s', (_, { desired, live }) => {
    const patch = strategicPatchBetween(schema, live, desired);
    const dropsNulls = JSON.parse(JSON.stringify(desired, (_key, value) => value ?? undefined));
    expect(strategicMerge(schema, live, patch)).toEqual(dropsNulls);
  });
});

describe('CLIENT-1: conflicting patches', () => {
  const conflict = (left: JsonObject, right: JsonObject) => patchesConflict(schema, left, right);
  test.each<[boolean, JsonObject, JsonObject]>([
    [false, { text: 'x' }, { text: 'x' }],
    [true, { text: 'x' }, { text: 'y' }],
    [true, { text: null }, { text: 'y' }],
    [false, { text: 'x' }, { labels: { a: '1' } }],
    [false, { labels: { a: '1' } }, { labels: { b: '1' } }],
    [true, { labels: { a: '1' } }, { labels: { a: '2' } }],
    [true, { labels: { a: '1' } }, { labels: null }],
    [true, { labels: { $patch: 'replace' } }, { labels: { a: '1' } }],
    [false, { whole: { name: 'a' } }, { whole: { name: 'b' } }],
    [false, { words: ['a'] }, { words: ['b'] }],
    [true, { plain: ['a'] }, { plain: ['a', 'b'] }],
    [false, { plain: ['a', 'b'] }, { plain: ['b', 'a'] }],
    [false, { items: [a] }, { items: [b] }],
    [true, { items: [a] }, { items: [{ name: 'a', value: 'other' }] }],
    [true, { items: [a] }, { items: [gone('a')] }],
  ])('%s: %j and %j', (expected, left, right) => {
    expect(conflict(left, right)).toBe(expected);
  });
});
