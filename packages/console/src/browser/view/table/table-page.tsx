import { useCallback, useMemo } from 'preact/hooks';
import { apiVersionOf, collectionPath, type Kind } from '../../model/kinds.ts';
import { getCommand } from '../../model/kubectl.ts';
import { namespacesOf, routeOfKind, type TableRoute } from '../../model/route.ts';
import type { TableSnapshot } from '../../model/table-store.ts';
import { useApp, useNow, usePage, useTables } from '../parts/app.ts';
import { Button, Empty, KindMark, Link, Toggle } from '../parts/basics.tsx';
import { TableStatus } from '../parts/table-status.tsx';
import { BulkDelete } from './bulk-delete.tsx';
import { FilterForm } from './filter-form.tsx';
import { useFresh } from './fresh.ts';
import { Grid } from './grid.tsx';
import { arranged, shownColumns } from './grid-layout.ts';
import { type GridState, useGridState } from './grid-state.ts';

const pageSize = 500;
/** How often ages are counted on. */
const ageMs = 5_000;

/** The objects of a kind, listed and followed. */
export function TablePage(props: { readonly kind: Kind; readonly at: TableRoute }) {
  const { kind, at } = props;
  const namespaces = namespacesOf(at);
  const { labels: labelSelector, fields: fieldSelector } = at;
  const fresh = useFresh();
  const selectors = { labelSelector, fieldSelector };
  const table = useTables({ kind, namespaces, ...selectors, pageSize }, fresh.note);
  const state = useGridState(kind);
  const nowMs = useNow(ageMs);
  const commands = useCommands(kind, at, state);
  usePage(`${kind.kind} objects`, commands);
  const snapshot = table?.snapshot ?? emptySnapshot;
  const withNamespace = kind.scope === 'Namespaced' && namespaces.length !== 1;
  const { view } = state;
  const { rows: listed, columns: declared } = snapshot;
  // Ages change the order of nothing: rows are arranged anew when they, or the view, are others.
  // Ages count on without it.
  const rows = useMemo(() => arranged(snapshot, view, nowMs), [listed, declared, view]);
  // Ages count on without it.
  const columns = useMemo(
    () => shownColumns(snapshot, { width: view.width, withNamespace, nowMs }),
    [declared, listed.length, view.width, withNamespace],
  );
  const hasMore = snapshot.more !== undefined;
  const onEnd = useCallback(() => {
    if (hasMore) void table?.loadMore();
  }, [table, hasMore]);
  const { isFresh } = fresh;
  const canSelect = kind.verbs.includes('delete');
  return (
    <section class="page list-page">
      <Heading kind={kind} at={at} snapshot={snapshot} />
      <div class="bar">
        <FilterForm kind={kind} at={at} />
        <Tools kind={kind} state={state} run={commands} />
      </div>
      <BulkDelete kind={kind} rows={listed} state={state} />
      <Grid {...{ kind, columns, rows, state, nowMs, isFresh, canSelect, onEnd }} />
      <Foot snapshot={snapshot} shown={rows.length} onRetry={() => table?.restart()} />
    </section>
  );
}

const emptySnapshot: TableSnapshot = {
  state: { phase: 'listing' },
  columns: [],
  rows: [],
  more: undefined,
  resourceVersion: '',
  warnings: [],
};

function useCommands(kind: Kind, at: TableRoute, state: GridState) {
  const app = useApp();
  const { width } = state.view;
  const copy = (): Promise<void> => {
    const { labels, fields, namespace: named } = at;
    const namespace = named === '' ? undefined : named;
    return app.copy(getCommand({ kind, namespace, labels, fields, width }));
  };
  return [
    { label: 'Copy as kubectl', run: copy },
    { label: 'Filter columns', run: () => state.setFiltering(!state.isFiltering) },
  ] as const;
}

function Heading(props: {
  readonly kind: Kind;
  readonly at: TableRoute;
  readonly snapshot: TableSnapshot;
}) {
  const { kind, at, snapshot } = props;
  const [namespace = ''] = namespacesOf(at);
  const create = { page: 'create', resource: routeOfKind(kind), namespace } as const;
  return (
    <header class="heading">
      <KindMark kind={kind.kind} group={kind.group} />
      <h1>{kind.kind}</h1>
      <code title={collectionPath(kind)}>{apiVersionOf(kind)}</code>
      <TableStatus state={snapshot.state} />
      {kind.verbs.includes('create') && (
        <Link to={create} class="button primary">
          Create
        </Link>
      )}
    </header>
  );
}

function Tools(props: {
  readonly kind: Kind;
  readonly state: GridState;
  readonly run: ReturnType<typeof useCommands>;
}) {
  const { state, run } = props;
  const { view, isFiltering } = state;
  return (
    <div class="tools">
      <Toggle
        label="Wide"
        isOn={view.width === 'wide'}
        onChange={(isOn) => state.setWidth(isOn ? 'wide' : 'normal')}
      />
      <Button act={run[1].run} aria-pressed={isFiltering} title="f">
        Filter columns
      </Button>
      <Button act={run[0].run}>Copy as kubectl</Button>
    </div>
  );
}

function Foot(props: {
  readonly snapshot: TableSnapshot;
  readonly shown: number;
  readonly onRetry: () => void;
}) {
  const { snapshot, shown, onRetry } = props;
  const { rows, more, state, warnings } = snapshot;
  const notes = warnings.map((warning) => (
    <span key={warning} class="warning">
      {warning}
    </span>
  ));
  if (state.phase === 'refused') {
    return (
      <p class="foot">
        <Button act={onRetry}>Try again</Button>
        {notes}
      </p>
    );
  }
  if (state.phase === 'listing' && rows.length === 0) return <p class="foot">{notes}</p>;
  const count = `${rows.length} object${rows.length === 1 ? '' : 's'}`;
  const left = more?.remaining === undefined ? '' : `, ${more.remaining} more to read`;
  return (
    <>
      {rows.length === 0 && <Empty>There are none.</Empty>}
      <p class="foot">
        {shown === rows.length ? count : `${shown} of ${count}`}
        {left}
        {more !== undefined && '; scroll to the end to read on'}
        {notes}
      </p>
    </>
  );
}
