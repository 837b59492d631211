import { goPlain, goText, goTypeName, type JsonValue } from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';

/**
 * Why a strategic merge patch failed: it is malformed (400), cannot be applied (422), or does not
 * match the object (a 500 in kube-apiserver).
 */
type StrategicFailure = 'format' | 'unprocessable' | 'mismatch';

/** A strategic merge patch that cannot be applied. The message is kube-apiserver's. */
export class StrategicMergeError extends Error {
  readonly kind: StrategicFailure;

  constructor(kind: StrategicFailure, message: string) {
    super(message);
    this.name = 'StrategicMergeError';
    this.kind = kind;
  }
}

const mismatch = (message: string) => new StrategicMergeError('mismatch', message);

export const badPrimitiveList = () =>
  new StrategicMergeError('format', 'invalid patch format of primitive list');
export const badRetainKeys = () =>
  new StrategicMergeError('format', 'invalid patch format of retainKeys');
export const badElementOrder = () =>
  new StrategicMergeError('format', 'invalid patch format of setElementOrder list');
export const listOfLists = () =>
  new StrategicMergeError('unprocessable', 'lists of lists are not supported');

const typeText = (value: JsonValue | undefined) =>
  value === null || value === undefined ? goText(null) : goTypeName(value);

export const noMergeKey = (item: JsonValue, key: string) =>
  mismatch(`map: ${goPlain(item)} does not contain declared merge key: ${key}`);
export const badType = (expected: '[]' | 'map', actual: JsonValue | undefined) => {
  const expectedType = expected === '[]' ? '[]interface {}' : 'map[string]interface {}';
  return mismatch(`expected a ${expectedType}, but received a ${typeText(actual)}`);
};
export const badDirective = (directive: JsonValue, item: JsonValue) =>
  mismatch(`unknown patch type: ${goText(directive)} in map: ${goPlain(item)}`);
export const mergeDirectiveInList = () =>
  mismatch('merging lists cannot yet be specified in the patch');
export const noKeyDeclared = (typeKind: string) =>
  mismatch(`cannot merge lists without merge key for ${typeKind}`);
export const mixedItems = (lists: readonly JsonValue[]) =>
  mismatch(`list element types are not identical: ${goPlain([...lists])}`);
export const noItems = () => mismatch('no elements in any of the given slices');
export const itemIsNoMap = (index: number) => mismatch(`value for key ${index} is not a map`);
export const orderDiffers = (patch: JsonValue, order: JsonValue) =>
  mismatch(
    `The order in patch list:\n${goPlain(patch)}\n doesn't match $setElementOrder list:\n${goPlain(order)}\n`,
  );
const noSuchField = (typeName: string, field: string) =>
  mismatch(
    `unable to find api field in struct ${typeName} for the json field ${JSON.stringify(field)}`,
  );
const notAStruct = (typeKind: string) =>
  mismatch(`merging an object in json but data type is not struct, instead is: ${typeKind}`);
const notAList = (typeKind: string) =>
  mismatch(`expected slice or array type, but got: ${typeKind}`);
export const retainKeysDiffer = (left: JsonValue, right: JsonValue) =>
  mismatch(
    `${goPlain(left)} and ${goPlain(right)} are not deep equal: ` +
      'this may happen when calculating the 3-way diff patch',
  );
export const badDirectiveValue = () => mismatch('invalid value for special key: $patch');
const badStrategies = (strategies: readonly string[]) =>
  mismatch(`unexpected patch strategy: [${strategies.join(' ')}]`);

/** Directive in an object or list item: `replace` or `delete`. */
export const directiveMember = '$patch';
/** Directive in an object: the names of all members to retain. */
export const retainKeysMember = '$retainKeys';
/** `$deleteFromPrimitiveList/finalizers`: scalars to remove from a list. */
export const deleteListPrefix = '$deleteFromPrimitiveList';
/** `$setElementOrder/containers`: the order of a list, with objects reduced to their merge keys. */
export const elementOrderPrefix = '$setElementOrder';

/** How patches merge a field. */
export interface FieldMerging {
  /** Schema of the field. */
  readonly schema: Schema;
  /** Undefined for the default, which merges objects and replaces lists. */
  readonly strategy: 'merge' | 'replace' | undefined;
  /** Merge key of a merged list of objects; empty if there is none. */
  readonly mergeKey: string;
  /** Whether patches of the object list all members to retain. */
  readonly retains: boolean;
}

/** Go's reflect.Kind of a schema's type, for messages. */
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

/**
 * Looks up a field by its JSON name, ignoring case if there is no exact match. Throws if it does
 * not exist.
 */
export function mergingOf(schema: Schema, name: string): FieldMerging {
  const at = resolved(schema);
  const { properties, typeName = 'runtime.RawExtension' } = at;
  const kind = goKindOf(at);
  if (properties === undefined && kind !== 'struct') throw notAStruct(kind);
  const property = properties?.get(name) ?? byFoldedName(properties ?? new Map(), name);
  if (property === undefined) throw noSuchField(typeName.split('.').at(-1) ?? '', name);
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

/** Like `mergingOf` for a list; returns the schema of its items. */
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
