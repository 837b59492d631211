import { goSyntax, type JsonValue, showHead, showValue } from '@wheelhouse/machinery';
import { resolved, type Schema } from './schema.ts';

/** How Go's decoder and printer word things; clients match on these texts. */

/**
 * The name of the Go type a typed schema stands for: `int32`, `map[string]string`, `v1.PodSpec`.
 */
export function goType(schema: Schema): string {
  const at = resolved(schema);
  if (at.goName !== undefined) return at.goName;
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

/** What Go's reflection calls the kind of a decoded JSON value. */
function goKind(value: JsonValue): string {
  if (Array.isArray(value)) return 'slice';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'object') return 'map';
  return Number.isInteger(Number(value)) ? 'int64' : 'float64';
}

/** Why a member of a decoded map does not fit its field's type, as upstream's converter says it. */
export function cannotConvert(value: JsonValue, schema: Schema): string {
  const at = resolved(schema);
  const kind = goKind(value);
  if (at.type === 'array' || at.format === 'byte') return `cannot restore slice from ${kind}`;
  if (at.properties !== undefined) return `cannot restore struct from: ${kind}`;
  if (at.type === 'object') return `cannot restore map from ${kind}`;
  const isNumber = at.type === 'integer' || at.type === 'number';
  // Go turns any number into another, and a whole one into text.
  const converts = isNumber ? typeof value === 'number' : kind === 'int64' && at.type === 'string';
  if (converts) return `cannot convert ${kind} to ${goType(at)}`;
  const { typeName: _, goName: __, ...bare } = at;
  return `unrecognized type: ${goType(bare)}`;
}

/** `core.v1.Pod` -> `v1.Pod`, as Go prints package and type. */
export function shortTypeName(typeName: string): string {
  return typeName.split('.').slice(-2).join('.');
}

/** `core.v1.Pod` -> `Pod`. */
export function bareTypeName(typeName: string): string {
  return typeName.slice(typeName.lastIndexOf('.') + 1);
}

/** The value a complaint is about: what is more than a scalar stands in Go's syntax. */
export function goBadValue(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '"null"';
  return typeof value === 'object' ? showHead(value, goSyntax) : showValue(value);
}
