import { describe, expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';
import { establish, versionOf } from './custom-kinds.ts';

/** Integers that JSON spells like `1.0`, which are floats to Go until they have been stored. */

const group = 'floats.example.com';
const path = `/apis/${group}/v1/namespaces/default/floats`;
const integer = { type: 'integer' };
const rules = (...texts: string[]) => ({
  'x-kubernetes-validations': texts.map((rule) => ({ rule })),
});
const specSchema = {
  type: 'object',
  properties: {
    replicas: integer,
    plain: integer,
    ruled: { ...integer, ...rules('self < 9') },
    read: integer,
    number: { type: 'number' },
    either: { 'x-kubernetes-int-or-string': true },
    list: { type: 'array', items: integer },
    any: { 'x-kubernetes-preserve-unknown-fields': true },
  },
  ...rules(
    '!has(self.read) || self.read < 9',
    '!has(self.number) || self.number < 9.0',
    "!has(self.either) || string(self.either) != ''",
    '!has(self.list) || self.list.all(item, item < 9)',
  ),
};
const status = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const server = await withServer();
const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
await establish(server, {
  group,
  plural: 'floats',
  kind: 'Float',
  versions: [
    versionOf(
      'v1',
      { type: 'object', properties: { spec: specSchema, status } },
      { storage: true, subresources: { scale, status: {} } },
    ),
  ],
});

let made = 0;
const textOf = (name: string, spec: string) =>
  `{"apiVersion":"${group}/v1","kind":"Float","metadata":{"name":"${name}"},"spec":${spec}}`;
async function create(spec: string) {
  made += 1;
  const answer = await server.post(path, textOf(`f${made}`, spec));
  return { answer, at: `${path}/f${made}` };
}
const accessor = (field: string, shown: string) =>
  `${field}: Invalid value: 0: ${field} accessor error: ${shown} is of the type float64, expected int64`;

describe('CRD-3, CRD-4: integers that are spelled as floats', () => {
  test.each([
    ['{"replicas":1.0}', accessor('.spec.replicas', '1')],
    ['{"replicas":2e1}', accessor('.spec.replicas', '20')],
    [
      '{"ruled":1.0}',
      'spec.ruled: Invalid value: "integer": invalid data, expected int, got float64 evaluating rule: self < 9',
    ],
    [
      '{"read":1e0}',
      'spec: Invalid value: "object": invalid data, expected int, got float64 ' +
        'evaluating rule: !has(self.read) || self.read < 9',
    ],
    [
      '{"either":2.0}',
      'spec: Invalid value: "object": invalid data, expected XIntOrString value to be either a string or integer evaluating rule: ' +
        "!has(self.either) || string(self.either) != ''",
    ],
    [
      '{"list":[1,2.0]}',
      'spec: Invalid value: "object": invalid data, expected int, got float64 ' +
        'evaluating rule: !has(self.list) || self.list.all(item, item < 9)',
    ],
  ])('CRD-3, CRD-4: %s is refused', async (spec, message) => {
    const { answer } = await create(spec);
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(`is invalid: ${message}`);
  });

  test.each(['{"plain":1.0}', '{"number":1.0}', '{"any":{"a":[1.0]}}', '{"plain":1e2,"read":1}'])(
    'CRD-3: %s, which nothing reads as an integer, is stored',
    async (spec) => {
      const { answer, at } = await create(spec);
      expect(answer.status, answer.text).toBe(201);
      expect((await server.get(at)).body.spec).toEqual(JSON.parse(spec));
    },
  );

  test('CRD-3, CRD-4: updates and patches are refused too', async () => {
    const { answer, at } = await create('{"read":1,"replicas":1}');
    const { name, resourceVersion } = answer.body.metadata;
    const text = textOf(`${name}","resourceVersion":"${resourceVersion}`, '{"replicas":1.0}');
    const put = await server.put(at, text);
    expect(put.body.message).toContain(accessor('.spec.replicas', '1'));
    const wanted = accessor('.spec.replicas', '3');
    const merged = await server.patch(at, '{"spec":{"replicas":3.0}}', 'merge');
    expect(merged.body.message).toContain(wanted);
    const operations = '[{"op":"replace","path":"/spec/replicas","value":3.0}]';
    expect((await server.patch(at, operations, 'json')).body.message).toContain(wanted);
    const ofStatus = await server.patch(`${at}/status`, '{"status":{"replicas":1.0}}', 'merge');
    expect(ofStatus.body.message).toContain(accessor('.status.replicas', '1'));
    // Other fields of the patched object are as stored.
    expect((await server.patch(at, '{"spec":{"plain":3.0}}', 'merge')).status).toBe(200);
    expect((await server.patch(at, '{"metadata":{"labels":{"a":"b"}}}', 'merge')).status).toBe(200);
  });
});
