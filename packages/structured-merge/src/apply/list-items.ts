import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery';
import { encodeValue, type PathElement, valueElement } from './path-element.ts';
import type { ListShape } from './value-type.ts';

/** The step to a list item, or why it has none. */
export type ItemElement = PathElement | { readonly why: string };

/** The step to an item of a set or list map. */
export function itemElement(list: ListShape, item: JsonValue | undefined): ItemElement {
  if (list.keys.length > 0) return keyedElement(list, item ?? null);
  return setElement(item ?? null);
}

function setElement(item: JsonValue): ItemElement {
  if (isObject(item)) {
    return { why: "associative list without keys has an element that's a map type" };
  }
  if (Array.isArray(item)) {
    return { why: 'not supported: associative list with lists as elements' };
  }
  if (item === null) {
    return { why: "associative list without keys has an element that's an explicit null" };
  }
  return valueElement(item);
}

function keyedElement(list: ListShape, item: JsonValue): ItemElement {
  if (item === null) return { why: 'associative list with keys may not have a null element' };
  if (!isObject(item)) {
    return { why: 'associative list with keys may not have non-map elements' };
  }
  const cachedElements = elementsOf(list);
  const before = cachedElements.get(item);
  if (before !== undefined) return before;
  const element = encodeKeys(list, item);
  if (typeof element === 'string') cachedElements.set(item, element);
  return element;
}

/**
 * Steps of the items one operation has met: each of its walks meets the same ones. No item changes
 * while an operation runs, but between two it may, so that every operation begins with none.
 */
let elements = new Map<ListShape, WeakMap<JsonObject, PathElement>>();

/** To be called where an operation begins. */
export function forgetElements(): void {
  if (elements.size > 0) elements = new Map();
}

function elementsOf(list: ListShape): WeakMap<JsonObject, PathElement> {
  let cachedElements = elements.get(list);
  if (cachedElements === undefined) {
    cachedElements = new WeakMap();
    elements.set(list, cachedElements);
  }
  return cachedElements;
}

function encodeKeys(list: ListShape, item: JsonObject): ItemElement {
  let text = 'k:{';
  for (const { name, prefix } of list.sortedKeys) {
    const keyValue = member(item, name);
    const value = keyValue === undefined ? defaultOf(list, name) : keyValue;
    if (value === undefined) return { why: whyUnkeyed(list, item) };
    if (text.length > 3) text += ',';
    text += prefix + encodeValue(value);
  }
  return `${text}}`;
}

/** What stands for an absent key; undefined when nothing does. */
function defaultOf(list: ListShape, name: string): JsonValue | undefined {
  return list.element.get().map?.fields.get(name)?.default ?? undefined;
}

/** Names the first key, in declared order, that an item lacks. */
function whyUnkeyed(list: ListShape, item: JsonObject): string {
  const absent = list.keys.find(
    (name) => member(item, name) === undefined && defaultOf(list, name) === undefined,
  );
  if (list.element.get().map === undefined) {
    const why = 'associative list may not have non-map types';
    return `couldn't find default value for ${absent}: ${why}`;
  }
  return (
    `associative list with keys has an element that omits key field ${JSON.stringify(absent)}` +
    " (and doesn't have default value)"
  );
}
