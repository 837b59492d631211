import { jsonText } from '@wheelhouse/codec';
import { type JsonObject, type JsonValue, parseGoTime } from '@wheelhouse/machinery';
import type { ColumnDef } from '../resource-def.ts';
import type { CrdColumn } from './definition.ts';
import { mayRead, pathReader } from './path.ts';

/** Time from a timestamp to now as tables print it (`5m3s`). */
export type PrintAge = (timestamp: string, nowMs: number) => string;

const nameColumn: ColumnDef = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  priority: 0,
  cell: (object) => {
    const { metadata } = object as { metadata?: { name?: string } };
    return metadata?.name ?? '';
  },
};

const ageColumn: CrdColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created.',
  jsonPath: '.metadata.creationTimestamp',
};

/**
 * A version's columns (CODEC-5): the name, then those it declares, or the age if it declares none.
 * They end where a path cannot be read, as upstream's do.
 */
export function columnsOf(
  declared: readonly CrdColumn[] | undefined,
  printAge: PrintAge,
): readonly ColumnDef[] {
  const columns = declared === undefined || declared.length === 0 ? [ageColumn] : declared;
  const wrong = columns.findIndex(({ jsonPath }) => pathReader(jsonPath) === undefined);
  const shown = wrong < 0 ? columns : columns.slice(0, wrong);
  return [nameColumn, ...shown.map((column) => columnOf(column, printAge))];
}

/** Whether a column shows, or may show, who wrote which field. */
export function showsManagedFields(declared: readonly CrdColumn[] | undefined): boolean {
  return (declared ?? []).some(({ jsonPath }) => mayRead(jsonPath, ['metadata', 'managedFields']));
}

function columnOf(column: CrdColumn, printAge: PrintAge): ColumnDef {
  const path = column.jsonPath;
  const read = pathReader(path);
  const standard = `Custom resource definition column (in JSONPath format): ${path}`;
  const description = column.description ?? '';
  return {
    name: column.name,
    type: column.type,
    format: column.format ?? '',
    description: description === '' ? standard : description,
    priority: column.priority ?? 0,
    cell: (object: JsonObject, nowMs: number) => {
      const value = read?.(object);
      if (value === null && column.type === 'string') return '<no value>';
      return value === undefined || value === null
        ? null
        : cellOf(column.type, value, (timestamp) => printAge(timestamp, nowMs));
    },
  };
}

function cellOf(
  type: string,
  value: JsonValue,
  printAge: (timestamp: string) => string,
): JsonValue {
  switch (type) {
    case 'string':
      return typeof value === 'object' ? jsonText(value) : String(value);
    case 'integer':
      if (typeof value === 'bigint') return value;
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      return 'error' in parseGoTime(value) ? '<invalid>' : printAge(value);
    default:
      return null;
  }
}
