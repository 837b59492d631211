import { type JsonObject, type JsonValue, runInOnePiece } from '@wheelhouse/machinery';
import protobuf from 'protobufjs';
import { describe, expect, test } from 'vitest';
import { type MessageDescriptors, openApiProto } from './openapi-proto.ts';
import { openApiV2Messages } from './openapi-v2.ts';
import { openApiV3Messages } from './openapi-v3.ts';

const encoded = (messages: MessageDescriptors, document: JsonObject): Buffer =>
  runInOnePiece(openApiProto(messages, document));

const text = `syntax = "proto3";
message Any { string yaml = 2; }
message NamedAny { string name = 1; Any value = 2; }
message Document { Definitions definitions = 9; }
message Definitions { repeated NamedSchema named = 1; }
message NamedSchema { string name = 1; Schema value = 2; }
message Items { repeated Schema schema = 1; }
message Additional { oneof kind { Schema schema = 1; bool boolean = 2; } }
message Schema {
  string ref = 1; string description = 4; Any default = 5; double maximum = 7;
  bool exclusive_maximum = 8; double minimum = 9; int64 max_length = 11; int64 min_length = 12;
  repeated Any enum = 20; Additional additional = 21; Items items = 23;
  repeated NamedAny extension = 31;
}`;

function schemaOf(schema: JsonValue): JsonObject {
  const bytes = encoded(openApiV2Messages, { definitions: { one: schema } });
  const type = protobuf.parse(text).root.lookupType('Document');
  const read = type.toObject(type.decode(bytes), { longs: Number });
  return read['definitions'].named[0].value;
}

describe('schemas in protobuf', () => {
  test.each<[string, JsonValue, JsonObject]>([
    ['doubles', { maximum: -1.5, minimum: 1e300 }, { maximum: -1.5, minimum: 1e300 }],
    ['numbers of one byte', { maxLength: 127 }, { maxLength: 127 }],
    [
      'numbers of several bytes',
      { maxLength: 128, minLength: 300_000 },
      { maxLength: 128, minLength: 300_000 },
    ],
    ['numbers beyond 32 bits', { maxLength: 2 ** 40 }, { maxLength: 2 ** 40 }],
    ['negative numbers', { maxLength: -1 }, { maxLength: -1 }],
    ['booleans', { exclusiveMaximum: true }, { exclusiveMaximum: true }],
    ['non-ASCII text', { description: 'Ж€𝄞' }, { description: 'Ж€𝄞' }],
    ['references', { $ref: '#/definitions/a' }, { ref: '#/definitions/a' }],
    ['lists in order', { enum: ['a', 1] }, { enum: [{ yaml: 'a\n' }, { yaml: '1\n' }] }],
    ['defaults', { default: { a: null } }, { default: { yaml: 'a: null\n' } }],
    ['items', { items: { maximum: 1 } }, { items: { schema: [{ maximum: 1 }] } }],
    [
      'schemas of additional properties',
      { additionalProperties: { maximum: 1 } },
      { additional: { schema: { maximum: 1 } } },
    ],
    ['additional properties', { additionalProperties: true }, { additional: { boolean: true } }],
    [
      'no additional properties',
      { additionalProperties: false },
      { additional: { boolean: false } },
    ],
    [
      'extensions',
      { 'x-kubernetes-a': ['b'] },
      { extension: [{ name: 'x-kubernetes-a', value: { yaml: '- b\n' } }] },
    ],
    ['no unknown members', { surprise: 1 }, {}],
  ])('contain %s', (_, schema, message) => {
    expect(schemaOf(schema)).toEqual(message);
  });

  test('can have any name, and exceed the initial buffer', () => {
    const names = ['__proto__', 'constructor', 'toString', 'x'.repeat(200_000)];
    const definitions = Object.fromEntries(names.map((name) => [name, { description: name }]));
    const bytes = encoded(openApiV2Messages, { definitions });
    const read = protobuf.parse(text).root.lookupType('Document').decode(bytes).toJSON();
    const { named } = read['definitions'] as {
      readonly named: readonly { name: string; value: { description: string } }[];
    };
    const pairs = named.map(({ name, value }) => [name, value.description]);
    expect(pairs).toEqual(names.map((name) => [name, name]));
  });

  test('omit defaults in OpenAPI 3 that its message cannot represent', () => {
    const document = (standard: JsonValue) => ({
      components: { schemas: { one: { default: standard } } },
    });
    const without = encoded(openApiV3Messages, document({})).length;
    expect(encoded(openApiV3Messages, document('abc')).length).toBe(without + 5);
    expect(encoded(openApiV3Messages, document(1)).length).toBe(without + 9);
  });

  test('contain defaults in OpenAPI 3 that are zero or false', () => {
    const schemas = { a: { default: 0 }, b: { default: false } };
    const bytes = encoded(openApiV3Messages, { components: { schemas } }).toString('hex');
    expect(bytes).toContain(`8a020909${'00'.repeat(8)}`);
    expect(bytes).toContain('8a02021000');
  });

  test('TRUST-2: definitions and components are encoded in many steps', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `name${index}`);
    const schemas = Object.fromEntries(names.map((name) => [name, { description: name }]));
    for (const [messages, document] of [
      [openApiV2Messages, { definitions: schemas }],
      [openApiV3Messages, { components: { schemas } }],
    ] as const) {
      const work = openApiProto(messages, document);
      let steps = 1;
      for (let step = work.next(); step.done !== true; step = work.next()) steps += 1;
      expect(steps).toBeGreaterThan(100);
    }
  });
});
