import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import type { Property, Schema } from '../schema.ts';
import { mergeRepeatedSteps } from './repeated-members.ts';

const struct = (members: Record<string, Schema | Property>): Schema => ({
  type: 'object',
  properties: new Map(
    Object.entries(members).map(([name, member]) => [
      name,
      'schema' in member ? member : { schema: member },
    ]),
  ),
});
const text: Schema = { type: 'string' };
const item = struct({ a: text, b: text });
const schema = struct({
  text,
  time: { type: 'string', format: 'date-time' },
  pointer: { schema: item, pointer: true },
  struct: item,
  list: { type: 'array', items: item },
  map: { type: 'object', additionalProperties: item },
});

/** Merges consecutive values of a member; returns the last value and the number of steps. */
function merged(name: string, ...values: JsonValue[]) {
  const last = values.pop() ?? null;
  const object: JsonObject = { [name]: last };
  const steps = [
    ...mergeRepeatedSteps(schema, object, new Map([[object, new Map([[name, values]])]])),
  ];
  return { value: object[name], steps: steps.length };
}

test.each<[string, JsonValue[], JsonValue]>([
  ['text', ['x', 'y'], 'y'],
  ['text', ['x', null], 'x'],
  ['time', ['2024-01-01T00:00:00Z', null], null],
  ['struct', [{ a: '1' }, { b: '2' }, { a: null }], { a: '1', b: '2' }],
  ['struct', [{ a: '1' }, null], { a: '1' }],
  ['pointer', [{ a: '1' }, null, { b: '2' }], { b: '2' }],
  ['list', [[{ a: '1' }, { a: '2' }], [{ b: '3' }]], [{ a: '1', b: '3' }]],
  ['list', [[{ a: '1' }], null, [{ b: '3' }]], [{ b: '3' }]],
  ['map', [{ x: { a: '1' }, y: {} }, { x: { b: '2' } }], { x: { b: '2' }, y: {} }],
])('FV-2: the member %s with the values %j is %j', (name, values, expected) => {
  expect(merged(name, ...values).value).toEqual(expected);
});

test('TRUST-2: many occurrences and long lists are merged in steps', () => {
  const many = Array.from({ length: 100_000 }, () => 'x');
  expect(merged('text', ...many).steps).toBeGreaterThan(100);
  const list = () => many.map((a) => ({ a }));
  expect(merged('list', list(), list()).steps).toBeGreaterThan(300);
});
