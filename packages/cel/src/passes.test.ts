import { runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type Compiled, compile, compileSteps } from './compile.ts';
import { CelCompileError } from './issues.ts';
import type { Environment } from './types/environment.ts';
import { standardFunctions } from './types/standard-functions.ts';
import { dynType, intType, type Type } from './types/types.ts';
import { EntryMap, type Value } from './values.ts';

const self: Type = { name: 'self', args: [], fields: new Map([['a', intType]]) };
const environment: Environment = {
  functions: standardFunctions(),
  variables: new Map([
    ['self', self],
    ['x', dynType],
  ]),
};
const variables = new Map<string, Value>([
  ['self', new EntryMap(new Map([['sa', ['a', 1n]]]))],
  ['x', 1n],
]);

/** Runs work to its end, and counts its pauses. */
function counted<Result>(work: Iterator<void, Result>): { result: Result; pauses: number } {
  for (let pauses = 0; ; pauses += 1) {
    const step = work.next();
    if (step.done === true) return { result: step.value, pauses };
  }
}

function resultOf(compiled: Compiled): Value | undefined {
  return runInOnePiece(runInOnePiece(compiled.programSteps()).steps(variables, 1_000_000)).value;
}

const repeated = (part: string, times: number) => Array(times).fill(part).join(',');
const chain = (part: string, times: number) => Array(times).fill(part).join(' && ');

describe('a long expression is compiled in steps', () => {
  test.each([
    ['a list', `${repeated('1', 9000)}, 2`, 9001n],
    ['empty lists', repeated('[]', 5000), 5000n],
    ['empty maps', repeated('{}', 5000), 5000n],
    ['lists of optional elements', repeated('[?optional.of(1), 1]', 1500), 1500n],
    ['nested lists', repeated(`${'['.repeat(200)}${']'.repeat(200)}`, 40), 40n],
    ['chains', repeated(chain('self.a == 1', 400), 5), 5n],
    ['macros', repeated('[1, 2].map(i, i + x).filter(j, j > 1).exists(k, k == 2)', 300), 300n],
    ['conditions', repeated('x == 1 ? [self.a] : [2]', 1500), 1500n],
    ['bindings of optionals', repeated('optional.of(x).optMap(v, [v, v])', 900), 900n],
    ['messages', repeated('google.protobuf.Int64Value{value: x}', 2500), 2500n],
    ['patterns', repeated(`'a'.matches('a+')`, 2000), 2000n],
    ['formats', repeated(`'%d %s'.format([1, 'a'])`, 1500), 1500n],
  ])('%s', (_, items, size) => {
    const source = `[${items}].size()`;
    const { result: compiled, pauses } = counted(compileSteps(source, environment));
    expect(pauses).toBeGreaterThan(3);
    const planned = counted(compiled.programSteps());
    const estimated = counted(compiled.costSteps(undefined));
    expect(estimated.result).toBe(compiled.costMax(undefined));
    expect(planned.pauses + estimated.pauses).toBeGreaterThan(0);
    expect(resultOf(compiled)).toBe(size);
  });

  test.each(['find', 'findAll', 'matches'])('a large pattern of %s is counted once', (name) => {
    const compiled = compile(`'b'.${name}('${'a+'.repeat(2000)}') == dyn(1)`, environment);
    const steps = compiled.programSteps();
    let pauses = 0;
    while (steps.next().done !== true && pauses < 100) pauses += 1;
    expect(pauses).toBeLessThan(5);
  });

  test('the types of many elements are compared in steps', () => {
    // Tokens, parts, and types take 99 steps.
    const work = compileSteps(`[${repeated('[]', 33_000)}].size()`, environment);
    expect(counted(work).pauses).toBeGreaterThan(130);
  });

  test('a long map has the type of its entries', () => {
    const entries = Array.from({ length: 3000 }, (_, index) => `${index}: [${index}]`);
    const compiled = compile(`{${entries.join(',')}}`, environment);
    expect(compiled.type).toMatchObject({ name: 'map', args: [{ name: 'int' }, { name: 'list' }] });
  });

  test('each issue is reported once, however often the pass starts again', () => {
    const items = `${repeated('1', 4000)}, self.b, ?1, ${repeated('2', 4000)}, {1: 2}.map(1, 2)`;
    expect(() => compile(`[${items}]`, environment)).toThrow('argument is not an identifier');
    const wrong = `[${items.replace('.map(1, 2)', '.map(k, self.c)')}].size()`;
    const issues = issuesOf(wrong);
    expect(issues).toEqual([
      "undefined field 'b'",
      "expected type 'optional_type(int)' but found 'int'",
      "undefined field 'c'",
    ]);
  });

  test('type parameters have the numbers of cel-go, however often the pass starts again', () => {
    const padding = `[${repeated("{'a': [x].map(i, i + 1).filter(j, j > 1)}", 100)}].size() > 1`;
    const source = `${padding} && [] && [[]].map(v, v) && (${padding} || {})`;
    expect(() => compile(source, environment)).toThrow(
      /list\(_var603\).*map\(_var1210, _var1211\)/s,
    );
  });

  test('the cost is that of the same expression in one piece', () => {
    const source = (count: number) => `[${repeated('self.a + 1 == x', count)}].all(b, b)`;
    const costOf = (count: number) => compile(source(count), environment).costMax(undefined);
    const costPerItem = costOf(11) - costOf(10);
    expect(costOf(2000)).toBe(costOf(10) + 1990 * costPerItem);
  });
});

function issuesOf(source: string): readonly string[] {
  try {
    compile(source, environment);
  } catch (error) {
    if (error instanceof CelCompileError) return error.issues.map(({ message }) => message);
    throw error;
  }
  return [];
}

describe('limits on the size of an expression', () => {
  test('types that grow exponentially', () => {
    const doubled = (times: number) => `[1]${'.map(v, {v: v})'.repeat(times)}.size() == 1`;
    expect(issuesOf(doubled(8))).toEqual([]);
    expect(issuesOf(doubled(60))).toEqual(['the types of the expression are too large']);
  });

  test('types of unbound parameters that grow exponentially', () => {
    const names = Array.from({ length: 40 }, (_, index) => `v${index}`);
    const pairs = names.slice(1).map((name, index) => `v${index} == {${name}: ${name}}`);
    const source = names.reduceRight(
      (inner, name) => `[].map(${name}, ${inner})`,
      `[${pairs.join(', ')}, v0 == v0]`,
    );
    expect(issuesOf(`${source}.size() == 0`)).toEqual([
      'the types of the expression are too large',
    ]);
  });

  test.each([
    ['sums', '+1'],
    ['selections', '.a'],
    ['indexes', '[0]'],
    ['calls', '.size()'],
  ])('nested chains of %s are too deep for a recursive walk', (_, link) => {
    let source = 'x';
    for (let level = 0; level < 20; level += 1) source = `(${source}${link.repeat(190)})`;
    expect(issuesOf(source)).toEqual(['expression recursion limit exceeded: 600']);
  });

  test('an expression of the greatest height is compiled and evaluated', () => {
    const source = Array(3)
      .fill('+1'.repeat(199))
      .reduce((inner, sum) => `(${inner}${sum})`, '1');
    expect(resultOf(compile(source, environment))).toBe(598n);
  });

  test('integers that exceed all types', () => {
    for (const digits of ['9'.repeat(90_000), `0x${'f'.repeat(90_000)}`]) {
      expect(issuesOf(digits)).toEqual(['invalid int literal']);
      expect(issuesOf(`${digits}u`)).toEqual(['invalid uint literal']);
    }
    expect(issuesOf(`${'0'.repeat(90_000)}1 == 1 && 1e000000000000000000000001 > 1.0`)).toEqual([]);
  });
});

test('a position in a long text counts lines and characters', () => {
  const source = `${'x +\n'.repeat(300)}'\u{1F431}\u{1F431}' + self.b + self.c`;
  expect(() => compile(source, environment)).toThrow(
    "ERROR: <input>:301:12: undefined field 'b'\n" +
      " | '\u{1F431}\u{1F431}' + self.b + self.c\n | .\uff0e\uff0e........^",
  );
  expect(() => compile(source, environment)).toThrow("<input>:301:21: undefined field 'c'");
});
