import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { objectRoute } from '../../model/route.ts';
import type { TableRow } from '../../model/table.ts';
import { Link, TextInput } from '../parts/basics.tsx';
import {
  type GridProps,
  type GridState,
  rowHeight,
  type ShownColumn,
  shownText,
  sliceOf,
  toneOf,
} from './grid-state.ts';

/** The column headers with sort buttons and filter inputs. */
function GridHead(props: GridProps) {
  const { columns, rows, state, canSelect } = props;
  const isAll = rows.length > 0 && rows.every(({ key }) => state.selected.has(key));
  return (
    <thead>
      <tr aria-rowindex={1}>
        {canSelect && (
          <th class="tick" scope="col">
            <input
              type="checkbox"
              aria-label="Select all"
              checked={isAll}
              onChange={() => state.select(isAll ? [] : rows.map(({ key }) => key))}
            />
          </th>
        )}
        {columns.map((column) => (
          <Head key={column.key} column={column} state={state} />
        ))}
      </tr>
      {state.isFiltering && (
        <tr class="filters">
          {canSelect && <td />}
          {columns.map(({ key, column }) => (
            <td key={key}>
              <TextInput
                isSearch
                label={`${column.name} contains`}
                placeholder="Filter"
                value={state.view.filters[key] ?? ''}
                onText={(text) => state.filter(key, text)}
              />
            </td>
          ))}
        </tr>
      )}
    </thead>
  );
}

function Head(props: { readonly column: ShownColumn; readonly state: GridProps['state'] }) {
  const { column: shown, state } = props;
  const { key, column } = shown;
  const { sorting } = state.view;
  const direction = sorting?.by === key ? sorting.direction : undefined;
  const mark = direction === undefined ? '' : direction === 'ascending' ? ' ↑' : ' ↓';
  return (
    <th scope="col" aria-sort={direction}>
      <button
        type="button"
        class="sort"
        title={column.description}
        onClick={() => state.sortBy(key)}
      >
        {column.name + mark}
      </button>
    </th>
  );
}

/** A virtual table: only the visible rows are elements, so that scrolling stays smooth. */
export function Grid(props: GridProps) {
  const { columns, rows, state, canSelect, onEnd } = props;
  const box = useRef<HTMLDivElement>(null);
  const { scrollTop, height, follow } = useViewport(box);
  const slice = sliceOf({ count: rows.length, scrollTop, height });
  const isAtEnd = slice.to >= rows.length;
  useLayoutEffect(() => {
    if (isAtEnd) onEnd();
  }, [isAtEnd, rows.length, onEnd]);
  useFocusedRow(box, state, rows.length);
  const press = (event: KeyboardEvent): void =>
    state.press(event, rows, Math.floor(height / rowHeight));
  usePageKeys(press);
  const total = columns.reduce((sum, { width }) => sum + width, canSelect ? 5 : 0);
  const nameColumn = columns.find((column) => column.index >= 0);
  return (
    <div
      class="scroll grid-box"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label="Objects"
      onScroll={follow}
      onKeyDown={press}
    >
      <table
        class="grid virtual"
        aria-rowcount={rows.length + 1}
        style={{ minWidth: `${total}ch` }}
      >
        <colgroup>
          {canSelect && <col style={{ width: '5ch' }} />}
          {columns.map((column) => (
            // The name column takes the remaining width.
            <col
              key={column.key}
              style={column === nameColumn ? {} : { width: `${column.width}ch` }}
            />
          ))}
        </colgroup>
        <GridHead {...props} />
        <tbody>
          <Space pixels={slice.above} columns={columns.length + 1} />
          {rows.slice(slice.from, slice.to).map((row, offset) => (
            <Row key={row.key} {...props} row={row} index={slice.from + offset} />
          ))}
          <Space pixels={slice.below} columns={columns.length + 1} />
        </tbody>
      </table>
    </div>
  );
}

function Space(props: { readonly pixels: number; readonly columns: number }) {
  if (props.pixels === 0) return null;
  return (
    <tr class="space" aria-hidden="true">
      <td colSpan={props.columns} style={{ height: `${props.pixels}px` }} />
    </tr>
  );
}

function Row(props: GridProps & { readonly row: TableRow; readonly index: number }) {
  const { kind, columns, row, index, state, nowMs, isFresh, canSelect } = props;
  const { namespace, name } = row;
  const isTerminating = row.metadata['deletionTimestamp'] !== undefined;
  const isSelected = state.selected.has(row.key);
  const nameColumn = columns.find((column) => column.index >= 0);
  const to = objectRoute({ kind, namespace, name });
  // The element stays, and with it the focus, so that only another animation starts again.
  const shown = useRef({ version: row.resourceVersion, turn: 0 });
  if (shown.current.version !== row.resourceVersion) {
    shown.current = { version: row.resourceVersion, turn: 1 - shown.current.turn };
  }
  return (
    <tr
      class={isTerminating ? 'going' : undefined}
      title={isTerminating ? 'Being deleted' : undefined}
      aria-rowindex={index + 2}
      data-fresh={isFresh(row) ? shown.current.turn : undefined}
      data-selected={isSelected ? '' : undefined}
      data-row={index}
    >
      {canSelect && (
        <td class="tick">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select ${name}`}
            checked={isSelected}
            onChange={() => state.toggle(row.key)}
          />
        </td>
      )}
      {columns.map((column) => {
        const text = shownText(row, column, nowMs);
        const tone = toneOf(column.column.name, text);
        return (
          <td key={column.key} title={text.length > column.width ? text : undefined}>
            {column === nameColumn ? (
              <Link to={to} onFocus={() => state.setCursor(index)}>
                {text === '–' ? name : text}
              </Link>
            ) : tone === undefined ? (
              text
            ) : (
              <span class={`chip ${tone}`}>{text}</span>
            )}
          </td>
        );
      })}
    </tr>
  );
}

/** The scroll position and visible height of the box. */
function useViewport(box: RefObject<HTMLDivElement | null>) {
  const [view, setView] = useState({ scrollTop: 0, height: 800 });
  const follow = useMemo(
    () => (): void => {
      const { current } = box;
      if (current === null) return;
      const { scrollTop, clientHeight: height } = current;
      setView((before) =>
        before.scrollTop === scrollTop && before.height === height ? before : { scrollTop, height },
      );
    },
    [box],
  );
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    follow();
    const observer = new ResizeObserver(follow);
    observer.observe(current);
    return () => observer.disconnect();
  }, [box, follow]);
  return { ...view, follow };
}

/** Handles keys while no element has focus, for example after the page opens. */
function usePageKeys(press: (event: KeyboardEvent) => void): void {
  const latest = useRef(press);
  latest.current = press;
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const { target } = event;
      const isUnfocused = target instanceof HTMLElement && target.matches('body, main');
      if (isUnfocused) latest.current(event);
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}

/** Scrolls to the row that the keys selected and focuses its link. */
function useFocusedRow(
  box: RefObject<HTMLDivElement | null>,
  state: GridState,
  count: number,
): void {
  const { moved } = state;
  // Runs for each move of the keys, even to the same row.
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null || moved === undefined || moved.to >= count) return;
    const head = current.querySelector('thead')?.clientHeight ?? 0;
    const top = moved.to * rowHeight;
    const bottom = top + rowHeight + head;
    if (top < current.scrollTop) current.scrollTop = top;
    else if (bottom > current.scrollTop + current.clientHeight) {
      current.scrollTop = bottom - current.clientHeight;
    }
    const focus = (): void =>
      current
        .querySelector<HTMLElement>(`tr[data-row="${moved.to}"] a`)
        ?.focus({ preventScroll: true });
    focus();
    // A row that was not visible is rendered before the next frame.
    requestAnimationFrame(focus);
  }, [moved]);
}
