import { describe, expect, test } from 'vitest';
import { type Answer, eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  causesOf,
  definitionOf,
  definitions,
  establish,
  redefine,
  untilGone,
  versionOf,
} from './custom-kinds.ts';

const server = await withServer();

let kinds = 0;

/** Defines a kind whose spec has a schema; returns a function that creates its objects. */
async function kindWith(schema: object, root: object = {}) {
  kinds += 1;
  const group = `values${kinds}.example.com`;
  const whole = { type: 'object', properties: { spec: schema, ...root } };
  await establish(server, { group, plural: 'things', kind: 'Thing', schema: whole });
  const path = `/apis/${group}/v1/namespaces/default/things`;
  const objectOf = (name: string, spec: unknown, more: object = {}): object => ({
    apiVersion: `${group}/v1`,
    kind: 'Thing',
    metadata: { name },
    spec,
    ...more,
  });
  return {
    path,
    objectOf,
    create: (name: string, spec: unknown, query = ''): Promise<Answer> =>
      server.post(`${path}${query}`, objectOf(name, spec)),
    async drop() {
      await server.remove(`${definitions}/things.${group}`);
      await untilGone(server, `${definitions}/things.${group}`);
    },
  };
}

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('validation', () => {
  test('CRD-2: a wrong type in a spec that is a list is reported with its index', async () => {
    const { create } = await kindWith({ type: 'array', items: object({ a: { type: 'integer' } }) });
    const refused = await create('a', [{ a: 1 }, 'b', { a: 'c' }]);
    expect(causesOf(refused)).toEqual([
      'spec[1]: Invalid value: "string": spec[1] in body must be of type object: "string"',
      'spec[2].a: Invalid value: "string": spec[2].a in body must be of type integer: "string"',
    ]);
  });

  test('CRD-2: each violated constraint has its own reason, field, and wording', async () => {
    const schema = object(
      {
        a: { type: 'string', maxLength: 3, minLength: 2, pattern: '^[a-z]+$' },
        b: { type: 'integer', minimum: 1, maximum: 5, multipleOf: 2 },
        c: { type: 'array', minItems: 1, maxItems: 2, items: { type: 'string' } },
        d: { type: 'string', enum: ['x', 'y'] },
        e: { type: 'object', additionalProperties: { type: 'integer' }, maxProperties: 1 },
        f: { type: 'integer', format: 'int32' },
        g: { type: 'number', exclusiveMinimum: true, minimum: 0 },
      },
      { required: ['a'] },
    );
    const { create } = await kindWith(schema);
    expect((await create('ok', { a: 'abc', b: 4, c: ['x'], d: 'x', e: { k: 1 } })).status).toBe(
      201,
    );
    const cases: readonly (readonly [object, string, string])[] = [
      [{}, 'FieldValueRequired', 'spec.a: Required value'],
      [{ a: 'abcd' }, 'FieldValueTooLong', 'spec.a: Too long: may not be more than 3 bytes'],
      [
        { a: 'a' },
        'FieldValueInvalid',
        'spec.a: Invalid value: "a": spec.a in body should be at least 2 chars long',
      ],
      [
        { a: 'AB' },
        'FieldValueInvalid',
        'spec.a: Invalid value: "AB": spec.a in body should match \'^[a-z]+$\'',
      ],
      [
        { a: 1 },
        'FieldValueTypeInvalid',
        'spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"',
      ],
      [
        { a: 'ab', b: 3 },
        'FieldValueInvalid',
        'spec.b: Invalid value: 3: spec.b in body should be a multiple of 2',
      ],
      [
        { a: 'ab', b: 0 },
        'FieldValueInvalid',
        'spec.b: Invalid value: 0: spec.b in body should be greater than or equal to 1',
      ],
      [
        { a: 'ab', c: [] },
        'FieldValueInvalid',
        'spec.c: Invalid value: 0: spec.c in body should have at least 1 items',
      ],
      [
        { a: 'ab', c: ['1', '2', '3'] },
        'FieldValueTooMany',
        'spec.c: Too many: 3: must have at most 2 items',
      ],
      [
        { a: 'ab', d: 'z' },
        'FieldValueNotSupported',
        'spec.d: Unsupported value: "z": supported values: "x", "y"',
      ],
      [
        { a: 'ab', e: { k: 'x' } },
        'FieldValueTypeInvalid',
        'spec.e.k: Invalid value: "string": spec.e.k in body must be of type integer: "string"',
      ],
      [
        { a: 'ab', g: 0 },
        'FieldValueInvalid',
        'spec.g: Invalid value: 0: spec.g in body should be greater than 0',
      ],
    ];
    for (const [spec, reason, text] of cases) {
      const answer = await create('bad', spec);
      expect(answer.status, text).toBe(422);
      expect(answer.body.reason).toBe('Invalid');
      expect(causesOf(answer)).toEqual([text]);
      expect(answer.body.details.causes[0].reason).toBe(reason);
    }
  });

  test('CRD-2: updates, patches, and applies are validated like creates', async () => {
    const { create, path, objectOf } = await kindWith(object({ a: { type: 'string' } }));
    await create('one', { a: 'x' });
    const { body } = await server.get(`${path}/one`);
    const wrong = { ...objectOf('one', { a: 1 }), metadata: body.metadata };
    expect((await server.put(`${path}/one`, wrong)).status).toBe(422);
    expect((await server.patch(`${path}/one`, { spec: { a: 1 } }, 'merge')).status).toBe(422);
    const apply = { ...objectOf('one', { a: [] }) };
    const applied = await server.patch(`${path}/one?fieldManager=m`, apply, 'apply');
    expect(applied.status).toBeGreaterThanOrEqual(400);
    expect(applied.status).toBeLessThan(500);
  });

  test('CRD-2: known formats are checked, and others ignored', async () => {
    const formats: readonly (readonly [string, string, string])[] = [
      ['date-time', '2024-01-02T03:04:05Z', 'yesterday'],
      ['date', '2024-01-02', '2024-13-02'],
      ['duration', '1h', 'soon'],
      ['ipv4', '10.0.0.1', '10.0.0.256'],
      ['ipv6', '::1', 'g::1'],
      ['cidr', '10.0.0.0/8', '10.0.0.0/64'],
      ['uuid', '123e4567-e89b-12d3-a456-426614174000', 'x'],
      ['byte', 'YQ==', '?'],
      ['email', 'a@example.com', 'nobody'],
      ['hostname', 'example.com', '-'],
      ['uri', 'https://example.com/', 'no uri'],
      ['mac', '00:00:5e:00:53:01', 'x'],
    ];
    const properties = Object.fromEntries(
      formats.map(([format]) => [format, { type: 'string', format }]),
    );
    const unknown = { type: 'string', format: 'made-up' };
    const { create } = await kindWith(object({ ...properties, unknown }));
    const good = Object.fromEntries(formats.map(([format, value]) => [format, value]));
    expect((await create('good', { ...good, unknown: 'anything' })).status).toBe(201);
    for (const [format, , bad] of formats) {
      const answer = await create('bad', { [format]: bad });
      expect(answer.status, `${format} of ${bad}`).toBe(422);
      expect(causesOf(answer)).toEqual([
        `spec.${format}: Invalid value: ${JSON.stringify(bad)}: ` +
          `spec.${format} in body must be of type ${format}: ${JSON.stringify(bad)}`,
      ]);
    }
  });

  test('CRD-2: an integer fits an int64, and a number has no format', async () => {
    const whole = { type: 'integer' };
    const either = { 'x-kubernetes-int-or-string': true, anyOf: [whole, { type: 'string' }] };
    const short = { ...whole, format: 'int32' };
    const { create } = await kindWith(object({ whole, short, either }));
    const given = { whole: 2 ** 53 - 1, short: 2 ** 31, either: -(2 ** 40) };
    const { status, body } = await create('wide', given);
    expect(status).toBe(201);
    expect(body['spec']).toEqual(given);
    const wrong = (path: string, types: string) =>
      `${path}: Invalid value: "number": ${path} in body must be of type ${types}: "number"`;
    expect([...causesOf(await create('no', { whole: 1e300, either: 1.5 }))].sort()).toEqual([
      '<nil>: Invalid value: "": "spec.either" must validate at least one schema (anyOf)',
      wrong('spec.either', 'integer,string'),
      wrong('spec.either', 'integer'),
      wrong('spec.whole', 'integer'),
    ]);
  });

  test('CRD-2: sets are unique by value, and maps by key', async () => {
    const set = { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } };
    const map = {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'port'],
      items: object(
        { name: { type: 'string' }, port: { type: 'integer', default: 80 } },
        { required: ['name'] },
      ),
    };
    const { create } = await kindWith(object({ set, map }));
    expect((await create('good', { set: ['a', 'b'], map: [{ name: 'a' }] })).status).toBe(201);
    const twice = await create('bad', { set: ['a', 'a'] });
    expect(causesOf(twice)).toEqual(['spec.set[1]: Duplicate value: "a"']);
    const keys = await create('bad', { map: [{ name: 'a' }, { name: 'a', port: 80 }] });
    expect(keys.status).toBe(422);
    expect(keys.body.details.causes[0]).toMatchObject({
      reason: 'FieldValueDuplicate',
      field: 'spec.map[1]',
    });
  });

  test('CRD-2: lists are unique below a schema of both objects and lists', async () => {
    const set = { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } };
    const { create } = await kindWith(object({ set }, { items: { type: 'string' } }));
    const twice = await create('bad', { set: ['a', 'a'] });
    expect(causesOf(twice)).toEqual(['spec.set[1]: Duplicate value: "a"']);
  });

  test('CRD-2: an alternative may forbid the members that it does not declare', async () => {
    const members = { a: { type: 'string' }, b: { type: 'string' } };
    const closed = { additionalProperties: false };
    const { create } = await kindWith(
      object({
        not: object(members, { not: closed }),
        any: object(members, { anyOf: [closed, { required: ['a'] }] }),
      }),
    );
    expect((await create('a', { not: { a: 'x' }, any: { a: 'x', b: 'x' } })).status).toBe(201);
    const refused = await create('b', { not: {}, any: { b: 'x' } });
    expect(causesOf(refused)).toEqual([
      '<nil>: Invalid value: "": "spec.not" must not validate the schema (not)',
      '<nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf)',
      'spec.any: Invalid value: "b": spec.any.b in body is a forbidden property',
    ]);
  });

  test('CRD-2: a default is validated without members that an alternative forbids', async () => {
    const any = object({ a: { type: 'string' } }, { default: { a: 'x' } });
    const refusing = { ...any, anyOf: [{ additionalProperties: false }, { required: ['a'] }] };
    const { create } = await kindWith(object({ any: refusing }));
    expect((await create('a', {})).status).toBe(201);
    const matching = { ...any, not: { additionalProperties: false } };
    const schema = object({ spec: object({ not: matching }) });
    const definition = { group: 'closed.example.com', plural: 'things', kind: 'Thing', schema };
    const refused = await server.post(definitions, definitionOf(definition));
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('must not validate the schema (not)');
  });

  test('CRD-2: int-or-string accepts both and nothing else', async () => {
    const either = { 'x-kubernetes-int-or-string': true };
    const { create } = await kindWith(object({ either }));
    expect((await create('a', { either: 1 })).status).toBe(201);
    expect((await create('b', { either: '50%' })).status).toBe(201);
    const wrong = await create('c', { either: true });
    expect(causesOf(wrong)).toEqual([
      'spec.either: Invalid value: "boolean": ' +
        'spec.either in body must be of type integer,string: "boolean"',
    ]);
  });
});

describe('pruning', () => {
  test('CRD-2: unknown members are pruned unless the schema preserves them', async () => {
    const open = { 'x-kubernetes-preserve-unknown-fields': true };
    const { create, path } = await kindWith(
      object({
        kept: { type: 'object', ...open, properties: { inner: object({ a: { type: 'string' } }) } },
        free: open,
        map: { type: 'object', additionalProperties: object({ a: { type: 'integer' } }) },
        list: { type: 'array', items: object({ a: { type: 'integer' } }) },
      }),
    );
    const spec = {
      unknown: 1,
      kept: { x: 1, inner: { a: 'a', gone: 1 } },
      free: [{ any: null }],
      map: { k: { a: 1, gone: 2 } },
      list: [{ a: 1, gone: 2 }],
    };
    const created = await create('a', spec);
    expect(created.status).toBe(201);
    const left = {
      kept: { x: 1, inner: { a: 'a' } },
      free: [{ any: null }],
      map: { k: { a: 1 } },
      list: [{ a: 1 }],
    };
    expect(created.body.spec).toEqual(left);
    expect((await server.get(`${path}/a`)).body.spec).toEqual(left);
    expect(created.warnings).toEqual([
      'unknown field "spec.kept.inner.gone"',
      'unknown field "spec.list[0].gone"',
      'unknown field "spec.map.k.gone"',
      'unknown field "spec.unknown"',
    ]);
    const strict = await create('b', spec, '?fieldValidation=Strict');
    expect(strict.status).toBe(400);
    expect(strict.body.message).toContain('strict decoding error: unknown field "spec.kept');
    expect((await create('c', spec, '?fieldValidation=Ignore')).warnings).toEqual([]);
  });

  test('CRD-2: embedded metadata drops invalid defaulted members', async () => {
    const word = (standard: string) => ({ type: 'string', default: standard });
    const embedded = object(
      {
        apiVersion: word('v1'),
        kind: word('Foo'),
        metadata: object({ name: word('bar'), unknown: word('x') }),
      },
      { 'x-kubernetes-embedded-resource': true },
    );
    const group = 'embedded-defaults.example.com';
    const schema = object({ embedded, status: object({ seen: word('never') }, { default: {} }) });
    const versions = [versionOf('v1', schema, { storage: true, subresources: { status: {} } })];
    await establish(server, { group, plural: 'things', kind: 'Thing', versions });
    const made = await server.post(`/apis/${group}/v1/namespaces/default/things`, {
      apiVersion: `${group}/v1`,
      kind: 'Thing',
      metadata: { name: 'a' },
      embedded: { metadata: {} },
      status: { seen: 'now' },
    });
    expect(made.status, made.text).toBe(201);
    expect(made.body.embedded).toEqual({
      apiVersion: 'v1',
      kind: 'Foo',
      metadata: { name: 'bar' },
    });
    expect(made.body.status).toEqual({ seen: 'never' });
  });

  test('CRD-2: a member named __proto__ is an ordinary member', async () => {
    const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const { path, objectOf } = await kindWith(object({ free: open }));
    const text = JSON.stringify(objectOf('a', { free: { p: { q: 1 } } })).replace(
      '"p"',
      '"__proto__"',
    );
    const created = await server.post(path, text);
    expect(created.status).toBe(201);
    expect(created.text).toContain('"__proto__":{"q":1}');
  });
});

describe('defaults', () => {
  test('CRD-2: defaults fill absent and null values, also in nested objects and lists', async () => {
    const { create } = await kindWith(
      object(
        {
          size: { type: 'string', default: 'small' },
          inner: object({ a: { type: 'integer', default: 1 } }, { default: {} }),
          list: { type: 'array', items: object({ b: { type: 'boolean', default: true } }) },
          map: {
            type: 'object',
            additionalProperties: object({ c: { type: 'string', default: 'c' } }),
          },
          nullable: { type: 'string', nullable: true, default: 'x' },
        },
        { default: {} },
      ),
    );
    const created = await create('a', { list: [{}, { b: false }], map: { k: {} }, size: null });
    expect(created.body.spec).toEqual({
      size: 'small',
      inner: { a: 1 },
      list: [{ b: true }, { b: false }],
      map: { k: { c: 'c' } },
      nullable: 'x',
    });
    const bare = await create('b', undefined);
    expect(bare.body.spec).toEqual({ size: 'small', inner: { a: 1 }, nullable: 'x' });
  });

  test('CRD-2: null is kept where nullable and dropped elsewhere', async () => {
    const { create } = await kindWith(
      object({
        allowed: { type: 'string', nullable: true, default: 'x' },
        plain: { type: 'string' },
        list: { type: 'array', items: { type: 'string' } },
      }),
    );
    const created = await create('a', { allowed: null });
    expect(created.status).toBe(201);
    expect(created.body.spec).toEqual({ allowed: null });
    expect((await create('b', { plain: null })).body.spec).toEqual({ allowed: 'x' });
    const listed = await create('c', { list: [null] });
    expect(causesOf(listed)).toEqual([
      'spec.list[0]: Invalid value: "null": ' +
        'spec.list[0] in body must be of type string: "null"',
    ]);
  });
});

describe('the default of a status', () => {
  const phase = { type: 'string' };
  const statusOf = (standard: string) => object({ phase }, { default: { phase: standard } });
  const withStatus = async (group: string, schema: object) => {
    const selectableFields = [{ jsonPath: '.status.phase' }];
    const more = { storage: true, subresources: { status: {} }, selectableFields };
    const versions = [versionOf('v1', schema, more)];
    await establish(server, { group, plural: 'things', kind: 'Thing', versions });
    const path = `/apis/${group}/v1/namespaces/default/things`;
    const body = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'a' } };
    return { path, body };
  };

  test('CRD-2: a created object is validated without it', async () => {
    const schema = object({ status: statusOf('New') }, { required: ['status'] });
    const { path, body } = await withStatus('required-status.example.com', schema);
    const refused = await server.post(path, body);
    expect(refused.status).toBe(422);
    expect(causesOf(refused)).toEqual(['status: Required value']);
  });

  test('CRD-2: readers see it, and its changes, until something writes the object', async () => {
    const group = 'read-status.example.com';
    const { path, body } = await withStatus(group, object({ status: statusOf('New') }));
    const watch = await server.watch(`${path}?watch=1`);
    const tried = await server.post(`${path}?dryRun=All`, body);
    expect(tried.body.status).toEqual({ phase: 'New' });
    const made = await server.post(path, { ...body, status: { phase: 'Mine' } });
    expect(made.body.status).toEqual({ phase: 'New' });
    await server.post(path, { ...body, metadata: { name: 'written' } });
    await watch.until((events) => events.length === 2);
    expect(watch.events[0]?.object.status).toEqual({ phase: 'New' });
    watch.close();
    const phaseOf = async (name: string) => {
      const { body: now } = await server.get<{ status: object }>(`${path}/${name}`);
      return now.status;
    };
    expect(await phaseOf('a')).toEqual({ phase: 'New' });
    const selected = await server.get(`${path}?fieldSelector=status.phase%3DNew`);
    expect(selected.body.items).toHaveLength(2);
    const labels = { metadata: { labels: { a: 'b' } } };
    expect((await server.patch(`${path}/written`, labels, 'merge')).body.status).toEqual({
      phase: 'New',
    });
    await redefine(server, `things.${group}`, ({ versions: [version] }) => {
      const status = version.schema.openAPIV3Schema.properties?.['status'];
      if (status !== undefined) status.default = { phase: 'Pending' };
    });
    await eventually(async () => {
      const { phase } = (await phaseOf('a')) as { phase?: string };
      return phase === 'Pending';
    }, 'the new default');
    expect(await phaseOf('written')).toEqual({ phase: 'New' });
  });
});

describe('embedded resources', () => {
  test('CRD-2: need a kind, a version, and valid metadata', async () => {
    const embedded = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    };
    const { create } = await kindWith(object({ template: embedded }));
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', odd: 1 }, spec: { x: 1 } };
    const created = await create('a', { template: pod });
    expect(created.status).toBe(201);
    const { odd: _, ...metadata } = pod.metadata;
    expect(created.body.spec.template).toEqual({ ...pod, metadata });
    const bare = await create('b', { template: { spec: {} } });
    expect(causesOf(bare)).toEqual([
      'spec.template.apiVersion: Required value: must not be empty',
      'spec.template.kind: Required value: must not be empty',
    ]);
    const labels = { ...pod, metadata: { name: 'a', labels: { 'not ok!': 'x' } } };
    const wrong = await create('c', { template: labels });
    expect(wrong.status).toBe(422);
    expect(wrong.body.details.causes[0].field).toBe('spec.template.metadata.labels');
  });
});
