import { isObject, type JsonValue, member } from '../../base/json.ts';
import { keyElement, type PathElement, valueElement } from './path-element.ts';
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
  const keys: [string, JsonValue][] = [];
  for (const name of list.keys) {
    const given = member(item, name);
    if (given !== undefined) {
      keys.push([name, given]);
      continue;
    }
    const element = list.element.get();
    if (element.map === undefined) {
      const why = 'associative list may not have non-map types';
      return { why: `couldn't find default value for ${name}: ${why}` };
    }
    const fallback = element.map.fields.get(name)?.default;
    if (fallback === undefined || fallback === null) return { why: omitted(name) };
    keys.push([name, fallback]);
  }
  return keyElement(keys);
}

const omitted = (name: string) =>
  `associative list with keys has an element that omits key field ${JSON.stringify(name)}` +
  " (and doesn't have default value)";
