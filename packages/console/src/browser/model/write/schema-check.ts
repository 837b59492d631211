import {
  dereferenced,
  isObject,
  type JsonObject,
  type JsonValue,
  propertiesOf,
} from '@wheelhouse/machinery/browser';
import { type FailureCause, textsOf } from '../failure.ts';
import type { KindSchema } from '../schema.ts';

/** As many as a person reads; the server has the rest. */
const faultsMax = 50;
const depthMax = 60;

/**
 * What a published schema says against a value: unknown and missing fields, wrong types, and values
 * that are not of the list. The server has more rules; these are told while one writes.
 */
export function schemaFaults({ root, schemas }: KindSchema, value: JsonValue): FailureCause[] {
  const faults: FailureCause[] = [];
  check({ schemas, faults }, { schema: root, value, path: '', depth: 0 });
  return faults;
}

interface Checking {
  readonly schemas: JsonObject;
  readonly faults: FailureCause[];
}

interface Place {
  readonly schema: JsonObject;
  readonly value: JsonValue;
  readonly path: string;
  readonly depth: number;
}

function check(checking: Checking, { schema: written, value, path, depth }: Place): void {
  const { schemas, faults } = checking;
  if (faults.length >= faultsMax || depth > depthMax || value === null) return;
  const schema = dereferenced(schemas, written);
  const complain = (message: string): void => {
    faults.push({ field: path, reason: '', message });
  };
  if (!hasType(schema, value)) {
    complain(`must be of type ${String(schema['type'])}`);
    return;
  }
  const allowed = written['enum'] ?? schema['enum'];
  if (Array.isArray(allowed) && typeof value === 'string' && !allowed.includes(value)) {
    complain(`must be one of ${allowed.map(String).join(', ')}`);
    return;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!isObject(items)) return;
    value.forEach((item, index) => {
      check(checking, { schema: items, value: item, path: `${path}[${index}]`, depth: depth + 1 });
    });
    return;
  }
  if (isObject(value)) checkMembers(checking, { schema, value, path, depth });
}

function checkMembers(
  checking: Checking,
  { schema, value, path, depth }: Place & { readonly value: JsonObject },
): void {
  const { faults } = checking;
  const properties = propertiesOf(schema);
  const { additionalProperties: others } = schema;
  const isOpen =
    isObject(others) ||
    others === true ||
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    Object.keys(properties).length === 0;
  for (const [name, member] of Object.entries(value)) {
    const at = pathTo(path, name);
    const property = Object.hasOwn(properties, name) ? properties[name] : others;
    if (isObject(property)) {
      check(checking, { schema: property, value: member ?? null, path: at, depth: depth + 1 });
    } else if (!isOpen)
      faults.push({ field: at, reason: '', message: 'is not a field of the kind' });
  }
  for (const name of textsOf(schema, 'required')) {
    if (Object.hasOwn(value, name)) continue;
    faults.push({ field: pathTo(path, name), reason: '', message: 'is required' });
  }
}

function pathTo(path: string, name: string): string {
  if (!/^[\w-]+$/.test(name)) return `${path}["${name}"]`;
  return path === '' ? name : `${path}.${name}`;
}

function hasType(schema: JsonObject, value: JsonValue): boolean {
  const { type } = schema;
  const isLoose =
    schema['x-kubernetes-int-or-string'] === true ||
    schema['format'] === 'int-or-string' ||
    schema['oneOf'] !== undefined ||
    schema['anyOf'] !== undefined;
  if (isLoose || typeof type !== 'string') return true;
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'integer':
      return typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint';
    default:
      return true;
  }
}
