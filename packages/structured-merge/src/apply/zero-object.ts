import { type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
import { type Property, resolved, type Schema } from '@wheelhouse/schema';

const zeros = new WeakMap<Schema, JsonObject>();

/**
 * What a new object of a kind is before anybody wrote to it. A built-in kind has its members that are
 * always written, at their zero values: this is why a manager that creates a Deployment owns
 * `.spec.replicas` but not `.spec` itself. A custom kind has none. Shared: callers may not change it.
 */
export function zeroObject(schema: Schema): JsonObject {
  const at = resolved(schema);
  const cachedObject = zeros.get(at);
  if (cachedObject !== undefined) return cachedObject;
  const object = at.typed === true ? zeroStruct(at, 0) : {};
  zeros.set(at, object);
  return object;
}

/** Structs that contain themselves do so behind pointers or lists; this bounds a mistaken schema. */
const depthMax = 32;

function zeroStruct(schema: Schema, depth: number): JsonObject {
  const object: JsonObject = {};
  for (const [name, property] of schema.properties ?? []) {
    if (property.omitEmpty !== true || property.isPlainUpstream === true)
      setMember(object, name, zeroValue(property, depth));
  }
  return object;
}

function zeroValue(property: Property, depth: number): JsonValue {
  if (property.pointer === true && property.isPlainUpstream !== true) return null;
  const schema = resolved(property.schema);
  switch (schema.type) {
    case 'object':
      if (schema.properties === undefined || depth > depthMax) return null;
      return zeroStruct(schema, depth + 1);
    case 'string':
      return zeroText(schema.format);
    case 'integer':
    case 'number':
      return 0;
    case 'boolean':
      return false;
    default:
      return schema.intOrString === true ? 0 : null;
  }
}

function zeroText(format: string | undefined): JsonValue {
  if (format === 'date-time' || format === 'micro-time' || format === 'byte') return null;
  if (format === 'duration') return '0s';
  return format === 'quantity' ? '0' : '';
}
