import { expect, test } from 'vitest';
import { cpuMsOf } from '../support/cpu-time.ts';
import { withServer } from '../support/with-server.ts';
import { establish } from './custom-kinds.ts';

const server = await withServer();
const group = 'large-rules.example.com';

test('TRUST-2: items that no rule reads take little time', async () => {
  const bytes = { type: 'string', format: 'byte' };
  let schema: object = { type: 'object', properties: { list: { type: 'array', items: bytes } } };
  // Validation accepts what rules cannot read.
  let value: object = { list: Array(55_000).fill('ab+/') };
  let path = 'list';
  for (let level = 0; level < 10; level += 1) {
    path = `inner.${path}`;
    const rule = { rule: `self.${path}.size() > 0` };
    schema = { type: 'object', properties: { inner: schema }, 'x-kubernetes-validations': [rule] };
    value = { inner: value };
  }
  const root = { type: 'object', properties: { spec: schema } };
  await establish(server, { group, plural: 'rules', kind: 'Rule', schema: root });
  const object = {
    apiVersion: `${group}/v1`,
    kind: 'Rule',
    metadata: { name: 'one' },
    spec: value,
  };
  const cpuMs = await cpuMsOf(async () => {
    const made = await server.post(`/apis/${group}/v1/namespaces/default/rules`, object);
    expect(made.status, made.text).toBe(201);
  });
  expect(cpuMs).toBeLessThan(2000);
});
