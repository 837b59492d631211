import { inOnePiece, type JsonValue } from '@wheelhouse/machinery';
import { schemaFromOpenApi } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { compile } from './compile.ts';
import { compileRules } from './run-rules.ts';
import { standardFunctions } from './types/standard-functions.ts';
import { CelCostError } from './values.ts';

const long = (count: number) => `lists.range(${count})`;
const costMax = 1_000_000;

/** The outcome of an expression in one piece and in steps, and the number of steps. */
function outcomesOf(source: string, max = costMax) {
  const made = compile(source, {
    functions: standardFunctions(),
    variables: new Map(),
    bindings: 'known',
  }).program();
  const atOnce = made.measure(new Map(), max);
  const work = made.steps(new Map(), max);
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { atOnce, inSteps: step.value, steps };
  }
}

describe('TRUST-2: macros walk long lists in steps', () => {
  test.each([
    [`${long(200)}.all(x, ${long(200)}.all(y, x + y >= 0))`],
    [`${long(200)}.exists(x, ${long(200)}.exists(y, x + y > 397))`],
    [`${long(20_000)}.exists_one(x, x == 7) && ${long(3_000)}.filter(x, x > 5).size() == 2994`],
    [`${long(9_000)}.map(x, x > 10, x * 2).size() + ${long(9_000)}.size()`],
    [`${long(9_000)}.map(x, -x).sortBy(x, x)[0] == -8999 ? ${long(9)}.map(x, x) : []`],
    [`{'a': [${long(9_000)}.map(x, x).size()], 'b': [${long(9_000)}.filter(x, x > 1).size(), 2]}`],
    [`cel.bind(n, ${long(9_000)}.map(x, x * 2), n.exists(x, x == 4) && n.size() == 9000)`],
    [`${long(9_000)}.transformMap(i, v, v > 10, i + v).size()`],
    [`{1: 2, 2: 2}.transformMap(k, v, ${long(9_000)}.all(x, x >= 0)).size()`],
    [`optional.of(${long(9_000)}).optMap(l, l.map(x, x).size()).value()`],
    [`sets.contains(${long(9_000)}.map(x, x), ${long(9)}.map(x, x))`],
    [`${long(9_000)}.all(x, 1 / (x - 8999) < 1) || true`],
    [`${long(9_000)}.all(x, 1 / (x - 8999) < 1)`],
    [`${long(9_000)}.map(x, 1 / (x - 8999))`],
    [`1 / (${long(9_000)}.map(x, x).size() - 9000) > ${long(2)}[7]`],
  ])('%s', (source) => {
    const { atOnce, inSteps, steps } = outcomesOf(source);
    expect(inSteps).toEqual(atOnce);
    expect(atOnce.cost).toBeGreaterThan(10_000);
    expect(steps).toBeGreaterThan(5);
  });

  test('an evaluation that costs too much ends in steps as well', () => {
    const { atOnce, inSteps } = outcomesOf(`${long(900)}.all(x, ${long(900)}.all(y, y >= 0))`);
    expect(atOnce.error).toBeInstanceOf(CelCostError);
    expect(inSteps.error).toEqual(atOnce.error);
  });

  test('short evaluations take one step', () => {
    expect(outcomesOf('[1, 2].all(x, x > 0)').steps).toBe(1);
  });
});

describe('TRUST-2: functions read long lists in steps', () => {
  test.each([
    [`${long(90_000)}.map(x, 5 - x).sort()[0] == -89994`],
    [`${long(900)}.map(x, [x]).distinct().size() == 900`],
    [`(${long(90_000)} + ${long(90_000)}).distinct().size() == 90000`],
    [`${long(90_000)}.isSorted() && ${long(90_000)}.min() == 0 && ${long(90_000)}.max() == 89999`],
    [`${long(90_000)}.sum() == 4049955000`],
    [`${long(90_000)}.indexOf(80000) == 80000 && ${long(90_000)}.lastIndexOf(-1) == -1`],
    [`[${long(90_000)}, ${long(9)}].flatten().size() == 90009`],
    [`!(-1 in ${long(90_000)}) && 80000 in ${long(90_000)}`],
    [`sets.contains(${long(90_000)}, [7, 89999]) && !sets.contains(${long(9_000)}, [-1])`],
    [`sets.equivalent(${long(300)}, ${long(300)}) && sets.intersects(${long(300)}, ${long(300)})`],
    [`${long(90_000)}.map(x, 'a').join('-').size() == 179999`],
    [`${long(90_000)}.map(x, 'a').join('').replace('a', 'bc').size() == 180000`],
    [`${long(90_000)}.map(x, 'a').join('').split('').size() == 90000`],
  ])('%s', (source) => {
    const { atOnce, inSteps, steps } = outcomesOf(source);
    expect(atOnce.value).toBe(true);
    expect(inSteps).toEqual(atOnce);
    expect(steps).toBeGreaterThan(5);
  });

  test('an error in the middle of a list is the same', () => {
    const { atOnce, inSteps } = outcomesOf(`(${long(90_000)} + [9223372036854775807]).sum()`);
    expect(atOnce.error?.message).toBe('integer overflow');
    expect(inSteps).toEqual(atOnce);
  });
});

describe('TRUST-2: a list that occurs many times in a value is not read without bounds', () => {
  /** An expression with nested lists of 10 lists each, all of which are the same one. */
  const nested = (levels: number, body: (name: string) => string) => {
    let source = body(`v${levels}`);
    for (let level = levels; level > 0; level -= 1) {
      const item = level === 1 ? '1' : `v${level - 1}`;
      source = `cel.bind(v${level}, [${Array(10).fill(item).join()}], ${source})`;
    }
    return source;
  };

  test.each([
    ['==', (name: string) => `${name} == ${name}`, /comparison takes over 200000 values$/],
    ['in', (name: string) => `${name} in [${name}]`, /comparison takes over 200000 values$/],
    [
      'indexOf',
      (name: string) => `${long(90)}.map(x, ${name}).indexOf(${name}) == 0`,
      /cost limit exceeded$|over 200000 values$/,
    ],
    ['format', (name: string) => `'%s'.format([${name}]) == ''`, /more than 1000000 characters$/],
  ])('%s', (_, body, message) => {
    const { atOnce, inSteps } = outcomesOf(nested(9, body));
    expect(atOnce.error).toBeInstanceOf(CelCostError);
    expect(atOnce.error?.message).toMatch(message);
    expect(inSteps.error?.message).toBe(atOnce.error?.message);
    expect(outcomesOf(nested(3, body)).atOnce.error).toBeUndefined();
  });
});

test('TRUST-2: the rules of an object run in steps', () => {
  const schema = schemaFromOpenApi({
    type: 'object',
    properties: {
      lists: {
        type: 'array',
        items: {
          type: 'array',
          items: { type: 'integer' },
          'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, x + y < 398))' }],
        },
      },
    },
  });
  const rules = compileRules(schema);
  const lists = Array.from({ length: 5 }, () => Array.from({ length: 200 }, (_, at) => at));
  const object: JsonValue = { lists };
  const work = rules?.(object, undefined);
  let steps = 0;
  while (work?.next().done === false) steps += 1;
  expect(steps).toBeGreaterThan(100);
  const errors = rules === undefined ? [] : inOnePiece(rules(object, undefined));
  expect(errors.map(({ field }) => field)).toEqual(lists.map((_, at) => `lists[${at}]`));
});

test('TRUST-2: a function does not search a text of any length', () => {
  const text = `'${'a'.repeat(30_000)}'`;
  const twice = (one: string) => `[${one}].map(t, t + t)[0]`;
  const { atOnce } = outcomesOf(`${twice(twice(twice(text)))}.find('b') == 'b'`);
  expect(atOnce.error?.message).toMatch(/a text has more than 200000 characters$/);
  expect(outcomesOf(`${twice(twice(text))}.find('b') == 'b'`).atOnce.value).toBe(false);
  const { atOnce: matched, steps } = outcomesOf(`${twice(twice(twice(text)))}.matches('b+')`);
  expect(matched.value).toBe(false);
  expect(steps).toBeGreaterThan(10);
});
