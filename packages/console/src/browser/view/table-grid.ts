import type { Kind } from '../model/kinds.ts';
import { hashOf } from '../model/route.ts';
import { cellText, type Sorting, sorted, type TableColumn, type TableRow } from '../model/table.ts';
import type { TableSnapshot } from '../model/table-store.ts';
import { routeOfKind } from './context.ts';
import { button, element, fill, setAttribute } from './element.ts';

/** How a table is shown. */
export interface GridOptions {
  readonly kind: Kind;
  /** Objects of several namespaces stand in it. */
  readonly withNamespace: boolean;
  readonly width: 'normal' | 'wide';
  readonly sorting: Sorting | undefined;
  readonly nowMs: number;
}

/** A table that is brought up to date row by row: what has not changed is not touched. */
export interface Grid {
  readonly root: HTMLElement;
  show(snapshot: TableSnapshot, options: GridOptions): void;
}

interface ShownRow {
  readonly element: HTMLTableRowElement;
  readonly row: TableRow;
  readonly ages: readonly {
    readonly cell: HTMLElement;
    readonly column: TableColumn;
    readonly index: number;
  }[];
}

/** An empty table; `sortBy` is called for a click on a column's head. */
export function createGrid(sortBy: (column: string) => void): Grid {
  const head = element('tr');
  const body = element('tbody');
  const root = element('table', { class: 'grid' }, element('thead', {}, head), body);
  let rows = new Map<string, ShownRow>();
  let layout = '';
  return {
    root,
    show(snapshot, options) {
      const columns = shownColumns(snapshot.columns, options.width);
      const next = JSON.stringify([columns, options.withNamespace, options.sorting]);
      if (next !== layout) {
        fill(head, ...heads(columns, options, sortBy));
        rows = new Map();
        fill(body);
        layout = next;
      }
      const { columns: all, rows: listed } = snapshot;
      rows = updateRows(body, rows, {
        listed: sorted(listed, { columns: all, sorting: options.sorting }),
        make: (row) => makeRow(row, columns, options),
        nowMs: options.nowMs,
      });
    },
  };
}

type Shown = readonly { readonly column: TableColumn; readonly index: number }[];

function shownColumns(columns: readonly TableColumn[], width: GridOptions['width']): Shown {
  return columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => width === 'wide' || column.priority === 0);
}

function heads(
  columns: Shown,
  { withNamespace, sorting }: GridOptions,
  sortBy: (column: string) => void,
): HTMLElement[] {
  const headOf = (name: string, label: string, description: string): HTMLElement => {
    const isSorted = sorting?.by === name;
    const mark = !isSorted ? '' : sorting.direction === 'ascending' ? ' ↑' : ' ↓';
    return element(
      'th',
      { scope: 'col', 'aria-sort': isSorted ? sorting.direction : undefined },
      button(label + mark, () => sortBy(name), { class: 'sort', title: description }),
    );
  };
  return [
    ...(withNamespace ? [headOf('namespace', 'Namespace', 'Namespace of the object.')] : []),
    ...columns.map(({ column }) => headOf(column.name, column.name, column.description)),
  ];
}

function makeRow(row: TableRow, columns: Shown, options: GridOptions): ShownRow {
  const { kind, withNamespace, nowMs } = options;
  const ages: ShownRow['ages'][number][] = [];
  const cells = columns.map(({ column, index }, place) => {
    const text = cellText(row, { column, index, nowMs });
    const cell = element('td', {}, place === 0 ? linkTo(kind, row, text) : text);
    if (column.name === 'Age') ages.push({ cell, column, index });
    return cell;
  });
  const namespace = withNamespace ? [element('td', {}, row.namespace)] : [];
  const isGoing = row.metadata.deletionTimestamp !== undefined;
  const attributes = isGoing ? { class: 'going', title: 'Being deleted' } : {};
  return { element: element('tr', attributes, ...namespace, ...cells), row, ages };
}

function linkTo(kind: Kind, row: TableRow, text: string): HTMLElement {
  const { namespace, name } = row;
  const resource = routeOfKind(kind);
  const href = hashOf({ page: 'object', resource, namespace, name, tab: 'yaml' });
  return element('a', { href }, text || name);
}

/** Leaves rows that are the same where they are; new and changed ones are lit up for a moment. */
function updateRows(
  body: HTMLElement,
  before: ReadonlyMap<string, ShownRow>,
  to: {
    readonly listed: readonly TableRow[];
    readonly make: (row: TableRow) => ShownRow;
    readonly nowMs: number;
  },
): Map<string, ShownRow> {
  const after = new Map<string, ShownRow>();
  let place: Element | null = body.firstElementChild;
  for (const row of to.listed) {
    const known = before.get(row.key);
    const isSame = known !== undefined && known.row === row;
    const shown = isSame ? known : to.make(row);
    if (isSame) refreshAges(known, to.nowMs);
    else if (before.size > 0) setAttribute(shown.element, 'data-fresh', true);
    after.set(row.key, shown);
    if (known !== undefined && !isSame) {
      if (place === known.element) place = known.element.nextElementSibling;
      known.element.remove();
    }
    if (place === shown.element) place = place.nextElementSibling;
    else body.insertBefore(shown.element, place);
  }
  for (const [key, { element: gone }] of before) if (!after.has(key)) gone.remove();
  return after;
}

function refreshAges({ ages, row }: ShownRow, nowMs: number): void {
  for (const { cell, column, index } of ages) {
    const text = cellText(row, { column, index, nowMs });
    if (cell.textContent !== text) cell.textContent = text;
  }
}
