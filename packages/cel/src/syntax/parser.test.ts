import { expect, test } from 'vitest';
import { CelCompileError } from '../issues.ts';
import { parse, parseSteps } from './parser.ts';

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
  [
    '1 + +',
    `5: Syntax error: mismatched input '+' expecting ${operands}`,
    `6: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
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
  [
    'x.y + (1 2 3) [',
    "10: Syntax error: mismatched input '2' expecting ')'",
    "16: Syntax error: mismatched input '<EOF>' expecting " +
      `{'[', '{', '(', '.', '-', '!', '?', ${operand.slice("'.', '-', '!', ".length)}`,
  ],
  [
    'has(x}.b)',
    '5: invalid argument to has() macro',
    "6: Syntax error: mismatched input '}' expecting ')'",
    "9: Syntax error: extraneous input ')' expecting <EOF>",
  ],
  [
    '[if, 1.0e999, (2 || ]',
    '2: reserved identifier: if',
    '6: invalid double literal',
    `21: Syntax error: mismatched input ']' expecting ${operands}`,
  ],
  [
    '"\\UFFFFFFFF" + (b\'\\u0041\'',
    '17: unable to unescape string',
    "26: Syntax error: missing ')' at '<EOF>'",
  ],
  [
    '-) && -+',
    "2: Syntax error: no viable alternative at input '-)'",
    `2: Syntax error: mismatched input ')' expecting ${operands}`,
    "8: Syntax error: no viable alternative at input '-+'",
    `8: Syntax error: mismatched input '+' expecting ${operands}`,
    `9: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  [
    'a.B{null: 1}',
    "5: Syntax error: mismatched input 'null' expecting {'}', ',', '?', IDENTIFIER}",
  ],
  [
    '- $ )',
    "3: Syntax error: token recognition error at: '$'",
    "5: Syntax error: no viable alternative at input '-  )'",
    `5: Syntax error: mismatched input ')' expecting ${operands}`,
  ],
  ['f(1 2, 3 4)', "5: Syntax error: mismatched input '2' expecting ')'"],
])('%s', (source, ...expected) => {
  expect(issuesOf(source)).toEqual(expected);
});

test('the recovery of an expression ends after 30 attempts, and after 100 errors', () => {
  expect(issuesOf('(+ a - ,'.repeat(40)).at(-1)).toContain('recovery attempt limit exceeded: 30');
  expect(issuesOf(`a ${'b '.repeat(600)}`)[0]).toBe(
    '0: error recovery token lookahead limit exceeded: 256',
  );
  expect(() => parse('$ '.repeat(102))).toThrow('\n1 more errors were truncated');
});

test('a macro whose argument a syntax error removes has an error at the start', () => {
  expect(() => parse('[1].map(., 2)')).toThrow('<input>:1:0: argument is not an identifier\n');
});

test('a name behind a dot is a variable of a macro, and calls no macro', () => {
  expect(issuesOf('[1].all(.x, true)')).toEqual([]);
  expect(parse('.has(x.a)')).toMatchObject({ kind: 'call', name: '.has' });
});

test.each([
  ['names', `[${'if,'.repeat(33_000)}1]`],
  ['a list without its end', `[${'1,'.repeat(49_000)})`],
  ['fields', `A{${'b:1,'.repeat(24_000)}1`],
])('TRUST-2: the issues of many %s are found in steps', (_, source) => {
  const steps = parseSteps(source, {});
  let count = 0;
  expect(() => {
    while (steps.next().done !== true) count += 1;
  }).toThrow(CelCompileError);
  expect(count).toBeGreaterThan(200);
});
