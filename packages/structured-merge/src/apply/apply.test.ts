import type { JsonObject } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import {
  annotation,
  conflictsOf,
  fieldsOf,
  list,
  listMap,
  mapOf,
  number,
  object,
  owners,
  type Script,
  scriptOf,
  setOf,
  text,
  type Write,
  write,
} from './apply-script.fixture.ts';

const port = object({ port: number, protocol: { type: 'string', default: 'TCP' }, name: text });
const schema: Schema = object({
  text,
  spec: object({ replicas: number, note: text }),
  data: mapOf(text),
  tags: setOf(text),
  ports: listMap(['port', 'protocol'], port),
  items: listMap(['name'], object({ name: text, value: number, inner: setOf(text) })),
  rows: list(text),
  whole: object({ a: text, b: text }, { mapType: 'atomic' }),
  free: { type: 'object', preserveUnknownFields: true },
});

/** A sequence of writes, and the resulting object and owners as FieldsV1 text. */
interface Case {
  readonly name: string;
  readonly steps: readonly Write[];
  readonly fields: JsonObject;
  readonly owners: Readonly<Record<string, string>>;
}

const apply = (by: string, fields: JsonObject): Write => ({ op: 'apply', by, fields });
const force = (by: string, fields: JsonObject): Write => ({ op: 'force', by, fields });
const update = (by: string, fields: JsonObject): Write => ({ op: 'update', by, fields });

const cases: readonly Case[] = [
  {
    name: 'an applier owns the fields of its body, including the keys of items',
    steps: [apply('a', { items: [{ name: 'x', value: 1 }], tags: ['t'], data: { k: 'v' } })],
    fields: { items: [{ name: 'x', value: 1 }], tags: ['t'], data: { k: 'v' } },
    owners: {
      a: '{"f:data":{"f:k":{}},"f:items":{"k:{\\"name\\":\\"x\\"}":{".":{},"f:name":{},"f:value":{}}},"f:tags":{"v:\\"t\\"":{}}}',
    },
  },
  {
    name: 'a field that its only applier omits is removed',
    steps: [
      apply('a', { data: { k: 'v', l: 'w' }, tags: ['t'] }),
      apply('a', { data: { k: 'v' } }),
    ],
    fields: { data: { k: 'v' } },
    owners: { a: '{"f:data":{"f:k":{}}}' },
  },
  {
    name: 'a shared field that one of its appliers omits stays',
    steps: [
      apply('a', { tags: ['t', 'u'] }),
      apply('b', { tags: ['u'] }),
      apply('a', { tags: ['t'] }),
    ],
    fields: { tags: ['t', 'u'] },
    owners: { a: '{"f:tags":{"v:\\"t\\"":{}}}', b: '{"f:tags":{"v:\\"u\\"":{}}}' },
  },
  {
    name: 'an item that its applier omits keeps the fields of other appliers',
    steps: [
      apply('a', { items: [{ name: 'x', value: 1 }] }),
      apply('b', { items: [{ name: 'x', inner: ['i'] }] }),
      apply('a', {}),
    ],
    fields: { items: [{ name: 'x', inner: ['i'] }] },
    owners: {
      b: '{"f:items":{"k:{\\"name\\":\\"x\\"}":{".":{},"f:inner":{"v:\\"i\\"":{}},"f:name":{}}}}',
    },
  },
  {
    name: 'an update takes over the fields that it changes',
    steps: [
      apply('a', { spec: { replicas: 1, note: 'n' } }),
      update('b', { spec: { replicas: 2, note: 'n' } }),
    ],
    fields: { spec: { replicas: 2, note: 'n' } },
    owners: { a: '{"f:spec":{"f:note":{}}}', b: '{"f:spec":{"f:replicas":{}}}' },
  },
  {
    name: 'a forced apply takes over the conflicting fields and no others',
    steps: [
      apply('a', { spec: { replicas: 1, note: 'n' } }),
      force('b', { spec: { replicas: 2 } }),
    ],
    fields: { spec: { replicas: 2, note: 'n' } },
    owners: { a: '{"f:spec":{"f:note":{}}}', b: '{"f:spec":{"f:replicas":{}}}' },
  },
  {
    name: 'a list item may omit a key that has a default',
    steps: [apply('a', { ports: [{ port: 80, name: 'x' }] })],
    fields: { ports: [{ port: 80, name: 'x' }] },
    owners: {
      a: '{"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:name":{},"f:port":{}}}}',
    },
  },
  {
    name: 'atomic lists and maps change as a whole',
    steps: [
      apply('a', { rows: ['x', 'y'], whole: { a: '1' } }),
      force('b', { rows: ['z'], whole: { b: '2' } }),
    ],
    fields: { rows: ['z'], whole: { b: '2' } },
    owners: { b: '{"f:rows":{},"f:whole":{}}' },
  },
  {
    name: 'untyped objects are merged by member, and their lists are replaced as a whole',
    steps: [apply('a', { free: { x: { y: 1 }, l: [1] } }), apply('b', { free: { x: { z: 2 } } })],
    fields: { free: { x: { y: 1, z: 2 }, l: [1] } },
    owners: {
      a: '{"f:free":{"f:l":{},"f:x":{".":{},"f:y":{}}}}',
      b: '{"f:free":{"f:x":{".":{},"f:z":{}}}}',
    },
  },
  {
    name: 'items have the applied order, and other items stay before the shared ones they preceded',
    steps: [update('u', { tags: ['a', 'b', 'c', 'd'] }), apply('a', { tags: ['d', 'x', 'b'] })],
    fields: { tags: ['a', 'c', 'd', 'x', 'b'] },
    owners: {
      a: '{"f:tags":{"v:\\"b\\"":{},"v:\\"d\\"":{},"v:\\"x\\"":{}}}',
      u: '{"f:tags":{".":{},"v:\\"a\\"":{},"v:\\"b\\"":{},"v:\\"c\\"":{},"v:\\"d\\"":{}}}',
    },
  },
  {
    name: 'duplicates that an update stored are owned as one item, and an apply replaces them',
    steps: [
      update('u', {
        items: [
          { name: 'x', value: 1 },
          { name: 'x', value: 2 },
        ],
      }),
      force('a', { items: [{ name: 'x', value: 3 }] }),
    ],
    fields: { items: [{ name: 'x', value: 3 }] },
    owners: {
      a: '{"f:items":{"k:{\\"name\\":\\"x\\"}":{".":{},"f:name":{},"f:value":{}}}}',
      u: '{"f:items":{".":{}}}',
    },
  },
];

/** The expected owners in encoded form: an item that is a leaf has no `.` member. */
const normalized = (expected: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(expected).map(([name, fields]) => [
      name,
      fields.replace(/\{"\.":\{\}\}/g, '{}'),
    ]),
  );

describe('applies and updates', () => {
  test.each(cases)('$name', ({ steps, fields, owners: expected }) => {
    const script = scriptOf(schema);
    for (const step of steps) write(script, step);
    expect(fieldsOf(script)).toEqual(fields);
    expect(owners(script)).toEqual(normalized(expected));
  });

  test('applying the same body again returns the same list of owners, including times', () => {
    const script = scriptOf(schema);
    const step = apply('a', { spec: { replicas: 1 }, tags: ['t'] });
    const first = structuredClone(write(script, step));
    expect(write(script, step)).toEqual(first);
  });

  test('a manager that returns without a change has no time, like a new one', () => {
    const script = scriptOf(schema);
    write(script, apply('b', { text: 't' }));
    write(script, apply('a', { spec: { replicas: 1 } }));
    write(script, apply('a', {}));
    const { managedFields = [] } = write(script, apply('a', { text: 't' })).metadata;
    expect(managedFields.map(({ manager, time }) => [manager, typeof time])).toEqual([
      ['a', 'undefined'],
      ['b', 'string'],
    ]);
  });

  test('an unchanged update keeps the owners', () => {
    const script = scriptOf(schema);
    const first = structuredClone(write(script, update('a', { spec: { replicas: 1 } })));
    expect(write(script, update('b', { spec: { replicas: 1 } })).metadata).toEqual(first.metadata);
  });
});

describe('conflicts', () => {
  test('name the manager, the path, and, for updates, the version', () => {
    const script = scriptOf(schema);
    write(script, apply('a', { items: [{ name: 'x', value: 1 }] }));
    write(script, update('u', { items: [{ name: 'x', value: 1 }], text: 't' }));
    expect(
      conflictsOf(() => write(script, apply('b', { items: [{ name: 'x', value: 2 }] }))),
    ).toEqual(['conflict with "a" .items[name="x"].value']);
    expect(conflictsOf(() => write(script, apply('b', { text: 'other' })))).toEqual([
      'conflict with "u" using example.com/v1 .text',
    ]);
  });

  test('are grouped by manager', () => {
    const script = scriptOf(schema);
    write(script, apply('a', { spec: { replicas: 1, note: 'n' } }));
    expect(() => write(script, apply('b', { spec: { replicas: 2, note: 'm' } }))).toThrow(
      'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.note\n- .spec.replicas',
    );
    expect(() => write(script, apply('b', { spec: { replicas: 2 } }))).toThrow(
      'Apply failed with 1 conflict: conflict with "a": .spec.replicas',
    );
  });
});

describe('invalid bodies', () => {
  const applying = (fields: JsonObject) => () => write(scriptOf(schema), apply('a', fields));
  test("duplicates, unknown members, and wrong types get kube-apiserver's messages", () => {
    const prefix = 'failed to create typed patch object (/a; example.com/v1, Kind=Thing): ';
    expect(applying({ ports: [{ port: 80 }, { port: 80, protocol: 'TCP' }] })).toThrow(
      `${prefix}.ports: duplicate entries for key [port=80,protocol="TCP"]`,
    );
    expect(applying({ nothing: 1 })).toThrow(`${prefix}.nothing: field not declared in schema`);
    expect(applying({ items: [{ value: 1 }] })).toThrow(
      `${prefix}.items: element 0: associative list with keys has an element that omits key field "name" (and doesn't have default value)`,
    );
    expect(applying({ spec: { replicas: 'x' } })).toThrow(
      `${prefix}.spec.replicas: expected numeric (int or float), got string`,
    );
    expect(applying({ spec: 'x' })).toThrow(`${prefix}.spec: expected map, got &{x}`);
  });

  test('a stored object that its schema no longer allows is named', () => {
    const script = scriptOf(schema);
    write(script, apply('a', { text: 'x' }));
    const stored = script.live!;
    script.live = { ...stored, items: [{ value: 1 }] };
    const named = '(/a; example.com/v1, Kind=Thing)';
    const reason = '.items: element 0: associative list with keys has an element that omits key';
    const applies = () => write(script, apply('a', { items: [{ name: 'x' }] }));
    expect(applies).toThrow(`failed to create typed live object ${named}: ${reason}`);
    script.live = { ...script.live, metadata: { name: 'a', uid: 'u' } };
    expect(applies).toThrow(
      `failed to create manager for existing fields: failed to convert new object ${named} ` +
        `to smd typed: ${reason}`,
    );
  });

  test('managedFields are rejected', () => {
    const script = scriptOf(schema);
    expect(() => write(script, { ...apply('a', {}), metadata: { managedFields: [] } })).toThrow(
      'metadata.managedFields must be nil',
    );
  });
});

describe('versions', () => {
  const v2 = object({ spec: object({ count: number }) });
  const renamed = (fields: JsonObject, version: string): JsonObject => {
    const spec = (fields['spec'] ?? {}) as JsonObject;
    const value = spec['replicas'] ?? spec['count'];
    if (value === undefined) return fields;
    return { ...fields, spec: version === 'v2' ? { count: value } : { replicas: value } };
  };
  const start = (): Script => {
    const script = scriptOf(object({ spec: object({ replicas: number }) }), { convert: renamed });
    script.schemas.set('v2', v2);
    return script;
  };

  test('owned fields are recorded in the version of the write', () => {
    const script = start();
    write(script, apply('a', { spec: { replicas: 1 } }));
    const secondApply: Write = { ...apply('b', { spec: { count: 2 } }), version: 'v2' };
    expect(conflictsOf(() => write(script, secondApply))).toEqual([
      'conflict with "a" .spec.replicas',
    ]);
    write(script, { ...secondApply, op: 'force' });
    expect(owners(script)).toEqual({ b: '{"f:spec":{"f:count":{}}}' });
  });

  test('managers of a removed version are dropped', () => {
    const script = start();
    write(script, { ...apply('old', { spec: { count: 1 } }), version: 'v2' });
    script.live = { ...script.live!, apiVersion: 'example.com/v1', spec: { replicas: 1 } };
    script.schemas.delete('v2');
    write(script, apply('a', { spec: { replicas: 1 } }));
    expect(owners(script)).toEqual({ a: '{"f:spec":{"f:replicas":{}}}' });
  });

  test('MF-8: a part that became atomic is owned as a whole', () => {
    const script = scriptOf(object({ part: object({ a: text, b: text }) }));
    write(script, apply('a', { part: { a: '1' } }));
    write(script, apply('b', { part: { b: '2' } }));
    script.schemas.set('v1', object({ part: object({ a: text, b: text }, { mapType: 'atomic' }) }));
    write(script, apply('c', {}));
    write(script, update('u', { part: { a: '1', b: '2' } }));
    expect(owners(script)).toEqual({ a: '{"f:part":{}}', b: '{"f:part":{}}' });
  });
});

describe('managedFields in requests', () => {
  const withOwners = (managedFields: JsonObject[]): Write => ({
    ...update('u', { text: 'x' }),
    metadata: { managedFields },
  });

  test('MF-3: one empty entry resets the owners, an empty list and malformed entries do not', () => {
    const script = scriptOf(schema);
    write(script, apply('a', { text: 'x' }));
    for (const entries of [[], [{ manager: 'm' }]]) {
      write(script, withOwners(entries));
      expect(Object.keys(owners(script))).toEqual(['a']);
    }
    write(script, withOwners([{}]));
    expect(owners(script)).toEqual({});
    write(script, apply('b', { text: 'x' }));
    expect(Object.keys(owners(script))).toEqual(['b', 'before-first-apply']);
  });

  test('MF-9: the oldest updates are merged if there are more than ten', () => {
    const script = scriptOf(schema);
    for (let n = 0; n < 13; n += 1) {
      const data = Object.fromEntries(Array.from({ length: n + 1 }, (_, at) => [`k${at}`, 'v']));
      write(script, update(`u${n}`, { data }));
    }
    const names = Object.keys(owners(script));
    expect(names).toHaveLength(10);
    expect(names).toContain('ancient-changes');
    expect(names).toContain('u12');
  });
});

test('an apply by kubectl takes over unchanged fields of its client-side apply', () => {
  const script = scriptOf(schema);
  const last = JSON.stringify({
    apiVersion: 'example.com/v1',
    kind: 'Thing',
    metadata: { name: 'a' },
    text: 'x',
  });
  const metadata = { annotations: { [annotation]: last } };
  write(script, { ...update('client', { text: 'x', rows: ['r'] }), metadata });
  expect(conflictsOf(() => write(script, apply('other', { text: 'y' })))).toHaveLength(1);
  expect(conflictsOf(() => write(script, apply('kubectl', { text: 'y', rows: [] })))).toEqual([
    'conflict with "client" using example.com/v1 .rows',
  ]);
  write(script, apply('kubectl', { text: 'y' }));
  expect(owners(script)['kubectl']).toBe('{"f:text":{}}');
  expect(JSON.parse(script.live!.metadata.annotations![annotation]!)).toMatchObject({ text: 'y' });
});

test('a client-side apply takes over nothing of an object with duplicates', () => {
  const script = scriptOf(schema);
  const last = JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Thing', text: 'x' });
  const metadata = { annotations: { [annotation]: last } };
  write(script, { ...update('client', { text: 'x', tags: ['t', 't'] }), metadata });
  expect(conflictsOf(() => write(script, apply('kubectl', { text: 'y' })))).toHaveLength(1);
});

test.each([
  ['another kind', { apiVersion: 'example.com/v1', kind: 'Other', text: 'x' }],
  ['another version', { apiVersion: 'example.com/v2', kind: 'Thing', text: 'x' }],
  ['no kind', { apiVersion: 'example.com/v1', text: 'x' }],
])('a client-side apply that records %s takes over nothing', (_, last) => {
  const script = scriptOf(schema);
  const metadata = { annotations: { [annotation]: JSON.stringify(last) } };
  write(script, { ...update('client', { text: 'x' }), metadata });
  expect(conflictsOf(() => write(script, apply('kubectl', { text: 'y' })))).toHaveLength(1);
});
