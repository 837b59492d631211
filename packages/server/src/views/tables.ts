import { type ColumnDef, createdAtColumn, nameColumn } from '@wheelhouse/kinds';
import type { JsonObject, JsonValue } from '@wheelhouse/machinery';

/** What a table row contains besides its cells (CODEC-5). */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Columns of kinds without declared columns. */
export const defaultColumns: readonly ColumnDef[] = [nameColumn, createdAtColumn];

/** A table's `columnDefinitions`. */
export function columnDefinitions(columns: readonly ColumnDef[]): JsonObject[] {
  return columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
}

/** One row of a table; `metaVersion` is the apiVersion of its metadata. */
export function tableRow(
  object: JsonObject,
  options: {
    readonly columns: readonly ColumnDef[];
    readonly include: IncludeObject;
    readonly metaVersion: string;
    readonly nowMs: number;
    readonly conditions?: readonly JsonObject[];
  },
): JsonObject {
  const { columns, include, metaVersion, nowMs, conditions = [] } = options;
  return {
    cells: tableCells(object, columns, nowMs),
    ...(conditions.length === 0 ? {} : { conditions: [...conditions] }),
    object: carried(object, include, metaVersion),
  };
}

/** The cells of a row in column order. */
export function tableCells(
  object: JsonObject,
  columns: readonly ColumnDef[],
  nowMs: number,
): JsonValue[] {
  return columns.map((column): JsonValue => column.cell(object, nowMs) ?? null);
}

function carried(object: JsonObject, include: IncludeObject, metaVersion: string): JsonValue {
  if (include === 'None') return null;
  return include === 'Object' ? object : partialObject(object, metaVersion);
}

/** An object's PartialObjectMetadata (CODEC-6). */
export function partialObject(object: JsonObject, metaVersion: string): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: metaVersion,
    metadata: object.metadata ?? {},
  };
}
