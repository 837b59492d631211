import { isObject, type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
import {
  addNode,
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  leafNode,
  nodeOf,
  sortedElements,
  sortedInSteps,
} from './field-set.ts';
import { elementText, type PathElement, parseElement } from './path-element.ts';

/**
 * The FieldsV1 form of a set, members in upstream's order: `.` for the item itself, then fields, keys,
 * values and indexes. The result is shared: callers may not change it.
 */
export function encodeFields(set: FieldSet): JsonObject {
  const cachedFields = encoded.get(set);
  if (cachedFields !== undefined) return cachedFields;
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

/** Members after which work in steps may pause. */
const membersPerStep = 250;

/** Counts members on behalf of work in steps. */
interface StepCount {
  left: number;
}

const isStepOver = (count: StepCount): boolean => {
  count.left -= 1;
  if (count.left > 0) return false;
  count.left = membersPerStep;
  return true;
};

/** Encodes a set in steps, after which `encodeFields` knows its encoding. */
export function* encodeFieldsSteps(set: FieldSet): Generator<void, void> {
  if (encoded.has(set)) return;
  const fields = yield* encodeSteps(set, { withSelf: false, count: { left: membersPerStep } });
  encoded.set(set, fields);
  decoded.set(fields, set);
}

function* encodeSteps(
  set: FieldSet,
  { withSelf, count }: { readonly withSelf: boolean; readonly count: StepCount },
): Generator<void, JsonObject> {
  const object: JsonObject = {};
  if (withSelf) object['.'] = {};
  const elements = set.size < membersPerStep ? sortedElements(set) : yield* sortedInSteps(set);
  for (const element of elements) {
    const { children, member } = set.get(element)!;
    object[element] =
      children === undefined ? {} : yield* encodeSteps(children, { withSelf: member, count });
    if (isStepOver(count)) yield;
  }
  return object;
}

/** Reads a FieldsV1 in steps, after which `decodeFields` knows it. Throws what that throws. */
export function* decodeFieldsSteps(fields: JsonObject): Generator<void, void> {
  if (decoded.has(fields)) return;
  const node = yield* readSteps(fields, { depth: 0, count: { left: membersPerStep } });
  decoded.set(fields, node.children ?? emptySet);
}

function* readSteps(
  fields: JsonValue | undefined,
  { depth, count }: { readonly depth: number; readonly count: StepCount },
): Generator<void, FieldNode> {
  if (!isObject(fields) || depth === depthMax) return readNode(fields, depth);
  let member = false;
  const children: GrowingFieldSet = new Map();
  for (const name of Object.keys(fields)) {
    if (isStepOver(count)) yield;
    if (name === '.') {
      member = true;
      continue;
    }
    const element = elementOf(name);
    if (element === undefined) continue;
    const below = fields[name];
    const isBare = below === null || below === undefined;
    const node = isBare ? leafNode : yield* readSteps(below, { depth: depth + 1, count });
    addNode(children, element, node);
  }
  return nodeOf(member || children.size === 0, children)!;
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
  const cachedSet = decoded.get(fields);
  if (cachedSet !== undefined) return cachedSet;
  return decodeText(fields);
}

/** Sets by the text of their encoding, the oldest first; writers own the same fields mostly. */
const byText = new Map<string, FieldSet>();
const textCharactersMax = 512 * 1024;
const allCharactersMax = 4 * 1024 * 1024;
let allCharacters = 0;

function decodeText(fields: JsonObject): FieldSet {
  const text = JSON.stringify(fields);
  const cachedSet = byText.get(text);
  if (cachedSet !== undefined) return cachedSet;
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
    const element = elementOf(name);
    if (element !== undefined) addNode(children, element, readNode(fields[name], depth + 1));
  }
  return nodeOf(member || children.size === 0, children)!;
}

/** The step that a member's name is; undefined for one of a kind that this version does not know. */
function elementOf(name: string): PathElement | undefined {
  const parsed = parseElement(name);
  if (parsed === undefined) return undefined;
  return parsed.kind === 'field' ? name : elementText(parsed);
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
