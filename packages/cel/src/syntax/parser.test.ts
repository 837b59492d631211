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
  ["{'a': 1", "8: Syntax error: mismatched input '<EOF>' expecting {'}', ','}"],
  ["{'a': 1,", "9: Syntax error: missing '}' at '<EOF>'"],
  ['(1 ? 2 : 3', "11: Syntax error: missing ')' at '<EOF>'"],
  ['(a]', "3: Syntax error: mismatched input ']' expecting ')'"],
  ['[(a]', "4: Syntax error: missing ')' at ']'"],
  ['((a', "4: Syntax error: mismatched input '<EOF>' expecting ')'"],
  ['a ? (b : c', "8: Syntax error: missing ')' at ':'"],
  ['a ? b c', "7: Syntax error: missing ':' at 'c'"],
  ['a in [1, 2', "11: Syntax error: mismatched input '<EOF>' expecting {']', ','}"],
  ['[1, 2)', "6: Syntax error: mismatched input ')' expecting {']', ','}"],
  ['[1 2]', "4: Syntax error: extraneous input '2' expecting {']', ','}"],
  ['[1, ,2]', "5: Syntax error: mismatched input ',' expecting ']'"],
  ['{a b}', "4: Syntax error: missing ':' at 'b'"],
  ['a{1: 2}', "3: Syntax error: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER}"],
  ['f(,)', `3: Syntax error: extraneous input ',' expecting {'[', '{', '(', ')', ${operand}`],
  [
    'if self.x then',
    '1: reserved identifier: if',
    "4: Syntax error: mismatched input 'self' expecting <EOF>",
  ],
  [
    'a.all(b.c, d) ? has(1) : x.map(1, 2) +',
    '8: argument must be a simple name',
    '21: invalid argument to has() macro',
    '32: argument is not an identifier',
    `39: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  [
    'f(while, 9223372036854775808, 18446744073709551616u) > 1e999',
    '3: reserved identifier: while',
    '10: invalid int literal',
    '31: invalid uint literal',
    '56: invalid double literal',
  ],
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
