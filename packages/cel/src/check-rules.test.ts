import { type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { schemaFromOpenApi } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { checkRules } from './check-rules.ts';

function complaintsAbout(rule: JsonObject, schema: JsonObject = {}): readonly string[] {
  const props = { type: 'object', ...schema, 'x-kubernetes-validations': [rule] };
  const at = { path: 'schema', blocked: () => false, unchanged: false };
  return runInOnePiece(checkRules({ ...at, schema: schemaFromOpenApi(props) })).map(
    ({ field, message }) => `${field}: ${message}`,
  );
}

const path = 'schema.x-kubernetes-validations[0]';

test('the size of a name is estimated as if it could fill a request', () => {
  const rule = (length: number) => `self.metadata.name.matches('${'a'.repeat(length)}')`;
  expect(complaintsAbout({ rule: rule(120) })).toEqual([]);
  expect(complaintsAbout({ rule: rule(132) })).toEqual([
    expect.stringContaining(
      `${path}.rule: Forbidden: estimated rule cost exceeds budget by factor of 1.038091x`,
    ),
  ]);
  const bounded = { type: 'string', maxLength: 253 };
  const text = { type: 'string' };
  const metadata = { type: 'object', properties: { name: bounded, generateName: bounded } };
  const properties = { apiVersion: text, kind: text, metadata };
  expect(complaintsAbout({ rule: rule(132) }, { properties })).toEqual([]);
});

describe('the estimated cost of a rule in items of nested lists', () => {
  const text = (maxLength: number) => ({ type: 'string', maxLength });
  const properties = {
    s: text(20),
    t: text(20),
    z: text(20),
    m: { type: 'object', maxProperties: 5, additionalProperties: text(10) },
    o: { type: 'object', properties: { x: text(5), y: { type: 'integer' } } },
    i: { type: 'integer', maximum: 100 },
    n: { type: 'integer', format: 'int32' },
    d: { type: 'number' },
    b: { type: 'boolean' },
    l: { type: 'array', maxItems: 5, items: { type: 'integer' } },
    ls: { type: 'array', maxItems: 5, items: text(9) },
    p: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: text(5) } },
    ios: { 'x-kubernetes-int-or-string': true, maxLength: 9 },
  };
  const list = (items: JsonObject): JsonObject => ({ type: 'array', maxItems: 130, items });

  // The factors are those of kube-apiserver 1.32.
  test.each([
    ['["b", "a"][1].upperAscii()', '2.4x'],
    ['{"a": "b"}["a"] + "c"', '7.3x'],
    ['["a", "b"].filter(x, x != self.s)[0]', '11.9x'],
    ['"%s".format([["a", "b"].map(x, x + "c")])', '13.4x'],
    ['self.s.split("a", 2).join("-")', 'more than 100x'],
    ['string(self.?s.optMap(v, v + "a").hasValue())', '4.8x'],
    ['string(self.?s.optFlatMap(v, optional.of(v)).hasValue())', '4.6x'],
    ['string(self.l.exists(x, x > 1) == true)', '7.9x'],
    ['string([1, 2].map(x, dyn(x)).size())', '11.4x'],
    ['string(dyn("abc") == dyn("abd"))', 'more than 100x'],
    ['string(url("https://example.com") == url("https://example.org"))', '1.8x'],
    ['string([[1], [2]][0].exists(y, y > 1))', '7.5x'],
    ['string({"a": 1, "b": 2}.all(k, k.startsWith("a")))', '9.4x'],
    ['(self.b ? self.s : "a" + self.t)', '3.1x'],
    ['string(self.p.a == "x")', '1.318200x'],
    ['string(size("abc".split("b", -1).filter(x, x == self.s)))', 'more than 100x'],
  ])('CRD-3: %s', (expression, factor) => {
    const props = { type: 'object', properties };
    const rules = { 'x-kubernetes-validations': [{ rule: `(${expression}) != "zz"` }] };
    const schema = schemaFromOpenApi(list(list(list({ ...props, ...rules }))));
    const at = { path: 'schema', blocked: () => false, unchanged: false };
    const messages = runInOnePiece(checkRules({ ...at, schema })).map(({ message }) => message);
    expect(messages[0]).toContain(`estimated rule cost exceeds budget by factor of ${factor}`);
  });
});

test('rules have no authorizer, although its functions exist', () => {
  const rule = "type(authorizer.group('').resource('').fieldSelector('')) == string";
  const detail = "compilation failed: ERROR: <input>:1:6: undeclared reference to 'authorizer'";
  const [wrong = '', ...more] = complaintsAbout({ rule });
  expect(wrong).toContain(`${path}.rule: Invalid value: `);
  expect(wrong).toContain(detail);
  expect(wrong).not.toContain("'group'");
  expect(more).toEqual([]);
  const message = complaintsAbout({
    rule: 'self == oldSelf',
    messageExpression: `${rule} ? 'a' : 'b'`,
  });
  expect(message).toEqual([expect.stringContaining(`${path}.messageExpression: Invalid value: `)]);
  expect(message[0]).toContain(`messageExpression ${detail}`);
});
