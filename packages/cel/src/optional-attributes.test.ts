import { schemaFromOpenApi } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { compile } from './compile.ts';
import { jsonToValue } from './json-values.ts';
import { typeOfSchema } from './types/schema-types.ts';
import { standardFunctions } from './types/standard-functions.ts';

/** An object of these members, in which all of them are declared. */
const schema = schemaFromOpenApi({
  type: 'object',
  properties: {
    o: {
      type: 'object',
      properties: {
        'x-y': { type: 'integer' },
        if: { type: 'boolean' },
        z: { type: 'object', properties: { q: { type: 'string', format: 'date-time' } } },
      },
    },
    set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
  },
});
const self = jsonToValue(
  { o: { 'x-y': 1, if: true, z: { q: '2020-01-01T00:00:00Z' } }, set: ['x', 'y'] },
  schema,
);
const type = typeOfSchema(schema, 'selfType');

/** The outcome of an expression and its cost, which are the same in steps. */
function outcomeOf(source: string) {
  if (type === undefined) throw new Error('the schema has no type');
  const variables = new Map([['self', type]]);
  const program = compile(source, { functions: standardFunctions(), variables }).program();
  const values = new Map([['self', self]]);
  const atOnce = program.measure(values, 1_000_000);
  const work = program.steps(values, 1_000_000);
  let step = work.next();
  while (step.done !== true) step = work.next();
  const inSteps = step.value;
  expect(inSteps.error?.message).toBe(atOnce.error?.message);
  expect(inSteps.cost).toBe(atOnce.cost);
  return atOnce;
}

describe('an attribute whose value is an optional has the content that Go gives it', () => {
  test.each([
    [18, 'dyn(optional.of(1).optMap(v, optional.of(v).optMap(w, w + v)).value()) == 2'],
    [11, 'dyn(optional.of(optional.none()).optMap(v, v).value()) == null'],
    [11, 'optional.of(optional.none()).optMap(v, v) != optional.of(optional.none())'],
    [20, "[optional.of(int)].exists(v, dyn(v.value()) == 'int')"],
    [6, '(true ? optional.of(optional.of(1)) : optional.none()) == dyn(optional.of(1))'],
    [8, "optional.of('1').optMap(q, quantity(q)).or(optional.none()).hasValue()"],
    [11, "optional.of('1').optMap(q, quantity(q)).optMap(r, 1).value() == 1"],
    [9, "optional.of('1').optMap(q, quantity(q).isInteger()).value()"],
  ])('at a cost of %i: %s', (cost, source) => {
    expect(outcomeOf(source)).toMatchObject({ value: true });
    // A literal costs nothing, and a variable 1.
    expect(outcomeOf(source).cost).toBe(source.startsWith('(true') ? cost - 1 : cost);
  });

  test.each([
    [7, 'type(self.?o.z.q.value()) == google.protobuf.Timestamp'],
    [13, 'type(self.?o.optMap(v, v.z.q).value()) == google.protobuf.Timestamp'],
    [13, 'type(self.?o.optMap(v, v).z.q.value()) == string'],
    [9, 'type(optional.of(self.o).z.q.value()) == string'],
    [23, '[self.?o].exists(v, type(v.z.q.value()) == string)'],
    [20, '![self.?o].exists(v, v.x__dash__y.hasValue())'],
    [11, 'self.?set.optMap(v, v) == self.?set'],
    [12, "dyn(self.o)['x-y'] == 1 && dyn(self.o).x__dash__y == 1"],
  ])('without the schema of its value, at a cost of %i: %s', (cost, source) => {
    expect(outcomeOf(source)).toEqual({ value: true, cost });
  });

  test('names in the members of an object of unknown type are escaped', () => {
    const { value } = outcomeOf("dyn(self.o).map(k, k) == ['x__dash__y', '__if__', 'z']");
    expect(value).toBe(true);
  });

  test.each([
    ["optional.of('1000m').optMap(q, quantity(q)).value()", '(*resource.Quantity)1'],
    [
      "optional.of('0.5').optMap(q, quantity(q)).orValue(quantity('1'))",
      '(*resource.Quantity)500m',
    ],
    ["[optional.of(quantity('1024Ki'))].map(v, v.value())", '(*resource.Quantity)1Mi'],
    ["[optional.of(quantity('1').add(quantity('500m')))][0].value()", undefined],
    [
      "[optional.of(quantity('1').add(quantity('500m')))].map(v, v.value())",
      '(*resource.Quantity)1500m',
    ],
    ["[optional.of(quantity('2').sub(3))].map(v, v.value())", '(*resource.Quantity)-1'],
    ["optional.of('::FFFF').optMap(q, ip(q)).value()", '(netip.Addr)::ffff'],
    ["optional.of('10.0.0.1/8').optMap(q, cidr(q)).value()", '(netip.Prefix)10.0.0.1/8'],
    ["optional.of('/a b').optMap(q, url(q)).value()", '(*url.URL)/a%20b'],
    ["true ? optional.of(semver('1.2.3-a+b')).value() : semver('1.0.0')", undefined],
    ["[optional.of(semver('1.2.3-a+b'))].map(v, v.value())", '(semver.Version)1.2.3-a+b'],
    ["[optional.of(ip('::1'))].map(v, v == optional.of(ip('::1')))", '(netip.Addr)::1'],
    ["[optional.of(ip('::1'))].map(v, optional.of(ip('::1')) == v)", '(netip.Addr)::1'],
    ["[optional.of(ip('::1'))].map(v, v.optMap(w, w))", '(netip.Addr)::1'],
  ])('%s', (source, content) => {
    const { error } = outcomeOf(source);
    const message = `unsupported conversion to ref.Val: ${content}`;
    expect(error?.message).toBe(content === undefined ? undefined : message);
  });
});

test.each([
  [15, 'optional.of(1).optMap(v, optional.of(v).optMap(w, v + w))'],
  [19, 'optional.of(1).optMap(v, optional.of(v + 1).optMap(w, v + w + v))'],
  [12, 'optional.of(1).optFlatMap(v, optional.of(v).optMap(w, w))'],
  [32, '[1].map(v, optional.of(v).optMap(w, optional.of(w).optMap(u, v + w + u)))'],
  [37, "optional.of(1).optMap(v, {'b': v}).b"],
  [17, 'optional.of(1).optMap(v, [v])[0]'],
])('a variable is evaluated where it is first read, at a cost of %i: %s', (cost, source) => {
  const { error, cost: actual } = outcomeOf(source);
  expect(error).toBeUndefined();
  expect(actual).toBe(cost);
});
