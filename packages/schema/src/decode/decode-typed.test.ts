import type { JsonValue } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { FoundPaths } from '../field-paths.ts';
import type { Property, Schema } from '../schema.ts';
import { decodeTyped } from './decode-typed.ts';

const string: Schema = { type: 'string', typed: true };
const int32: Schema = { type: 'integer', format: 'int32', typed: true };
const time: Schema = { type: 'string', format: 'date-time', nullable: true, typed: true };

const meta: Schema = {
  type: 'object',
  typed: true,
  typeName: 'meta.v1.ObjectMeta',
  properties: new Map<string, Property>([
    ['name', { schema: string, omitEmpty: true }],
    [
      'labels',
      { schema: { type: 'object', typed: true, additionalProperties: string }, omitEmpty: true },
    ],
    ['creationTimestamp', { schema: time }],
  ]),
};
const part: Schema = {
  type: 'object',
  typed: true,
  typeName: 'core.v1.Part',
  properties: new Map<string, Property>([
    ['name', { schema: string }],
    ['replicas', { schema: int32, omitEmpty: true, pointer: true }],
    ['count', { schema: int32, omitEmpty: true }],
    ['payload', { schema: { type: 'string', format: 'byte', typed: true }, omitEmpty: true }],
    ['port', { schema: { intOrString: true, typed: true }, omitEmpty: true, pointer: true }],
    ['parts', { schema: { resolve: () => parts }, omitEmpty: true }],
    ['flag', { schema: { type: 'boolean', typed: true }, omitEmpty: true }],
    [
      'grace',
      {
        schema: { type: 'string', format: 'duration', typed: true },
        omitEmpty: true,
        pointer: true,
      },
    ],
    ['big', { schema: { type: 'integer', format: 'int64', typed: true }, omitEmpty: true }],
  ]),
};
const parts: Schema = { type: 'array', typed: true, items: { resolve: () => part } };
const thing: Schema = {
  type: 'object',
  typed: true,
  typeName: 'core.v1.Thing',
  properties: new Map<string, Property>([
    ['kind', { schema: string, omitEmpty: true }],
    ['metadata', { schema: { resolve: () => meta } }],
    ['spec', { schema: { resolve: () => part } }],
    [
      'named',
      { schema: { type: 'object', typed: true, additionalProperties: part }, omitEmpty: true },
    ],
  ]),
};

function decode(value: JsonValue): { object?: JsonValue; unknown: string[]; error?: string } {
  const found = new FoundPaths();
  try {
    return { object: decodeTyped(thing)(value, found), unknown: [...found.paths] };
  } catch (error) {
    return { error: (error as Error).message, unknown: [...found.paths] };
  }
}

describe('a typed decoder', () => {
  test('orders members as declared and adds zero values without omitempty', () => {
    const { object } = decode({ spec: { name: 'a' }, kind: 'Thing' });
    expect(JSON.stringify(object)).toBe(
      '{"kind":"Thing","metadata":{"creationTimestamp":null},"spec":{"name":"a"}}',
    );
  });

  const decodings: readonly (readonly [string, JsonValue, JsonValue])[] = [
    ['null counts as absent', { name: null, count: null }, { name: '' }],
    [
      'empty members are omitted',
      { name: '', count: 0, flag: false, parts: [], payload: '' },
      { name: '' },
    ],
    ['a pointer keeps its zero', { name: 'a', replicas: 0 }, { name: 'a', replicas: 0 }],
    [
      'null items become zero values',
      { name: 'a', parts: [null] },
      { name: 'a', parts: [{ name: '' }] },
    ],
    [
      'base64 loses its line breaks',
      { name: 'a', payload: 'YW\nJj' },
      { name: 'a', payload: 'YWJj' },
    ],
    [
      'base64 loses its unused bits',
      { name: 'a', payload: 'YR==' },
      { name: 'a', payload: 'YQ==' },
    ],
    ['int-or-string keeps either', { name: 'a', port: 'http' }, { name: 'a', port: 'http' }],
    [
      'durations take the stored form',
      { name: 'a', grace: '90m' },
      { name: 'a', grace: '1h30m0s' },
    ],
    ['64-bit integers stay exact', { name: 'a', big: 2n ** 62n }, { name: 'a', big: 2n ** 62n }],
  ];
  test.each(decodings)('%s', (_, spec, expected) => {
    expect(decode({ spec }).object).toEqual({
      metadata: { creationTimestamp: null },
      spec: expected,
    });
  });

  test('times are stored in UTC with whole seconds', () => {
    const { object } = decode({ metadata: { creationTimestamp: '2024-02-29T23:30:00.9+01:00' } });
    expect(object).toMatchObject({ metadata: { creationTimestamp: '2024-02-29T22:30:00Z' } });
  });

  const invalidValues: readonly (readonly [JsonValue, string])[] = [
    ['x', 'json: cannot unmarshal string into Go value of type v1.Thing'],
    [
      { metadata: { labels: 'x' } },
      'json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string',
    ],
    [
      { metadata: { labels: { a: 1 } } },
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      { spec: { replicas: 1.5 } },
      'json: cannot unmarshal number 1.5 into Go struct field Part.spec.replicas of type int32',
    ],
    [
      { spec: { replicas: 2 ** 31 } },
      'json: cannot unmarshal number 2147483648 into Go struct field Part.spec.replicas of type int32',
    ],
    [
      { spec: { big: 2n ** 63n } },
      'json: cannot unmarshal number 9223372036854775808 into Go struct field Part.spec.big of type int64',
    ],
    [
      { spec: { parts: {} } },
      'json: cannot unmarshal object into Go struct field Part.spec.parts of type []v1.Part',
    ],
    [
      { spec: { parts: [{ name: [] }] } },
      'json: cannot unmarshal array into Go struct field Part.spec.parts.name of type string',
    ],
    [
      { spec: { port: true } },
      'json: cannot unmarshal bool into Go struct field Part.spec.port of type int32',
    ],
    [{ spec: { payload: 'a' } }, 'illegal base64 data at input byte 0'],
    [{ spec: { payload: 'YW!j' } }, 'illegal base64 data at input byte 2'],
    [{ spec: { payload: 'YQ\n=\na' } }, 'illegal base64 data at input byte 4'],
    [{ spec: { grace: 'x' } }, 'time: invalid duration "x"'],
    [{ spec: { grace: '3' } }, 'time: missing unit in duration "3"'],
    [{ spec: { grace: '1h2x' } }, 'time: unknown unit "x" in duration "1h2x"'],
    [{ spec: { grace: '1m.s' } }, 'time: invalid duration "1m.s"'],
    [
      { metadata: { creationTimestamp: 'x' } },
      'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    ],
    [
      { metadata: { creationTimestamp: 'é\u0000"' } },
      'parsing time "\\xc3\\xa9\\x00\\"" as "2006-01-02T15:04:05Z07:00": ' +
        'cannot parse "\\xc3\\xa9\\x00\\"" as "2006"',
    ],
    [
      { metadata: { creationTimestamp: '2024-13-01T00:00:00Z' } },
      'parsing time "2024-13-01T00:00:00Z": month out of range',
    ],
    [
      { spec: { name: 1 }, metadata: { name: 2 } },
      'json: cannot unmarshal number into Go struct field Part.spec.name of type string',
    ],
    // An error in a custom decoder ends Go's decoding; the type error of another member is reported
    // only at the end.
    [{ spec: { name: 1, payload: '!', grace: 'x', port: true } }, 'time: invalid duration "x"'],
    [
      { spec: { name: 1, port: true, grace: 'x' } },
      'json: cannot unmarshal bool into Go struct field Part.spec.port of type int32',
    ],
  ];
  test.each(invalidValues)("error %# has Go's message", (value, message) => {
    expect(decode(value).error).toBe(message);
  });

  test('normalizes times, whose hour may have one digit', () => {
    const { object } = decode({ metadata: { creationTimestamp: '2024-01-01T1:00:00+01:00' } });
    expect(object).toMatchObject({ metadata: { creationTimestamp: '2024-01-01T00:00:00Z' } });
  });

  test('drops unknown members and reports them by path, in input order', () => {
    const { object, unknown } = decode({
      x: 1,
      spec: { parts: [{ y: 1 }, { parts: [{ z: 1 }] }], w: null },
      named: { 'a.b': { q: 1 } },
    });
    expect(unknown).toEqual([
      'x',
      'spec.parts[0].y',
      'spec.parts[1].parts[0].z',
      'spec.w',
      'named.a.b.q',
    ]);
    expect(JSON.stringify(object)).not.toMatch(/"[xyzwq]"/);
  });

  test('keeps members of maps under arbitrary names', () => {
    const labels = JSON.parse('{"__proto__":"a","constructor":"b"}') as JsonValue;
    const { object } = decode({ metadata: { labels } });
    expect(JSON.stringify(object)).toContain('{"__proto__":"a","constructor":"b"}');
  });

  test('rejects input that is nested too deeply', () => {
    let deep: JsonValue = { name: 'a' };
    for (let level = 0; level < 10_000; level += 1) deep = { name: 'a', parts: [deep] };
    expect(decode({ spec: deep }).error).toBe('exceeded max depth');
  });
});
