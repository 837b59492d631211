import { resolved, type Schema } from '@wheelhouse/schema';
import { badStrategies, noSuchField, notAList, notAStruct } from './strategic-error.ts';

/** How patches merge a field. */
export interface FieldMerging {
  /** Of the field itself. */
  readonly schema: Schema;
  /** Undefined: the default, which merges objects and replaces lists. */
  readonly strategy: 'merge' | 'replace' | undefined;
  /** Member that identifies the items of a merged list of objects; empty when there is none. */
  readonly mergeKey: string;
  /** Whether a patch of an object names all members that it is to have. */
  readonly retains: boolean;
}

/** The kind of Go type behind a schema, as messages name it. */
export function goKindOf(schema: Schema): string {
  const at = resolved(schema);
  if (at.type === 'array') return 'slice';
  if (at.properties !== undefined) return 'struct';
  if (at.type === 'object') return 'map';
  if (at.type === 'integer') return at.format === 'int64' ? 'int64' : 'int32';
  if (at.type === 'boolean') return 'bool';
  if (at.type === 'number') return 'float64';
  return at.type === 'string' ? 'string' : 'struct';
}

/** Looks a field up by its JSON name, case ignored when there is no exact one. Throws when absent. */
export function mergingOf(schema: Schema, name: string): FieldMerging {
  const at = resolved(schema);
  const { properties } = at;
  if (properties === undefined) throw notAStruct(goKindOf(at));
  const property = properties.get(name) ?? byFoldedName(properties, name);
  if (property === undefined) {
    throw noSuchField((at.typeName ?? '').split('.').at(-1) ?? '', name);
  }
  const field = resolved(property.schema);
  return {
    schema: field,
    strategy: strategyOf(field.patchStrategies ?? []),
    mergeKey: field.patchMergeKey ?? '',
    retains: field.patchStrategies?.includes('retainKeys') === true,
  };
}

function byFoldedName(properties: NonNullable<Schema['properties']>, name: string) {
  const folded = name.toLowerCase();
  for (const [fieldName, property] of properties) {
    if (fieldName.toLowerCase() === folded) return property;
  }
  return undefined;
}

/** As `mergingOf`, for a list; gives the schema of its items. */
export function listMergingOf(schema: Schema, name: string): FieldMerging {
  const merging = mergingOf(schema, name);
  const { items } = merging.schema;
  if (merging.schema.type !== 'array' || items === undefined) throw notAList(goKindOf(schema));
  return { ...merging, schema: resolved(items) };
}

function strategyOf(strategies: readonly string[]): FieldMerging['strategy'] {
  const others = strategies.filter((strategy) => strategy !== 'retainKeys');
  if (strategies.length > 2 || others.length > 1) throw badStrategies(strategies);
  const [strategy] = others;
  return strategy === 'merge' || strategy === 'replace' ? strategy : undefined;
}
