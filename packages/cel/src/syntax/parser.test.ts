import { expect, test } from 'vitest';
import { CelCompileError } from '../issues.ts';
import { parse } from './parser.ts';

const operand =
  "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const operands = `{'[', '{', '(', ${operand}`;

function issuesOf(source: string): readonly string[] {
  try {
    parse(source);
    return [];
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return error.issues.map(({ at, message }) => `${at + 1}: ${message}`);
  }
}

test.each<[string, ...string[]]>([
  ['object.x in [1, 2, ', "20: Syntax error: missing ']' at '<EOF>'"],
  ["'a'.contains('x'", "17: Syntax error: missing ')' at '<EOF>'"],
  ['(1 + 2', "7: Syntax error: missing ')' at '<EOF>'"],
  ["{'a': 1", "8: Syntax error: missing '}' at '<EOF>'"],
  ["{'a': 1,", "9: Syntax error: missing '}' at '<EOF>'"],
  ['(1 ? 2 : 3', "11: Syntax error: missing ')' at '<EOF>'"],
  ['(a]', "3: Syntax error: missing ')' at ']'"],
  ['true ? 1', "9: Syntax error: mismatched input '<EOF>' expecting ':'"],
  ['', `1: Syntax error: mismatched input '<EOF>' expecting ${operands}`],
  ['1 +', `4: Syntax error: mismatched input '<EOF>' expecting ${operands}`],
  ['1 + +', `5: Syntax error: mismatched input '+' expecting ${operands}`],
  ['x ==> y', `5: Syntax error: extraneous input '>' expecting ${operands}`],
  ['f(', `3: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', ${operand}`],
  [
    'a[',
    "3: Syntax error: mismatched input '<EOF>' expecting " +
      `{'[', '{', '(', '.', '-', '!', '?', ${operand.slice("'.', '-', '!', ".length)}`,
  ],
  [
    '{',
    "2: Syntax error: mismatched input '<EOF>' expecting " +
      `{'[', '{', '}', '(', '.', ',', '-', '!', '?', ${operand.slice("'.', '-', '!', ".length)}`,
  ],
  ['1 2', "3: Syntax error: extraneous input '2' expecting <EOF>"],
  ['1 + 2\n3 +', "7: Syntax error: mismatched input '3' expecting <EOF>"],
  ['{"a": 1}."a"', '10: Syntax error: no viable alternative at input \'."a"\''],
  ['../x', "2: Syntax error: no viable alternative at input '..'"],
  ['1 + .', "6: Syntax error: no viable alternative at input '.'"],
  ['.(a)', "2: Syntax error: no viable alternative at input '.('"],
  ['.true', "2: Syntax error: mismatched input 'true' expecting IDENTIFIER"],
  ['.for', '1: reserved identifier: for'],
  ['a.', "3: Syntax error: no viable alternative at input '.'"],
  [
    'a | b',
    "3: Syntax error: token recognition error at: '| '",
    "5: Syntax error: extraneous input 'b' expecting <EOF>",
  ],
  [
    '1 + $',
    "5: Syntax error: token recognition error at: '$'",
    `6: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  [
    "'abc",
    "1: Syntax error: token recognition error at: ''abc'",
    `5: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
])('%s', (source, ...expected) => {
  expect(issuesOf(source)).toEqual(expected);
});
