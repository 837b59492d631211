import { describe, expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  causesOf,
  type DefinitionResponse,
  definitionOf,
  definitions,
  establish,
} from './custom-kinds.ts';

const server = await withServer();

let count = 0;

/** Defines a kind whose `spec` has this schema; returns a function that sends its objects. */
async function kindWith(spec: object) {
  count += 1;
  const group = `cel${count}.example.com`;
  const schema = { type: 'object', properties: { spec } };
  await establish(server, { group, plural: 'rules', kind: 'Rule', schema });
  const path = `/apis/${group}/v1/namespaces/${await freshNamespace(server)}/rules`;
  const body = (value: unknown, more: object = {}): object => ({
    apiVersion: `${group}/v1`,
    kind: 'Rule',
    metadata: { name: 'one', ...more },
    spec: value,
  });
  return {
    create: (value: unknown, more?: object) => server.post(path, body(value, more)),
    /** Creates an object whose `spec` JavaScript's numbers cannot represent. */
    createText: (spec: string) =>
      server.post(path, JSON.stringify(body('spec')).replace(/"spec"(?!:)/, spec)),
    async update(value: unknown) {
      const { body: now } = await server.get(`${path}/one`);
      const { resourceVersion } = now.metadata;
      return server.put(`${path}/one`, body(value, { resourceVersion }));
    },
  };
}

const integer = { type: 'integer' };
const rules = (...list: object[]) => ({ 'x-kubernetes-validations': list });
const object = (properties: object, ...list: object[]) => ({
  type: 'object',
  properties,
  ...rules(...list),
});

test('CRD-3: rules are not checked if the metadata is incomplete or too long', async () => {
  const { create } = await kindWith(object({ a: integer }, { rule: 'self.a > 1' }));
  const unchecked =
    '<nil>: Invalid value: "null": some validation rules were not checked because the object was ' +
    'invalid; correct the existing errors to complete validation';
  expect(causesOf(await create({ a: 1 }, { name: '' }))).toEqual([
    'metadata.name: Required value: name or generateName is required',
    unchecked,
  ]);
  const annotations = { a: 'x'.repeat(2 ** 18) };
  expect(causesOf(await create({ a: 1 }, { annotations }))).toEqual([
    'metadata.annotations: Too long: may not be more than 262144 bytes',
    unchecked,
  ]);
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: '' }];
  const failing = 'spec: Invalid value: "object": failed rule: self.a > 1';
  expect(causesOf(await create({ a: 1 }, { ownerReferences }))).toEqual([
    'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
    failing,
  ]);
  expect(causesOf(await create({ a: 1 }))).toEqual([failing]);
});

describe('library', () => {
  test.each([
    { rule: "self.list.sum() == duration('0s')", name: 'an empty sum of durations is a duration' },
    {
      rule: "duration('1h2m3.456s').getMilliseconds() == 3723456",
      name: 'milliseconds of a duration are all of it',
    },
    {
      rule: "duration('-1500ms').getMilliseconds() == -1500",
      name: 'milliseconds of a negative duration have its sign',
    },
    {
      rule: "url(self.url).getQuery() == {'a': ['1'], 'b': ['2', '3 4']}",
      name: 'the query of a URL equals a map of lists',
    },
    {
      rule: "isQuantity('Ti') && !isQuantity('Ei') && !isQuantity('e-10')",
      name: 'an extreme suffix alone is no quantity',
    },
  ])('CRD-3: $name', async ({ rule }) => {
    const list = { type: 'array', items: { type: 'string', format: 'duration' }, maxItems: 3 };
    const kind = await kindWith(object({ list, url: { type: 'string', maxLength: 99 } }, { rule }));
    const made = await kind.create({ list: [], url: 'https://example.com/?a=1&b=2&b=3+4' });
    expect(made.status, made.text).toBe(201);
  });
});

test('CRD-3: only a set on the left equals a list in another order', async () => {
  const set = {
    type: 'array',
    items: { type: 'string', maxLength: 3 },
    maxItems: 3,
    'x-kubernetes-list-type': 'set',
  };
  const other = "['b', 'a']";
  const failing = [
    `${other} == self.set`,
    `${other} in [self.set]`,
    `self.set != ${other}`,
    "self.set == ['a', 'c']",
  ];
  const holding = [
    `self.set == ${other}`,
    `self.set in [${other}]`,
    `${other} != self.set`,
    // Only the items of the other list are looked up.
    "self.set == ['a', 'a']",
  ];
  const kind = await kindWith(
    object({ set }, ...[...failing, ...holding].map((rule) => ({ rule }))),
  );
  expect(causesOf(await kind.create({ set: ['a', 'b'] }))).toEqual(
    failing.map((rule) => `spec: Invalid value: "object": failed rule: ${rule}`),
  );
});

describe('verdicts', () => {
  test('CRD-3: a refused object names the rule that it breaks', async () => {
    const rule = 'self.min <= self.max';
    const kind = await kindWith(object({ min: integer, max: integer }, { rule }));
    const refused = await kind.create({ min: 2, max: 1 });
    expect(refused.status).toBe(422);
    expect(refused.body.reason).toBe('Invalid');
    expect(refused.body.details.causes).toEqual([
      {
        reason: 'FieldValueInvalid',
        field: 'spec',
        message: `Invalid value: "object": failed rule: ${rule}`,
      },
    ]);
    expect((await kind.create({ min: 1, max: 1 })).status).toBe(201);
    expect((await kind.update({ min: 3, max: 1 })).status).toBe(422);
  });

  test('CRD-3: message, messageExpression, reason, and fieldPath describe the error', async () => {
    const kind = await kindWith(
      object(
        { a: integer, b: integer },
        { rule: 'self.a > 0', message: 'a must be positive', reason: 'FieldValueForbidden' },
        {
          rule: 'self.a > 1',
          messageExpression: "'a is ' + (self.a > 0 ? '1' : '0')",
          fieldPath: '.a',
        },
        { rule: 'self.b > 0', messageExpression: 'string(1 / self.b)', message: 'b is not' },
        { rule: 'self.b > 1', reason: 'FieldValueRequired', fieldPath: '.b' },
        { rule: 'self.b > 2', reason: 'FieldValueDuplicate', fieldPath: '.b' },
      ),
    );
    expect(causesOf(await kind.create({ a: 0, b: 0 }))).toEqual([
      'spec: Forbidden: a must be positive',
      'spec.a: Invalid value: "object": a is 0',
      'spec: Invalid value: "object": b is not',
      'spec.b: Required value: failed rule: self.b > 1',
      'spec.b: Duplicate value: "object"',
    ]);
  });

  test('CRD-3: a messageExpression sees the old value if a rule of its schema uses it', async () => {
    const text = { type: 'string', maxLength: 20 };
    const messageExpression = "'was ' + oldSelf";
    const kind = await kindWith(
      object({
        alone: { ...text, ...rules({ rule: "self != 'x'", messageExpression }) },
        beside: {
          ...text,
          ...rules({ rule: "self != 'x'", messageExpression }, { rule: "oldSelf != 'y'" }),
        },
        optional: {
          ...text,
          ...rules({
            rule: "self != 'x' || !oldSelf.hasValue()",
            optionalOldSelf: true,
            messageExpression: "oldSelf.hasValue() ? 'had a value' : ''",
          }),
        },
      }),
    );
    expect(causesOf(await kind.create({ alone: 'x', beside: 'x' }))).toEqual([
      `spec.alone: Invalid value: "string": failed rule: self != 'x'`,
      `spec.beside: Invalid value: "string": failed rule: self != 'x'`,
    ]);
    await kind.create({ alone: 'a', beside: 'a', optional: 'a' });
    expect(causesOf(await kind.update({ alone: 'x', beside: 'x', optional: 'x' }))).toEqual([
      `spec.alone: Invalid value: "string": failed rule: self != 'x'`,
      'spec.beside: Invalid value: "string": was a',
      `spec.optional: Invalid value: "string": failed rule: self != 'x' || !oldSelf.hasValue()`,
    ]);
  });

  test('CRD-3: a message of more than 5,120 bytes is replaced', async () => {
    const text = { type: 'string', maxLength: 20 };
    const messageExpression = `'${'é'.repeat(3000)}'`;
    const kind = await kindWith(
      object({ a: { ...text, ...rules({ rule: "self != 'x'", messageExpression }) } }),
    );
    expect(causesOf(await kind.create({ a: 'x' }))).toEqual([
      `spec.a: Invalid value: "string": failed rule: self != 'x'`,
    ]);
  });

  test('CRD-3: a fieldPath may begin with the key of a map', async () => {
    const map = { type: 'object', maxProperties: 5, additionalProperties: integer };
    const rule = { rule: "self['x'] > 0", fieldPath: "['x']" };
    const kind = await kindWith(object({ map: { ...map, ...rules(rule) } }));
    expect(causesOf(await kind.create({ map: { x: 0 } }))).toEqual([
      `spec.map.[x]: Invalid value: "object": failed rule: self['x'] > 0`,
    ]);
  });

  test('CRD-3: rules apply at any depth, to the values that exist', async () => {
    const item = {
      type: 'object',
      properties: { n: { ...integer, ...rules({ rule: 'self > 0' }) } },
    };
    const kind = await kindWith({
      type: 'object',
      properties: {
        list: { type: 'array', items: item },
        map: { type: 'object', additionalProperties: item },
      },
    });
    const refused = await kind.create({
      list: [{ n: 1 }, {}, { n: 0 }],
      map: { 'a.b': { n: -1 } },
    });
    expect([...causesOf(refused)].sort()).toEqual([
      'spec.list[2].n: Invalid value: "integer": failed rule: self > 0',
      'spec.map[a.b].n: Invalid value: "integer": failed rule: self > 0',
    ]);
  });

  test('CRD-3: an evaluation error is reported with its reason', async () => {
    const any = { 'x-kubernetes-int-or-string': true };
    const kind = await kindWith(
      object({ n: integer, any }, { rule: '1 / self.n > 0' }, { rule: 'self.any < 5' }),
    );
    const why = 'call arguments did not match a supported operator, function or macro signature';
    expect(causesOf(await kind.create({ n: 0, any: 'x' }))).toEqual([
      'spec: Invalid value: "object": division by zero evaluating rule: 1 / self.n > 0',
      `spec: Invalid value: "object": 'no such overload': ${why} for rule: self.any < 5`,
    ]);
  });

  test('CRD-3: a number is not a duration, regardless of its schema', async () => {
    const any = { 'x-kubernetes-int-or-string': true };
    const rule = "duration(self.any) > duration('1s')";
    const kind = await kindWith(object({ any }, { rule }));
    expect((await kind.create({ any: '2s' })).status).toBe(201);
    expect(causesOf(await kind.update({ any: 2_000_000_000 }))).toEqual([
      'spec: Invalid value: "object": type conversion error from ' +
        `'int' to 'google.protobuf.Duration' evaluating rule: ${rule}`,
    ]);
  });

  test('CRD-3: a duration in a schema may use the notation of Scala', async () => {
    const ttl = { type: 'string', format: 'duration' };
    const kind = await kindWith(object({ ttl }, { rule: "self.ttl >= duration('1h')" }));
    expect((await kind.create({ ttl: '7d' })).status).toBe(201);
    expect((await kind.update({ ttl: '1 hour and 1 minute' })).status).toBe(200);
    expect(causesOf(await kind.update({ ttl: '59 minutes' }))).toEqual([
      `spec: Invalid value: "object": failed rule: self.ttl >= duration('1h')`,
    ]);
  });

  test('CRD-3: a number is a double, regardless of its size', async () => {
    const kind = await kindWith(object({ d: { type: 'number' } }, { rule: 'self.d * 2.0 > 0.0' }));
    const made = await kind.createText('{"d": 9007199254740993}');
    expect(made.status, made.text).toBe(201);
  });

  test('CRD-3: rules read bytes as base64url', async () => {
    const rule = "self.b == b'abc'";
    const bytes = { type: 'string', format: 'byte' };
    const list = { type: 'array', items: bytes };
    const kind = await kindWith(
      object({ b: bytes, list: { ...list, ...rules({ rule: 'self.size() == 1' }) } }, { rule }),
    );
    expect((await kind.create({ b: 'YWJj', list: ['ab+/'] })).status).toBe(201);
    expect(causesOf(await kind.update({ b: 'ab+/' }))).toEqual([
      'spec: Invalid value: "object": Invalid byte formatted string ab+/: ' +
        `illegal base64 data at input byte 2 evaluating rule: ${rule}`,
    ]);
  });

  test('CRD-3: an item that rules cannot read fails only where it is read', async () => {
    const bytes = { type: 'string', format: 'byte' };
    const list = { type: 'array', maxItems: 9, items: bytes };
    const reading = [
      'self.list.all(b, b.size() > 0)',
      'self.list.filter(b, true).size() == 2',
      "self.list[0] == b'abc'",
      "b'd' in self.list",
      "self.list == [b'abc', b'abc']",
    ];
    const others = ['self.list.size() == 2', "self.list[1] == b'abc' && b'abc' in self.list"];
    const kind = await kindWith(
      object({ list }, ...[...reading, ...others].map((rule) => ({ rule }))),
    );
    expect(causesOf(await kind.create({ list: ['ab+/', 'YWJj'] }))).toEqual(
      reading.map(
        (rule) =>
          'spec: Invalid value: "object": Invalid byte formatted string ab+/: ' +
          `illegal base64 data at input byte 2 evaluating rule: ${rule}`,
      ),
    );
  });

  test('CRD-3: rules do not see the members of an object without properties', async () => {
    const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const rule = '!has(dyn(self.open).a) && !dyn(self.open).?a.hasValue()';
    const kind = await kindWith(object({ open }, { rule }));
    const made = await kind.create({ open: { a: 1 } });
    expect(made.status, made.text).toBe(201);
  });

  test('CRD-3: a logical operator reports the first problem of its operands', async () => {
    const rules = ["dyn(self.n) || {'a': 1}['b'] == 1", "{'a': 1}['b'] == 1 && dyn(self.n)"];
    const kind = await kindWith(object({ n: integer }, ...rules.map((rule) => ({ rule }))));
    const why = 'call arguments did not match a supported operator, function or macro signature';
    expect(causesOf(await kind.create({ n: 1 }))).toEqual([
      `spec: Invalid value: "object": 'no such overload': ${why} for rule: ${rules[0]}`,
      `spec: Invalid value: "object": no such key: b evaluating rule: ${rules[1]}`,
    ]);
  });

  test.each([
    ['self.list.filter(x, [1][x] == 1).size() == 1', 7],
    ['self.list.map(x, [1][x] == 1, x).size() == 1', 7],
    ['self.list.exists_one(x, [1][x] == 1)', 7],
    ['self.list.map(x, [1][x]).size() == 1', 5],
    ['self.list.map(x, x != 3, [1][x]).size() == 1', 5],
    ['self.list.all(x, [1][x] == 1)', 5],
  ])(
    'CRD-3: of several failures, %s reports the one that kube-apiserver reports',
    async (rule, at) => {
      const list = { type: 'array', items: integer, maxItems: 5 };
      const kind = await kindWith(object({ list }, { rule }));
      expect(causesOf(await kind.create({ list: [0, 5, 7] }))).toEqual([
        `spec: Invalid value: "object": index out of bounds: ${at} evaluating rule: ${rule}`,
      ]);
    },
  );

  test('CRD-3: empty values of the schema are no zero values', async () => {
    const list = { type: 'array', items: integer, maxItems: 5 };
    const map = { type: 'object', additionalProperties: integer };
    const some = ['self.list', 'self.map', 'self.object', 'self.list + []', '[] + self.list'];
    const none = ['[]', '{}', 'self.list.filter(x, true)'];
    const rule = (value: string, is: string) => ({
      rule: `${is}optional.ofNonZeroValue(${value}).hasValue()`,
    });
    const rulesOfValues = [
      ...some.map((value) => rule(value, '')),
      ...none.map((value) => rule(value, '!')),
    ];
    const properties = { list, map, object: { type: 'object', properties: { a: integer } } };
    const kind = await kindWith(object(properties, ...rulesOfValues));
    const made = await kind.create({ list: [], map: {}, object: {} });
    expect(made.status, made.text).toBe(201);
  });

  test.each([
    ['HTTPS://a/', 'https://a/', true],
    ['https://a/#', 'https://a/', true],
    ['https://é/', 'https://%C3%A9/', true],
    ['https://a/b c', 'https://a/b%20c', true],
    ['https://a/#x y', 'https://a/#x%20y', true],
    ['https://u:p%40@a/', 'https://u:p@@a/', true],
    ['https://', 'https:', true],
    ['https://A/', 'https://a/', false],
    ['https://a?', 'https://a', false],
    ['https://a/%41', 'https://a/A', false],
  ])('CRD-3: whether the URLs %s and %s are equal: %s', async (one, other, areEqual) => {
    const rule = `(url('${one}') == url('${other}')) == ${areEqual}`;
    const kind = await kindWith(object({ n: integer }, { rule }));
    const made = await kind.create({ n: 1 });
    expect(made.status, made.text).toBe(201);
  });

  test("CRD-3: protobuf's well-known messages have the values that they represent", async () => {
    const kind = await kindWith(
      object(
        { n: integer },
        { rule: 'google.protobuf.Int64Value{value: self.n} < 3' },
        { rule: 'google.protobuf.Int32Value{value: self.n} > 0', message: 'above zero' },
        { rule: "google.protobuf.Struct{fields: {'a': self.n}}.a != 2.0" },
      ),
    );
    expect((await kind.create({ n: 1 })).status).toBe(201);
    expect(causesOf(await kind.update({ n: 2 }))).toEqual([
      'spec: Invalid value: "object": failed rule: ' +
        "google.protobuf.Struct{fields: {'a': self.n}}.a != 2.0",
    ]);
    expect(causesOf(await kind.update({ n: 2 ** 31 }))).toEqual([
      'spec: Invalid value: "object": failed rule: google.protobuf.Int64Value{value: self.n} < 3',
      'spec: Invalid value: "object": field type conversion error for ' +
        'google.protobuf.Int32Value.value value type: integer overflow evaluating rule: above zero',
    ]);
  });

  test('CRD-3: an evaluation stops at its cost limit', async () => {
    const list = `[${Array.from({ length: 26 }, (_, index) => index).join(', ')}]`;
    const inner = `${list}.all(c, ${list}.all(d, d >= self.n))`;
    const rule = `${list}.all(a, ${list}.all(b, ${inner}))`;
    const kind = await kindWith(object({ n: integer }, { rule }));
    expect(causesOf(await kind.create({ n: 0 }))[0]).toContain(
      "'operation cancelled: actual cost limit exceeded'",
    );
  });

  test('CRD-3: property names are escaped to identifiers, and formats have types', async () => {
    const date = { type: 'string', format: 'date-time' };
    const kind = await kindWith(
      object(
        { 'a-b': integer, in: integer, at: date },
        { rule: 'self.a__dash__b == self.__in__' },
        { rule: "self.at > timestamp('2020-01-01T00:00:00Z')" },
      ),
    );
    expect((await kind.create({ 'a-b': 1, in: 2, at: '2019-01-01T00:00:00Z' })).status).toBe(422);
    expect((await kind.create({ 'a-b': 1, in: 1, at: '2021-01-01T00:00:00Z' })).status).toBe(201);
  });
});

describe('changes', () => {
  test('CRD-3: a rule with oldSelf applies only to updates', async () => {
    const kind = await kindWith(
      object({ n: { ...integer, ...rules({ rule: 'self >= oldSelf', message: 'only up' }) } }),
    );
    expect((await kind.create({ n: 5 })).status).toBe(201);
    expect(causesOf(await kind.update({ n: 4 }))).toEqual([
      'spec.n: Invalid value: "integer": only up',
    ]);
    expect((await kind.update({ n: 6 })).status).toBe(200);
  });

  test('CRD-3: with optionalOldSelf a rule also applies to creates', async () => {
    const rule = 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 0';
    const kind = await kindWith(
      object({ n: { ...integer, ...rules({ rule, optionalOldSelf: true }) } }),
    );
    expect((await kind.create({ n: 1 })).status).toBe(422);
    expect((await kind.create({ n: 0 })).status).toBe(201);
    expect((await kind.update({ n: 3 })).status).toBe(200);
    expect((await kind.update({ n: 2 })).status).toBe(422);
  });

  test('CRD-3: items of a map list are correlated by key', async () => {
    const items = {
      type: 'object',
      required: ['k'],
      properties: {
        k: { type: 'string' },
        n: { ...integer, ...rules({ rule: 'self >= oldSelf' }) },
      },
    };
    const list = {
      type: 'array',
      items,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    };
    const kind = await kindWith(object({ list }));
    const [a, b] = [
      { k: 'a', n: 5 },
      { k: 'b', n: 1 },
    ];
    expect((await kind.create({ list: [a, b] })).status).toBe(201);
    expect((await kind.update({ list: [b, a] })).status).toBe(200);
    expect((await kind.update({ list: [b, { k: 'a', n: 4 }] })).status).toBe(422);
  });

  test('CRD-3: an unchanged violation passes', async () => {
    count += 1;
    const group = `ratchet${count}.example.com`;
    const part = (...list: object[]) => object({ n: integer }, ...list);
    const schemaOf = (...list: object[]) => ({
      type: 'object',
      properties: { spec: object({ part: part(...list), other: integer }) },
    });
    await establish(server, { group, plural: 'rules', kind: 'Rule', schema: schemaOf() });
    const path = `/apis/${group}/v1/namespaces/${await freshNamespace(server)}/rules`;
    const body = { apiVersion: `${group}/v1`, kind: 'Rule', metadata: { name: 'one' } };
    await server.post(path, { ...body, spec: { part: { n: 0 } } });
    const { body: crd } = await server.get<DefinitionResponse>(`${definitions}/rules.${group}`);
    const openAPIV3Schema = schemaOf({ rule: 'self.n > 0' });
    Object.assign(crd.spec.versions[0].schema, { openAPIV3Schema });
    expect((await server.put(`${definitions}/rules.${group}`, crd)).status).toBe(200);
    const change = (spec: object) => server.patch(`${path}/one`, { spec }, 'merge');
    expect((await change({ other: 1 })).status).toBe(200);
    expect((await change({ part: { n: -1 } })).status).toBe(422);
  });
});

describe('definitions', () => {
  const root = 'spec.validation.openAPIV3Schema.properties[spec]';
  const refusal = async (spec: object) => {
    count += 1;
    const group = `bad${count}.example.com`;
    const schema = { type: 'object', properties: { spec } };
    const answer = await server.post(
      definitions,
      definitionOf({ group, plural: 'rules', kind: 'Rule', schema }),
    );
    expect(answer.status).toBe(422);
    return causesOf(answer).join('\n');
  };

  test('CRD-3: a rule that does not compile is refused with its path', async () => {
    const found = await refusal(object({ n: integer }, { rule: 'self.m > 0' }));
    expect(found).toContain(`${root}.x-kubernetes-validations[0].rule: Invalid value: `);
    expect(found).toContain(
      "compilation failed: ERROR: <input>:1:5: undefined field 'm'\n | self.m > 0\n | ....^",
    );
  });

  test.each([
    ['self.n', 'cel expression must evaluate to a bool'],
    ['dyn(true)', 'cel expression must evaluate to a bool'],
    ['self.n in [1, 2.0]', "1:15: expected type 'int' but found 'double'"],
    ["'%d'.format(['a']) == ''", 'decimal clause can only be used on integers, was given string'],
    ['timestamp(253402300800) > timestamp(0)', '1:11: invalid timestamp argument'],
    [
      "google.protobuf.Int64Value{value: 'a'} == self.n",
      "1:33: expected type of field 'value' is 'int' but provided type is 'string'",
    ],
    ['google.protobuf.Int64Value{n: 1} == self.n', "1:29: undefined field 'n'"],
    ["self.n == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"],
    ['[].map(v, v + v) == [self.n]', "'_==_' applied to '(list(bytes), list(int))'"],
    ['[].all(v, v / v == self.n)', "'_==_' applied to '(double, int)'"],
    ["[duration('1s'), null] == self.n", "'_==_' applied to '(list(null), int)'"],
    ["[{'b': dyn(1)}, {dyn('a'): 1}] == self.n", "applied to '(list(map(dyn, int)), int)'"],
    ["[].all(v, v.indexOf('a') == v)", "'_==_' applied to '(int, list(string))'"],
    [
      "self.n > int('x')",
      "program instantiation failed: type conversion error from 'string' to 'int'",
    ],
  ])('CRD-3: %s is refused: %s', async (rule, why) => {
    expect(await refusal(object({ n: integer }, { rule }))).toContain(why);
  });

  test('CRD-3: a messageExpression must compile to a string', async () => {
    const rule = 'self.n > 0';
    expect(await refusal(object({ n: integer }, { rule, messageExpression: 'self.m' }))).toContain(
      'messageExpression compilation failed: ',
    );
    expect(await refusal(object({ n: integer }, { rule, messageExpression: 'self.n' }))).toContain(
      'messageExpression must evaluate to a string',
    );
  });

  test('CRD-3: a blank rule is refused as such and does not apply to defaults', async () => {
    const n = { ...integer, ...rules({ rule: ' ' }) };
    const found = await refusal({ ...object({ n }), default: { n: 1 } });
    expect(found).toBe(
      `${root}.properties[n].x-kubernetes-validations[0].rule: Required value: rule is not specified`,
    );
  });

  test('CRD-3: a rule with an invalid fieldPath refuses a default at its own place', async () => {
    const invalid = object({ n: integer }, { rule: 'self.n > 1', fieldPath: '.m' });
    const found = await refusal(object({ o: { ...invalid, default: { n: 1 } } }));
    const at = `${root}.properties[o]`;
    expect(found).toContain(`${at}.default: Invalid value: "object": failed rule: self.n > 1`);
    expect(found).toContain(`${at}.x-kubernetes-validations[0].fieldPath: Invalid value: ".m"`);
  });

  test.each([
    [object({ n: integer }, { rule: 'self.m' }), 'items.x-kubernetes-map-type', 'must be atomic'],
    [
      { ...integer, nullable: true, ...rules({ rule: 'self.m' }) },
      'items.nullable',
      'cannot be nullable when x-kubernetes-list-type is set',
    ],
  ])(
    'CRD-3: set items that break the set’s restrictions are refused with their rules: %j',
    async (...about) => {
      const [items, field, why] = about;
      const list = { type: 'array', 'x-kubernetes-list-type': 'set', items };
      const found = await refusal(object({ list }, { rule: 'self.absent' }));
      expect(found).toContain(`${root}.properties[list].${field}: `);
      expect(found).toContain(why);
      expect(found).toContain(`${root}.properties[list].items.x-kubernetes-validations[0].rule: `);
      expect(found, 'rules around the list wait for a valid list').not.toContain('absent');
    },
  );

  test('CRD-3: oldSelf is refused where values cannot be correlated', async () => {
    const items = { ...integer, ...rules({ rule: 'self >= oldSelf' }) };
    const found = await refusal(object({ list: { type: 'array', items } }));
    const within = `within ${root}.properties[list]`;
    expect(found).toContain(
      `oldSelf cannot be used on the uncorrelatable portion of the schema ${within}`,
    );
    expect(await refusal(object({}, { rule: 'true', optionalOldSelf: true }))).toContain(
      'may not be set if oldSelf is not used in rule',
    );
  });

  test('CRD-3: rules of items need a list, where the type is that of a schema above', async () => {
    const items = { type: 'string', ...rules({ rule: 'self == "a"' }) };
    const odd = { type: 'object', items };
    const places = [
      [object({ odd }, { rule: 'has(self.odd)' }), 'properties[odd]'],
      [object({ of: object({ odd }) }, { rule: 'has(self.of)' }), 'properties[of].properties[odd]'],
    ] as const;
    for (const [schema, place] of places) {
      expect(await refusal(schema)).toBe(
        `${root}.${place}.items.x-kubernetes-validations: Internal error: ` +
          'failed to convert to declType for CEL validation rules',
      );
    }
    const list = { type: 'array', items, maxItems: 3 };
    const named = { rule: 'has(self.list)' };
    for (const schema of [object({ odd }), object({ list }, named)]) await kindWith(schema);
  });

  const text = { type: 'string' };
  const pairs = 'self.list.all(a, self.list.all(b, a != b))';
  const advice =
    '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, ' +
    'maps, and strings are declared)';

  test('CRD-3: a rule with an unbounded cost is refused until its inputs are bounded', async () => {
    const spec = object({ list: { type: 'array', items: text } }, { rule: pairs });
    expect(await refusal(spec)).toBe(
      `${root}.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget ` +
        `by factor of more than 100x ${advice}\n` +
        `${root}.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost ` +
        'total exceeding cost limit for entire OpenAPIv3 schema\n' +
        'spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost ' +
        `total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${advice}`,
    );
    const bounded = { type: 'array', maxItems: 20, items: { ...text, maxLength: 50 } };
    await kindWith(object({ list: bounded }, { rule: pairs }));
  });

  test('CRD-3: the cost of an item rule is multiplied by maxItems', async () => {
    const rule = "self.contains('x')";
    const item = (maxLength: number) => ({ ...text, maxLength, ...rules({ rule }) });
    const list = (maxItems: number, maxLength: number) =>
      object({ list: { type: 'array', maxItems, items: item(maxLength) } });
    // 1 for self and 1,000 characters of four bytes at a tenth each, 40,000 times.
    const found = await refusal(list(40_000, 1000));
    const path = `${root}.properties[list].items.x-kubernetes-validations[0].rule`;
    expect(found).toContain(
      `${path}: Forbidden: estimated rule cost exceeds budget by factor of 1.6x ${advice}`,
    );
    await kindWith(list(20_000, 1000));
  });

  test('CRD-3: the costs of all rules have a limit in total', async () => {
    const rule = "self.contains('x')";
    const part = { type: 'array', maxItems: 20_000, items: { ...text, maxLength: 1000 } };
    const field = { ...part, items: { ...part.items, ...rules({ rule }) } };
    const fields = Array.from({ length: 13 }, (_, at) => [`f${at}`, field]);
    const found = (await refusal(object(Object.fromEntries(fields)))).split('\n');
    expect(found).toHaveLength(5);
    expect(found[4]).toContain(
      'total for entire OpenAPIv3 schema exceeds budget by factor of 1.04',
    );
  });

  test('CRD-3: an unchanged schema may keep a rule that is too expensive now', async () => {
    count += 1;
    const group = `kept${count}.example.com`;
    const cheap = object({ list: { type: 'array', maxItems: 5, items: integer } }, { rule: pairs });
    const schema = { type: 'object', properties: { spec: cheap } };
    await establish(server, { group, plural: 'rules', kind: 'Rule', schema });
    const path = `${definitions}/rules.${group}`;
    const { body } = await server.get<DefinitionResponse>(path);
    const relabelled = { ...body, metadata: { ...body.metadata, labels: { a: 'b' } } };
    expect((await server.put(path, relabelled)).status).toBe(200);
    const unbounded = { metadata: {}, spec: { versions: structuredClone(body.spec.versions) } };
    const { spec } = unbounded.spec.versions[0].schema.openAPIV3Schema.properties!;
    delete spec!.properties!['list']!.maxItems;
    const refused = await server.patch(path, unbounded, 'merge');
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('estimated rule cost exceeds budget');
  });
});
