import { decodeMessage, encodeMessage } from '@wheelhouse/codec';
import type { JsonObject } from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { crdSchema } from './crd-schema.ts';

const schema = {
  type: 'object',
  properties: {
    a: { type: 'array', items: { type: 'string' }, default: ['x'], maxItems: 3 },
    b: { type: 'object', additionalProperties: false },
    c: { type: 'object', additionalProperties: { type: 'integer', enum: [1, 2] } },
    d: { items: [{ type: 'number', minimum: 0.5 }], dependencies: { e: ['f'], g: {} } },
  },
  'x-kubernetes-validations': [{ rule: 'true' }],
};
const definition = {
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    names: { plural: 'widgets', kind: 'Widget' },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
  status: {
    conditions: [
      { type: 'Established', status: 'True', lastTransitionTime: '2024-01-01T00:00:00Z' },
    ],
    acceptedNames: { plural: 'widgets', kind: 'Widget' },
    storedVersions: ['v1'],
  },
};

const typed = (value: JsonObject) => decodeTyped(crdSchema())(value);

test('a CustomResourceDefinition survives protobuf encoding and decoding', () => {
  const bytes = encodeMessage(crdSchema(), typed(definition as JsonObject));
  const { apiVersion: _, kind: __, ...rest } = typed(definition as JsonObject);
  expect(typed(decodeMessage(crdSchema(), bytes))).toEqual(rest);
});

test('a member that is a schema or a boolean is encoded as a message of both', () => {
  const only = (additionalProperties: boolean | object) => {
    const props = { openAPIV3Schema: { additionalProperties } };
    const version = { name: 'v', served: false, storage: false, schema: props };
    const bytes = encodeMessage(
      crdSchema(),
      typed({ spec: { versions: [version] } } as JsonObject),
    );
    return bytes.toString('hex');
  };
  // Field 30 of the schema: allows, then the schema with its type.
  expect(only(false)).toContain('f201020800');
  expect(only({ type: 'a' })).toMatch(/f201[0-9a-f]{2}080112[0-9a-f]{2}/);
});
