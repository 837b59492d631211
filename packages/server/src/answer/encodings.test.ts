import { builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import { dialectOf, type JsonValue, type ResponseBody, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  createEncodings,
  encodeBytes,
  encodeValue,
  type Form,
  mediaTypes,
  watchTypes,
} from './encodings.ts';

const dialect = dialectOf('svc');
const kinds = builtinKinds(dialect);
function kind(resource: string): ResourceDef {
  const found = kinds.find((def) => def.resource === resource);
  if (found === undefined) throw new Error(resource);
  return found;
}
const configMaps = kind('configmaps');
const custom = { ...configMaps, behavior: { ...configMaps.behavior, offersProtobuf: false } };

describe('CODEC-1: the encodings of a kind', () => {
  const { of, failures, documents } = createEncodings({ dialect, cbor: 'off' });
  const forms = (def: ResourceDef) => of(def).map(({ form, covers }) => `${form} ${covers}`);

  test('CODEC-3: have protobuf for built-in objects, and for metadata of custom ones', () => {
    expect(forms(configMaps)).toEqual(['json objects', 'yaml objects', 'protobuf objects']);
    expect(forms(custom)).toEqual(['json objects', 'yaml objects', 'protobuf metadata']);
  });

  test('CODEC-4: have CBOR where it is enabled, but documents do not', () => {
    const served = createEncodings({ dialect, cbor: 'served' });
    expect(mediaTypes(served.of(custom)).at(-1)).toBe('application/cbor');
    expect(mediaTypes(served.failures)).toContain('application/cbor');
    expect(mediaTypes(served.documents)).not.toContain('application/cbor');
    expect(mediaTypes(failures)).not.toContain('application/cbor');
    expect(mediaTypes(documents)).toEqual(mediaTypes(failures));
  });

  test('have a stream parameter for watches, except YAML, which cannot stream', () => {
    const withCbor = createEncodings({ dialect, cbor: 'served' }).failures;
    expect(watchTypes(withCbor).at(-1)).toBe('application/cbor-seq');
    expect(watchTypes(failures)).toEqual([
      'application/json;stream=watch',
      `${dialect.protobufMediaType};stream=watch`,
    ]);
  });

  test('CODEC-3: lack protobuf for types without field numbers', async () => {
    const protobuf = failures.find(({ form }) => form === 'protobuf');
    const encode = () => protobuf?.encode({ apiVersion: 'example.com/v1', kind: 'Tab' });
    expect(encode).toThrow(StatusError);
    expect(encode).toThrow('Tab in version "example.com/v1" has no protobuf form');
  });
});

describe('CODEC-2: an encoded value', () => {
  const { failures } = createEncodings({ dialect, cbor: 'off' });
  const text = async (body: ResponseBody | Promise<ResponseBody>) => {
    const made = await body;
    if (Buffer.isBuffer(made)) return made.toString('utf8');
    return Array.from(made, (piece) => Buffer.from(String(piece))).join('');
  };
  const written = (form: Form, pretty: boolean) => {
    const encoding = failures.find((candidate) => candidate.form === form);
    if (encoding === undefined) throw new Error(form);
    return { encoding, pretty };
  };
  const value: JsonValue = { a: [1], b: {} };

  test('ends with a newline when it is compact, and not when it is indented', async () => {
    expect(await text(encodeValue(written('json', false), value))).toBe('{"a":[1],"b":{}}\n');
    expect(await text(encodeValue(written('json', true), value))).toBe(
      '{\n  "a": [\n    1\n  ],\n  "b": {}\n}',
    );
  });

  test('is the same from bytes', async () => {
    const json = Buffer.from(JSON.stringify(value));
    for (const form of [written('json', false), written('json', true), written('yaml', false)]) {
      expect(await text(encodeBytes(form, json))).toBe(await text(encodeValue(form, value)));
    }
  });
});
