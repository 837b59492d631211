import { isObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { itemElement } from './list-items.ts';
import { showElement } from './path-element.ts';
import { goPlain, goSyntax, goTypeName, TypedError, type TypedProblem } from './typed-errors.ts';
import {
  fitting,
  type ListShape,
  type MapShape,
  type ScalarShape,
  type ValueType,
} from './value-type.ts';

/** Whether several items of a set or list map may be the same: in stored objects they may. */
export interface ValidationOptions {
  readonly allowDuplicates: boolean;
}

interface Walk extends ValidationOptions {
  readonly problems: TypedProblem[];
}

/** Throws a TypedError when a value does not fit its type. */
export function validateTyped(type: ValueType, value: JsonValue, options: ValidationOptions): void {
  const walk: Walk = { ...options, problems: [] };
  validateValue(walk, type, value, '');
  if (walk.problems.length > 0) throw new TypedError(walk.problems);
}

function validateValue(walk: Walk, type: ValueType, value: JsonValue, path: string): void {
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined) validateMap(walk, map, { value, path });
  else if (scalar !== undefined) {
    const why = scalarProblem(scalar, value, '');
    if (why !== undefined) walk.problems.push({ path, message: why });
  } else if (list !== undefined) validateList(walk, list, { value, path });
}

interface Place {
  readonly value: JsonValue;
  readonly path: string;
}

function validateMap(walk: Walk, map: MapShape, { value, path }: Place): void {
  if (value === null) return;
  if (!isObject(value)) {
    walk.problems.push({ path, message: `expected map, got &{${goPlain(value)}}` });
    return;
  }
  validateMembers(walk, map, { object: value, path });
}

function validateMembers(
  walk: Walk,
  map: MapShape,
  { object, path }: { object: JsonObject; path: string },
): void {
  for (const name of Object.keys(object)) {
    const type = (map.fields.get(name)?.type ?? map.element)?.get();
    const below = `${path}.${name}`;
    if (type === undefined) {
      walk.problems.push({ path: below, message: 'field not declared in schema' });
      return;
    }
    const value = object[name];
    if (value !== undefined) validateValue(walk, type, value, below);
  }
}

function validateList(walk: Walk, list: ListShape, { value, path }: Place): void {
  if (value === null) return;
  if (!Array.isArray(value)) {
    walk.problems.push({ path, message: `expected list, got &{${goPlain(value)}}` });
    return;
  }
  const type = list.element.get();
  if (list.atomic) {
    for (const [index, item] of value.entries()) {
      validateValue(walk, type, item, `${path}[${index}]`);
    }
    return;
  }
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') {
      walk.problems.push({ path, message: `element ${index}: ${element.why}` });
      return;
    }
    if (seen.has(element) && !walk.allowDuplicates) {
      const message = `duplicate entries for key ${showElement(element)}`;
      walk.problems.push({ path, message });
    }
    seen.add(element);
    if (isObject(item) || Array.isArray(item)) {
      validateValue(walk, type, item, `${path}${showElement(element)}`);
    } else if (type.scalar !== undefined) {
      const why = scalarProblem(type.scalar, item, '');
      if (why !== undefined) {
        walk.problems.push({ path: `${path}${showElement(element)}`, message: why });
      }
    }
  }
}

/** Why a value is no such scalar; undefined when it is one, or null. */
export function scalarProblem(
  scalar: ScalarShape,
  value: JsonValue | undefined,
  prefix: string,
): string | undefined {
  if (value === null || value === undefined) return undefined;
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  if (scalar === 'numeric') {
    if (isNumber) return undefined;
    return `${prefix}expected numeric (int or float), got ${goTypeName(value)}`;
  }
  if (scalar === 'string') {
    if (typeof value === 'string') return undefined;
    return `${prefix}expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
  }
  if (scalar === 'boolean') {
    if (typeof value === 'boolean') return undefined;
    return `${prefix}expected boolean, got &{${goPlain(value)}}`;
  }
  if (typeof value !== 'object') return undefined;
  return `${prefix}expected any scalar, got &{${goPlain(value)}}`;
}
