import { age } from '@wheelhouse/kinds';
import {
  acceptedMetaGroups,
  goPlain,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';
import type { FlagSpec } from '../flags.ts';
import { listAt, nameOf, namespaceOf, objectAt, pairsText, textAt } from '../objects.ts';
import { type Color, type Paint, withoutControls } from '../terminal.ts';

/** A table from the server, or one that svcctl builds from objects. */
export interface ObjectTable {
  readonly columns: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly JsonValue[]; readonly object: JsonObject }[];
}

/** The Accept header for tables; a server without table support sends objects. */
export const tableAccept = acceptedMetaGroups
  .map((group) => `application/json;as=Table;v=v1;g=${group}`)
  .concat('application/json')
  .join(',');

/**
 * Reads a Table, or builds a table with NAME and AGE from an object or a list.
 * @param nowMs the current time, in milliseconds since 1970
 */
export function tableOf(body: JsonObject, nowMs: number): ObjectTable {
  if (body.kind !== 'Table') return plainTable(body, nowMs);
  return {
    columns: listAt(body, 'columnDefinitions').map((column) => ({
      name: textAt(column, 'name'),
      priority: typeof column.priority === 'number' ? column.priority : 0,
    })),
    rows: listAt(body, 'rows').map((row) => ({
      cells: Array.isArray(row.cells) ? row.cells : [],
      object: objectAt(row, 'object'),
    })),
  };
}

function plainTable(body: JsonObject, nowMs: number): ObjectTable {
  const objects = Array.isArray(body.items) ? body.items.filter(isObject) : [body];
  return {
    columns: [
      { name: 'Name', priority: 0 },
      { name: 'Age', priority: 0 },
    ],
    rows: objects.map((object) => ({
      object,
      cells: [nameOf(object), age(textAt(object, 'metadata', 'creationTimestamp'), nowMs)],
    })),
  };
}

/** The flag that omits headings. */
export const noHeadersFlag: FlagSpec = {
  name: 'no-headers',
  type: 'boolean',
  help: 'Omit the column headings',
};

/** Which columns and headings a table shows. */
export interface TableOptions {
  /** Whether to include columns of a priority above 0. */
  readonly wide: boolean;
  readonly withNamespace: boolean;
  readonly withLabels: boolean;
  readonly labelColumns: readonly string[];
  readonly headers: boolean;
}

/** Returns the cells of a table by line; the first line has the headings if requested. */
export function tableLines(table: ObjectTable, options: TableOptions): string[][] {
  const visibleColumns = table.columns.flatMap(({ priority }, index) =>
    options.wide || priority === 0 ? [index] : [],
  );
  const lines: string[][] = [];
  if (options.headers) {
    lines.push([
      ...(options.withNamespace ? ['NAMESPACE'] : []),
      ...visibleColumns.map((index) => table.columns[index]!.name.toUpperCase()),
      ...options.labelColumns.map((label) => label.split('/').at(-1)!.toUpperCase()),
      ...(options.withLabels ? ['LABELS'] : []),
    ]);
  }
  for (const { cells, object } of table.rows) {
    const labels = objectAt(object, 'metadata', 'labels');
    lines.push([
      ...(options.withNamespace ? [namespaceOf(object)] : []),
      ...visibleColumns.map((index) => cellText(cells[index])),
      ...options.labelColumns.map((label) => textAt(labels, label)),
      ...(options.withLabels ? [pairsText(labels)] : []),
    ]);
  }
  return lines;
}

function cellText(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') return goPlain(value);
  const end = value.search(/[\n\r\f]/);
  return end < 0 ? value : `${value.slice(0, end)}...`;
}

/** Styles a cell for a terminal without changing its width. */
export type CellStyle = (
  cell: string,
  position: { readonly row: number; readonly column: number },
) => string;

/**
 * Returns the style of a table: bold headings, and cells of the STATUS column by their value.
 * @param options.headingCount number of heading lines
 */
export function tableStyle(
  paint: Paint,
  { titles, headingCount }: { readonly titles: readonly string[]; readonly headingCount: number },
): CellStyle {
  return (cell, { row, column }) => {
    if (row < headingCount) return paint(cell, 'bold');
    if (titles[column] !== 'STATUS') return cell;
    const color = statusColor(cell);
    return color === undefined ? cell : paint(cell, color);
  };
}

function statusColor(status: string): Color | undefined {
  if (/^(Running|Active|Bound|Ready|True|Available|Completed|Succeeded)$/.test(status)) {
    return 'green';
  }
  if (/Err|BackOff|Fail|Lost|OOM|Evicted|NotReady|Unknown/.test(status)) return 'red';
  return /Pending|Creating|Init|Terminating|Released/.test(status) ? 'yellow' : undefined;
}

/**
 * Aligns columns three spaces apart. As for kubectl, a tab in a cell begins another column, and the
 * end of a line another row. Other control characters are shown, not sent to the terminal.
 * @param widths the widths so far, updated to align the later rows of a watch
 */
export function alignLines(
  unsafe: readonly (readonly string[])[],
  widths: number[] = [],
  style: CellStyle = (cell) => cell,
): string {
  const lines = unsafe.flatMap((line) =>
    withoutControls(line.join('\t'))
      .split('\n')
      .map((text) => text.split('\t')),
  );
  for (const line of lines) {
    // The last cell of a line belongs to no column.
    line.slice(0, -1).forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 6, cell.length + 3);
    });
  }
  return lines
    .map((line, row) => {
      const last = line.length - 1;
      const cells = line.map((cell, at) => {
        const padding = at === last ? '' : ' '.repeat(widths[at]! - cell.length);
        return `${style(cell, { row, column: at })}${padding}`;
      });
      return `${cells.join('')}\n`;
    })
    .join('');
}
