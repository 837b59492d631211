import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { Attempt } from '../../model/access.ts';
import { deleteAll } from '../../model/actions.ts';
import { apiVersionOf, collectionPath, type Kind } from '../../model/kinds.ts';
import { getCommand } from '../../model/kubectl.ts';
import { attemptOn, attemptToCreate } from '../../model/permissions.ts';
import { namespacesOf, routeOfKind, type TableRoute } from '../../model/route.ts';
import type { TableRow } from '../../model/table.ts';
import type { TableSnapshot } from '../../model/table-store.ts';
import { useApp, useNow, usePage, useRefusal, useTables } from '../parts/app.ts';
import {
  ActionDialog,
  asPropagation,
  Button,
  Empty,
  Field,
  Form,
  KindMark,
  Link,
  LiveStatus,
  NamespaceInput,
  PropagationChoice,
  Refused,
  TextInput,
  Toggle,
} from '../parts/basics.tsx';
import { Grid } from './grid.tsx';
import { arrangeRows, type GridState, shownColumns, useGridState } from './grid-state.ts';

const shownMax = 8;

/** The number of selected rows, and the button that deletes them. */
function BulkDelete(props: {
  readonly kind: Kind;
  readonly rows: readonly TableRow[];
  readonly state: GridState;
}) {
  const { kind, rows, state } = props;
  const [isDeleting, setDeleting] = useState(false);
  const selected =
    state.selected.size === 0 ? [] : rows.filter(({ key }) => state.selected.has(key));
  const refusal = useRefusal(deletionsOf(kind, selected));
  if (selected.length === 0) return null;
  return (
    <div class="selection" role="status">
      <strong>{selected.length} selected</strong>
      <Button act={() => setDeleting(true)} class="danger" refusal={refusal}>
        Delete…
      </Button>
      <Button act={() => state.select([])}>Clear</Button>
      {isDeleting && (
        <DeleteSelectedDialog
          {...{ kind, selected }}
          onClose={() => setDeleting(false)}
          select={state.select}
        />
      )}
    </div>
  );
}

/** Number of objects and namespaces for which deletion is checked before it is offered. */
const checkedMax = 20;

/** The deletion of any object in the namespaces of some rows, and that of the first rows. */
function deletionsOf(kind: Kind, rows: readonly TableRow[]): Attempt[] {
  const targetOf = (namespace: string, name: string): Attempt =>
    attemptOn({ kind, namespace: namespace === '' ? undefined : namespace, name }, 'delete');
  const namespaces = new Set(rows.map(({ namespace }) => namespace));
  return [
    ...[...namespaces].slice(0, checkedMax).map((namespace) => targetOf(namespace, '')),
    ...rows.slice(0, checkedMax).map(({ namespace, name }) => targetOf(namespace, name)),
  ];
}

function DeleteSelectedDialog(props: {
  readonly kind: Kind;
  readonly selected: readonly TableRow[];
  readonly select: (keys: readonly string[]) => void;
  readonly onClose: () => void;
}) {
  const { kind, selected, select, onClose } = props;
  const app = useApp();
  const [propagation, setPropagation] = useState('');
  const [done, setDone] = useState(0);
  // The selection when the dialog opens; it may change meanwhile.
  const [rows] = useState(selected);
  const [abort] = useState(() => new AbortController());
  useEffect(() => () => abort.abort(), [abort]);
  const act = async (): Promise<string | undefined> => {
    const policy = asPropagation(propagation);
    const targets = rows.map(({ namespace, name, uid }) => ({
      target: { kind, namespace: namespace === '' ? undefined : namespace, name },
      uid,
    }));
    const how = policy === undefined ? {} : { propagation: policy };
    const { signal } = abort;
    const outcomes = await deleteAll(app.api, targets, { how, signal, onProgress: setDone });
    const refused = outcomes.filter(({ refusal }) => refusal !== undefined);
    const names = new Set(refused.map(({ target }) => `${target.namespace ?? ''}/${target.name}`));
    select(
      rows.filter(({ namespace, name }) => names.has(`${namespace}/${name}`)).map(({ key }) => key),
    );
    app.announce(`${outcomes.length - refused.length} of ${outcomes.length} deleted.`);
    const [first] = refused;
    if (first === undefined) return undefined;
    return `${refused.length} not deleted. ${first.target.name}: ${first.refusal ?? ''}`;
  };
  return (
    <ActionDialog
      title={
        rows.length === 1 ? `Delete this ${kind.kind}?` : `Delete ${rows.length} ${kind.resource}?`
      }
      action={rows.length === 1 ? 'Delete' : `Delete ${rows.length}`}
      isDangerous
      act={act}
      onClose={onClose}
    >
      <ul class="names">
        {rows.slice(0, shownMax).map(({ key }) => (
          <li key={key}>
            <code>{key}</code>
          </li>
        ))}
        {rows.length > shownMax && <li>and {rows.length - shownMax} more</li>}
      </ul>
      <p>This cannot be undone.</p>
      <PropagationChoice value={propagation} onChange={setPropagation} />
      {done > 0 && <progress aria-label="Deleted" max={rows.length} value={done} />}
    </ActionDialog>
  );
}

/** The filter form; submitting it changes the route. */
function FilterForm(props: { readonly kind: Kind; readonly at: TableRoute }) {
  const { kind, at } = props;
  const { workspace } = useApp();
  const [namespace, setNamespace] = useState(at.namespace);
  const [labels, setLabels] = useState(at.labels);
  const [fields, setFields] = useState(at.fields);
  const submit = (within = namespace): void =>
    workspace.go({
      page: 'table',
      at: {
        ...routeOfKind(kind),
        namespace: within.trim(),
        labels: labels.trim(),
        fields: fields.trim(),
      },
    });
  return (
    <Form class="filter" role="search" submit={() => submit()}>
      {kind.scope === 'Namespaced' && (
        <NamespaceInput
          several
          value={namespace}
          placeholder="all"
          onText={setNamespace}
          onCommit={submit}
        />
      )}
      <Field label="Labels">
        <TextInput value={labels} onText={setLabels} placeholder="app=web,tier!=back" />
      </Field>
      <Field label="Fields">
        <TextInput value={fields} onText={setFields} placeholder="metadata.name=web" />
      </Field>
      <button type="submit">Show</button>
    </Form>
  );
}

/** How long a new or changed row is highlighted, as in the style sheet. */
const freshMs = 2_500;

/** Tracks new and changed rows. */
function useFresh() {
  const { clock } = useApp();
  return useMemo(() => {
    const since = new Map<string, number>();
    return {
      note(_change: unknown, { key }: TableRow): void {
        const nowMs = clock.now();
        since.delete(key);
        since.set(key, nowMs);
        // Expired entries are at the beginning.
        for (const [old, atMs] of since) {
          if (nowMs - atMs < freshMs) break;
          since.delete(old);
        }
      },
      isFresh: ({ key }: TableRow): boolean => {
        const atMs = since.get(key);
        return atMs !== undefined && clock.now() - atMs < freshMs;
      },
    };
  }, [clock]);
}

const pageSize = 500;
/** Interval at which ages are updated. */
const ageMs = 5_000;

/** The list of a kind's objects, updated live. */
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
  const { rows: allRows, columns: allColumns } = snapshot;
  // The order of rows depends on the rows and the view, not on the current time.
  const rows = useMemo(() => arrangeRows(snapshot, view, nowMs), [allRows, allColumns, view]);
  // Independent of the current time.
  const columns = useMemo(
    () => shownColumns(snapshot, { width: view.width, withNamespace, nowMs }),
    [allColumns, allRows.length, view.width, withNamespace],
  );
  const hasMore = snapshot.more !== undefined;
  const onEnd = useCallback(() => {
    if (hasMore) void table?.loadMore();
  }, [table, hasMore]);
  const { isFresh } = fresh;
  const canSelect = columns.length > 0 && kind.verbs.includes('delete');
  return (
    <section class="page list-page">
      <Heading kind={kind} at={at} snapshot={snapshot} />
      <div class="bar">
        <FilterForm kind={kind} at={at} />
        <Tools kind={kind} state={state} run={commands} />
      </div>
      <BulkDelete kind={kind} rows={allRows} state={state} />
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
    const { labels, fields } = at;
    const namespaces = namespacesOf(at);
    // kubectl lists one namespace or all.
    const commands = (namespaces.length === 0 ? [undefined] : namespaces).map((namespace) =>
      getCommand({ kind, namespace, labels, fields, width }),
    );
    return app.copy(commands.join('\n'));
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
  const canCreate = kind.verbs.includes('create');
  // The page that creates an object proposes this namespace.
  const within = kind.scope === 'Namespaced' ? namespace || 'default' : undefined;
  const refusal = useRefusal(canCreate ? [attemptToCreate(kind, within)] : []);
  return (
    <header class="heading">
      <KindMark kind={kind.kind} group={kind.group} />
      <h1>{kind.kind}</h1>
      <code title={collectionPath(kind)}>{apiVersionOf(kind)}</code>
      <LiveStatus state={snapshot.state} />
      {canCreate && refusal === undefined && (
        <Link to={create} class="button primary">
          Create
        </Link>
      )}
      {refusal !== undefined && (
        <Refused refusal={refusal} class="primary">
          Create
        </Refused>
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
  const { rows, columns, more, state, warnings } = snapshot;
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
  // The number is unknown until the first list arrives.
  if (columns.length === 0) return <p class="foot">{notes}</p>;
  const count = `${rows.length} object${rows.length === 1 ? '' : 's'}`;
  const remaining = more?.remaining === undefined ? '' : `, ${more.remaining} more`;
  return (
    <>
      {rows.length === 0 && <Empty>No objects.</Empty>}
      <p class="foot">
        {shown === rows.length ? count : `${shown} of ${count}`}
        {remaining}
        {more !== undefined && '; scroll to load more'}
        {state.phase === 'static' && <Button act={onRetry}>Refresh</Button>}
        {notes}
      </p>
    </>
  );
}
