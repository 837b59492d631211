import { isObject, type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
import {
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  nodeOf,
  sortedElements,
  unionNode,
} from './field-set.ts';
import { elementText, parseElement } from './path-element.ts';

/**
 * The FieldsV1 form of a set, members in upstream's order: `.` for the item itself, then fields, keys,
 * values and indexes. The result is shared: callers may not change it.
 */
export function encodeFields(set: FieldSet): JsonObject {
  const known = encoded.get(set);
  if (known !== undefined) return known;
  const fields = encodeLevel(set, false);
  encoded.set(set, fields);
  decoded.set(fields, set);
  return fields;
}

/** Sets and their encodings, both ways; neither ever changes. */
const encoded = new WeakMap<FieldSet, JsonObject>();
const decoded = new WeakMap<JsonObject, FieldSet>();

function encodeLevel(set: FieldSet, withSelf: boolean): JsonObject {
  const object: JsonObject = {};
  if (withSelf) object['.'] = {};
  for (const element of sortedElements(set)) {
    const node = set.get(element)!;
    object[element] = node.children === undefined ? {} : encodeLevel(node.children, node.member);
  }
  return object;
}

/** Deepest FieldsV1 that is read; deeper ones are refused like any other malformed entry. */
const depthMax = 1000;

/**
 * Reads a FieldsV1. Steps of kinds this version does not know are left out, as upstream does. Throws
 * an Error when a member name is no step or a value no object.
 */
export function decodeFields(fields: JsonValue): FieldSet {
  if (fields === null) return emptySet;
  if (!isObject(fields)) throw new Error('expected an object of fields');
  const known = decoded.get(fields);
  if (known !== undefined) return known;
  return decodeText(fields);
}

/** Sets by the text of their encoding, the oldest first; writers own the same fields mostly. */
const byText = new Map<string, FieldSet>();
const textCharactersMax = 512 * 1024;
const allCharactersMax = 4 * 1024 * 1024;
let allCharacters = 0;

function decodeText(fields: JsonObject): FieldSet {
  const text = JSON.stringify(fields);
  const known = byText.get(text);
  if (known !== undefined) return known;
  const set = readNode(fields, 0).children ?? emptySet;
  if (text.length > textCharactersMax) return set;
  byText.set(text, set);
  allCharacters += text.length;
  for (const oldest of byText.keys()) {
    if (allCharacters <= allCharactersMax) break;
    byText.delete(oldest);
    allCharacters -= oldest.length;
  }
  return set;
}

function readNode(fields: JsonValue | undefined, depth: number): FieldNode {
  if (depth > depthMax) throw new Error('exceeded max depth');
  if (fields === null || fields === undefined) return { member: true, children: undefined };
  if (!isObject(fields)) throw new Error('expected an object of fields');
  let member = false;
  const children: GrowingFieldSet = new Map();
  for (const name of Object.keys(fields)) {
    if (name === '.') {
      member = true;
      continue;
    }
    const parsed = parseElement(name);
    if (parsed === undefined) continue;
    const element = parsed.kind === 'field' ? name : elementText(parsed);
    const node = readNode(fields[name], depth + 1);
    const present = children.get(element);
    children.set(element, present === undefined ? node : unionNode(present, node));
  }
  return nodeOf(member || children.size === 0, children)!;
}

/** A copy of FieldsV1 that its owner may change. */
export function copyFields(fields: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const name of Object.keys(fields)) {
    const below = fields[name];
    setMember(copy, name, isObject(below) ? copyFields(below) : {});
  }
  return copy;
}
