import { encodeCbor } from '@wheelhouse/codec';
import { StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { applyBody, applyBodyOfCbor } from './apply.ts';

const reading = { isWanted: () => true, paceOf: () => undefined };
const read = async (text: string) => applyBody(Buffer.from(text), reading);
const message = async (text: string) => {
  const error: unknown = await read(text).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StatusError);
  return error instanceof StatusError ? `${error.code} ${error.message}` : '';
};

describe('SSA-1: the body of an apply', () => {
  const value = { apiVersion: 'v1', kind: 'ConfigMap' };

  test.each([
    ['JSON', '{"apiVersion":"v1","kind":"ConfigMap"}'],
    ['JSON behind white space', '\n {"apiVersion":"v1","kind":"ConfigMap"}'],
    ['YAML', 'apiVersion: v1\nkind: ConfigMap\n'],
    ['YAML that begins like JSON', '{apiVersion: v1, kind: ConfigMap}'],
    ['the version of the core with a slash before it', '{"apiVersion":"/v1","kind":"ConfigMap"}'],
  ])('may be %s', async (_, text) => {
    expect(await read(text)).toEqual({ value, repeated: [] });
  });

  test('may be empty', async () => {
    expect(await read('')).toEqual({ value: {}, repeated: [] });
    expect(await read('null')).toEqual({ value: {}, repeated: [] });
  });

  test('reports duplicate keys, in JSON as in YAML', async () => {
    expect((await read('{"a":1,"a":2}')).repeated).toEqual(['line 1: key "a" already set in map']);
    expect((await read('a: 1\na: 2\n')).repeated).toEqual(['line 2: key "a" already set in map']);
  });

  test('is 400 when it is not a map or unreadable', async () => {
    expect(await message('[1]')).toBe(
      '400 error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot ' +
        'unmarshal array into Go value of type map[string]interface {}',
    );
    expect(await message('{"a":')).toMatch(
      /^400 error decoding YAML: error converting YAML to JSON/,
    );
    expect(await message('a: b: c')).toMatch(/^400 error decoding YAML: error converting YAML/);
  });

  test('CODEC-4: may be CBOR', () => {
    expect(applyBodyOfCbor(encodeCbor({ ...value, apiVersion: '/v1' })).value).toEqual(value);
    expect(() => applyBodyOfCbor(Buffer.from([0xff]))).toThrow(/^error decoding YAML: /);
  });
});
