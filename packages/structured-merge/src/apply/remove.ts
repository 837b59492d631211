import { isObject, type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
import { emptySet, type FieldSet } from './field-set.ts';
import { itemElement } from './list-items.ts';
import { fieldElement } from './path-element.ts';
import {
  fitting,
  type ListShape,
  type MapShape,
  memberType,
  type ValueType,
} from './value-type.ts';

type Mode = 'remove' | 'extract';

/**
 * The value without the members and list items whose paths are in the set. A part that loses all it
 * had becomes null; atomic parts below a path of the set go as a whole.
 */
export function removeItems(type: ValueType, value: JsonValue, paths: FieldSet): JsonValue {
  return walk(type, value, { paths, mode: 'remove' });
}

interface Picking {
  readonly paths: FieldSet;
  readonly mode: Mode;
}

function walk(type: ValueType, value: JsonValue, picking: Picking): JsonValue {
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined) return isObject(value) ? walkMap(map, value, picking) : null;
  if (scalar !== undefined) return value;
  return list !== undefined && Array.isArray(value) ? walkList(list, value, picking) : null;
}

function walkMap(map: MapShape, object: JsonObject, picking: Picking): JsonValue {
  const names = Object.keys(object).filter((name) => object[name] !== undefined);
  if (names.length === 0) return null;
  if (map.atomic) return picking.mode === 'extract' ? object : null;
  const kept: JsonObject = {};
  let count = 0;
  for (const name of names) {
    const type = memberType(map, name);
    const value = pick(type, object[name]!, { picking, element: fieldElement(name) });
    if (value === undefined) continue;
    setMember(kept, name, value);
    count += 1;
  }
  return count > 0 ? kept : null;
}

function walkList(list: ListShape, items: readonly JsonValue[], picking: Picking): JsonValue {
  if (items.length === 0) return null;
  if (list.atomic) return picking.mode === 'extract' ? [...items] : null;
  const type = list.element.get();
  const kept: JsonValue[] = [];
  for (const item of items) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') continue;
    const value = pick(type, item, { picking, element });
    if (value !== undefined) kept.push(value);
  }
  return kept.length > 0 ? kept : null;
}

/** What stays of a member or item; undefined when it goes. */
function pick(
  type: ValueType | undefined,
  value: JsonValue,
  { picking, element }: { picking: Picking; element: string },
): JsonValue | undefined {
  const { paths, mode } = picking;
  const node = paths.get(element);
  if (node?.member === true && mode === 'remove') return undefined;
  if (type === undefined) return mode === 'remove' ? value : undefined;
  if (node?.children !== undefined) return walk(type, value, { paths: node.children, mode });
  if (mode === 'remove') return value;
  return node === undefined ? undefined : extractLeaf(type, value);
}

/** A leaf of the set: the value whole when it changes as a whole, else only that it is there. */
function extractLeaf(type: ValueType, value: JsonValue): JsonValue {
  const { map, scalar, list } = fitting(type, value);
  const whole = map?.atomic ?? (scalar !== undefined || list?.atomic === true);
  return whole ? value : walk(type, value, { paths: emptySet, mode: 'extract' });
}
