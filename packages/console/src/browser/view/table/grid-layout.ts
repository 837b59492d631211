import {
  cellText,
  type Filters,
  filtered,
  type Sorting,
  sorted,
  type TableColumn,
  type TableRow,
} from '../../model/table.ts';
import type { TableSnapshot } from '../../model/table-store.ts';

/** Pixels; all rows are as high, so that their places can be counted. */
export const rowHeight = 34;
/** Rows beyond the edge that are drawn too, so that scrolling shows no gap. */
const overscan = 12;

/** A column as it is shown. */
export interface ShownColumn {
  readonly column: TableColumn;
  /** Of its cells in a row; -1: the namespace. */
  readonly index: number;
  readonly key: string;
  /** In characters. */
  readonly width: number;
}

/** How the user wants a table. */
export interface GridView {
  readonly sorting: Sorting | undefined;
  readonly filters: Filters;
  readonly width: 'normal' | 'wide';
}

const namespaceColumn: TableColumn = {
  name: 'Namespace',
  description: 'Namespace of the object.',
  type: 'string',
  priority: 0,
};

/** How many rows tell how wide a column is. */
const sampleSize = 300;

/** The columns to show, each as wide as most of its cells need. */
export function shownColumns(
  { columns, rows }: TableSnapshot,
  options: { readonly width: GridView['width']; readonly withNamespace: boolean; nowMs: number },
): ShownColumn[] {
  const { width, withNamespace, nowMs } = options;
  const sample = rows.slice(0, sampleSize);
  const widthOf = (head: string, texts: readonly string[], longest: number): number => {
    let length = head.length + 3;
    for (const text of texts) length = Math.max(length, text.length);
    return Math.min(Math.max(length, 6), longest) + 3;
  };
  const shown = columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => width === 'wide' || column.priority === 0)
    .map(({ column, index }, place): ShownColumn => {
      const texts = sample.map((row) => cellText(row, { column, index, nowMs }));
      const longest = place === 0 ? 60 : 44;
      return { column, index, key: column.name, width: widthOf(column.name, texts, longest) };
    });
  if (!withNamespace) return shown;
  const texts = sample.map(({ namespace }) => namespace);
  const width0 = widthOf('Namespace', texts, 30);
  return [{ column: namespaceColumn, index: -1, key: 'namespace', width: width0 }, ...shown];
}

/** What a cell says; `<none>` is shown as a dash. */
export function shownText(row: TableRow, { column, index }: ShownColumn, nowMs: number): string {
  if (index < 0) return row.namespace;
  const text = cellText(row, { column, index, nowMs });
  return text === '<none>' || text === '' ? '–' : text;
}

/** The rows to show, in their order. */
export function arranged(
  { rows, columns }: Pick<TableSnapshot, 'rows' | 'columns'>,
  { sorting, filters }: GridView,
  nowMs: number,
): readonly TableRow[] {
  return sorted(filtered(rows, { columns, filters, nowMs }), { columns, sorting });
}

/** The part of the rows that a viewport shows, and the space above and below it in pixels. */
export interface Slice {
  readonly from: number;
  readonly to: number;
  readonly above: number;
  readonly below: number;
}

/** Which of `count` rows a viewport shows. */
export function sliceOf(of: {
  readonly count: number;
  readonly scrollTop: number;
  readonly height: number;
}): Slice {
  const { count, scrollTop, height } = of;
  const first = Math.floor(scrollTop / rowHeight) - overscan;
  const from = Math.max(0, Math.min(first, count));
  const to = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + overscan);
  return { from, to, above: from * rowHeight, below: (count - Math.max(to, from)) * rowHeight };
}

/** How a cell looks that says how something is doing: `Running`, `False`, `Warning`. */
export function toneOf(name: string, text: string): 'good' | 'bad' | 'warn' | undefined {
  if (!/^(status|phase|ready|state|type|available|established|succeeded)$/i.test(name)) {
    return undefined;
  }
  if (/^(true|running|active|ready|bound|available|succeeded|complete|healthy)$/i.test(text)) {
    return 'good';
  }
  if (/^(false|failed|error|crashloopbackoff|lost|notready|unhealthy)$/i.test(text)) return 'bad';
  if (/^(pending|terminating|unknown|warning|released)$/i.test(text)) return 'warn';
  return undefined;
}
