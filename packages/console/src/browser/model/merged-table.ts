import type { Clock } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import type { TableRow } from './table.ts';
import {
  openTable,
  type RowChange,
  type TableQuery,
  type TableSnapshot,
  type TableState,
  type TableStore,
} from './table-store.ts';

/** Like `TableQuery`, of any number of namespaces; none: of all. */
export interface TablesQuery extends Omit<TableQuery, 'namespace'> {
  readonly namespaces: readonly string[];
}

/** The worst state comes first: it is the one to show for all. */
const phases: readonly TableState['phase'][] = ['refused', 'waiting', 'listing', 'still', 'live'];

/**
 * Lists and follows a kind's objects in several namespaces as one table; each namespace is a request
 * of its own, since the API has none for several.
 */
export function openTables(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly query: TablesQuery;
  readonly random: () => number;
  readonly onChange: () => void;
  readonly onRow?: (change: RowChange, row: TableRow) => void;
}): TableStore {
  const { query, ...rest } = options;
  const { namespaces, ...shared } = query;
  const open = (namespace: string | undefined) =>
    openTable({ ...rest, query: { ...shared, namespace } });
  const [first, ...others] = namespaces;
  if (first === undefined || others.length === 0) return open(first);
  const stores = [...namespaces].sort().map(open);
  return {
    get snapshot() {
      return merged(stores.map(({ snapshot }) => snapshot));
    },
    async loadMore() {
      await Promise.all(stores.map((store) => store.loadMore()));
    },
    restart() {
      for (const store of stores) store.restart();
    },
    close() {
      for (const store of stores) store.close();
    },
  };
}

function merged(parts: readonly TableSnapshot[]): TableSnapshot {
  const states = parts.map(({ state }) => state);
  const worst = phases.flatMap((phase) => states.filter((state) => state.phase === phase))[0];
  const unread = parts.flatMap(({ more }) => (more === undefined ? [] : [more]));
  const counts = unread.map(({ remaining }) => remaining);
  const remaining = counts.includes(undefined)
    ? undefined
    : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  return {
    state: worst ?? { phase: 'listing' },
    columns: parts.find(({ columns }) => columns.length > 0)?.columns ?? [],
    rows: parts.flatMap(({ rows }) => rows),
    more: unread.length === 0 ? undefined : { remaining },
    resourceVersion: parts[0]?.resourceVersion ?? '',
    warnings: [...new Set(parts.flatMap(({ warnings }) => warnings))],
  };
}
