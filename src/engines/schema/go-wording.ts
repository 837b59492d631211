import type { JsonValue } from '../../base/json.ts';
import { resolved, type Schema } from './schema.ts';

/** How Go's decoder and printer word things; clients match on these texts. */

/** What Go calls a JSON value in `cannot unmarshal <this> into`. */
export function goValue(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'number';
  return typeof value;
}

/**
 * The name of the Go type a typed schema stands for: `int32`, `map[string]string`, `v1.PodSpec`.
 */
export function goType(schema: Schema): string {
  const at = resolved(schema);
  if (at.typeName !== undefined) return shortTypeName(at.typeName);
  if (at.type === 'array') return `[]${at.items === undefined ? 'interface {}' : goType(at.items)}`;
  if (at.type === 'object') {
    const element = at.additionalProperties;
    return `map[string]${element === undefined ? 'interface {}' : goType(element)}`;
  }
  if (at.type === 'integer') return at.format ?? 'int64';
  if (at.type === 'number') return 'float64';
  if (at.type === 'boolean') return 'bool';
  return at.format === 'byte' ? '[]uint8' : 'string';
}

/** `core.v1.Pod` -> `v1.Pod`, as Go prints package and type. */
export function shortTypeName(typeName: string): string {
  return typeName.split('.').slice(-2).join('.');
}

/** `core.v1.Pod` -> `Pod`. */
export function bareTypeName(typeName: string): string {
  return typeName.slice(typeName.lastIndexOf('.') + 1);
}

/** A number as Go's `%v` prints a float64: an exponent below 1e-4 and from 1e21. */
export function goFloat(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && magnitude < 1e-4) {
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  return String(value);
}

/**
 * The message of a 400 for a body the typed decoder cannot take:
 * `ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot …`.
 */
export function cannotHandle(body: {
  readonly kind: string;
  readonly version: string;
  readonly message: string;
}): string {
  const { kind, version, message } = body;
  return `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${message}`;
}
