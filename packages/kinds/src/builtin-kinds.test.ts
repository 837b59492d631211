import {
  type ApiObject,
  dialectNames,
  dialectOf,
  isObject,
  type JsonValue,
} from '@wheelhouse/machinery';
import { decodeTyped, resolved, type Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { builtinKinds } from './builtin-kinds.ts';
import { plainContext, runPreparation } from './kind.suite.ts';
import type { ResourceDef } from './resource-def.ts';
import { foundErrors } from './rules/checks.ts';

/** Paths of members that the schema does not have. */
function unknownMembers(value: JsonValue | undefined, schema: Schema, path = ''): string[] {
  const at = resolved(schema);
  if (Array.isArray(value) && at.items !== undefined) {
    const { items } = at;
    return value.flatMap((item, index) => unknownMembers(item, items, `${path}[${index}]`));
  }
  if (!isObject(value) || at.properties === undefined) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const property = at.properties?.get(name);
    const memberPath = `${path}.${name}`;
    return property === undefined
      ? [memberPath]
      : unknownMembers(member, property.schema, memberPath);
  });
}

/** The example as a create would store it. */
function created(def: ResourceDef): ApiObject {
  const version = def.versions[0]!;
  const object = decodeTyped(version.schema)(def.example?.() as JsonValue) as ApiObject;
  version.defaults?.(object);
  const stored = version.toStorage?.(object) ?? object;
  runPreparation(def.strategy.prepareForCreate?.(plainContext, stored));
  return stored;
}

describe.each(dialectNames)('built-in kinds in dialect %s', (name) => {
  const defs = builtinKinds(dialectOf(name));
  // The rules of a CustomResourceDefinition only receive objects that its schema has accepted.
  const goShaped = defs.filter((def) => def.kind !== 'CustomResourceDefinition');

  test('no two kinds share a resource, or a storage prefix for different objects', () => {
    const resources = defs.map((def) => `${def.group}/${def.resource}`);
    expect(new Set(resources).size).toBe(resources.length);
    const byPrefix = new Map<string, string>();
    for (const { storage } of defs) {
      const stored = `${storage.apiVersion} ${storage.kind}`;
      expect(byPrefix.get(storage.prefix) ?? stored).toBe(stored);
      byPrefix.set(storage.prefix, stored);
      expect(storage.prefix).toMatch(/^\/registry\/.*\/$/);
    }
  });

  test.each(defs.map((def) => [`${def.kind}.${def.group}`, def] as const))(
    '%s: its example is complete, valid, and matches its schema',
    (_, def) => {
      const example = def.example?.() as ApiObject;
      const version = def.versions[0]!;
      expect(example.kind).toBe(def.kind);
      const group = def.group === '' ? '' : `${def.group}/`;
      expect(example.apiVersion).toBe(`${group}${version.version}`);
      expect(unknownMembers(example, version.schema)).toEqual([]);
      expect(def.strategy.validateName(example.metadata.name ?? '')).toEqual([]);
      const stored = created(def);
      expect(foundErrors(def.strategy.validateCreate?.(plainContext, stored))).toEqual([]);
      const again = structuredClone(stored);
      runPreparation(def.strategy.prepareForUpdate?.(plainContext, again, stored));
      expect(foundErrors(def.strategy.validateUpdate?.(plainContext, again, stored))).toEqual([]);
      expect(again).toEqual(stored);
    },
  );

  test.each(defs.map((def) => [`${def.kind}.${def.group}`, def] as const))(
    '%s: columns, defaults, and field labels work on its example',
    (_, def) => {
      const stored = created(def);
      for (const version of def.versions.filter(({ served }) => served)) {
        const shown = version.fromStorage?.(structuredClone(stored)) ?? structuredClone(stored);
        for (const column of version.columns ?? []) {
          expect(column.cell(shown, plainContext.nowMs), column.name).toBeDefined();
        }
        const before = structuredClone(shown);
        version.defaults?.(shown);
        expect(shown, 'defaulting twice changes nothing').toEqual(before);
        const labels = def.strategy.fieldLabels?.[version.version] ?? {};
        const storedLabels = Object.keys(def.storage.fieldsOf?.(stored) ?? {});
        for (const label of Object.values(labels)) expect(storedLabels).toContain(label);
      }
    },
  );

  test.each(goShaped.map((def) => [`${def.kind}.${def.group}`, def] as const))(
    '%s: validates an empty object without crashing',
    (_, def) => {
      const version = def.versions[0]!;
      const object: ApiObject = {
        apiVersion: def.storage.apiVersion,
        kind: def.kind,
        metadata: {
          name: 'empty',
          ...(def.scope === 'Namespaced' ? { namespace: 'default' } : {}),
        },
      };
      version.defaults?.(object);
      const stored = version.toStorage?.(object) ?? object;
      runPreparation(def.strategy.prepareForCreate?.(plainContext, stored));
      expect(Array.isArray(foundErrors(def.strategy.validateCreate?.(plainContext, stored)))).toBe(
        true,
      );
      for (const column of version.columns ?? []) column.cell(stored, plainContext.nowMs);
    },
  );
});
