import { useMemo, useRef, useState } from 'preact/hooks';
import type { Kind } from '../../model/kinds.ts';
import { hashOf, objectRoute } from '../../model/route.ts';
import {
  cellText,
  type Filters,
  filterRows,
  type Sorting,
  sortRows,
  type TableColumn,
  type TableRow,
} from '../../model/table.ts';
import type { TableSnapshot } from '../../model/table-store.ts';
import { useApp } from '../parts/app.ts';

/** Row height in pixels; all rows have the same, so that offsets can be computed. */
export const rowHeight = 34;
/** Rows rendered beyond the visible ones, so that scrolling shows no gap. */
const overscan = 12;

/** A column in the view. */
export interface ShownColumn {
  readonly column: TableColumn;
  /** Index of its cells; -1 for the namespace. */
  readonly index: number;
  readonly key: string;
  /** Width in characters. */
  readonly width: number;
}

/** The user's settings of a table. */
interface GridView {
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

/** Number of rows that determine the width of a column. */
const sampleSize = 300;

/** The columns to show, each wide enough for most of its cells. */
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
  const namespaceWidth = widthOf('Namespace', texts, 30);
  return [
    { column: namespaceColumn, index: -1, key: 'namespace', width: namespaceWidth },
    ...shown,
  ];
}

/** The text of a cell; `<none>` is shown as a dash. */
export function shownText(row: TableRow, { column, index }: ShownColumn, nowMs: number): string {
  if (index < 0) return row.namespace;
  const text = cellText(row, { column, index, nowMs });
  return text === '<none>' || text === '' ? '–' : text;
}

/** The filtered and sorted rows. */
export function arrangeRows(
  { rows, columns }: Pick<TableSnapshot, 'rows' | 'columns'>,
  { sorting, filters }: GridView,
  nowMs: number,
): readonly TableRow[] {
  return sortRows(filterRows(rows, { columns, filters, nowMs }), { columns, sorting });
}

/** The visible rows, and the space above and below them in pixels. */
interface Slice {
  readonly from: number;
  readonly to: number;
  readonly above: number;
  readonly below: number;
}

/** Computes which of `count` rows are visible. */
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

/** The style of a cell that states a status: `Running`, `False`, `Warning`. */
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

/** The user's view of a table: sorting, filters, selection, and the row of the keys. */
export interface GridState {
  readonly view: GridView;
  readonly isFiltering: boolean;
  readonly selected: ReadonlySet<string>;
  /** The last move by keys. */
  readonly moved: { readonly to: number } | undefined;
  sortBy(column: string): void;
  filter(column: string, text: string): void;
  setFiltering(isOn: boolean): void;
  setWidth(width: GridView['width']): void;
  toggle(key: string): void;
  select(keys: readonly string[]): void;
  setCursor(index: number): void;
  press(event: KeyboardEvent, rows: readonly TableRow[], page: number): void;
}

/** The contents of a table. */
export interface GridProps {
  readonly kind: Kind;
  readonly columns: readonly ShownColumn[];
  readonly rows: readonly TableRow[];
  readonly state: GridState;
  readonly nowMs: number;
  /** New and changed rows. */
  readonly isFresh: (row: TableRow) => boolean;
  /** Whether rows can be selected. */
  readonly canSelect: boolean;
  /** Called when the last rows become visible. */
  readonly onEnd: () => void;
}

/** The state of a kind's table. */
export function useGridState(kind: Kind): GridState {
  const { workspace } = useApp();
  const [view, setView] = useState<GridView>({ sorting: undefined, filters: {}, width: 'normal' });
  const [isFiltering, setFiltering] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [moved, setMoved] = useState<{ readonly to: number }>();
  const cursor = useRef(-1);
  const actions = useMemo(() => {
    const toggle = (key: string): void =>
      setSelected((before) => {
        const after = new Set(before);
        if (!after.delete(key)) after.add(key);
        return after;
      });
    const move = (to: number): void => {
      cursor.current = to;
      setMoved({ to });
    };
    const press: GridState['press'] = (event, rows, page) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isText(event.target)) return;
      if (event.key === 'f') setFiltering((before) => !before);
      else if (!pressOnRow(event.key, { rows, page, at: cursor.current, move, toggle })) return;
      event.preventDefault();
    };
    return {
      toggle,
      press,
      setFiltering: (isOn: boolean) => {
        setFiltering(isOn);
        if (!isOn) setView((before) => ({ ...before, filters: {} }));
      },
      setCursor: (index: number) => {
        cursor.current = index;
      },
      select: (keys: readonly string[]) => setSelected(new Set(keys)),
      setWidth: (width: GridView['width']) => setView((before) => ({ ...before, width })),
      filter: (column: string, text: string) =>
        setView((before) => ({ ...before, filters: { ...before.filters, [column]: text } })),
      sortBy: (by: string) =>
        setView((before) => {
          const isAgain = before.sorting?.by === by && before.sorting.direction === 'ascending';
          const direction = isAgain ? 'descending' : 'ascending';
          return { ...before, sorting: { by, direction } };
        }),
    };
  }, []);
  const open = (row: TableRow): void => {
    const { namespace, name } = row;
    workspace.ports.setHash(hashOf(objectRoute({ kind, namespace, name })));
  };
  const press: GridState['press'] = (event, rows, page) => {
    const row = rows[cursor.current];
    if (isActivation(event)) return;
    if (event.key === 'Enter' && row !== undefined) open(row);
    else actions.press(event, rows, page);
  };
  return { view, isFiltering, selected, moved, ...actions, press };
}

/** Whether the key activates the focused link, button, or input without help. */
function isActivation({ key, target }: KeyboardEvent): boolean {
  if (!(target instanceof Element)) return false;
  if (key === 'Enter') return target.matches('a, button, input:not([type=checkbox])');
  return key === ' ' && target.matches('button, input');
}

function isText(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type !== 'checkbox';
}

/** Whether the grid handles the key. */
function pressOnRow(
  key: string,
  of: {
    readonly rows: readonly TableRow[];
    readonly page: number;
    readonly at: number;
    readonly move: (to: number) => void;
    readonly toggle: (key: string) => void;
  },
): boolean {
  const { rows, page, at, move, toggle } = of;
  const steps: Readonly<Record<string, number>> = {
    ...{ ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 },
    ...{ PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length },
  };
  const step = steps[key];
  const row = rows[at];
  if (step !== undefined && rows.length > 0) {
    move(Math.max(0, Math.min(rows.length - 1, at + step)));
  } else if ((key === 'x' || key === ' ') && row !== undefined) toggle(row.key);
  else return false;
  return true;
}
