import {
  acceptedMetaGroups,
  humanDuration,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery/browser';
import { objectOf, objectsOf, textOf } from './failure.ts';

/** A column of a table as the server declares it. */
export interface TableColumn {
  readonly name: string;
  readonly description: string;
  readonly type: string;
  /** 0 is shown always, more only when the user wants it wide. */
  readonly priority: number;
}

/** One object as a row. */
export interface TableRow {
  /** `namespace/name`, in whose order the server lists. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly cells: readonly JsonValue[];
  readonly metadata: JsonObject;
  /** What the server sent of the object: its metadata, or all of it where the query wants that. */
  readonly object: JsonObject;
}

/** Asks for tables, whose rows carry the objects' metadata. */
export const tableType = `application/json;as=Table;v=v1;g=${acceptedMetaGroups[0]}`;

/** The columns a table declares; undefined when it leaves them to one before it. */
export function columnsOf(table: JsonObject): readonly TableColumn[] | undefined {
  const definitions = objectsOf(table, 'columnDefinitions');
  if (definitions.length === 0) return undefined;
  return definitions.map((definition) => ({
    name: textOf(definition, 'name'),
    description: textOf(definition, 'description'),
    type: textOf(definition, 'type'),
    priority: typeof definition.priority === 'number' ? definition.priority : 0,
  }));
}

/** The rows of a table. */
export function rowsOf(table: JsonObject): TableRow[] {
  return objectsOf(table, 'rows').map((row) => {
    const object = objectOf(row, 'object');
    const metadata = objectOf(object, 'metadata');
    const namespace = textOf(metadata, 'namespace');
    const name = textOf(metadata, 'name');
    return {
      key: namespace === '' ? name : `${namespace}/${name}`,
      namespace,
      name,
      uid: textOf(metadata, 'uid'),
      resourceVersion: textOf(metadata, 'resourceVersion'),
      cells: Array.isArray(row.cells) ? row.cells : [],
      metadata,
      object,
    };
  });
}

/**
 * What a cell says. Ages are counted anew from the object's own time, since the server wrote them
 * when the row last changed.
 */
export function cellText(
  row: TableRow,
  of: { readonly column: TableColumn; readonly index: number; readonly nowMs: number },
): string {
  if (of.column.name === 'Age') {
    const created = Date.parse(textOf(row.metadata, 'creationTimestamp'));
    if (!Number.isNaN(created)) return humanDuration(Math.max(0, of.nowMs - created));
  }
  const value = row.cells[of.index];
  if (value === undefined || value === null) return '<none>';
  return isObject(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);
}

/** What rows are sorted by: a column, or `namespace`. */
export interface Sorting {
  readonly by: string;
  readonly direction: 'ascending' | 'descending';
}

/** Rows in another order; those that are equal stay as they were. */
export function sorted(
  rows: readonly TableRow[],
  options: { readonly columns: readonly TableColumn[]; readonly sorting: Sorting | undefined },
): readonly TableRow[] {
  const { columns, sorting } = options;
  if (sorting === undefined) return rows;
  const index = columns.findIndex(({ name }) => name === sorting.by);
  const sign = sorting.direction === 'ascending' ? 1 : -1;
  const keyOf = (row: TableRow): JsonValue => {
    if (sorting.by === 'namespace') return row.namespace;
    // The younger, the smaller the age.
    if (sorting.by === 'Age') return -Date.parse(textOf(row.metadata, 'creationTimestamp')) || 0;
    return row.cells[index] ?? '';
  };
  return rows
    .map((row) => ({ row, key: keyOf(row) }))
    .sort((one, other) => sign * compared(one.key, other.key))
    .map(({ row }) => row);
}

const collator = new Intl.Collator('en', { numeric: true });

function compared(one: JsonValue, other: JsonValue): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return collator.compare(String(one), String(other));
}

/** Texts that cells must contain, by column; `namespace` is one. */
export type Filters = Readonly<Record<string, string>>;

/** The rows whose cells contain all texts; upper and lower case are the same. */
export function filtered(
  rows: readonly TableRow[],
  options: {
    readonly columns: readonly TableColumn[];
    readonly filters: Filters;
    readonly nowMs: number;
  },
): readonly TableRow[] {
  const { columns, filters, nowMs } = options;
  const tests = Object.entries(filters).flatMap(([name, text]) => {
    const wanted = text.trim().toLowerCase();
    if (wanted === '') return [];
    if (name === 'namespace') return [(row: TableRow) => row.namespace.includes(wanted)];
    const index = columns.findIndex((column) => column.name === name);
    const column = columns[index];
    if (column === undefined) return [];
    return [
      (row: TableRow) => cellText(row, { column, index, nowMs }).toLowerCase().includes(wanted),
    ];
  });
  return tests.length === 0 ? rows : rows.filter((row) => tests.every((holds) => holds(row)));
}
