import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import type { Property, Schema } from '../schema.ts';
import { removeOmitted, restoreOmitted } from './decode-context.ts';
import { decodeTyped } from './decode-typed.ts';

const string: Schema = { type: 'string', typed: true };
const part: Schema = {
  type: 'object',
  typed: true,
  typeName: 'core.v1.Part',
  properties: new Map<string, Property>([
    ['names', { schema: { type: 'array', typed: true, items: string }, omitEmpty: true }],
  ]),
};
const whole: Schema = {
  type: 'object',
  typed: true,
  typeName: 'core.v1.Whole',
  properties: new Map<string, Property>([
    ['list', { schema: { type: 'array', typed: true, items: part }, omitEmpty: true }],
    ['map', { schema: { type: 'object', typed: true, additionalProperties: part } }],
  ]),
};

/** Decodes an object, of which JSON.parse makes `__proto__` a member. */
function decoded(json: string): JsonObject {
  return decodeTyped(whole)(JSON.parse(json)) as JsonObject;
}

test('omitted members come back in lists and maps, and leave again', () => {
  const object = decoded('{"list":[{"names":["a"]},{"names":[]}],"map":{"a.b":{"names":[]}}}');
  const plain = { list: [{ names: ['a'] }, {}], map: { 'a.b': {} } };
  expect(object).toEqual(plain);
  restoreOmitted(object);
  const restored = { list: [{ names: ['a'] }, { names: [] }], map: { 'a.b': { names: [] } } };
  expect(object).toEqual(restored);
  removeOmitted(object);
  expect(object).toEqual(plain);
});

test('an omitted member whose object is gone stays omitted', () => {
  const object = decoded('{"list":[{"names":[]}],"map":{"__proto__":{"names":[]}}}');
  delete object['list'];
  object['map'] = {};
  restoreOmitted(object);
  expect(object).toEqual({ map: {} });
  expect(Object.hasOwn(Object.prototype, 'names')).toBe(false);
});
