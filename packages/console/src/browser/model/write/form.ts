import {
  dereference,
  descriptionOf,
  isObject,
  type JsonObject,
  type JsonValue,
  propertiesOf,
} from '@wheelhouse/machinery/browser';
import { textsOf } from '../failure.ts';

/** The input element for a value. */
type Shape =
  | { readonly type: 'object'; readonly schema: JsonObject }
  | { readonly type: 'list' | 'map'; readonly item: JsonObject }
  | { readonly type: 'choice'; readonly values: readonly string[] }
  | { readonly type: 'text' | 'number' | 'integer' | 'boolean' | 'anything' };

/** A field in a form. */
export interface FormField {
  readonly name: string;
  readonly property: JsonObject;
  readonly description: string;
  readonly isRequired: boolean;
}

/** The input element for the values of a schema. */
export function shapeOf(schemas: JsonObject, property: JsonObject): Shape {
  const schema = dereference(schemas, property);
  const { type, items, additionalProperties: others } = schema;
  const values = property['enum'] ?? schema['enum'];
  if (Array.isArray(values) && values.length > 0) {
    return { type: 'choice', values: values.map(String) };
  }
  if (type === 'array' && isObject(items)) return { type: 'list', item: items };
  if (Object.keys(propertiesOf(schema)).length > 0) return { type: 'object', schema };
  if (isObject(others)) return { type: 'map', item: others };
  if (type === 'integer' || type === 'number' || type === 'boolean') return { type };
  return type === 'string' ? { type: 'text' } : { type: 'anything' };
}

/** The fields of an object: metadata, then required fields, then the others. */
export function formFields(schemas: JsonObject, schema: JsonObject): FormField[] {
  const required = new Set(textsOf(schema, 'required'));
  return Object.entries(propertiesOf(schema))
    .flatMap(([name, property]): FormField[] => {
      if (!isObject(property)) return [];
      const description = descriptionOf(property) || descriptionOf(dereference(schemas, property));
      return [{ name, property, description, isRequired: required.has(name) }];
    })
    .sort((left, right) => rankOf(left) - rankOf(right));
}

function rankOf({ name, isRequired }: FormField): number {
  if (name === 'metadata') return 0;
  return isRequired ? 1 : 2;
}

/** The initial value of a field: its default, or the smallest value of its type. */
export function initialValue(schemas: JsonObject, property: JsonObject): JsonValue {
  const defaultValue = property['default'];
  if (
    defaultValue !== undefined &&
    !(isObject(defaultValue) && Object.keys(defaultValue).length === 0)
  ) {
    return defaultValue;
  }
  const shape = shapeOf(schemas, property);
  switch (shape.type) {
    case 'object':
      return Object.fromEntries(
        formFields(schemas, shape.schema)
          .filter(({ isRequired }) => isRequired)
          .map(({ name, property: inner }) => [name, scalarOrEmpty(schemas, inner)]),
      );
    default:
      return scalarOrEmpty(schemas, property);
  }
}

/** Like `initialValue`, but one level deep, since a schema may be recursive. */
function scalarOrEmpty(schemas: JsonObject, property: JsonObject): JsonValue {
  const shape = shapeOf(schemas, property);
  switch (shape.type) {
    case 'object':
    case 'map':
    case 'anything':
      return {};
    case 'list':
      return [];
    case 'boolean':
      return false;
    case 'number':
    case 'integer':
      return 0;
    case 'choice':
      return shape.values[0] ?? '';
    case 'text':
      return '';
  }
}

/** Parses a number; undefined if invalid. Keeps all digits of large integers. */
export function parseNumber(text: string): JsonValue | undefined {
  const trimmed = text.trim();
  if (/^-?\d+$/.test(trimmed)) {
    const value = BigInt(trimmed);
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }
  const value = Number(trimmed);
  return trimmed === '' || !Number.isFinite(value) ? undefined : value;
}
