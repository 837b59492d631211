import {
  acceptedMetaGroups,
  humanDuration,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery/browser';
import { objectOf, objectsOf, textOf } from './failure.ts';
import { printJson } from './json.ts';

/** A column of a table, as the server defines it. */
export interface TableColumn {
  readonly name: string;
  readonly description: string;
  readonly type: string;
  /** Columns with priority 0 are always shown, others only in the wide view. */
  readonly priority: number;
}

/** One object as a row of a table. */
export interface TableRow {
  /** `namespace/name`, the sort key of the server's lists. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly cells: readonly JsonValue[];
  readonly metadata: JsonObject;
  /** The object in the row: its metadata, or all of it if the query asks for that. */
  readonly object: JsonObject;
}

/** Accepts tables whose rows include the metadata of the objects. */
export const tableType = `application/json;as=Table;v=v1;g=${acceptedMetaGroups[0]}`;

/** The columns of a table; undefined if it reuses those of the previous one. */
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

/** Parses the rows of a table. */
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
 * The text of a cell. Computes ages from creation times, since the server's text dates from the
 * last change of the row.
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
  return isObject(value) || Array.isArray(value) ? printJson(value, '') : String(value);
}

/** The sort key: a column, or `namespace`. */
export interface Sorting {
  readonly by: string;
  readonly direction: 'ascending' | 'descending';
}

/** Sorts rows; the sort is stable. */
export function sortRows(
  rows: readonly TableRow[],
  options: { readonly columns: readonly TableColumn[]; readonly sorting: Sorting | undefined },
): readonly TableRow[] {
  const { columns, sorting } = options;
  if (sorting === undefined) return rows;
  const index = columns.findIndex(({ name }) => name === sorting.by);
  const sign = sorting.direction === 'ascending' ? 1 : -1;
  const keyOf = (row: TableRow): JsonValue => {
    if (sorting.by === 'namespace') return row.namespace;
    // The later the creation, the smaller the age.
    if (sorting.by === 'Age') return -Date.parse(textOf(row.metadata, 'creationTimestamp')) || 0;
    return row.cells[index] ?? '';
  };
  const cells = rows.map(keyOf);
  const seconds = cells.map(secondsOf);
  const keys = seconds.every((value) => value !== undefined) ? seconds : cells;
  return rows
    .map((row, at) => ({ row, key: keys[at] ?? '' }))
    .sort((left, right) => sign * compareCells(left.key, right.key))
    .map(({ row }) => row);
}

/** The seconds of a duration such as `2h5m`; -1 without a value, undefined for other texts. */
function secondsOf(cell: JsonValue): number | undefined {
  if (typeof cell !== 'string') return cell === null ? -1 : undefined;
  if (/^(<\w+>)?$/.test(cell)) return -1;
  if (!/^(\d+[ydhms])+$/.test(cell)) return undefined;
  const parts = cell.matchAll(/(\d+)([ydhms])/g);
  return [...parts].reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (unitSeconds[unit] ?? 0),
    0,
  );
}

const unitSeconds: Readonly<Record<string, number>> = {
  ...{ y: 31_536_000, d: 86_400, h: 3_600, m: 60, s: 1 },
};

const collator = new Intl.Collator('en', { numeric: true });

const isNumber = (cell: JsonValue): cell is number | bigint =>
  typeof cell === 'number' || typeof cell === 'bigint';

function compareCells(left: JsonValue, right: JsonValue): number {
  if (isNumber(left) && isNumber(right)) return left < right ? -1 : Number(left > right);
  return collator.compare(String(left), String(right));
}

/** Filter texts by column, or by `namespace`. */
export type Filters = Readonly<Record<string, string>>;

/** The rows whose cells contain all filter texts, ignoring case. */
export function filterRows(
  rows: readonly TableRow[],
  options: {
    readonly columns: readonly TableColumn[];
    readonly filters: Filters;
    readonly nowMs: number;
  },
): readonly TableRow[] {
  const { columns, filters, nowMs } = options;
  const tests = Object.entries(filters).flatMap(([name, text]) => {
    const searched = text.trim().toLowerCase();
    if (searched === '') return [];
    if (name === 'namespace') return [(row: TableRow) => row.namespace.includes(searched)];
    const index = columns.findIndex((column) => column.name === name);
    const column = columns[index];
    if (column === undefined) return [];
    return [
      (row: TableRow) => cellText(row, { column, index, nowMs }).toLowerCase().includes(searched),
    ];
  });
  return tests.length === 0 ? rows : rows.filter((row) => tests.every((holds) => holds(row)));
}
