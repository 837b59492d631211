import { expect, test } from 'vitest';
import {
  cloneJsonSteps,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualExcept,
  jsonEqualExceptSteps,
  jsonEqualSteps,
  parseExactJson,
  Stride,
  weightOf,
} from './json.ts';
import { runInOnePiece } from './work.ts';

test('TRUST-2: a large value is copied in steps and shares nothing with its copy', () => {
  const value: JsonObject = {
    items: Array.from({ length: 5_000 }, (_, index) => ({ name: `i${index}`, none: null })),
    ['__proto__x']: { a: [1n, true, ''] },
  };
  const work = cloneJsonSteps(value);
  let steps = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value).toEqual(value);
  expect(step.value['items']).not.toBe(value['items']);
  // Each item and its two members count; each pause follows the item that exceeds the step.
  expect(steps).toBeGreaterThanOrEqual(15_000 / 502 - 1);
  const odd: JsonObject = JSON.parse('{"__proto__":{"a":1}}');
  expect(Object.keys(runInOnePiece(cloneJsonSteps(odd)))).toEqual(['__proto__']);
});

test('TRUST-2: large values compare in steps with the same result', () => {
  const make = (last: JsonValue): JsonObject => ({
    items: Array.from({ length: 3_000 }, (_, at) => ({ at, none: undefined })),
    data: Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${at}`, [at]])),
    last,
  });
  const others: (JsonValue | undefined)[] = [
    make(1),
    make(2),
    { ...make(1), none: undefined },
    { ...make(1), more: 1 },
    { ...make(1), items: [] },
    { ...make(1), data: null },
    [make(1)],
    null,
    undefined,
  ];
  for (const other of others) {
    expect(runInOnePiece(jsonEqualSteps(make(1), other))).toBe(jsonEqual(make(1), other));
    expect(runInOnePiece(jsonEqualSteps(other, make(1)))).toBe(jsonEqual(make(1), other));
  }
  expect([...jsonEqualSteps(make(1), make(1))].length).toBeGreaterThan(10);
  expect(jsonEqualExcept(make(1), make(2), 'last')).toBe(true);
  expect(runInOnePiece(jsonEqualExceptSteps(make(1), make(2), 'last'))).toBe(true);
  expect(runInOnePiece(jsonEqualExceptSteps(make(1), make(2), 'data'))).toBe(false);
});

test('TRUST-2: weighing stops at the weight of a light value', () => {
  expect(weightOf(undefined)).toBe(1);
  expect(weightOf([1, { a: 'x', b: [] }])).toBe(5);
  expect(weightOf(Array.from({ length: 100_000 }, () => 1))).toBe(257);
  expect(weightOf(Array.from({ length: 200 }, () => [[]]))).toBe(257);
});

test('TRUST-2: the members of an object are listed once at any nesting depth', () => {
  let listed = 0;
  const wide = new Proxy<JsonObject>(
    Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, at])),
    {
      ownKeys: (target) => {
        listed += 1;
        return Reflect.ownKeys(target);
      },
    },
  );
  let value: JsonValue = wide;
  for (let depth = 0; depth < 50; depth += 1) value = { small: ['a'], more: value };
  const stride = new Stride();
  let inner: JsonValue | undefined = value;
  for (; inner !== wide; inner = (inner as JsonObject)['more']) {
    expect(stride.weigh(inner)).toBe('heavy');
    expect(stride.weigh((inner as JsonObject)['small'])).toBe('light');
  }
  expect(stride.weigh(wide)).toBe('heavy');
  expect(listed).toBe(1);
});

test('CODEC-8: integers that a number cannot represent are read as bigints, and nothing else', () => {
  const text =
    '{"a":9007199254740993,"b":[-9223372036854775808, 9007199254740991],' +
    '"c":"1234567890123456789","d \\" :1234567890123456789":1.2345678901234567890,' +
    '"e":12345678901234567e3,"__proto__":{"f":\n12345678901234567890}}';
  const value = parseExactJson(text);
  expect(value).toEqual({
    ...{ a: 9007199254740993n, b: [-9223372036854775808n, 9007199254740991] },
    ...{ c: '1234567890123456789', 'd " :1234567890123456789': 1.2345678901234567 },
    ...{ e: 12345678901234567e3, ['__proto__']: { f: 12345678901234567890n } },
  });
  expect(parseExactJson('9007199254740993')).toBe(9007199254740993n);
  for (const malformed of ['{9007199254740993:1}', '[09007199254740993]', '[9007199254740993-1]']) {
    expect(() => parseExactJson(malformed)).toThrow(SyntaxError);
  }
});
