import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { applyMergePatch, mergePatchBetween, threeWayMergePatch } from './merge-patch.ts';

test.each<[string, JsonObject, JsonObject, JsonObject, JsonObject]>([
  ['nothing to do', { a: 1 }, { a: 1 }, { a: 1, theirs: 2 }, {}],
  ['a change', { a: 1 }, { a: 2 }, { a: 1, theirs: 2 }, { a: 2 }],
  ['a deletion', { a: { b: 1, c: 1 } }, { a: { c: 1 } }, { a: { b: 1, c: 1 } }, { a: { b: null } }],
  ['a list whole', {}, { a: [1] }, { a: [1, 2] }, { a: [1] }],
  ['a null that is new', {}, { a: null }, { a: 1 }, { a: null }],
  ['a null that was there', { a: null }, { a: null }, { a: 1 }, {}],
  ['an object with a null', {}, { a: { b: null } }, {}, { a: { b: null } }],
  ['an empty object', {}, { a: {} }, {}, { a: {} }],
  ['an object for a text', { a: 'x' }, { a: { b: 1 } }, { a: 'x' }, { a: { b: 1 } }],
  ['nulls within a list', {}, { a: [{ b: null, c: 1 }, null] }, {}, { a: [{ c: 1 }, null] }],
  [
    'a deletion beside a change',
    { a: { b: 1 } },
    { a: { c: 1 } },
    { a: { b: 1, d: 1 } },
    { a: { b: null, c: 1 } },
  ],
])('CLIENT-1: a custom kind is applied by what differs: %s', (_, last, desired, live, patch) => {
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
