import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { applyMergePatch, mergePatchBetween, threeWayMergePatch } from './merge-patch.ts';

test.each<[string, JsonObject, JsonObject, JsonObject, JsonObject]>([
  ['nothing if nothing changes', { a: 1 }, { a: 1 }, { a: 1, theirs: 2 }, {}],
  ['a change', { a: 1 }, { a: 2 }, { a: 1, theirs: 2 }, { a: 2 }],
  ['a deletion', { a: { b: 1, c: 1 } }, { a: { c: 1 } }, { a: { b: 1, c: 1 } }, { a: { b: null } }],
  ['a whole list', {}, { a: [1] }, { a: [1, 2] }, { a: [1] }],
  ['a new null', {}, { a: null }, { a: 1 }, { a: null }],
  ['nothing for an unchanged null', { a: null }, { a: null }, { a: 1 }, {}],
  ['an object with a null', {}, { a: { b: null } }, {}, { a: { b: null } }],
  ['an empty object', {}, { a: {} }, {}, { a: {} }],
  ['an object that replaces a string', { a: 'x' }, { a: { b: 1 } }, { a: 'x' }, { a: { b: 1 } }],
  [
    'a list without the nulls of its objects',
    {},
    { a: [{ b: null, c: 1 }, null] },
    {},
    { a: [{ c: 1 }, null] },
  ],
  [
    'a deletion and a change in one object',
    { a: { b: 1 } },
    { a: { c: 1 } },
    { a: { b: 1, d: 1 } },
    { a: { b: null, c: 1 } },
  ],
])('CLIENT-1: the three-way merge patch contains %s', (_, last, desired, live, patch) => {
  const before = structuredClone([last, desired, live]);
  expect(threeWayMergePatch({ last, desired, live })).toEqual(patch);
  expect([last, desired, live]).toEqual(before);
});

test('CLIENT-1: the merge patch between two objects transforms one into the other', () => {
  const before = { a: { b: 1, c: [1] }, gone: 1, same: { x: 1 } };
  const after = { a: { b: 2, c: [2], d: {} }, same: { x: 1 } };
  const patch = mergePatchBetween(before, after);
  expect(patch).toEqual({ gone: null, a: { b: 2, c: [2], d: {} } });
  expect(applyMergePatch(before, patch)).toEqual(after);
});
