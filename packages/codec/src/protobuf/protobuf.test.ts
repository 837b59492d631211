import { type JsonObject, randomOf } from '@wheelhouse/machinery';
import { DecodeError, decodeTyped, type Property, type Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { decodeMessage, encodeEnvelope, openEnvelope } from './envelope.ts';
import { ProtobufError, WireReader, WireWriter } from './wire.ts';

const text: Schema = { type: 'string', typed: true };
const int64: Schema = { type: 'integer', format: 'int64', typed: true };
const property = (schema: Schema, number: number, more: object = {}) => ({
  schema,
  number,
  omitEmpty: true,
  ...more,
});

const port: Schema = {
  type: 'object',
  typed: true,
  properties: new Map<string, Property>([
    ['name', property(text, 1)],
    ['port', property({ type: 'integer', format: 'int32', typed: true }, 3)],
  ]),
};

/** A kind with one member of each wire form. */
const thing: Schema = {
  type: 'object',
  typed: true,
  properties: new Map<string, Property>([
    ['apiVersion', { schema: text, omitEmpty: true }],
    ['kind', { schema: text, omitEmpty: true }],
    ['title', property(text, 1)],
    ['count', property(int64, 2, { pointer: true })],
    ['ports', property({ type: 'array', typed: true, items: port }, 3)],
    ['labels', property({ type: 'object', typed: true, additionalProperties: text }, 4)],
    ['data', property({ type: 'string', format: 'byte', typed: true }, 5)],
    ['ratio', property({ type: 'number', format: 'double', typed: true }, 6, { pointer: true })],
    ['on', property({ type: 'boolean', typed: true }, 7)],
    ['inner', property(text, 1, { inlineIn: [8] })],
    [
      'at',
      property({ type: 'string', format: 'date-time', typed: true, typeName: 'meta.v1.Time' }, 9, {
        pointer: true,
      }),
    ],
    [
      'target',
      property(
        { intOrString: true, format: 'int-or-string', typed: true, typeName: 'intstr.IntOrString' },
        10,
        { pointer: true },
      ),
    ],
  ]),
};

const sample: JsonObject = {
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  title: 'größe',
  count: 9007199254740993n,
  ports: [{ name: 'a', port: -1 }, { port: 80 }],
  labels: { b: '2', a: '1' },
  data: 'AAH/',
  ratio: -0.5,
  on: true,
  inner: 'in a group',
  at: '2024-02-29T23:59:59Z',
  target: 'http',
};

function read(body: Buffer): JsonObject {
  const { apiVersion, kind, raw } = openEnvelope(body);
  return decodeTyped(thing)({ ...decodeMessage(thing, raw), apiVersion, kind });
}

describe('an object', () => {
  test('survives encoding, including exact 64-bit integers', () => {
    expect(read(encodeEnvelope(thing, sample))).toEqual(sample);
  });

  test('starts with the magic bytes and names its kind', () => {
    const body = encodeEnvelope(thing, sample);
    expect(body.subarray(0, 4)).toEqual(Buffer.from('k8s\0'));
    expect(openEnvelope(body)).toMatchObject({ apiVersion: 'example.com/v1', kind: 'Thing' });
  });

  test('includes required members even if they are zero, and sorts maps by key', () => {
    const body = openEnvelope(encodeEnvelope(thing, { labels: { b: '', a: '' } })).raw;
    const labels = '2205 0a0161 1200 2205 0a0162 1200'.replaceAll(' ', '');
    expect(body.toString('hex')).toBe(`0a00${labels}3800 4202 0a00`.replaceAll(' ', ''));
  });

  test('may contain unknown fields', () => {
    const writer = new WireWriter();
    writer.raw(openEnvelope(encodeEnvelope(thing, { title: 'known' })).raw);
    writer.text('unknown');
    writer.key(500, 2);
    writer.int64(7);
    writer.key(501, 0);
    expect(decodeMessage(thing, writer.finish())).toMatchObject({ title: 'known' });
  });
});

describe('integers', () => {
  test.each([
    0,
    1,
    127,
    128,
    300,
    2 ** 31,
    -1,
    Number.MAX_SAFE_INTEGER,
    -(2n ** 63n),
    2n ** 63n - 1n,
  ])('%s keeps its value', (value) => {
    const writer = new WireWriter();
    writer.int64(value);
    expect(new WireReader(writer.finish()).int64()).toBe(value);
  });

  test('of more than ten bytes are rejected', () => {
    expect(() => new WireReader(Buffer.alloc(11, 0xff)).int64()).toThrow('integer overflow');
  });
});

describe('malformed messages', () => {
  const envelope = (raw: string) => Buffer.concat([Buffer.from('k8s\0'), Buffer.from(raw, 'hex')]);
  test.each([
    ['no magic', Buffer.from('{}'), 'expected prefix [107 56 115 0]'],
    ['a length past the end', envelope('12ff01'), 'unexpected EOF'],
    ['a negative length', envelope('12ffffffffffffffffff01'), 'negative length'],
    ['field number 0', envelope('0200'), 'illegal tag 0'],
    ['an open group', envelope('2b'), 'unexpected EOF'],
    ['an unknown wire type', envelope('2e'), 'illegal wireType 6'],
  ])('%s is rejected', (_, body, message) => {
    expect(() => read(body)).toThrow(message);
  });

  test.each([
    ['the wrong wire type', '0801', 'wrong wireType = 0'],
    ['a string that is no UTF-8', '0a01ff', 'invalid UTF-8'],
  ])('%s in a field is rejected', (_, raw, message) => {
    expect(() => decodeMessage(thing, Buffer.from(raw, 'hex'))).toThrow(message);
  });

  test('endlessly nested messages are rejected before the stack overflows', () => {
    const loop: Schema = {
      type: 'object',
      typed: true,
      properties: new Map<string, Property>([
        ['next', { schema: { resolve: () => loop }, number: 1, pointer: true }],
      ]),
    };
    let raw: Buffer = Buffer.alloc(0);
    for (let depth = 0; depth < 5000; depth += 1) {
      const writer = new WireWriter();
      writer.bytes(raw);
      writer.key(1, 2);
      raw = writer.finish();
    }
    expect(() => decodeMessage(loop, raw)).toThrow('nested too deeply');
  });

  test('a randomly damaged body yields an object or one of the two errors', () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const { below: next } = randomOf(seed);
    const whole = encodeEnvelope(thing, sample);
    for (let round = 0; round < Number(process.env['FUZZ_ROUNDS'] ?? 5_000); round += 1) {
      const body = Buffer.from(whole.subarray(0, 1 + next(whole.length)));
      for (let edits = next(6); edits > 0; edits -= 1) body[next(body.length)] = next(256);
      try {
        read(body);
      } catch (error) {
        const isRefusal = error instanceof ProtobufError || error instanceof DecodeError;
        expect(isRefusal, `seed ${seed} round ${round}: ${String(error)}`).toBe(true);
      }
    }
  });
});
