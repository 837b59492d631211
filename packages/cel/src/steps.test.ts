import { type JsonValue, runInOnePiece } from '@wheelhouse/machinery';
import { schemaFromOpenApi } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { compile } from './compile.ts';
import { compileRules } from './run-rules.ts';
import { standardFunctions } from './types/standard-functions.ts';
import { stringType } from './types/types.ts';
import { CelCostError } from './values.ts';

const long = (count: number) => `lists.range(${count})`;
const costMax = 1_000_000;

/** The outcome of an expression in one piece and in steps, and the number of steps. */
function outcomesOf(source: string, max = costMax) {
  const expression = compile(source, {
    functions: standardFunctions(),
    variables: new Map(),
    bindings: 'known',
  }).program();
  const atOnce = expression.measure(new Map(), max);
  const work = expression.steps(new Map(), max);
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
    [`${long(9_000)}.map(x, 1 / (x - 8999)) == ${long(9_000)}.map(x, x) || true`],
    [`[${long(9_000)}.map(x, 1 / x), ${long(9_000)}.map(x, x)].size() == 2 || true`],
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

  test('a large pattern that an expression computes is parsed and compiled in steps', () => {
    const source = `'xy'.matches('^(' + 'x|y){2}(abcd){0,900}$')`;
    const environment = { functions: standardFunctions(), variables: new Map() };
    const program = compile(source, environment).program();
    const stepsOf = () => {
      let pauses = 0;
      for (const work = program.steps(new Map(), costMax); ; pauses += 1) {
        const step = work.next();
        if (step.done === true) return { pauses, value: step.value.value };
      }
    };
    expect(stepsOf()).toEqual({ pauses: 6, value: true });
    expect(stepsOf()).toEqual({ pauses: 0, value: true });
  });

  test('only a literal pattern of a stored expression may have many parts', () => {
    const manyParts = (first: string) => `^(${first}|${'a|'.repeat(3_500)}z)$`;
    const variables = new Map([['p', stringType]]);
    const environment = { functions: standardFunctions(), variables };
    const literal = `'a'.matches('${manyParts('b')}') && 'a'.find('${manyParts('c')}') == 'a'`;
    const program = compile(literal, environment).program();
    // The parsed patterns are kept only as long as there are few others.
    for (let other = 0; other < 501; other += 1) {
      compile(`'a'.matches('${other}')`, environment).program();
    }
    expect(runInOnePiece(program.steps(new Map(), costMax)).value).toBe(true);
    const computed = compile(`'a'.matches(p)`, environment).program();
    for (const first of ['d', 'b']) {
      const { error } = runInOnePiece(computed.steps(new Map([['p', manyParts(first)]]), costMax));
      expect(error?.message, first).toContain('at most 9000 parts');
      for (let other = 0; other < 501; other += 1) {
        compile(`'a'.matches('${other}')`, environment).program();
      }
    }
    for (const call of ['matches', 'find']) {
      const source = `'a'.${call}('${manyParts('e')}') == 'a'.${call}('a')`;
      expect(() => compile(source, { ...environment, patterns: 'new' }).program()).toThrow();
    }
  });

  test('short evaluations take one step', () => {
    expect(outcomesOf('[1, 2].all(x, x > 0)').steps).toBe(1);
  });
});

test.each([
  'google.protobuf.Value{list_value: LIST} == dyn(1)',
  'google.protobuf.ListValue{values: [dyn({"a": LIST}), dyn([LIST])]}.size() == 1',
])('TRUST-2: %s converts the list in steps', (source) => {
  const { atOnce, inSteps, steps } = outcomesOf(source.replaceAll('LIST', long(50_000)));
  expect([inSteps, atOnce.value]).toEqual([atOnce, false]);
  expect(steps).toBeGreaterThan(6);
});

describe('TRUST-2: functions read long lists in steps', () => {
  test.each([
    [`${long(10_000)}.map(x, 5 - x).sort()[0] == -9994`],
    [`${long(500)}.map(x, [x]).distinct().size() == 500`],
    [`(${long(30_000)} + ${long(30_000)}).distinct().size() == 30000`],
    [`${long(30_000)}.isSorted() && ${long(30_000)}.min() == 0 && ${long(30_000)}.max() == 29999`],
    [`${long(30_000)}.sum() == 449985000`],
    [`${long(30_000)}.indexOf(25000) == 25000 && ${long(30_000)}.lastIndexOf(-1) == -1`],
    [`[${long(30_000)}, ${long(9)}].flatten().size() == 30009`],
    [`!(-1 in ${long(30_000)}) && 25000 in ${long(30_000)}`],
    [`sets.contains(${long(30_000)}, [7, 29999]) && !sets.contains(${long(9_000)}, [-1])`],
    [`sets.equivalent(${long(300)}, ${long(300)}) && sets.intersects(${long(300)}, ${long(300)})`],
    [`${long(30_000)}.map(x, 'a').join('-').size() == 59999`],
    [`${long(30_000)}.map(x, 'a').join('').replace('a', 'bc').size() == 60000`],
    [`${long(30_000)}.map(x, 'a').join('').split('').size() == 30000`],
  ])('%s', (source) => {
    const { atOnce, inSteps, steps } = outcomesOf(source, 2_000_000);
    expect(atOnce.value).toBe(true);
    expect(inSteps).toEqual(atOnce);
    expect(steps).toBeGreaterThan(5);
  });

  test('an error in the middle of a list is the same', () => {
    const { atOnce, inSteps } = outcomesOf(`(${long(30_000)} + [9223372036854775807]).sum()`);
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
  const errors = rules === undefined ? [] : runInOnePiece(rules(object, undefined));
  expect(errors.map(({ field }) => field)).toEqual(lists.map((_, at) => `lists[${at}]`));
});

describe('TRUST-2: rules convert the items of long lists in steps', () => {
  const count = 10_000;
  const time = (at: number) => new Date(at * 1000).toISOString();

  /** The errors of an update, and the steps of its validation. */
  function outcomeOf(rule: string, change: (list: string[]) => void = () => {}) {
    const list = Array.from({ length: count }, (_, at) => time(at));
    const old = { list: [...list] };
    change(list);
    const schema = schemaFromOpenApi({
      type: 'object',
      properties: {
        list: {
          type: 'array',
          items: { type: 'string', format: 'date-time' },
          'x-kubernetes-validations': [{ rule }],
        },
      },
    });
    const work = compileRules(schema)({ list }, old);
    for (let steps = 1; ; steps += 1) {
      const step = work.next();
      if (step.done === true) return { steps, errors: step.value.map(({ message }) => message) };
    }
  }

  test.each([
    ['self == oldSelf'],
    ['!(self != oldSelf) && self.size() == 10000'],
    ['self + self == oldSelf + self'],
    ['self.isSorted() && self.indexOf(self[9999]) == 9999'],
    [
      "self.map(t, t.getFullYear()).max() == 1970 && self.min() == timestamp('1970-01-01T00:00:00Z')",
    ],
  ])('%s', (rule) => {
    const { steps, errors } = outcomeOf(rule);
    expect(errors).toEqual([]);
    expect(steps).toBeGreaterThan(15);
  });

  test('an item that cannot be converted fails only where it is read', () => {
    const spoil = (list: string[]) => list.splice(7_500, 1, 'tomorrow');
    const message = 'Invalid date-time formatted string tomorrow';
    const failing = outcomeOf('self.all(t, t.getFullYear() == 1970)', spoil);
    expect(failing.errors).toEqual([expect.stringContaining(message)]);
    expect(outcomeOf('self == oldSelf', spoil).errors).toEqual([expect.stringContaining(message)]);
    expect(outcomeOf('self[7499] < self[7501] && self.size() == 10000', spoil).errors).toEqual([]);
  });

  test('the items of lists in a list as well', () => {
    const list = Array.from({ length: 100 }, () =>
      Array.from({ length: 200 }, (_, at) => time(at)),
    );
    const items = {
      type: 'array',
      items: { type: 'array', items: { type: 'string', format: 'date-time' } },
      'x-kubernetes-validations': [{ rule: 'self == oldSelf && self[99][199] == self[98][199]' }],
    };
    const rules = compileRules(schemaFromOpenApi({ type: 'object', properties: { list: items } }));
    const work = rules({ list }, { list: structuredClone(list) });
    let steps = 1;
    for (let step = work.next(); step.done !== true; step = work.next()) steps += 1;
    expect(steps).toBeGreaterThan(15);
    expect(runInOnePiece(rules({ list }, { list: structuredClone(list) }))).toEqual([]);
  });
});

/** An expression whose value is a text of 160,000 characters; tests call it TEXT. */
const longText = `cel.bind(t, '${'a'.repeat(20_000)}', t + t + t + t + t + t + t + t)`;

/** An evaluation of calls that each are short, or cannot pause, but together take long. */
describe('functions that are seldom long run in steps where they are', () => {
  test.each([
    [`${long(10_000)}.map(x, [x]) == ${long(10_000)}.map(x, [x])`],
    [`${long(10_000)}.map(x, {'a': x}) != ${long(10_000)}.map(x, {'a': x + x / 9999})`],
    [`optional.of(${long(30_000)}) == optional.of(${long(30_000)})`],
    [`[${long(30_000)}, ${long(30_000)}].indexOf(${long(30_000)} + []) == 0`],
    [`${long(30_000)} in [${long(30_001)}, ${long(30_000)}]`],
    [`cel.bind(l, ${long(30_000)}, ${long(40)}.all(i, l.slice(i, 30000)[0] == i))`],
    [`cel.bind(l, ${long(30_000)}, ${long(8)}.all(i, l.reverse()[0] == 29999))`],
    [`cel.bind(l, ${long(30_000)}, ${long(20)}.all(i, (l + [1]).size() > i))`],
    [`cel.bind(t, TEXT, ${long(9)}.all(i, t.charAt(i) + t.substring(i, i + 1) == 'aa'))`],
    [`cel.bind(t, TEXT, ${long(9)}.all(i, t.indexOf('b', i) + t.lastIndexOf('b') == -2))`],
    [`cel.bind(t, TEXT, ${long(9)}.all(i, t.lowerAscii().trim() < t.upperAscii() == false))`],
    [`cel.bind(t, TEXT, ${long(9)}.all(i, t.size() == 160000 && t.split('b').size() == 1))`],
    [
      `'%s'.format([${long(5_000)}.map(x, {'k': x, 'j': 'b'})]).startsWith('[{"j":"b", "k":0}, {"j":')`,
    ],
    [`strings.quote(TEXT).size() == 160002`],
    [`TEXT.findAll('a').size() == 160000`],
    [`TEXT.find('(?:a|b)+c') == ''`],
  ])('%s', (source) => {
    const { atOnce, inSteps, steps } = outcomesOf(source.replaceAll('TEXT', longText), 5_000_000);
    expect(inSteps).toEqual(atOnce);
    expect(atOnce.value).toBe(true);
    expect(steps).toBeGreaterThan(5);
  });

  test('a chain of comparisons pauses between them', () => {
    const lists = `[${long(2_000)}, ${long(2_000)}]`;
    const chain = Array(20).fill('l[0] == l[1]').join(' && ');
    const { atOnce, inSteps, steps } = outcomesOf(`cel.bind(l, ${lists}, ${chain})`);
    expect(inSteps).toEqual(atOnce);
    expect(atOnce.value).toBe(true);
    expect(steps).toBeGreaterThan(5);
  });
});

describe('a search takes no longer than a text and a long part of it', () => {
  const half = 'a'.repeat(10_000);
  // `contains` costs the product of both texts, as in kube-apiserver.
  const searchCostMax = 100 * costMax;
  const around = (search: string) =>
    `cel.bind(t, '${'a'.repeat(60_000)}', cel.bind(p, '${half}b${half}', ${search}))`;

  test.each([
    ["!t.contains(p) && (t + 'b' + t).contains(p)"],
    ["t.indexOf(p) == -1 && (t + 'b' + t).indexOf(p) == 50000"],
    ["(t + 'b' + t).indexOf(p, 50000) == 50000 && (t + 'b' + t).indexOf(p, 50001) == -1"],
    ["t.lastIndexOf(p) == -1 && (t + 'b' + t).lastIndexOf(p) == 50000"],
    ["(t + 'b' + t).lastIndexOf(p, 50000) == 50000 && (t + 'b' + t).lastIndexOf(p, 49999) == -1"],
    ["(t + 'b' + t).split(p).size() == 2 && (t + 'b' + t).split(p)[1].size() == 50000"],
    ["(t + 'b' + t).split(p, 1).size() == 1 && (t + 'b' + t).split(p, 0).size() == 0"],
    ["(t + 'b' + t).replace(p, 'c').size() == 100001 && t.replace(p, 'c') == t"],
    ["(t + 'abc').contains('aabc') && !t.contains('aab')"],
  ])('%s', (search) => {
    const { atOnce, inSteps } = outcomesOf(around(search), searchCostMax);
    expect(atOnce.value).toBe(true);
    expect(inSteps).toEqual(atOnce);
  });

  test('in steps', () => {
    expect(outcomesOf(around(`${long(9)}.all(i, t.indexOf(p) < 0)`)).steps).toBeGreaterThan(5);
  });
});

test('TRUST-2: a function does not search a text of any length', () => {
  const text = `'${'a'.repeat(30_000)}'`;
  const twice = (item: string) => `[${item}].map(t, t + t)[0]`;
  const { atOnce } = outcomesOf(`${twice(twice(twice(text)))}.find('b') == 'b'`);
  expect(atOnce.error?.message).toMatch(/a text has more than 200000 characters$/);
  expect(outcomesOf(`${twice(twice(text))}.find('b') == 'b'`).atOnce.value).toBe(false);
  const { atOnce: matched, steps } = outcomesOf(`${twice(twice(twice(text)))}.matches('b+')`);
  expect(matched.value).toBe(false);
  expect(steps).toBeGreaterThan(10);
});
