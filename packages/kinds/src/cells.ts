import {
  memberAt as at,
  humanDuration,
  isObject,
  type JsonObject,
  type JsonValue,
  textAt,
} from '@wheelhouse/machinery';
import type { ColumnDef } from './resource-def.ts';

/** Cells and columns that many kinds share. */

export { at, textAt };

/** The list at a path; empty when there is none. */
export function listAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): readonly JsonValue[] {
  const value = at(object, ...path);
  return Array.isArray(value) ? value : [];
}

/** The number at a path; 0 when there is none. */
export function numberAt(object: JsonValue | undefined, ...path: readonly string[]): number {
  const value = at(object, ...path);
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : 0;
}

/** The member names of a simple path of a definition: `.spec.replicas`. */
export const stepsOf = (path: string): string[] => path.replace(/^\./, '').split('.');

/** The value at a simple path of a definition; undefined if there is none. */
export const valueAt = (object: JsonValue, path: string): JsonValue | undefined =>
  at(object, ...stepsOf(path));

/** The total number of members of the maps at these paths. */
export function sizeAt(object: JsonValue, ...names: readonly string[]): number {
  const size = (value: JsonValue | undefined) => (isObject(value) ? Object.keys(value).length : 0);
  return names.reduce((sum, name) => sum + size(at(object, name)), 0);
}

/** A printer column; `priority` 1 limits it to wide output. */
export function column<O = JsonObject>(
  name: string,
  cell: ColumnDef<O>['cell'],
  more: { type?: string; format?: string; priority?: number; description?: string } = {},
): ColumnDef<O> {
  const { type = 'string', format = '', priority = 0, description = '' } = more;
  return { name, type, format, description, priority, cell };
}

/** A column with the published type `string`, which kube-apiserver uses for some numbers. */
export const asStringColumn = <O>(shown: ColumnDef<O>): ColumnDef<O> => ({
  ...shown,
  type: 'string',
});

const shownValuesMax = 3;

/**
 * The first values of a list, separated by commas, and the number of omitted ones
 * (`a,b,c + 2 more...`); empty for an empty list.
 */
export function firstValues(values: readonly string[]): string {
  const shown = values.slice(0, shownValuesMax).join(',');
  const omitted = values.length - shownValuesMax;
  return omitted > 0 ? `${shown} + ${omitted} more...` : shown;
}

/** Labels in one line, ordered by name. */
export function labelsText(labels: JsonValue | undefined): string {
  if (!isObject(labels)) return '<none>';
  const names = Object.keys(labels).sort();
  return names.map((name) => `${name}=${String(labels[name])}`).join(',') || '<none>';
}

/** The column with the name of the object. */
export const nameColumn: ColumnDef = column(
  'Name',
  (object) => textAt(object, 'metadata', 'name'),
  { format: 'name', description: 'Name of the object, unique in its namespace.' },
);

/** The time since the object was created, as in `5m3s`. */
export const ageColumn: ColumnDef = column(
  'Age',
  (object, nowMs) => age(textAt(object, 'metadata', 'creationTimestamp'), nowMs),
  { description: 'Time since the object was created.' },
);

/** The creation time as a timestamp, for kinds whose tables show it. */
export const createdAtColumn: ColumnDef = column(
  'Created At',
  (object) => textAt(object, 'metadata', 'creationTimestamp'),
  { type: 'date', description: 'Time the object was created.' },
);

/** Time from `timestamp` (RFC 3339) to now as tables print it (`5m3s`); `<unknown>` if empty. */
export function age(timestamp: string, nowMs: number): string {
  const then = timestamp === '' ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(then) ? '<unknown>' : humanDuration(nowMs - then);
}
