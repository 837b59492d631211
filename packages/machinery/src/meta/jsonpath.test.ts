import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../base/json.ts';
import { evaluateJsonPath } from './jsonpath.ts';
import { JsonPathError, parseJsonPath } from './jsonpath-parser.ts';

const value: JsonValue = {
  'a.b': 1,
  a: { b: 3 },
  'x,y': 4,
  half: 0.5,
  yes: true,
  none: null,
  list: [
    { t: 'x', v: 1 },
    { t: 'y', v: 2 },
  ],
};

/** The values of a template, or the message of its error. */
function outcome(template: string, options?: Parameters<typeof evaluateJsonPath>[2]) {
  try {
    return evaluateJsonPath(parseJsonPath(template), value, options);
  } catch (error) {
    if (error instanceof JsonPathError) return error.message;
    throw error;
  }
}

describe('paths', () => {
  test.each<[string, JsonValue[] | string]>([
    ['', [value]],
    ['@', [value]],
    ['$', [value]],
    ['.', []],
    ['.a.b', [3]],
    ['$.a.b', [3]],
    [' .a.b ', [3]],
    ['.a@.b', [3]],
    ["['a.b']", [3]],
    ["['a\\.b']", [1]],
    ['.a\\.b', [1]],
    ["['x,y']", "invalid array index 'x"],
    ["['a','half']", [{ b: 3 }, 0.5]],
    ['["a"]', 'invalid array index "a"'],
    ['.list[1].v', [2]],
    ['.list[].v', [1]],
    ['.list[-1:].v', [2]],
    ['.list[:1].v', [1]],
    ['.list[0,1].v', [1, 2]],
    ['.list[*].v', [1, 2]],
    ['.list[::2].v', [1]],
    ['.list[5]', 'array index out of bounds: index 5, length 2'],
    ['.list[-5].v', 'array index out of bounds: index -3, length 2'],
    ['.list[0:5].v', 'array index out of bounds: index 4, length 2'],
    ['.list[1:0].v', 'starting index 1 is greater than ending index 0'],
    ['.list[0:2:0]', 'step must be > 0'],
    ['.list[1:1].v', []],
    ['.list[-]', 'array index - is not a number'],
    ['.a[0]', 'map[string]interface {} is not array or slice'],
    ['.a.b[0]', 'int64 is not array or slice'],
    ['.half[0]', 'float64 is not array or slice'],
    ['.none[0]', []],
    ['.a.b.c', []],
    ['.a.*', [3]],
    ['..v', [1, 2]],
    ['.a..', [{ b: 3 }]],
    ['.list[0]..', [{ t: 'x', v: 1 }, 'x']],
    ['.list[0].t.*', [120]],
    ['....', 'invalid multiple recursive descent'],
    ['"a\\n" .b', []],
    ["'a\"\\'b'", ['a"\'b']],
    ['"\\u0041\\x42\\103"', ['ABC']],
    ['"\\q"', 'unquote string "\\q" error invalid syntax'],
    ['"a', 'unterminated quoted string'],
    ['1', [1]],
    ['-1.50', [-1.5]],
    ['1.2.3', 'cannot parse number 1.2.3'],
    ['true', [true]],
    ['word', 'unrecognized identifier word'],
    ['.list[', 'unterminated array'],
    ['.list]', "unrecognized character in action: U+005D ']'"],
    ['#', "unrecognized character in action: U+0023 '#'"],
    ['\t', 'unrecognized character in action: U+0009'],
    ['\n', 'unclosed action'],
    ['.list[x]', 'invalid array index x'],
  ])('{%s}', (path, expected) => {
    expect(outcome(`{${path}}`)).toEqual(typeof expected === 'string' ? expected : [expected]);
  });
});

describe('filters', () => {
  test.each<[string, JsonValue[] | string]>([
    ['@.t=="y"', [2]],
    ["@.t=='y'", [2]],
    ['.t=="y"', [2]],
    ['@.t!="y"', [1]],
    ['"y"==@.t', [2]],
    [' @.t == "y" ', [2]],
    ['@.t>"x"', [2]],
    ['@.v>1', [2]],
    ['@.v>=1', [1, 2]],
    ['@.v<=1', [1]],
    ['@.v<1.5', 'incompatible types for comparison'],
    ['@.v==true', 'incompatible types for comparison'],
    ['true<false', 'invalid type for comparison'],
    ['@==@', 'invalid type for comparison'],
    ['@.t=y', 'unrecognized identifier y'],
    ['@.t="y"', 'unrecognized filter operator ='],
    ['@.t', [1, 2]],
    ['@.none', []],
    ['@.none==1', []],
    ['@.t[0]', [1, 2]],
    ['@.*==1', 'can only compare one element at a time'],
    ['@.t=="y', 'unterminated filter'],
  ])('[?(%s)]', (filter, expected) => {
    const found = outcome(`{.list[?(${filter})].v}`);
    expect(found).toEqual(typeof expected === 'string' ? expected : [expected]);
  });

  test('a value that is no list cannot be filtered', () => {
    expect(outcome('{.a[?(@.b)]}')).toBe('map[b:3] is not array or slice and cannot be filtered');
    expect(outcome('{.list[?(@.b)')).toBe('unclosed array expect ]');
  });
});

describe('templates', () => {
  test.each<[string, JsonValue[][] | string]>([
    ['', []],
    ['.a.b', [['.a.b']]],
    ['a{.a.b}b', [['a'], [3], ['b']]],
    ['{.a.b}}', [[3], ['}']]],
    ['{.a.b', 'unclosed action'],
    ['{{.a.b}}', "unrecognized character in action: U+007B '{'"],
    ['{range .list[*]}{.v}{","}{end}', [[1], [','], [2], [',']]],
    ['{range .list[*]}{.v}{end}{.a.b}', [[1], [2], [3]]],
    ['{range .list[*]}{range .none}{.x}{end}{.v}{end}', [[1], [2]]],
    ['{range .list[*]}{range @}{.v}{end}-{end}', [[1], ['-'], [2], ['-']]],
    ['{range .none[*]}{.v}{end}x', [['x']]],
    ['{range .list[*]}{.v}', [[1], [2], []]],
    ['{range}x{end}', [['x']]],
    ['{end}', 'not in range, nothing to end'],
    ['{.a}{end}', 'not in range, nothing to end'],
    ['{range @}'.repeat(70), 'nested too deeply'],
  ])('%s', (template, expected) => {
    expect(outcome(template)).toEqual(expected);
  });

  test('missing fields are errors on request', () => {
    const options = { missing: 'is an error' } as const;
    expect(outcome('{.a.c}', options)).toBe('c is not found');
    expect(outcome('{.list[*].v}', options)).toEqual([[1, 2]]);
    expect(outcome('{.list[?(@.x)].v}', options)).toEqual([[]]);
  });

  test('the number of values can be limited', () => {
    const many: JsonValue = { items: Array.from({ length: 1000 }, (_, n) => ({ n })) };
    const path = parseJsonPath('{.items[*].n}');
    expect(evaluateJsonPath(path, many)[0]).toHaveLength(1000);
    expect(() => evaluateJsonPath(path, many, { valuesMax: 1000 })).toThrow('too many values');
    const ranges = parseJsonPath('{range .none}'.repeat(60));
    expect(() => evaluateJsonPath(ranges, many, { valuesMax: 1000 })).toThrow('too many values');
  });
});
