import { describedIn } from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { inlineJson, schemaContext } from './openapi-schema.ts';

test('TRUST-2: nullable members are removed from `required` in linear time', () => {
  const dialect = dialectOf('svc');
  // Quadratic work would exceed the timeout of the test.
  const names = Array.from({ length: 60_000 }, (_, index) => `m${index}`);
  const member: Schema = { type: 'string', nullable: true };
  const properties = new Map(names.map((name) => [name, { schema: member }]));
  const schema: Schema = { type: 'object', properties, required: [...names, 'other'] };
  const shared = { dialect, enums: undefined, descriptions: describedIn(dialect), refer: () => {} };
  expect(inlineJson(schemaContext({ ...shared, form: 'v2' }), schema)['required']).toEqual([
    'other',
  ]);
  expect(inlineJson(schemaContext({ ...shared, form: 'v3' }), schema)['required']).toHaveLength(
    names.length + 1,
  );
});
