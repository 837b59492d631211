import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  applyJsonPatch,
  type JsonPatchRules,
  jsonPatchWork,
  PatchError,
  parseJsonPatch,
} from './json-patch.ts';

const document: JsonObject = { a: { b: '1' }, list: ['x', 'y'] };
const apply = (operation: JsonValue, rules: JsonPatchRules = 'lenient') =>
  applyJsonPatch(document, parseJsonPatch([operation]), { rules });

test('null is an empty patch, and operations are objects', () => {
  expect(parseJsonPatch(null)).toEqual([]);
  expect(() => parseJsonPatch(['add'])).toThrow(
    'json: cannot unmarshal string into Go value of type jsonpatch.Operation',
  );
});

test('TRUST-2: a large value is inserted and copied in many steps', () => {
  const value = Array.from({ length: 20_000 }, (_, index) => ({ index }));
  const patch = parseJsonPatch([
    { op: 'add', path: '/big', value },
    { op: 'copy', from: '/big', path: '/copy' },
  ]);
  const work = jsonPatchWork({}, patch, { rules: 'exact' });
  let pauses = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) pauses += 1;
  expect(step.value).toEqual({ big: value, copy: value });
  expect(pauses).toBeGreaterThan(40);
});

describe('a patch of a webhook', () => {
  test.each<[JsonObject, JsonObject]>([
    [
      { op: 'replace', path: '/c', value: 1 },
      { ...document, c: 1 },
    ],
    [
      { op: 'add', path: '/list/-1', value: 'z' },
      { ...document, list: ['x', 'y', 'z'] },
    ],
    [
      { op: 'remove', path: '/list/-1' },
      { ...document, list: ['x'] },
    ],
    [
      { op: 'copy', from: '/c', path: '/d' },
      { ...document, d: null },
    ],
    [
      { op: 'add', path: '/c' },
      { ...document, c: null },
    ],
  ])('%j', (operation, expected) => {
    expect(apply(operation)).toEqual(expected);
  });

  const missing = 'missing value';
  test.each<[JsonObject, string]>([
    [{ op: 'jump', path: '/a' }, 'Unexpected kind: jump'],
    [{ op: 'add' }, `add operation failed to decode path: ${missing}`],
    [
      { op: 'replace' },
      `replace operation failed to decode path: operation missing path field: ${missing}`,
    ],
    [
      { op: 'add', path: '/c/d' },
      `add operation does not apply: doc is missing path: "/c/d": ${missing}`,
    ],
    [
      { op: 'replace', path: '/c/d' },
      `replace operation does not apply: doc is missing path: /c/d: ${missing}`,
    ],
    [
      { op: 'test', path: '/c/d' },
      `test operation does not apply: is missing path: /c/d: ${missing}`,
    ],
    [{ op: 'test', path: '/a/b', value: '2' }, 'testing value /a/b failed: test failed'],
    [
      { op: 'move', path: '/d' },
      `move operation failed to decode from: operation, missing from field: ${missing}`,
    ],
    [
      { op: 'move', from: '/a' },
      `move operation failed to decode path: operation missing path field: ${missing}`,
    ],
    [{ op: 'copy', from: '/a' }, `copy operation failed to decode path: ${missing}`],
    [
      { op: 'move', from: '/c/d', path: '/d' },
      `move operation does not apply: doc is missing from path: /c/d: ${missing}`,
    ],
    [
      { op: 'copy', from: '/a', path: '/c/d' },
      `copy operation does not apply: doc is missing destination path: /c/d: ${missing}`,
    ],
    [
      { op: 'move', from: '/c', path: '/d' },
      `error in move for path: 'c': Unable to remove nonexistent key: c: ${missing}`,
    ],
    [
      { op: 'copy', from: '/a', path: '/list/9' },
      'error while adding value during copy: ' +
        'Unable to access invalid index: 9: invalid index referenced',
    ],
    [
      { op: 'move', from: '/a', path: '/list/x' },
      "error in move for path: '/list/x': value was not a proper array index: 'x': " +
        'strconv.Atoi: parsing "x": invalid syntax',
    ],
  ])('%j is refused', (operation, message) => {
    expect(() => apply(operation)).toThrow(new PatchError('unprocessable', message));
  });
});
