import { isObject, type JsonValue } from '../base/json.ts';
import type { ColumnDef } from '../catalogue/resource-def.ts';

/** Cells and columns that many kinds print alike. */

/** The value at a path of member names; undefined where the path breaks off. */
export function at(
  object: JsonValue | undefined,
  ...path: readonly string[]
): JsonValue | undefined {
  let value = object;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** The string at a path, empty when there is none. */
export function textAt(object: JsonValue | undefined, ...path: readonly string[]): string {
  const value = at(object, ...path);
  return typeof value === 'string' ? value : '';
}

/** The list at a path, empty when there is none. */
export function listAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): readonly JsonValue[] {
  const value = at(object, ...path);
  return Array.isArray(value) ? value : [];
}

/** The number at a path, 0 when there is none. */
export function numberAt(object: JsonValue | undefined, ...path: readonly string[]): number {
  const value = at(object, ...path);
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : 0;
}

/** How many members the maps at these paths have together. */
export function sizeAt(object: JsonValue, ...names: readonly string[]): number {
  const size = (value: JsonValue | undefined) => (isObject(value) ? Object.keys(value).length : 0);
  return names.reduce((sum, name) => sum + size(at(object, name)), 0);
}

/** A printer column; `priority` 1 shows it in wide output only. */
export function column(
  name: string,
  cell: ColumnDef['cell'],
  more: { type?: string; format?: string; priority?: number; description?: string } = {},
): ColumnDef {
  const { type = 'string', format = '', priority = 0, description = '' } = more;
  return { name, type, format, description, priority, cell };
}

export const nameColumn: ColumnDef = column(
  'Name',
  (object) => textAt(object, 'metadata', 'name'),
  {
    format: 'name',
    description: 'Name of the object, unique in its namespace.',
  },
);

export const ageColumn: ColumnDef = column(
  'Age',
  (object, nowMs) => age(textAt(object, 'metadata', 'creationTimestamp'), nowMs),
  { description: 'Time since the object was created.' },
);

/** The creation time itself, for the kinds that print it so. */
export const createdAtColumn: ColumnDef = column(
  'Created At',
  (object) => textAt(object, 'metadata', 'creationTimestamp'),
  { description: 'Time the object was created.' },
);

/** Time from `timestamp` (RFC 3339) to now as upstream prints it: `5m3s`; `<unknown>` without one. */
export function age(timestamp: string, nowMs: number): string {
  const then = timestamp === '' ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(then) ? '<unknown>' : humanDuration(nowMs - then);
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/**
 * A duration in at most two units, coarser the longer it is: `119s`, `9m59s`, `3h`, `7d23h`, `2y1d`.
 * Upstream's thresholds: below 2 minutes seconds only, below 10 two units, and so on.
 */
export function humanDuration(durationMs: number): string {
  const seconds = Math.trunc(durationMs / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * minute) return `${seconds}s`;
  if (seconds < 10 * minute)
    return units(seconds, { unit: minute, name: 'm', rest: 1, restName: 's' });
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 8 * hour)
    return units(seconds, { unit: hour, name: 'h', rest: minute, restName: 'm' });
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  if (seconds < 8 * day) return units(seconds, { unit: day, name: 'd', rest: hour, restName: 'h' });
  if (seconds < 2 * year) return `${Math.floor(seconds / day)}d`;
  if (seconds < 8 * year)
    return units(seconds, { unit: year, name: 'y', rest: day, restName: 'd' });
  return `${Math.floor(seconds / year)}y`;
}

function units(
  seconds: number,
  of: { unit: number; name: string; rest: number; restName: string },
): string {
  const whole = Math.floor(seconds / of.unit);
  const rest = Math.floor((seconds - whole * of.unit) / of.rest);
  return rest === 0 ? `${whole}${of.name}` : `${whole}${of.name}${rest}${of.restName}`;
}
