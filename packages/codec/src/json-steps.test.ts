import { type JsonValue, runInOnePiece } from '@wheelhouse/machinery';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type DecodedJson,
  decodeJson,
  decodeJsonSteps,
  encodeJson,
  encodeJsonSteps,
  JsonError,
  parseAhead,
  parseWrittenJson,
  scanJson,
  scanJsonSteps,
} from './json.ts';
import { isUtf8Steps, TextWindows } from './text-windows.ts';

const limits = { depthMax: 500, valuesMax: 100_000 };

/** Decodes a text in steps, and counts them. */
function stepped(text: string): { readonly decoded: DecodedJson; readonly steps: number } {
  const work = decodeJsonSteps(Buffer.from(text), limits);
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { decoded: step.value, steps };
  }
}

const members = (count: number) =>
  Array.from({ length: count }, (_, index) => `"key-${index}":"v${index}"`).join(',');

test('TRUST-2: a text of many values decodes in many steps with the same result', () => {
  const texts = [
    `{"data":{${members(30_000)}}}`,
    `{"items":[${Array.from({ length: 20_000 }, (_, index) => `{"a":[${index}]}`).join(',')}]}`,
    `{"data":{${members(15_000)},"key-7":"again"}}`,
    `[${'9007199254740993,'.repeat(30_000)}null]`,
  ];
  for (const text of texts) {
    const { decoded, steps } = stepped(text);
    expect(decoded).toEqual(decodeJson(Buffer.from(text), limits));
    expect(steps).toBeGreaterThan(30);
  }
});

test('TRUST-2: random texts, valid or not, decode in steps like at once', () => {
  fc.assert(
    fc.property(
      fc.array(fc.json({ maxDepth: 4 }), { minLength: 1, maxLength: 5 }),
      fc.constantFrom('[@]', '{"a":[@],"b":{"c":@}}', '[{"a":@,"a":@}]', ' [ [ @ ] , @ ] '),
      fc.oneof(fc.nat(), fc.nat(12)),
      fc.constantFrom('', ',', ':', '}', ']', '"', '1e999', ' ', '\u00a0'),
      (texts, frame, place, insertion) => {
        const items = texts.join(',');
        const count = Math.ceil(30_000 / items.length);
        const whole = frame.replaceAll('@', `[${`${items},`.repeat(count)}0]`);
        const at = place % whole.length;
        const text = whole.slice(0, at) + insertion + whole.slice(at);
        const atOnce = outcomeOf(() => decodeJson(Buffer.from(text), limits));
        expect(outcomeOf(() => stepped(text).decoded)).toEqual(atOnce);
      },
    ),
    { numRuns: 60 },
  );
});

test('CODEC-2: text around a large value is rejected like around a small one', () => {
  const list = `[${'1,'.repeat(30_000)}0]`;
  const around = ['x', '1e999', 'true ', '"a"', '\u00a0', '\ufeff', ':'];
  for (const text of around.flatMap((odd) => [
    `${odd}${list}`,
    `${list}${odd}`,
    `[${odd}${list}]`,
    `[${list}${odd}]`,
    `{${odd}"a":${list}}`,
    `{"a":${odd}${list}}`,
    `{"a"${odd}:${list}}`,
  ])) {
    const refusal = outcomeOf(() => decodeJson(Buffer.from(text), limits));
    expect(refusal).toBeInstanceOf(JsonError);
    expect(outcomeOf(() => stepped(text).decoded)).toEqual(refusal);
  }
});

const outcomeOf = (decode: () => DecodedJson): unknown => {
  try {
    return decode();
  } catch (error) {
    return error;
  }
};

test('TRUST-2: a long text of few values decodes at once', () => {
  const text = JSON.stringify({ data: { a: 'x'.repeat(1_000_000), b: 1 } });
  expect(stepped(text)).toEqual({ decoded: decodeJson(Buffer.from(text), limits), steps: 2 });
});

test('TRUST-2: decoding in steps reports the same errors as decoding at once', () => {
  const texts = [
    `{"data":{${members(30_000)}`,
    `{"data":{"é":"x",${members(30_000)},}}`,
    `[${'1,'.repeat(100_000)}1]`,
    `${'['.repeat(501)}${']'.repeat(501)}`,
  ];
  for (const text of texts) {
    const atOnce = refusalOf(() => decodeJson(Buffer.from(text), limits));
    expect(atOnce).toBeInstanceOf(Error);
    expect(refusalOf(() => stepped(text))).toEqual(atOnce);
  }
});

function refusalOf(decode: () => unknown): unknown {
  try {
    return decode();
  } catch (error) {
    return error;
  }
}

test('TRUST-2: values are encoded in steps like at once', () => {
  const values: JsonValue[] = [
    { items: Array.from({ length: 9_000 }, (_, at) => ({ at, no: undefined, text: 'é"\n' })) },
    { data: Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`${at}x`, null])) },
    [Array.from({ length: 900 }, () => 1n << 60n), 'a', Array.from({ length: 900 }, () => [])],
    JSON.parse(`{"__proto__":{"a":[${'1,'.repeat(900)}2]},"b":[],"7":{}}`),
    {},
    [],
    null,
  ];
  for (const value of values) {
    const parts = [...stepsOf(encodeJsonSteps(value))];
    expect(parts.at(-1)?.equals(encodeJson(value))).toBe(true);
    if (encodeJson(value).length > 50_000) expect(parts.length).toBeGreaterThan(10);
  }
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(400), (value, count) => {
      const repeated = [value, Array.from({ length: count }, () => value)] as JsonValue;
      expect(runInOnePiece(encodeJsonSteps(repeated)).equals(encodeJson(repeated))).toBe(true);
    }),
    { numRuns: 60 },
  );
});

/** Yields undefined for each pause of a generator, and then its result. */
function* stepsOf<Result>(work: Generator<void, Result>): Generator<Result | undefined> {
  for (;;) {
    const step = work.next();
    yield step.done === true ? step.value : undefined;
    if (step.done === true) return;
  }
}

test('TRUST-2: large stored JSON is parsed in steps before it is read, once', () => {
  const value = { items: Array.from({ length: 20_000 }, (_, index) => ({ name: `i${index}` })) };
  const bytes = Buffer.from(JSON.stringify(value));
  let steps = 0;
  for (const _ of parseAhead(bytes)) steps += 1;
  expect(steps).toBeGreaterThan(10);
  const parsed = parseWrittenJson(bytes);
  expect(parsed).toEqual(value);
  expect(parseWrittenJson(bytes)).not.toBe(parsed);
  expect([...parseAhead(Buffer.from('{"a":1}'))]).toEqual([]);
});

test.each([
  ['many values', `[${'{"a":[1,"b"],"c":null},'.repeat(50_000)}1234567890123456]`],
  ['escaped quotes', `["${'\\"'.repeat(500_000)}\\\\",[[1]],{"a":2}]`],
  ['a long text', `["${'é'.repeat(400_000)}",1,2]`],
  ['an open string', `[1,"${'\\"'.repeat(400_000)}`],
  ['fractions', `[${'1,'.repeat(200_000)}2.5${',3'.repeat(200_000)}]`],
])('the scan of %s is the same in steps', (_, text) => {
  const bytes = Buffer.from(text);
  const work = scanJsonSteps(bytes);
  let steps = 1;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value).toEqual(scanJson(bytes));
  expect(steps).toBeGreaterThan(text.includes('é') ? 0 : 2);
});

test('TRUST-2: characters and tokens at the edges of windows decode like in one piece', () => {
  const tokens = [
    '"\ud83d\ude00é€"',
    '"\\ud83d\\ude00\\\\\\""',
    '12345678901234567890',
    '-1.5e-7',
    'null',
  ];
  const [before, after] = [64 * 1024 - 40, 64 * 1024 + 40];
  for (const token of tokens) {
    for (let length = before; length < after; length += 1) {
      const text = `{"a":"${'x'.repeat(length - 20)}","a":${token} , "b":[${token}]}`;
      expect(exact(Buffer.from(text))).toEqual({
        value: JSON.parse(exactly(text)),
        duplicates: ['a'],
      });
    }
  }
});

/** The text with long integers as strings. */
const exactly = (text: string) => text.replaceAll('12345678901234567890', '"12345678901234567890"');

/** Decodes in steps, with long integers as strings. */
function exact(bytes: Buffer): DecodedJson {
  const { value, duplicates } = runInOnePiece(decodeJsonSteps(bytes, limits));
  const shown = JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'bigint' ? String(member) : member,
  );
  return { value: JSON.parse(shown), duplicates };
}

test('TRUST-2: invalid text behind the first windows is rejected like in one piece', () => {
  for (const length of [64 * 1024 - 4, 200_000]) {
    const long = 'é'.repeat(length / 2);
    for (const bad of ['1.', '-', 'tru', '"\\u12', '"\\x"', '"\n"', '01', '1e', '{"a" 1}']) {
      for (const text of [`["${long}",${bad}`, `["${long}",${bad}]`, `[1, "${long}${bad}]`]) {
        const refusal = outcomeOf(() => decodeJson(Buffer.from(text), limits));
        if (!(refusal instanceof JsonError)) throw refusal;
        const blanks = ' '.repeat(64 * 1024 - (length % 64));
        const at = refusal.at === undefined ? undefined : refusal.at + blanks.length;
        const expected = new JsonError(refusal.message, at);
        expect(outcomeOf(() => stepped(blanks + text).decoded)).toEqual(expected);
      }
    }
  }
});

test('TRUST-2: windows of a text have whole characters and keep a byte-order mark', () => {
  const text = `\ufeff${'a'.repeat(64 * 1024 - 7)}${'é€\ud83d\ude00'.repeat(40_000)}`;
  for (let shift = 0; shift < 12; shift += 1) {
    const shifted = 'x'.repeat(shift) + text;
    const windows = new TextWindows(Buffer.from(shifted), 'utf8');
    const pieces: string[] = [];
    while (!windows.isOver) pieces.push(windows.next(shift));
    expect(pieces.length).toBeGreaterThan(5);
    expect(pieces.join('') === shifted).toBe(true);
    expect(pieces.some((piece) => /^[\udc00-\udfff]|[\ud800-\udbff]$/.test(piece))).toBe(false);
  }
});

test('TRUST-2: large UTF-8 is validated in steps, across their edges', () => {
  const edge = 4 * 1024 * 1024;
  for (const [what, isValid] of [
    [Buffer.from('é'), true],
    [Buffer.from('\ud83d\ude00'), true],
    [Buffer.from('€'), true],
    [Buffer.from([0xe2, 0x82]), false],
    [Buffer.from([0x80]), false],
    [Buffer.from([0xc3, 0xa9, 0xa9, 0xa9, 0xa9]), false],
    [Buffer.from([0xf0, 0x9f, 0x98]), false],
  ] as const) {
    for (let shift = 0; shift < 6; shift += 1) {
      const bytes = Buffer.alloc(edge + 100, 'a');
      what.copy(bytes, edge - shift);
      const steps = [...stepsOf(isUtf8Steps(bytes))];
      expect(steps).toEqual(isValid || steps.length === 2 ? [undefined, isValid] : [false]);
    }
  }
});
