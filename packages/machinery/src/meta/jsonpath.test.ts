import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../base/json.ts';
import { JsonPathError, parseJsonPath, valuesAtJsonPath } from './jsonpath.ts';

const value: JsonValue = {
  'a.b': 1,
  a: { b: 3 },
  'x,y': 4,
  list: [
    { t: 'x', v: 1 },
    { t: 'y', v: 2 },
  ],
};

describe('JSONPath modes', () => {
  const rows: readonly (readonly [
    string,
    JsonValue[] | 'error',
    JsonValue[] | 'error' | undefined,
  ])[] = [
    ['a.b', [3], 'error'],
    ['$.a.b', [3], [3]],
    ['list[1].v', [2], 'error'],
    ["['a.b']", [1], [3]],
    ["['a\\.b']", [1], [1]],
    ['["a.b"]', [1], 'error'],
    ["['x,y']", [4], 'error'],
    ['.list[5]', [], undefined],
    ['.list[-5].v', [], undefined],
    ['.list[0:5].v', [1, 2], undefined],
    ['.list[:1].v', [1], [1]],
    ['.list[-1:].v', [2], [2]],
    ['.list[0,5].v', [1], undefined],
    ['.list[0,1].v', [1, 2], [1, 2]],
    ['.list[?(t=="y")].v', [2], 'error'],
    ['.list[?(@.t==y)].v', [2], 'error'],
    ['.list[?(@.t)].v', [1, 2], [1, 2]],
    ['.list[?(@.t==1)].v', [], undefined],
    ['..v', [1, 2], [1, 2]],
    ['.', [value], [value]],
    ['$', [value], [value]],
    ['.list[', 'error', 'error'],
    ['.list[x]', 'error', 'error'],
  ];
  test.each(rows)('%s', (path, relaxed, strict) => {
    expect(outcome(path, 'relaxed')).toEqual(relaxed);
    expect(outcome(path, 'strict')).toEqual(strict);
  });

  function outcome(path: string, mode: 'strict' | 'relaxed') {
    try {
      return valuesAtJsonPath(parseJsonPath(path, mode), value);
    } catch (error) {
      if (error instanceof JsonPathError) return 'error';
      throw error;
    }
  }

  test('a relaxed path yields any number of values, a strict one does not', () => {
    const many: JsonValue = { items: Array.from({ length: 10_001 }, (_, n) => ({ n })) };
    expect(valuesAtJsonPath(parseJsonPath('.items[*].n', 'relaxed'), many)).toHaveLength(10_001);
    expect(valuesAtJsonPath(parseJsonPath('.items[*].n'), many)).toBeUndefined();
  });

  test('errors name the malformed part', () => {
    const message = (path: string) => {
      try {
        return parseJsonPath(path).steps;
      } catch (error) {
        return String(error);
      }
    };
    expect(message('.a[')).toBe('Error: unterminated array');
    expect(message('.a[b]')).toBe('Error: invalid array index b');
    expect(message('.a b')).toBe('Error: unrecognized path ".a b"');
    expect(message(`${'[?(@'.repeat(70)}${')]'.repeat(70)}`)).toBe('Error: nested too deeply');
  });
});
