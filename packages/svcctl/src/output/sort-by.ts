import { compareNaturally, encodeJson } from '@wheelhouse/codec';
import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { parsePath, selectPath } from './jsonpath.ts';

/**
 * Orders rows by a JSONPath into their objects (`--sort-by`): numbers by size, texts naturally,
 * objects without the field first. Throws CliError when no object has the field.
 */
export function sortRows<T>(
  rows: readonly T[],
  options: { readonly path: string; readonly objectOf: (row: T) => JsonObject },
): T[] {
  const text = options.path.replace(/^\{(.*)\}$/, '$1');
  const steps = parsePath(text.startsWith('.') ? text : `.${text}`);
  const keyed = rows.map((row) => ({ row, key: selectPath(steps, options.objectOf(row))[0] }));
  if (rows.length > 0 && keyed.every(({ key }) => key === undefined)) {
    throw new CliError(`couldn't find any field with path "{${text}}" in the list of objects`);
  }
  return keyed.sort((one, other) => compareValues(one.key, other.key)).map(({ row }) => row);
}

function compareValues(one: JsonValue | undefined, other: JsonValue | undefined): number {
  if (one === undefined || other === undefined) {
    return Number(one !== undefined) - Number(other !== undefined);
  }
  if (isNumber(one) && isNumber(other)) return Number(one) - Number(other);
  return compareNaturally(textOf(one), textOf(other));
}

const isNumber = (value: JsonValue): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';

const textOf = (value: JsonValue): string =>
  typeof value === 'object' ? encodeJson(value).toString() : String(value);
