import { type ColumnDef, createdAtColumn, nameColumn } from '@wheelhouse/kinds';
import type { JsonObject, JsonValue } from '@wheelhouse/machinery';

/** The object that a table row contains besides its cells (CODEC-5). */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** The columns of kinds that declare none. */
export const defaultColumns: readonly ColumnDef[] = [nameColumn, createdAtColumn];

/** The `columnDefinitions` of a table. */
export function columnDefinitions(columns: readonly ColumnDef[]): JsonObject[] {
  return columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
}

/**
 * A row of a table.
 *
 * @param options.metaVersion the apiVersion of a PartialObjectMetadata
 * @param options.nowMs the current time for ages, milliseconds since the epoch
 */
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
    object: rowObject(object, include, metaVersion),
  };
}

/** How many values the columns of a row visit together (TRUST-2); further cells are empty. */
const rowValuesMax = 100_000;

/** The cells of a row, in column order; null where a column has no value. */
export function tableCells(
  object: JsonObject,
  columns: readonly ColumnDef[],
  nowMs: number,
): JsonValue[] {
  const budget = { left: rowValuesMax };
  return columns.map((column): JsonValue => column.cell(object, nowMs, budget) ?? null);
}

function rowObject(object: JsonObject, include: IncludeObject, metaVersion: string): JsonValue {
  if (include === 'None') return null;
  return include === 'Object' ? object : partialObject(object, metaVersion);
}

/** The PartialObjectMetadata of an object (CODEC-6). */
export function partialObject(object: JsonObject, metaVersion: string): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: metaVersion,
    metadata: object.metadata ?? {},
  };
}
