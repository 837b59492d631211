import { TextInput } from '../parts/basics.tsx';
import type { ShownColumn } from './grid-layout.ts';
import type { GridProps } from './grid-state.ts';

/** The heads of the columns, which sort, and below them the texts that filter. */
export function GridHead(props: GridProps) {
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
