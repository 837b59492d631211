import { encodeCbor } from '@wheelhouse/codec';
import { builtinKinds, schemaOf } from '@wheelhouse/kinds';
import { dialectOf, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createEncodings } from '../../answer/encodings.ts';
import { decoderFor } from './body.ts';

const dialect = dialectOf('svc');
const encodings = createEncodings({ dialect, cbor: 'served' });
const type = { apiVersion: 'v1', kind: 'ConfigMap' };
const object = { ...type, metadata: { name: 'one' }, data: { a: 'b' } };
const json = Buffer.from(JSON.stringify(object));
const expected = {
  served: encodings.failures,
  dialect,
  type,
  schema: schemaOf('core.v1.ConfigMap'),
  isWanted: () => true,
  paceOf: () => undefined,
};
const decode = async (contentType: string | undefined, bytes: Buffer) =>
  decoderFor(contentType, expected)(bytes);

describe('CODEC-1: the decoder of a body', () => {
  test.each([
    [undefined],
    [''],
    ['application/json'],
    ['application/json; charset=utf-8'],
    ['Application/JSON'],
  ])('is JSON for the Content-Type %j', async (contentType) => {
    expect(await decode(contentType, json)).toMatchObject({ value: object, duplicates: [] });
  });

  test('is YAML, and says so', async () => {
    const yaml = Buffer.from(
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}',
    );
    expect(await decode('application/yaml', yaml)).toMatchObject({ value: object, yaml: true });
  });

  test('is protobuf, whose envelope names the type', async () => {
    const protobuf = encodings.failures.find(({ form }) => form === 'protobuf');
    const bytes = await protobuf?.encode(object);
    if (bytes === undefined) throw new Error('protobuf is not served');
    expect(await decode(dialect.protobufMediaType, bytes)).toMatchObject({ value: object });
  });

  test('is CBOR', async () => {
    expect(await decode('application/cbor', encodeCbor(object))).toMatchObject({ value: object });
  });

  test('reports duplicate JSON members', async () => {
    const twice = Buffer.from('{"data":{"a":"x","a":"y"},"data":{}}');
    const { duplicates } = await decode('application/json', twice);
    expect(duplicates).toEqual(['data.a', 'data']);
  });

  test.each(['text/plain', 'application/xml', 'json', 'application/'])(
    'API-9: does not exist for %s',
    (contentType) => {
      const refused = () => decoderFor(contentType, expected);
      expect(refused).toThrow(StatusError);
      expect(refused).toThrow('application/json');
    },
  );

  test('API-9: does not exist for an encoding that a kind has for metadata only', () => {
    const def = builtinKinds(dialect).find(({ resource }) => resource === 'configmaps');
    if (def === undefined) throw new Error('there are no ConfigMaps');
    const custom = { ...def, behavior: { ...def.behavior, offersProtobuf: false } };
    const served = encodings.of(custom);
    expect(() => decoderFor(dialect.protobufMediaType, { ...expected, served })).toThrow(
      StatusError,
    );
  });
});
