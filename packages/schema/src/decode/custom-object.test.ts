import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { schemaFromOpenApi } from '../from-openapi.ts';
import type { Property, Schema } from '../schema.ts';
import { validateUniqueness } from '../validation/list-uniqueness.ts';
import { applyDefaults, decodeCustom, prune } from './custom-object.ts';
import { type EmbeddedRules, validateEmbedded } from './embedded.ts';

const text: Schema = { type: 'string', typed: true };
const objectMeta: Schema = {
  type: 'object',
  typed: true,
  typeName: 'meta.v1.ObjectMeta',
  properties: new Map<string, Property>([
    ['name', { schema: text, omitEmpty: true }],
    ['creationTimestamp', { schema: { ...text, format: 'date-time' } }],
    ['generation', { schema: { type: 'integer', format: 'int64', typed: true }, omitEmpty: true }],
    [
      'labels',
      { schema: { type: 'object', typed: true, additionalProperties: text }, omitEmpty: true },
    ],
  ]),
};
const rules: EmbeddedRules = {
  objectMeta,
  validateMeta: () => [],
  validateLabel: (label) => (/^[a-z]+$/.test(label) ? [] : ['no label']),
};

const any = { 'x-kubernetes-preserve-unknown-fields': true };
const string = { type: 'string' };
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  ...more,
});
const list = (items: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'array',
  items,
  ...more,
});
const map = (additionalProperties: JsonValue): JsonObject => ({
  type: 'object',
  additionalProperties,
});

describe('pruning', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject, string[]])[] = [
    ['a member', { a: string }, { a: 'x', b: 1 }, { a: 'x' }, ['b']],
    ['in an object', { a: object({ b: string }) }, { a: { c: 1 } }, { a: {} }, ['a.c']],
    [
      'in a list',
      { a: list(object({ b: string })) },
      { a: [{}, { c: 1 }] },
      { a: [{}, {}] },
      ['a[1].c'],
    ],
    [
      'in a map',
      { a: map(object({})) },
      { a: { 'x.y': { c: 1 } } },
      { a: { 'x.y': {} } },
      ['a.x.y.c'],
    ],
    [
      'in a map of anything',
      { a: map(true) },
      { a: { x: { c: 1 }, y: 1 } },
      { a: { x: {}, y: 1 } },
      ['a.x.c'],
    ],
    ['in a scalar', { a: string }, { a: { b: 1 } }, { a: {} }, ['a.b']],
    ['sorted', {}, { b: 1, a: 1 }, {}, ['a', 'b']],
    ['not where preserved', { a: any }, { a: { b: { c: 1 } } }, { a: { b: { c: 1 } } }, []],
    [
      'again below a schema inside preserved',
      { a: { ...object({ b: object({}) }), ...any } },
      { a: { b: { c: 1 }, d: { e: 1 } } },
      { a: { b: {}, d: { e: 1 } } },
      ['a.b.c'],
    ],
    [
      'preserved items',
      { a: { ...list(object({ b: object({}) })), ...any } },
      { a: [{ b: { c: 1 }, d: 1 }] },
      { a: [{ b: {}, d: 1 }] },
      ['a[0].b.c'],
    ],
    [
      'metadata of embedded resources is kept',
      { a: object({ x: string }, { 'x-kubernetes-embedded-resource': true }) },
      { a: { kind: 'A', apiVersion: 'v1', metadata: { n: 1 }, y: 1 } },
      { a: { kind: 'A', apiVersion: 'v1', metadata: { n: 1 } } },
      ['a.y'],
    ],
    [
      'metadata of other objects is removed',
      { a: object({}) },
      { a: { kind: 'A' } },
      { a: {} },
      ['a.kind'],
    ],
    [
      'type metadata at the root is kept',
      {},
      { kind: 'A', apiVersion: 'b' },
      { kind: 'A', apiVersion: 'b' },
      [],
    ],
  ];
  test.each(cases)('%s', (_, properties, input, expected, paths) => {
    const value = structuredClone(input);
    expect(prune(schemaFromOpenApi(object(properties)))(value).paths).toEqual(paths);
    expect(value).toEqual(expected);
  });

  test('does not overflow on deep input', () => {
    let deep: JsonValue = [];
    for (let level = 0; level < 20_000; level += 1) deep = [deep];
    expect(prune(schemaFromOpenApi(object({ a: string })))({ a: deep }).paths).toEqual([]);
  });
});

describe('defaults', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject, JsonObject])[] = [
    ['absent', { a: { ...string, default: 'x' } }, {}, { a: 'x' }],
    ['present', { a: { ...string, default: 'x' } }, { a: '' }, { a: '' }],
    ['null', { a: { ...string, default: 'x' } }, { a: null }, { a: 'x' }],
    ['nullable null', { a: { ...string, default: 'x', nullable: true } }, { a: null }, { a: null }],
    ['no object, no default inside', { a: object({ b: { ...string, default: 'x' } }) }, {}, {}],
    [
      'nested in a default',
      { a: { ...object({ b: { ...string, default: 'x' } }), default: {} } },
      {},
      { a: { b: 'x' } },
    ],
    [
      'in a list',
      { a: list(object({ b: { ...string, default: 'x' } })) },
      { a: [{}] },
      { a: [{ b: 'x' }] },
    ],
    ['null items', { a: list({ ...string, default: 'x' }) }, { a: [null] }, { a: ['x'] }],
    [
      'in a map',
      { a: map(object({ b: { ...string, default: 'x' } })) },
      { a: { k: {} } },
      { a: { k: { b: 'x' } } },
    ],
    [
      'null map values',
      { a: map({ ...string, default: 'x' }) },
      { a: { k: null } },
      { a: { k: 'x' } },
    ],
  ];
  test.each(cases)('%s', (_, properties, input, expected) => {
    const value = structuredClone(input);
    applyDefaults(schemaFromOpenApi(object(properties)))(value);
    expect(value).toEqual(expected);
  });

  test('a default is copied, not shared', () => {
    const fill = applyDefaults(schemaFromOpenApi(object({ a: { ...any, default: { b: [] } } })));
    const [first, second]: JsonObject[] = [{}, {}];
    fill(first!);
    fill(second!);
    expect(first).toEqual(second);
    expect(first!['a']).not.toBe(second!['a']);
  });
});

describe('a custom object', () => {
  const schema = schemaFromOpenApi(
    object({
      spec: object({
        kept: { ...string, nullable: true },
        plain: string,
        defaulted: { ...string, default: 'd' },
        child: object({}, { 'x-kubernetes-embedded-resource': true, ...any }),
      }),
    }),
  );
  const decode = decodeCustom(schema, rules);

  test('is defaulted, pruned, and stripped of nulls, and its metadata is typed', () => {
    const body: JsonObject = {
      kind: 'A',
      metadata: { name: 'a', creationTimestamp: null, odd: 1 },
      spec: { kept: null, plain: null, more: 1, child: { metadata: { name: 'b', odd: 1 } } },
    };
    const unknown = ['metadata.odd', 'spec.more', 'spec.child.metadata.odd'];
    expect(decode(body).paths).toEqual(unknown);
    expect(body).toEqual({
      kind: 'A',
      metadata: { name: 'a', creationTimestamp: null },
      spec: { kept: null, defaulted: 'd', child: { metadata: { name: 'b' } } },
    });
  });

  const invalidBodies: readonly (readonly [JsonObject, string])[] = [
    [
      { metadata: { labels: 'x' } },
      'json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string',
    ],
    [{ spec: { child: { kind: 1 } } }, 'spec.child.kind: Invalid value: 1: must be a string'],
    [
      { spec: { child: { metadata: { name: 1 } } } },
      'spec.child.metadata: Invalid value: map[string]interface {}{"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string',
    ],
  ];
  test('reports the first error of metadata in the order of its sorted members', () => {
    const metadata = { name: 1, labels: [], generation: 2n ** 53n + 1n };
    const why = /unmarshal array into Go struct field ObjectMeta.labels of type map/;
    expect(() => decode({ metadata: { ...metadata } })).toThrow(why);
    expect(() => decode({ spec: { child: { metadata } } })).toThrow(why);
  });

  test('TRUST-2: field sets are not sorted for an error', () => {
    const ownKeys = () => {
      throw new Error('read');
    };
    const fieldsV1 = new Proxy({}, { ownKeys });
    const metadata = { labels: [], managedFields: [{ fieldsV1 }] };
    expect(() => decode({ metadata })).toThrow('ObjectMeta.labels');
  });

  test.each(invalidBodies)('rejects %j', (body, message) => {
    expect(() => decode(structuredClone(body))).toThrow(message);
  });

  test('requires type metadata in embedded resources', () => {
    const value = { spec: { child: { kind: 'A-1' } } };
    expect(validateEmbedded(schema, value, rules)).toMatchObject([
      { type: 'FieldValueRequired', field: 'spec.child.apiVersion' },
      {
        field: 'spec.child.kind',
        message: 'Invalid value: "A-1": may have mixed case, but should otherwise match: no label',
      },
    ]);
  });
});

describe('uniqueness', () => {
  const set = schemaFromOpenApi(object({ a: list(string, { 'x-kubernetes-list-type': 'set' }) }));
  const keyed = (...keys: string[]) =>
    schemaFromOpenApi(
      object({
        a: list(object({}), {
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': keys,
        }),
      }),
    );
  const cases: readonly (readonly [string, Schema, JsonValue, unknown[]])[] = [
    ['distinct', set, ['a', 'b'], []],
    ['reported once', set, ['a', 'a', 'a'], [{ field: 'a[1]', message: 'Duplicate value: "a"' }]],
    [
      'objects',
      set,
      [
        { b: 1, c: 1 },
        { c: 1, b: 1 },
      ],
      [{ field: 'a[1]' }],
    ],
    [
      'keys',
      keyed('k'),
      [{ k: 1 }, { k: 2 }, { k: 1, v: 1 }],
      [{ field: 'a[2]', message: 'Duplicate value: map[string]interface {}{"k":1}' }],
    ],
    [
      'absent keys',
      keyed('k'),
      [{}, { v: 1 }],
      [{ field: 'a[1]', message: 'Duplicate value: map[string]interface {}{}' }],
    ],
    [
      'several keys',
      keyed('k', 'l'),
      [{ k: 1, l: 1 }, { k: 1 }, { k: 1, l: 1 }],
      [{ field: 'a[2]' }],
    ],
    ['no object', keyed('k'), ['x'], [{ field: 'a[0]', type: 'FieldValueInvalid' }]],
  ];
  test.each(cases)('%s', (_, schema, value, expected) => {
    expect(validateUniqueness(schema, { a: value })).toMatchObject(expected);
  });
});
