import { useMemo, useRef, useState } from 'preact/hooks';
import type { Kind } from '../../model/kinds.ts';
import { hashOf, objectRoute } from '../../model/route.ts';
import type { TableRow } from '../../model/table.ts';
import { useApp } from '../parts/app.ts';
import type { GridView, ShownColumn } from './grid-layout.ts';

/** What the user has done to a table: how it is sorted, filtered, selected, and where the keys are. */
export interface GridState {
  readonly view: GridView;
  readonly isFiltering: boolean;
  readonly selected: ReadonlySet<string>;
  /** The last move of the keys. */
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

/** What a table shows. */
export interface GridProps {
  readonly kind: Kind;
  readonly columns: readonly ShownColumn[];
  readonly rows: readonly TableRow[];
  readonly state: GridState;
  readonly nowMs: number;
  /** Rows that have just come or changed. */
  readonly isFresh: (row: TableRow) => boolean;
  /** Rows can be selected. */
  readonly canSelect: boolean;
  /** Called when the last rows come into view. */
  readonly onEnd: () => void;
}

/** The state of a table of a kind. */
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
    // A link that has the focus opens by itself.
    const isOnLink = event.target instanceof HTMLAnchorElement;
    if (event.key === 'Enter' && row !== undefined && !isOnLink && !isText(event.target)) open(row);
    else actions.press(event, rows, page);
  };
  return { view, isFiltering, selected, moved, ...actions, press };
}

function isText(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type !== 'checkbox';
}

/** Whether the key means something. */
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
