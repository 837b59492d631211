import {
  type JsonObject,
  type JsonValue,
  runInOnePiece,
  WorkExceeded,
} from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { schemaFromOpenApi } from '../from-openapi.ts';
import { validate } from './validate.ts';

const check = (props: JsonObject, value: JsonValue, old?: JsonValue): string[] => {
  const schema = schemaFromOpenApi({ type: 'object', properties: { spec: props } });
  const options = old === undefined ? {} : { old: { spec: old } };
  return runInOnePiece(validate(schema)({ spec: value }, options)).map(
    (error) => `${error.type} ${error.field}: ${error.message}`,
  );
};

type Row = readonly [
  props: JsonObject,
  good: readonly JsonValue[],
  bad: JsonValue,
  ...errors: string[],
];
const rows: readonly Row[] = [
  [
    { type: 'integer' },
    [1, 1n],
    'a',
    'FieldValueTypeInvalid spec: Invalid value: "string": spec in body must be of type integer: "string"',
  ],
  [
    { type: 'number' },
    [1, 1.5],
    true,
    'FieldValueTypeInvalid spec: Invalid value: "boolean": spec in body must be of type number: "boolean"',
  ],
  [
    { type: 'integer' },
    [],
    1.5,
    'FieldValueTypeInvalid spec: Invalid value: "number": spec in body must be of type integer: "number"',
  ],
  [
    { type: 'string', nullable: true },
    [null, 'a'],
    [],
    'FieldValueTypeInvalid spec: Invalid value: "array": spec in body must be of type string: "array"',
  ],
  [
    { type: 'string' },
    [],
    null,
    'FieldValueTypeInvalid spec: Invalid value: "null": spec in body must be of type string: "null"',
  ],
  [
    { 'x-kubernetes-int-or-string': true },
    [1, 'a'],
    1.5,
    'FieldValueTypeInvalid spec: Invalid value: "number": spec in body must be of type integer,string: "number"',
  ],
  [
    { type: 'object', required: ['a'] },
    [{ a: null }],
    {},
    'FieldValueRequired spec.a: Required value',
  ],
  [
    { type: 'string', enum: ['a', 'b'] },
    ['a'],
    'c',
    'FieldValueNotSupported spec: Unsupported value: "c": supported values: "a", "b"',
  ],
  [
    { enum: [{ b: 1, a: 'x' }] },
    [{ a: 'x', b: 1 }],
    { a: 'y' },
    'FieldValueNotSupported spec: Unsupported value: map[string]interface {}{"a":"y"}: supported values: "{\\"a\\":\\"x\\",\\"b\\":1}"',
  ],
  [
    { type: 'string', pattern: '^a$' },
    ['a'],
    'b',
    'FieldValueInvalid spec: Invalid value: "b": spec in body should match \'^a$\'',
  ],
  [
    { type: 'string', minLength: 2 },
    ['ab', '😀😀'],
    '😀',
    'FieldValueInvalid spec: Invalid value: "😀": spec in body should be at least 2 chars long',
  ],
  [
    { type: 'string', maxLength: 2 },
    ['ab', '😀😀'],
    'abc',
    'FieldValueTooLong spec: Too long: may not be more than 2 bytes',
  ],
  [
    { type: 'integer', minimum: 1 },
    [1],
    0,
    'FieldValueInvalid spec: Invalid value: 0: spec in body should be greater than or equal to 1',
  ],
  [
    { type: 'integer', minimum: 1, exclusiveMinimum: true },
    [2],
    1,
    'FieldValueInvalid spec: Invalid value: 1: spec in body should be greater than 1',
  ],
  [
    { type: 'number', maximum: 0.5 },
    [0.5],
    0.6,
    'FieldValueInvalid spec: Invalid value: 0.6: spec in body should be less than or equal to 0.5',
  ],
  [
    { type: 'integer', maximum: 9, exclusiveMaximum: true },
    [8],
    9,
    'FieldValueInvalid spec: Invalid value: 9: spec in body should be less than 9',
  ],
  [
    { type: 'integer', multipleOf: 3 },
    [9],
    10,
    'FieldValueInvalid spec: Invalid value: 10: spec in body should be a multiple of 3',
  ],
  [
    { type: 'number', multipleOf: 0.1 },
    [0.3],
    0.35,
    'FieldValueInvalid spec: Invalid value: 0.35: spec in body should be a multiple of 0.1',
  ],
  [
    { type: 'number', multipleOf: 0.01 },
    [1.1, 0.3],
    2.3,
    'FieldValueInvalid spec: Invalid value: 2.3: spec in body should be a multiple of 0.01',
  ],
  [
    { type: 'number', multipleOf: 2 },
    [1e15],
    1e20,
    'FieldValueInvalid spec: Invalid value: 1e+20: spec in body should be a multiple of 2',
  ],
  [
    { type: 'number', enum: [1, 2.5] },
    [1, 1.5, 2.5],
    2,
    'FieldValueNotSupported spec: Unsupported value: 2: supported values: "1", "2.5"',
  ],
  [
    { type: 'string', format: 'uuid' },
    [],
    '\u007f',
    'FieldValueTypeInvalid spec: Invalid value: "\\x7f": spec in body must be of type uuid: "\\x7f"',
  ],
  [
    { type: 'integer', format: 'int32' },
    [5, 2 ** 31, 2n ** 63n - 1n],
    2n ** 63n,
    'FieldValueTypeInvalid spec: Invalid value: "number": spec in body must be of type integer: "number"',
  ],
  [
    { type: 'integer' },
    [-(2n ** 63n), Number.MAX_SAFE_INTEGER],
    1e17,
    'FieldValueTypeInvalid spec: Invalid value: "number": spec in body must be of type integer: "number"',
  ],
  [
    { 'x-kubernetes-int-or-string': true, format: 'ipv4' },
    [5, '10.0.0.1'],
    'x',
    'FieldValueTypeInvalid spec: Invalid value: "x": spec in body must be of type ipv4: "x"',
  ],
  [
    { type: 'number', format: 'float' },
    [1e300, 2n ** 63n],
    'a',
    'FieldValueTypeInvalid spec: Invalid value: "string": spec in body must be of type number: "string"',
  ],
  [
    { type: 'array', minItems: 1 },
    [[1]],
    [],
    'FieldValueInvalid spec: Invalid value: 0: spec in body should have at least 1 items',
  ],
  [
    { type: 'array', maxItems: 1 },
    [[1]],
    [1, 2],
    'FieldValueTooMany spec: Too many: 2: must have at most 1 items',
  ],
  [
    { type: 'array', uniqueItems: true },
    [[1, 2]],
    [{ a: 1 }, { a: 1 }],
    'FieldValueInvalid spec: Invalid value: "": spec in body shouldn\'t contain duplicates',
  ],
  [
    { type: 'object', minProperties: 1 },
    [{ a: 1 }],
    {},
    'FieldValueInvalid spec: Invalid value: 0: spec in body should have at least 1 properties',
  ],
  [
    { type: 'object', maxProperties: 1 },
    [{ a: 1 }],
    { a: 1, b: 2 },
    'FieldValueTooMany spec: Too many: 2: must have at most 1 items',
  ],
  [
    { type: 'object', additionalProperties: false },
    [{}],
    { a: 1 },
    'FieldValueInvalid spec: Invalid value: "a": spec.a in body is a forbidden property',
  ],
  [
    { type: 'object', additionalProperties: { type: 'string' } },
    [{ a: 'x' }],
    { a: 1 },
    'FieldValueTypeInvalid spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"',
  ],
  [
    { type: 'array', items: { type: 'string' } },
    [['a']],
    ['a', 1],
    'FieldValueTypeInvalid spec[1]: Invalid value: "integer": spec[1] in body must be of type string: "integer"',
  ],
  [
    { type: 'string', not: { enum: ['a'] } },
    ['b'],
    'a',
    'FieldValueInvalid <nil>: Invalid value: "": "spec" must not validate the schema (not)',
  ],
  [
    { type: 'integer', oneOf: [{ minimum: 1 }, { maximum: 9 }] },
    [0, 10],
    5,
    'FieldValueInvalid <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives',
  ],
  [
    { type: 'string', format: 'date-time' },
    ['2024-01-01T00:00:00Z'],
    'x',
    'FieldValueTypeInvalid spec: Invalid value: "x": spec in body must be of type date-time: "x"',
  ],
];

describe('the validator', () => {
  test.each(rows.map((row, index) => [index, ...row] as const))(
    'rule %i',
    (_, props, good, bad, ...errors) => {
      for (const value of good) expect(check(props, value)).toEqual([]);
      expect(check(props, bad)).toEqual(errors);
    },
  );

  test('reports the errors of the closest alternative', () => {
    const props = {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      anyOf: [{ required: ['a'] }, { required: ['b'] }],
    };
    expect(check(props, { b: 'x' })).toEqual([]);
    expect(check(props, {})).toEqual([
      'FieldValueInvalid <nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)',
      'FieldValueRequired spec.a: Required value',
    ]);
    expect(check({ type: 'integer', allOf: [{ minimum: 1 }, { maximum: 9 }] }, 10)).toEqual([
      'FieldValueInvalid spec: Invalid value: 10: spec in body should be less than or equal to 9',
      'FieldValueInvalid <nil>: Invalid value: "": "spec" must validate all the schemas (allOf)',
    ]);
  });

  test('the prefix of a part precedes the field and is not in the message', () => {
    const schema = schemaFromOpenApi({ type: 'object', properties: { a: { type: 'string' } } });
    expect(runInOnePiece(validate(schema)({ a: 1 }, { prefix: 'status' }))).toMatchObject([
      {
        field: 'status.a',
        message: 'Invalid value: "integer": a in body must be of type string: "integer"',
      },
    ]);
  });
});

describe('ratcheting', () => {
  const short = { type: 'string', maxLength: 1 };
  const keyed = {
    type: 'array',
    items: { type: 'object', properties: { k: { type: 'string' }, v: short } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
  };
  const cases: readonly (readonly [string, JsonObject, JsonValue, JsonValue, number])[] = [
    ['unchanged', short, 'long', 'long', 0],
    ['changed', short, 'longer', 'long', 1],
    [
      'an unchanged member',
      { type: 'object', properties: { a: short, b: short } },
      { a: 'long', b: 'x' },
      { a: 'long' },
      0,
    ],
    ['a member that is new', { type: 'object', properties: { a: short } }, { a: 'long' }, {}, 1],
    [
      'an unchanged map value',
      { type: 'object', additionalProperties: short },
      { a: 'long', b: '' },
      { a: 'long' },
      0,
    ],
    [
      'an item found by its key',
      keyed,
      [{ k: 'b' }, { k: 'a', v: 'long' }],
      [{ k: 'a', v: 'long' }],
      0,
    ],
    ['an item that is new', keyed, [{ k: 'b', v: 'long' }], [{ k: 'a', v: 'long' }], 1],
    [
      'a keyed list in another order',
      { type: 'object', properties: { l: { ...keyed, maxItems: 1 } } },
      { l: [{ k: 'b' }, { k: 'a' }] },
      { l: [{ k: 'a' }, { k: 'b' }] },
      0,
    ],
    [
      'another list in another order',
      { type: 'object', properties: { l: { type: 'array', items: short, maxItems: 1 } } },
      { l: ['b', 'a'] },
      { l: ['a', 'b'] },
      1,
    ],
    [
      'an object with a member that no schema names',
      {
        type: 'object',
        properties: {
          o: { type: 'object', required: ['r'], 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
      { o: { u: 1 } },
      { o: { u: 1 } },
      1,
    ],
    [
      'an object whose members may have any type',
      {
        type: 'object',
        properties: { o: { type: 'object', required: ['r'], additionalProperties: true } },
      },
      { o: { u: 1 } },
      { o: { u: 1 } },
      1,
    ],
    ['an item without its key', keyed, [{ v: 'long' }], [{ v: 'long' }], 1],
    ['an item whose key is null', keyed, [{ k: null, v: 'long' }], [{ k: null, v: 'long' }], 2],
    [
      'items of other lists have no pair',
      { type: 'array', items: short },
      ['long', 'x'],
      ['long'],
      1,
    ],
    [
      'a rule of the object that changed',
      { type: 'object', properties: { a: short }, maxProperties: 1 },
      { a: 'long', b: 1 },
      { a: 'long', b: 2 },
      1,
    ],
  ];
  test.each(cases)('%s', (_, props, value, old, errors) => {
    expect(check(props, value, old)).toHaveLength(errors);
  });
});

describe('formats', () => {
  const formats: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['bsonobjectid', ['5f2b6b0f8f8f8f8f8f8f8f8f'], ['x']],
    [
      'uri',
      ['http://a/b?c', '/a', 'mailto:a', 'fe80::1%en0', 'http://a<b>', '*'],
      ['a', '', 'http://a b/', 'http://%41', 'http://u p@h', 'http://a#b', 'a://%20'],
    ],
    [
      'email',
      [
        'a@b.c',
        'A <a@b>',
        'a@b (c (d\\)) e)',
        'A. B "C" <a@b>',
        '"a b"@[::1]',
        ' a@\tb',
        'g: a@b;',
        'x =?foo?q?y?= <é@b>',
        '=?utf-8?q?x?= <a@b>',
      ],
      [
        'a',
        'a@',
        '@b',
        'a@b\n',
        '""@b',
        'a@b, c@d',
        'g: a@b, c@d;',
        'g:;',
        'a@[b]',
        'a@[01.2.3.4]',
      ].concat(['"\u0001" <a@b>', '=?foo?q?x?= <a@b>', 'a@b (c', 'a..b@c', '<a@b', 'a@b. ']),
    ],
    ['hostname', ['a.example.com', 'a', '1a.com'], ['a..b', '-a', '']],
    ['ipv4', ['1.2.3.4', '01.2.3.4', '::ffff:01.2.3.4'], ['1.2.3', '1.2.3.256', '::1']],
    ['ipv6', ['::1'], ['1.2.3.4', 'fe80::1%eth0']],
    ['cidr', ['1.2.3.0/24', '::/0'], ['1.2.3.4', '1.2.3.0/33']],
    ['mac', ['01:23:45:67:89:ab', '0123.4567.89ab'], ['01:23', '01:23:45:67:89:zz']],
    ['uuid', ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'A0EEBC999C0B4EF8BB6D6BB9BD380A11'], ['x']],
    ['uuid3', ['a0eebc99-9c0b-3ef8-bb6d-6bb9bd380a11'], ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']],
    ['uuid4', ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'], ['a0eebc99-9c0b-4ef8-cb6d-6bb9bd380a11']],
    ['uuid5', ['a0eebc99-9c0b-5ef8-bb6d-6bb9bd380a11'], ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']],
    ['isbn', ['0321751043', '978-0321751041'], ['0321751042']],
    ['isbn10', ['0321751043'], ['978-0321751041']],
    ['isbn13', ['978-0321751041'], ['0321751043']],
    ['creditcard', ['4111 1111 1111 1111'], ['4111111111111112']],
    ['ssn', ['111-11-1111'], ['111111111', 'x']],
    ['hexcolor', ['#fff', 'FFFFFF'], ['#ffff']],
    ['rgbcolor', ['rgb(1, 2,255)'], ['rgb(1,2,256)', '#fff']],
    ['byte', ['YQ=='], ['', 'YQ=', '!!!!']],
    ['password', [''], []],
    ['date', ['2024-02-29'], ['2023-02-29', '2024-1-1']],
    [
      'duration',
      ['1h', '22 ns', '3 days', 'in 1 seconds, 2 x', '09223372036854775807 ns'],
      ['x', '', '1 sx', '1 se', '1\u00a0d', '9223372036854775808ns', '9223372036854775808 x 1s'],
    ],
    [
      'date-time',
      ['2014-12-15T19:30:20.000Z', '2014-12-15t19:30:20+01:00'],
      ['2014-12-15', '2014-12-15T24:00:00Z'],
    ],
    ['unheard-of', ['x'], []],
  ];
  test.each(formats)('%s', (format, good, bad) => {
    const props = { type: 'string', format };
    for (const value of good) expect(check(props, value), value).toEqual([]);
    for (const value of bad) expect(check(props, value), value).toHaveLength(1);
  });
});

/** The errors of a value in the member `spec`, and the number of steps that find them. */
function stepsOf(props: JsonObject, value: JsonValue, old?: JsonValue) {
  const schema = schemaFromOpenApi({ type: 'object', properties: { spec: props } });
  const options = old === undefined ? {} : { old: { spec: old } };
  const work = validate(schema)({ spec: value }, options);
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { errors: step.value.map(({ field }) => field), steps };
  }
}

test('TRUST-2: a large value is validated in steps', () => {
  const item: JsonObject = {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string', maxLength: 5 }, port: { type: 'integer', maximum: 9 } },
  };
  const items = Array.from({ length: 3_000 }, (_, at) => ({ name: `n${at % 7}`, port: at % 10 }));
  const list: JsonObject = { type: 'array', maxItems: 2_000, items: item };
  expect(stepsOf(list, items).errors).toEqual(['spec']);
  expect(stepsOf(list, items).steps).toBeGreaterThan(15);
  const wrong = items.map((entry, at) => (at % 1_000 === 999 ? { name: 'too long' } : entry));
  const errors = ['spec[999].name', 'spec[1999].name', 'spec[2999].name', 'spec'];
  expect(stepsOf(list, wrong).errors).toEqual(errors);
  const map: JsonObject = { type: 'object', additionalProperties: item };
  const members = Object.fromEntries(wrong.map((entry, at) => [`m${at}`, entry]));
  expect(stepsOf(map, members).errors).toEqual([
    'spec.m999.name',
    'spec.m1999.name',
    'spec.m2999.name',
  ]);
  expect(stepsOf(map, members).steps).toBeGreaterThan(15);
  // An update may keep existing errors.
  const changed = { ...members, m1999: { name: 'still too long' } };
  expect(stepsOf(map, changed, members).errors).toEqual(['spec.m1999.name']);
});

test('TRUST-2: matches of long texts pause, and a text may be too long for the budget', () => {
  const props: JsonObject = { type: 'array', items: { type: 'string', pattern: '^[a-z]*$' } };
  const texts = Array.from({ length: 20 }, () => 'a'.repeat(100_000));
  expect(stepsOf(props, texts)).toMatchObject({ errors: [] });
  expect(stepsOf(props, texts).steps).toBeGreaterThan(10);
  const single = stepsOf(props, ['a'.repeat(1_000_000)]);
  expect(single.errors).toEqual([]);
  expect(single.steps).toBeGreaterThan(50);
  expect(stepsOf(props, [`${'a'.repeat(1_000_000)}!`]).errors).toHaveLength(1);
  expect(() => stepsOf(props, Array(6).fill('a'.repeat(1_000_000)))).not.toThrow();
  const wide: JsonObject = { type: 'string', pattern: '^[a-z]{1,100}([a-z]|-)*$' };
  expect(() => stepsOf(wide, 'a'.repeat(1_000_000))).toThrow(WorkExceeded);
});

test('TRUST-2: a large pattern is compiled in steps before its first match', () => {
  const props: JsonObject = { type: 'string', pattern: '^(([a-y]|z){900}|a)$' };
  expect(stepsOf(props, 'a')).toEqual({ errors: [], steps: 4 });
  expect(stepsOf(props, 'b')).toEqual({ errors: ['spec'], steps: 4 });
  expect(stepsOf({ ...props, pattern: '^([a-y]|z)$' }, 'a')).toEqual({ errors: [], steps: 1 });
});
