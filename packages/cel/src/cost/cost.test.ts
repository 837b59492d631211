import { schemaFromOpenApi } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { compile } from '../compile.ts';
import { declaredSize, typeOfSchema } from '../types/schema-types.ts';
import { standardFunctions } from '../types/standard-functions.ts';

const text = (maxLength?: number) => ({ type: 'string', maxLength });
const schema = schemaFromOpenApi({
  type: 'object',
  properties: {
    ls: { type: 'array', items: text(5) },
    lset: { type: 'array', items: text(), maxItems: 5 },
    ms: { type: 'object', additionalProperties: text(7), maxProperties: 6 },
    mm: { type: 'object', additionalProperties: { type: 'array', items: text() } },
  },
});

// Figures of cel-go 0.22.
test.each([
  ["self.ls.transformList(p, q, q.matches('a') && p > 1)", 16_777_213],
  ['self.ms.transformMap(p, q, q + p)', 63],
  ["self.lset.all(p, q, q.matches('a'))", 28],
  ["self.lset.all(q, self.lset.all(p, q, q.matches('a')))", 7_864_458],
  ["self.lset.all(q, optional.of('a').optMap(q, q + q).hasValue())", 3_145_838],
  ["self.ms.all(k, v, k.matches('a') || v.matches('b'))", 45],
  ['self.mm.transformMap(p, q, q.map(z, z + p))', 5_898_258],
])(
  'any but the first variable of a macro is estimated to be as large as self: %s',
  (source, max) => {
    const type = typeOfSchema(schema, 'selfType');
    if (type === undefined) throw new Error('the schema has no type');
    const environment = { functions: standardFunctions(), variables: new Map([['self', type]]) };
    expect(compile(source, environment).costMax(declaredSize(schema))).toBe(max);
  },
);
