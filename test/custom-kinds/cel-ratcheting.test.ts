import { expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';
import { causesOf, establish, redefine } from './custom-kinds.ts';

const server = await withServer();

let count = 0;

/** Defines a kind whose object `one` was created before its schema had the given rules. */
async function madeBefore(made: { schema: object; before: object; object: object; more?: object }) {
  count += 1;
  const group = `ratchet${count}.example.com`;
  const more = made.more ?? {};
  const version = (schema: object) => ({
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: { type: 'object', properties: schema } },
    ...more,
  });
  const names = { group, plural: 'rules', kind: 'Rule', scope: 'Cluster' } as const;
  await establish(server, { ...names, versions: [version(made.before)] });
  const path = `/apis/${group}/v1/rules`;
  const body = { apiVersion: `${group}/v1`, kind: 'Rule', metadata: { name: 'one' } };
  expect((await server.post(path, { ...body, ...made.object })).status).toBe(201);
  if ('subresources' in more) {
    expect((await server.patch(`${path}/one/status`, made.object, 'merge')).status).toBe(200);
  }
  const changed = await redefine(server, `rules.${group}`, (spec) => {
    Object.assign(spec, { versions: [version(made.schema)] });
  });
  expect(changed.status).toBe(200);
  return (change: object, at = '') => server.patch(`${path}/one${at}`, change, 'merge');
}

const rules = (...list: object[]) => ({ 'x-kubernetes-validations': list });
const integer = { type: 'integer' };
const positive = rules({ rule: 'self > 0', message: 'too low' });

test('CRD-3: a rule that the old object already broke produces a warning', async () => {
  const before = { spec: { type: 'object', properties: { n: integer, other: integer } } };
  const schema = {
    spec: { type: 'object', properties: { n: { ...integer, ...positive }, other: integer } },
  };
  const change = await madeBefore({ schema, before, object: { spec: { n: 0 } } });
  const kept = await change({ spec: { other: 1 } });
  expect(kept.status).toBe(200);
  expect(kept.headers['warning']).toBe('299 - "spec.n: Invalid value: \\"integer\\": too low"');
  expect(causesOf(await change({ spec: { n: -1 } }))).toEqual([
    'spec.n: Invalid value: "integer": too low',
  ]);
});

test('CRD-3: items without a correlatable old value change with their parent', async () => {
  const list = (more: object = {}) => ({
    spec: {
      type: 'object',
      properties: { list: { type: 'array', items: { ...integer, ...more } }, other: integer },
    },
  });
  const change = await madeBefore({
    schema: list(positive),
    before: list(),
    object: { spec: { list: [0, 1] } },
  });
  const kept = await change({ spec: { other: 1 } });
  expect(kept.status).toBe(200);
  expect(kept.headers['warning']).toContain('spec.list[0]: Invalid value:');
  expect(causesOf(await change({ spec: { list: [0, 1, 2] } }))).toEqual([
    'spec.list[0]: Invalid value: "integer": too low',
  ]);
});

test('CRD-3: a rule that fails to evaluate rejects a change, regardless of the old value', async () => {
  const spec = (more: object = {}) => ({
    spec: { type: 'object', properties: { n: { ...integer, ...more }, other: integer } },
  });
  const change = await madeBefore({
    schema: spec(rules({ rule: '10 / self > 1' })),
    before: spec(),
    object: { spec: { n: 0 } },
  });
  expect(causesOf(await change({ spec: { other: 1 } }))).toEqual([
    'spec.n: Invalid value: "integer": division by zero evaluating rule: 10 / self > 1',
  ]);
});

test('CRD-3: a status update is not refused for existing violations of schema or rules', async () => {
  const status = (more: object = {}) => ({
    status: { type: 'object', properties: { n: { ...integer, ...more }, other: integer } },
  });
  const change = await madeBefore({
    schema: status({ ...positive, minimum: 1 }),
    before: status(),
    object: { status: { n: 0 } },
    more: { subresources: { status: {} } },
  });
  const kept = await change({ status: { other: 1 } }, '/status');
  expect(kept.status).toBe(200);
  expect(kept.headers['warning']).toContain('status.n: Invalid value: \\"integer\\": too low');
  expect((await change({ status: { n: -1 } }, '/status')).status).toBe(422);
});

test('CRD-3: an object with a null member never equals another, as in kube-apiserver', async () => {
  const text = { type: 'string', nullable: true };
  const spec = (more: object = {}) => ({
    spec: { type: 'object', properties: { a: text, b: text }, ...more },
  });
  const change = await madeBefore({
    schema: spec(rules({ rule: 'self == oldSelf', message: 'moved' })),
    before: spec(),
    object: { spec: { a: null, b: 'x' } },
  });
  const label = { metadata: { labels: { a: 'b' } } };
  expect(causesOf(await change(label))).toEqual(['spec: Invalid value: "object": moved']);
});

test('CRD-3: an optional old value is untyped', async () => {
  const spec = (rule?: string) => ({
    spec: {
      type: 'object',
      properties: { a: { type: 'string', nullable: true }, 'b-c': integer },
      'x-kubernetes-preserve-unknown-fields': true,
      ...(rule === undefined ? {} : rules({ rule, optionalOldSelf: true, message: 'moved' })),
    },
  });
  const label = { metadata: { labels: { a: 'b' } } };
  const same = spec('!oldSelf.hasValue() || self == oldSelf.value()');
  const before = spec();
  const kept = await madeBefore({ schema: same, before, object: { spec: { a: null, 'b-c': 1 } } });
  expect((await kept(label)).status).toBe(200);
  const open = await madeBefore({ schema: same, before, object: { spec: { unknown: 1 } } });
  expect(causesOf(await open(label))).toEqual([
    'spec: Invalid value: "object": \'no such overload\': call arguments did not match a ' +
      'supported operator, function or macro signature for rule: moved',
  ]);
  const turned = spec('!oldSelf.hasValue() || oldSelf.value() == self');
  const swapped = await madeBefore({ schema: turned, before, object: { spec: { unknown: 1 } } });
  expect(causesOf(await swapped(label))).toEqual(['spec: Invalid value: "object": moved']);
});

test('CRD-3: an open object of a known type compares only with its like', async () => {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const spec = (...list: object[]) => ({
    spec: { ...open, ...(list.length === 0 ? {} : rules(...list)) },
  });
  const change = await madeBefore({
    schema: spec(
      { rule: 'self == oldSelf' },
      { rule: '!oldSelf.hasValue() || oldSelf.value() == self', optionalOldSelf: true },
      { rule: '!oldSelf.hasValue() || self == oldSelf.value()', optionalOldSelf: true },
    ),
    before: spec(),
    object: { spec: { n: null, m: 'x' } },
  });
  const label = { metadata: { labels: { a: 'b' } } };
  expect(causesOf(await change(label))).toEqual([
    'spec: Invalid value: "object": failed rule: !oldSelf.hasValue() || oldSelf.value() == self',
    'spec: Invalid value: "object": \'no such overload\': call arguments did not match a ' +
      'supported operator, function or macro signature for rule: ' +
      '!oldSelf.hasValue() || self == oldSelf.value()',
  ]);
});

test('CRD-3: item rules below a schema without a list fail for any list', async () => {
  const items = { type: 'object', properties: { n: { ...integer, ...positive } } };
  const list = { type: 'array', items };
  const ruled = { ...items, ...rules({ rule: 'self.n < 10' }) };
  const change = await madeBefore({
    schema: { spec: { type: 'object', properties: { list: { type: 'object', items: ruled } } } },
    before: { spec: { type: 'object', properties: { list } } },
    object: { spec: { list: [{ n: 1 }] } },
  });
  expect(causesOf(await change({ metadata: { labels: { a: 'b' } } }))).toEqual([
    'spec.list[0]: Invalid value: "object": rule compiler initialization error: ' +
      'failed to convert to declType for CEL validation rules',
  ]);
});

test('CRD-3: an alternative fails for members that are unchanged', async () => {
  const spec = (more: object = {}) => ({
    spec: { type: 'object', properties: { n: integer, other: integer }, ...more },
  });
  const change = await madeBefore({
    schema: spec({ oneOf: [{ properties: { n: { maximum: 3 } }, required: ['n'] }] }),
    before: spec(),
    object: { spec: { n: 9 } },
  });
  expect((await change({ metadata: { labels: { a: 'b' } } })).status).toBe(200);
  expect(causesOf(await change({ spec: { other: 1 } }))).toEqual([
    '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid',
    'spec.n: Invalid value: 9: spec.n in body should be less than or equal to 3',
  ]);
  expect((await change({ spec: { n: 3, other: 1 } })).status).toBe(200);
});
