import type { ApiObject, JsonObject, JsonValue, UserInfo } from '@wheelhouse/machinery';
import type { Property, Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { runPreparation } from '../kind.suite.ts';
import { foundErrors } from '../rules/checks.ts';
import { pathReader, showsManagedFields } from './columns.ts';
import type { Crd } from './definition.ts';
import { type CustomKindDeps, fromCrd } from './from-definition.ts';

const text: Schema = { type: 'string', typed: true };
const objectMeta: Schema = {
  type: 'object',
  typed: true,
  properties: new Map<string, Property>([['name', { schema: text, omitEmpty: true }]]),
};
const deps: CustomKindDeps = {
  embedded: { objectMeta, validateMeta: () => [], validateLabel: () => [] },
  validateName: () => [],
  qualifiedName: () => [],
  standardFinalizers: ['orphan'],
  printAge: (timestamp) => `age of ${timestamp}`,
};
const user: UserInfo = { name: 'a', uid: '', groups: [], extra: {} };

const schema = (properties: JsonObject) => ({
  openAPIV3Schema: { type: 'object', properties } as JsonObject,
});
const crd: Crd = {
  apiVersion: 'apiextensions.example/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: {
      plural: 'things',
      singular: 'thing',
      kind: 'Thing',
      listKind: 'ThingList',
      shortNames: ['th'],
    },
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: false,
        deprecated: true,
        schema: schema({ spec: { type: 'object' } }),
      },
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: schema({
          spec: {
            type: 'object',
            properties: { color: { type: 'string', maxLength: 5 }, replicas: { type: 'integer' } },
          },
          status: { type: 'object', properties: { replicas: { type: 'integer' } } },
        }),
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        additionalPrinterColumns: [
          { name: 'Color', type: 'string', jsonPath: '.spec.color' },
          { name: 'Since', type: 'date', jsonPath: '.metadata.creationTimestamp', priority: 1 },
        ],
        selectableFields: [{ jsonPath: '.spec.color' }],
      },
    ],
  },
};
const def = fromCrd(crd, deps);
const at = (more: { version?: string; subresource?: string } = {}) => ({
  user,
  nowMs: 0,
  dryRun: false,
  subresource: '',
  version: 'v1',
  ...more,
});
const thing = (parts: JsonObject, metadata: JsonObject = {}): ApiObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'a', ...metadata },
  ...parts,
});

describe('the definition of a custom kind', () => {
  test('has the names, versions by preference, and a storage prefix', () => {
    expect(def).toMatchObject({
      group: 'example.com',
      resource: 'things',
      kind: 'Thing',
      listKind: 'ThingList',
      shortNames: ['th'],
      scope: 'Namespaced',
      storage: { prefix: '/registry/example.com/things/', apiVersion: 'example.com/v1' },
      behavior: { definitionName: 'things.example.com' },
    });
    expect(def.versions.map((version) => version.version)).toEqual(['v1', 'v1beta1']);
    expect(def.versions[1]?.deprecationWarning).toBe(
      'example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing',
    );
    expect(def.subresources.map((subresource) => subresource.name)).toEqual(['status', 'scale']);
  });

  test('prunes by the schema of the requested version', () => {
    const body: JsonObject = { spec: { color: 'red' } };
    expect(def.versions[1]?.decode(body).paths).toEqual(['spec.color']);
    expect(def.versions[0]?.decode({ spec: { color: 'red' } }).paths).toEqual([]);
  });

  test('prints its columns, or the age if it has none', () => {
    const object = thing({ spec: { color: 'red' } }, { creationTimestamp: '2024-01-01T00:00:00Z' });
    const cells = (index: number) =>
      (def.versions[index]?.columns ?? []).map((column) => [column.name, column.cell(object, 0)]);
    expect(cells(0)).toEqual([
      ['Name', 'a'],
      ['Color', 'red'],
      ['Since', 'age of 2024-01-01T00:00:00Z'],
    ]);
    expect(cells(1)).toEqual([
      ['Name', 'a'],
      ['Age', 'age of 2024-01-01T00:00:00Z'],
    ]);
  });

  test('prints the members of objects in order, and numbers as Go does', () => {
    const column = def.versions[0]?.columns?.find(({ name }) => name === 'Color');
    const cell = (color: JsonValue) => column?.cell(thing({ spec: { color } }), 0);
    expect(cell({ b: [{ z: 1, y: '<' }], a: null })).toBe('{"a":null,"b":[{"y":"\\u003c","z":1}]}');
    expect(cell(1e-7)).toBe('1e-07');
    expect(cell(1e20)).toBe('1e+20');
    expect(cell(1_000_000)).toBe('1000000');
  });

  test('has its own selectable fields', () => {
    expect(def.storage.fieldsOf?.(thing({ spec: { color: 'red' } }))).toEqual({
      'spec.color': 'red',
    });
    expect(def.storage.fieldsOf?.(thing({}))).toEqual({ 'spec.color': '' });
    expect(def.strategy.fieldLabels).toEqual({ v1: { 'spec.color': 'spec.color' } });
  });
});

test('thousands of versions are converted to a kind in linear time', () => {
  const versions = Array.from({ length: 20_000 }, (_, index) => ({
    name: `v${index + 1}`,
    served: true,
    storage: index === 0,
    deprecated: true,
  }));
  const names = crd.spec.names;
  const wide = { ...crd, spec: { ...crd.spec, names, versions } };
  const webhook = { ...wide, spec: { ...wide.spec, conversion: { strategy: 'Webhook' } } };
  for (const definition of [wide, webhook]) {
    const start = performance.now();
    expect(fromCrd(definition, deps).versions).toHaveLength(versions.length);
    expect(performance.now() - start).toBeLessThan(15_000);
  }
});

describe('the strategy of a custom kind', () => {
  const { strategy } = def;

  test('a create drops the status', () => {
    const object = thing({ status: { replicas: 1 } });
    runPreparation(strategy.prepareForCreate?.(at(), object));
    expect(object).toEqual(thing({}, { generation: 1 }));
  });

  test('an update keeps the status, and increments generation unless only metadata changes', () => {
    const old = thing({ spec: { color: 'red' }, status: { replicas: 1 } }, { generation: 1 });
    const same = thing(
      { spec: { color: 'red' }, status: {} },
      { generation: 1, labels: { a: 'b' } },
    );
    runPreparation(strategy.prepareForUpdate?.(at(), same, old));
    expect([same['status'], same.metadata.generation]).toEqual([{ replicas: 1 }, 1]);
    const changed = thing({ spec: { color: 'blue' } }, { generation: 1 });
    runPreparation(strategy.prepareForUpdate?.(at(), changed, old));
    expect([changed['status'], changed.metadata.generation]).toEqual([{ replicas: 1 }, 2]);
  });

  test('a status write changes nothing else', () => {
    const old = thing({ spec: { color: 'red' } }, { generation: 1 });
    const next = thing(
      { spec: { color: 'blue' }, status: { replicas: 1 } },
      { labels: { a: 'b' } },
    );
    runPreparation(strategy.prepareForUpdate?.(at({ subresource: 'status' }), next, old));
    expect(next).toEqual(
      thing({ spec: { color: 'red' }, status: { replicas: 1 } }, { generation: 1 }),
    );
  });

  const invalid: readonly (readonly [JsonObject, JsonObject | undefined, string[]])[] = [
    [{ spec: { color: 'orange' } }, undefined, ['spec.color']],
    [{ spec: { color: 'orange' } }, { spec: { color: 'orange' } }, []],
    [{ spec: { replicas: -1 } }, undefined, ['.spec.replicas']],
    [{ kind: 'Other' }, undefined, ['kind']],
  ];
  test.each(invalid)('validation %#', (parts, before, fields) => {
    const object = thing(parts);
    const errors =
      before === undefined
        ? foundErrors(strategy.validateCreate?.(at(), object))
        : foundErrors(strategy.validateUpdate?.(at(), object, thing(before)));
    expect(errors?.map((error) => error.field)).toEqual(fields);
  });

  test('a write to status is validated by the schema of status', () => {
    const object = thing({ status: { replicas: 'x' } });
    const errors = foundErrors(
      strategy.validateUpdate?.(at({ subresource: 'status' }), object, thing({})),
    );
    expect(errors?.map((error) => error.field)).toEqual(['status.replicas', '.status.replicas']);
  });

  test('finalizers without a domain cause a warning', () => {
    const object = thing({}, { finalizers: ['a', 'b.c', 'd.e/f', 'orphan'] });
    expect(strategy.warnings?.(object, undefined)).toHaveLength(2);
    expect(strategy.warnings?.(object, object)).toEqual([]);
  });
});

describe('column paths', () => {
  const value: JsonValue = {
    'a.b': 1,
    list: [
      { t: 'x', v: 1 },
      { t: 'y', v: 2 },
    ],
    deep: { er: true },
  };
  const rows: readonly (readonly [string, JsonValue | undefined])[] = [
    ['.deep.er', true],
    ['.list[1].v', 2],
    ['.list[-1].v', 2],
    ['.list[*].v', 1],
    ['.list[?(@.t=="y")].v', 2],
    [".list[?(@.t=='z')].v", undefined],
    ['.a\\.b', 1],
    ["['a\\.b']", 1],
    ["['a.b']", undefined],
    ['.none.of.it', undefined],
    ['..er', true],
    ['..v', 1],
    ['.list[-1:].v', 2],
    ['.list[0:1].v', 1],
    ['.list[::2].t', 'x'],
    ['.list[2].v', undefined],
    ['.list[1,0].v', 2],
    [".list[0]['v','t']", 1],
    ['.list[?(@.v>1)].t', 'y'],
    ['.list[?(@.v<=1)].t', 'x'],
    ['.list[?(@.v==1.0)].t', undefined],
    ['.list[?( @.t != "x" )].v', 2],
    ['.list[?("y"==@.t)].v', 2],
    ['.list[?(@.t)].v', 1],
    ['.list[?(@.none)].v', undefined],
    ['.list[?(@.none=="x")].v', undefined],
    ['.list[?(@["t"]=="y")].v', undefined],
    ['.list[?(@.t="y")].v', undefined],
    ['.', undefined],
    ['x', undefined],
  ];
  test.each(rows)('%s', (path, expected) => {
    expect(pathReader(path)?.(value)).toEqual(expected);
  });

  test.each([
    ['.metadata.managedFields[0].manager', true],
    ["['metadata']['managedFields']", true],
    ['.metadata', true],
    ['.metadata.*', true],
    ['.metadata.*.x', true],
    ['[*].managedFields', false],
    ['', true],
    ['.', false],
    ['.metadata.name', false],
    ['.metadata[0].managedFields', false],
    ['.spec.managedFields', false],
    ['.spec', false],
    ['.metadata.managedFieldsToo', false],
    ['..metadata', true],
    ["['spec','metadata'].managedFields", true],
    ["['spec','status'].managedFields", false],
  ])('%s may read managed fields: %s', (path, expected) => {
    expect(showsManagedFields([{ name: 'A', type: 'string', jsonPath: path }])).toBe(expected);
  });

  test.each(['#', '.a[', '.a[b]', '.a[?(@.b]', '.a[?(@.b)', '.a[1:b]', `${'.a..'.repeat(9)}[`])(
    'invalid path: %s',
    (path) => {
      expect(pathReader(path)).toBeUndefined();
    },
  );

  test('a path with too many values has none', () => {
    const twice = "['deep','deep']";
    const nested = { deep: { deep: { deep: { deep: { deep: { deep: {} } } } } } };
    const value: JsonValue = JSON.parse(JSON.stringify(nested));
    expect(pathReader(twice.repeat(6))?.(value)).toEqual({});
    const wide: JsonValue = { all: Array.from({ length: 200 }, () => [1]) };
    expect(pathReader('.all[*,*,*,*,*,*][*,*,*,*,*,*,*,*,*]')?.(wide)).toBeUndefined();
  });
});
