import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { defineThing, freshName, type ThingKind } from '../objects/apply-kinds.ts';
import { type Answer, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** What aliases, defaults, and patches may make of bodies that are within their own limits. */

const server = await withServer();
let namespace: string;
let kind: ThingKind;

/** A text that defaults, aliases, and patches multiply. */
const text = 'x'.repeat(1_000_000);
const bulk = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, '']));
const items = (name: string, standard: JsonValue): JsonObject => ({
  type: 'array',
  items: {
    type: 'object',
    properties: { [name]: { 'x-kubernetes-preserve-unknown-fields': true, default: standard } },
  },
});

beforeAll(async () => {
  namespace = await freshNamespace(server);
  const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const spec = { ...free, properties: { texts: items('text', text), bulks: items('bulk', bulk) } };
  kind = await defineThing(server, [{ properties: { spec } }]);
});

const path = () => kind.path(namespace);
const tooManyCharacters = 'Request entity too large: limit is 6291456 characters';
const failure = ({ status, body }: Answer) => [status, body.reason, body.message];

describe('aliases of YAML', () => {
  /** A thing with a text and many references to it. */
  const aliased = (name: string, options: { readonly of: string; readonly count: number }) => {
    const list = new Array(options.count).fill('*t').join(', ');
    const { apiVersion, kind: named } = kind.body(name, {});
    const head = `apiVersion: ${apiVersion}\nkind: ${named}\nmetadata: {name: ${name}}`;
    return Buffer.from(`${head}\nspec:\n  t: &t ${options.of}\n  list: [${list}]\n`);
  };

  test.each([
    ['quoted', `"${text}"`],
    ['plain', text],
  ])('TRUST-2: do not multiply a %s text beyond the limit of an object', async (_, of) => {
    const name = freshName();
    const body = aliased(name, { of, count: 900 });
    const created = await server.post(path(), body, { type: 'application/yaml' });
    expect(failure(created)).toEqual([413, 'RequestEntityTooLarge', tooManyCharacters]);
    const applied = await server.patch(`${path()}/${name}?fieldManager=a`, body, 'apply');
    expect(failure(applied)).toEqual([413, 'RequestEntityTooLarge', tooManyCharacters]);
    expect((await server.get(`${path()}/${name}`)).status).toBe(404);
  });

  test('TRUST-2: within the limit are copies', async () => {
    const name = freshName();
    const body = aliased(name, { of: 'word', count: 900 });
    const created = await server.post(path(), body, { type: 'application/yaml' });
    expect(created.status, created.text).toBe(201);
    expect(created.body.spec.list).toEqual(new Array(900).fill('word'));
  });
});

describe('defaults', () => {
  const refused = 'adding the defaults needs more work than one request may cost';

  test.each([
    ['many values', { bulks: new Array(50).fill({}) }],
    ['long texts', { texts: new Array(50).fill({}) }],
    ['many values in a large body', { bulks: new Array(20_000).fill({}) }],
    ['long texts in a large body', { texts: new Array(20_000).fill({}) }],
  ])('TRUST-2: that add %s are refused', async (_, spec) => {
    const name = freshName();
    const created = await server.post(path(), kind.body(name, { spec }));
    expect(failure(created)).toEqual([422, 'Invalid', refused]);
    const applied = await server.patch(
      `${path()}/${name}?fieldManager=a`,
      kind.body(name, { spec }),
      'apply',
    );
    expect(failure(applied)).toEqual([422, 'Invalid', refused]);
    expect((await server.get(`${path()}/${name}`)).status).toBe(404);
  });

  test('TRUST-2: that add too many characters to a large body are refused', async () => {
    const spec = { padding: 'x'.repeat(2_000_000), texts: new Array(5).fill({}) };
    const created = await server.post(path(), kind.body(freshName(), { spec }));
    expect(failure(created)).toEqual([413, 'RequestEntityTooLarge', tooManyCharacters]);
  });

  test('TRUST-2: within the limits are added', async () => {
    const spec = { texts: [{}], bulks: [{}] };
    const created = await server.post(path(), kind.body(freshName(), { spec }));
    expect(created.status, created.text.slice(0, 200)).toBe(201);
    expect(created.body.spec).toEqual({ texts: [{ text }], bulks: [{ bulk }] });
  });

  test('TRUST-2: of a later definition are left out of stored objects beyond the limit', async () => {
    const specOf = (texts: JsonObject) => ({ spec: { type: 'object', properties: { texts } } });
    const plain = { type: 'array', items: { type: 'object' } };
    const later = await defineThing(server, [{ properties: specOf(plain) }]);
    const name = freshName();
    const spec = { texts: new Array(100).fill({}) };
    const created = await server.post(later.path(namespace), later.body(name, { spec }));
    expect(created.status, created.text).toBe(201);
    await later.change((crd) => {
      crd.spec.versions[0].schema.openAPIV3Schema.properties = specOf(items('text', text));
    });
    const { status, body } = await server.get(`${later.path(namespace)}/${name}`);
    expect(status).toBe(200);
    const texts = (body.spec['texts'] ?? []) as JsonValue[];
    const defaulted = texts.filter((item) => isObject(item) && item['text'] === text);
    expect(texts).toHaveLength(100);
    expect(defaulted.length).toBeGreaterThan(1);
    expect(defaulted.length).toBeLessThan(30);
  });
});

describe('patches', () => {
  test('TRUST-2: cannot make an object grow without limit', async () => {
    const name = freshName();
    const created = await server.post(path(), kind.body(name, { spec: { a: text } }));
    expect(created.status).toBe(201);
    const grow = (index: number) =>
      server.patch(`${path()}/${name}`, { spec: { [`b${index}`]: text.repeat(2) } }, 'merge');
    expect((await grow(0)).status).toBe(200);
    expect((await grow(1)).status).toBe(200);
    expect(failure(await grow(2))).toEqual([413, 'RequestEntityTooLarge', tooManyCharacters]);
    const stored = await server.get(`${path()}/${name}`);
    expect(Object.keys(stored.body.spec).sort()).toEqual(['a', 'b0', 'b1']);
    const shrunk = await server.patch(`${path()}/${name}`, { spec: { b0: null } }, 'merge');
    expect(shrunk.status).toBe(200);
  });

  test('TRUST-2, MF-2: an object that is too large to store loses its managed fields', async () => {
    const name = freshName();
    // JSON escapes each of these characters with six.
    const spec = { a: '\u0001'.repeat(500_000) };
    const created = await server.post(path(), kind.body(name, { spec }));
    expect(created.status).toBe(201);
    const grow = (member: string, count: number) =>
      server.patch(`${path()}/${name}`, { spec: { [member]: '\u0001'.repeat(count) } }, 'merge');
    const used = Buffer.byteLength((await grow('b', 400_000)).text);
    const grown = await grow('c', Math.ceil((6_291_456 - used) / 6) + 15);
    expect(grown.status, grown.text.slice(0, 300)).toBe(200);
    expect(grown.body.metadata.managedFields).toBeUndefined();
    const limit = 'Request entity too large: limit is 6291456 bytes of a stored object';
    expect(failure(await grow('d', 1000))).toEqual([413, 'RequestEntityTooLarge', limit]);
    expect((await server.get(`${path()}/${name}`)).body.spec).toEqual(grown.body.spec);
  });
});
