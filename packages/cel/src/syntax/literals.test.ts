import { describe, expect, test } from 'vitest';
import { compile } from '../compile.ts';
import { CelCompileError } from '../issues.ts';
import { standardFunctions } from '../types/standard-functions.ts';
import { dynType } from '../types/types.ts';

const environment = { functions: standardFunctions(), variables: new Map([['x', dynType]]) };

/** The errors in an expression, as `column: message`. */
function problems(source: string): readonly string[] {
  try {
    compile(source, environment);
    return [];
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return error.issues.map(({ at, message }) => `${at}: ${message}`);
  }
}

describe('literal arguments', () => {
  test.each([
    ["timestamp('2024')", ['10: invalid timestamp argument']],
    ['timestamp(253402300800)', ['10: invalid timestamp argument']],
    ['timestamp(253402300799) == timestamp(x)', []],
    ["duration('1')", ['9: invalid duration argument']],
    ["x.matches('(')", ['10: invalid matches argument']],
    ["matches('[', x)", ['8: invalid matches argument']],
  ])('%s', (source, expected) => {
    expect(problems(source)).toEqual(expected);
  });
});

describe('escapes', () => {
  test.each([
    [`'\\ud83d' == x && br'\\q' == x`, []],
    [`b'\\u00e9'`, ['0: unable to unescape string']],
    [`'\\U00110000'`, ['0: unable to unescape string']],
    [`'a\\18'`, ["0: Syntax error: token recognition error at: ''a\\18'"]],
    [`b'\\q'`, ["1: Syntax error: token recognition error at: ''\\q'"]],
    [`rb'a'`, ["2: Syntax error: extraneous input ''a'' expecting <EOF>"]],
    ['"""a\\q"""', ["2: Syntax error: token recognition error at: '\"a\\q'"]],
  ])('%s', (source, expected) => {
    expect(problems(source).slice(0, 1)).toEqual(expected);
  });
});

describe('formats', () => {
  const refused = 'error during formatting: decimal clause can only be used on integers, was given';
  test.each([
    ["'%d'.format([double('NaN')])", [`19: ${refused} double`]],
    ["'%d'.format([duration('1s')])", [`21: ${refused} google.protobuf.Duration`]],
    ["'%d %s'.format([x, [1, x]])", []],
    ["'%d'.format(['a', 1.5])", [`13: ${refused} string`]],
    ["'%e %f'.format(['NaN', 'Infinity'])", []],
    ["'%s'.format([[1, optional.of(1)]])", ['28: ']],
    ["'%d %d'.format([1])", ['14: index 1 out of range']],
    [
      "'%d'.format([1, 2])",
      ['11: too many arguments supplied to string.format (expected 1, got 2)'],
    ],
    ["'%y'.format([1])", ['11: could not parse formatting clause']],
    ['x.format([1, 2])', []],
    [
      "optional.of('%d'.format([1.5])).optMap(v, v)",
      [`25: ${refused} double`, `25: ${refused} double`],
    ],
  ])('%s', (source, expected) => {
    const found = problems(source);
    expect(found.length).toBe(expected.length);
    for (const [index, start] of expected.entries()) expect(found[index]).toContain(start);
  });

  test('a number before e is a width', () => {
    const texts = ["'%e'.format([1234.5])", "'%.16e'.format([1234.5])", "'%e'.format(['NaN'])"];
    const shown = texts.map(
      (text) => compile(text, environment).program().run(new Map(), 100).value,
    );
    expect(shown).toEqual(['1.234500\u202f×\u202f10⁰³', ' 1.234500\u202f×\u202f10⁰³', '   NaN']);
  });
});

describe('elements of one type', () => {
  test.each([
    ['[1, 2.0, 3u]', ["4: expected type 'int' but found 'double'"]],
    ['[x, 1]', ["4: expected type 'dyn' but found 'int'"]],
    ["1 in ['a', 1]", ["11: expected type 'string' but found 'int'"]],
    ['[[], [1]]', []],
    ['[?optional.of(1), 2]', []],
    [
      "{'a': 1, 2: 'b', 3: 2}",
      [
        "9: expected type 'string' but found 'int'",
        "12: expected type 'int' but found 'string'",
        "17: expected type 'string' but found 'int'",
      ],
    ],
    ["'%s %s'.format([1, {'a': [1, 'b']}])", []],
  ])('%s', (source, expected) => {
    expect(problems(source)).toEqual(expected);
  });
});
