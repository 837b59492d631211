import { isObject } from '@wheelhouse/machinery/browser';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import {
  type Deletion,
  deleteObject,
  isScalable,
  readScale,
  type Scale,
  writeScale,
} from '../../model/actions.ts';
import { isTransient, messageOf, objectOf, textOf } from '../../model/failure.ts';
import { conditionsOf, ObjectHistory } from '../../model/insight/history.ts';
import { type ObjectName, resourceName } from '../../model/kinds.ts';
import { objectCommand } from '../../model/kubectl.ts';
import { type LoadedObject, loadObject, ownersOf } from '../../model/object.ts';
import { attemptOn } from '../../model/permissions.ts';
import { type ObjectTab, objectRoute, objectTabs, tableRoute } from '../../model/route.ts';
import type { TableState, TablesQuery } from '../../model/table-store.ts';
import { useApp, usePage, useRedraw, useRefusal, useTables } from '../parts/app.ts';
import {
  ActionDialog,
  asPropagation,
  Button,
  Field,
  KindMark,
  Link,
  LiveStatus,
  Loaded,
  PropagationChoice,
  Refused,
  Toggle,
} from '../parts/basics.tsx';
import { FieldsView, HistoryView, TextView, TimelineView } from './object-views.tsx';

const tabLabels: Readonly<Record<ObjectTab, string>> = {
  yaml: 'YAML',
  json: 'JSON',
  tree: 'Tree',
  events: 'Timeline',
  history: 'History',
  fields: 'Fields',
  edit: 'Edit',
};

/** Loads the editor and the graph with their libraries on first use. */
const loadEditor = () => import('../edit/editor.tsx');
const loadTree = () => import('./tree-view.tsx');

/** The page of one object, updated live. */
export function ObjectPage(props: { readonly target: ObjectName; readonly tab: ObjectTab }) {
  const { target, tab } = props;
  const app = useApp();
  const watched = useObject(target);
  const [dialog, setDialog] = useState<'delete' | 'scale'>();
  const { kind, name } = target;
  const copy = () => app.copy(objectCommand(target, tab === 'edit' ? 'edit' : 'get'));
  const canScale = isScalable(target);
  const canDelete = kind.verbs.includes('delete');
  const refusals = {
    edit: useRefusal(editAttempts(target)),
    scale: useRefusal(canScale ? [attemptOn(target, 'update', 'scale')] : []),
    delete: useRefusal(canDelete ? [attemptOn(target, 'delete')] : []),
  };
  const ifAllowed = <T,>(refusal: string | undefined, command: T): T[] =>
    refusal === undefined ? [command] : [];
  usePage(`${kind.kind} ${name}`, [
    { label: 'Copy as kubectl', run: copy },
    ...tabsOf(target).flatMap((objectTab) =>
      ifAllowed(objectTab === 'edit' ? refusals.edit : undefined, {
        label: `Show ${tabLabels[objectTab]}`,
        run: () => app.workspace.go(objectRoute(target, objectTab)),
      }),
    ),
    ...(canScale
      ? ifAllowed(refusals.scale, { label: 'Scale', run: () => setDialog('scale') })
      : []),
    ...(canDelete
      ? ifAllowed(refusals.delete, { label: 'Delete', run: () => setDialog('delete') })
      : []),
  ]);
  const { object, notice, state } = watched;
  // The object is neither loaded nor loading, so there are no actions and tabs.
  const isAbsent = object === undefined && notice !== undefined;
  const close = (): void => setDialog(undefined);
  return (
    <section class="page object-page">
      <Heading target={target}>
        {object !== undefined && state !== undefined && <LiveStatus state={state} />}
        {state?.phase === 'static' && <Button act={watched.reload}>Refresh</Button>}
        <Button act={copy}>Copy as kubectl</Button>
        {canScale && !isAbsent && (
          <Button act={() => setDialog('scale')} refusal={refusals.scale}>
            Scale
          </Button>
        )}
        {canDelete && !isAbsent && (
          <Button act={() => setDialog('delete')} class="danger" refusal={refusals.delete}>
            Delete
          </Button>
        )}
      </Heading>
      {notice !== undefined && (
        <p class={`notice ${notice.tone}`} role="status">
          {notice.text}
        </p>
      )}
      {object !== undefined && <Facts object={object} />}
      {!isAbsent && <Tabs target={target} current={tab} editRefusal={refusals.edit} />}
      <div class="body">
        {object !== undefined && <Body {...{ target, tab, watched, object }} />}
        {object === undefined && notice === undefined && <p role="status">Loading…</p>}
      </div>
      {dialog === 'delete' && <DeleteDialog target={target} object={object} onClose={close} />}
      {dialog === 'scale' && <ScaleDialog target={target} onClose={close} />}
    </section>
  );
}

/** The writes of the editor's modes. */
const editAttempts = (target: ObjectName) =>
  ['update', 'patch']
    .filter((verb) => target.kind.verbs.includes(verb))
    .map((verb) => attemptOn(target, verb));

function tabsOf({ kind }: ObjectName): ObjectTab[] {
  const canEdit = kind.verbs.includes('update') || kind.verbs.includes('patch');
  return objectTabs.filter((tab) => tab !== 'edit' || canEdit);
}

function Heading(props: {
  readonly target: ObjectName;
  readonly children: preact.ComponentChildren;
}) {
  const { kind, namespace, name } = props.target;
  return (
    <header class="heading">
      <KindMark kind={kind.kind} group={kind.group} />
      <div class="titles">
        <p class="crumbs">
          <Link to={tableRoute(kind, namespace)}>{resourceName(kind)}</Link>
          {namespace !== undefined && (
            <>
              {' / '}
              <code title="Namespace">{namespace}</code>
            </>
          )}
        </p>
        <h1>{name}</h1>
      </div>
      <div class="tools">{props.children}</div>
    </header>
  );
}

function Tabs(props: {
  readonly target: ObjectName;
  readonly current: ObjectTab;
  readonly editRefusal: string | undefined;
}) {
  const { target, current, editRefusal } = props;
  const place = useRef<HTMLElement>(null);
  // On a narrow screen, the current tab may be out of view.
  useEffect(() => {
    const tab = place.current?.querySelector('[aria-current=page]');
    tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav class="tabs" aria-label="Views of the object" ref={place}>
      {tabsOf(target).map((tab) =>
        tab === 'edit' && tab !== current && editRefusal !== undefined ? (
          <Refused key={tab} refusal={editRefusal}>
            {tabLabels[tab]}
          </Refused>
        ) : (
          <Link
            key={tab}
            to={objectRoute(target, tab)}
            aria-current={tab === current ? 'page' : undefined}
          >
            {tabLabels[tab]}
          </Link>
        ),
      )}
    </nav>
  );
}

function Body(props: {
  readonly target: ObjectName;
  readonly tab: ObjectTab;
  readonly watched: WatchedObject;
  readonly object: LoadedObject;
}) {
  const { target, tab, watched, object } = props;
  switch (tab) {
    case 'yaml':
    case 'json':
      return <TextView object={object} format={tab} />;
    case 'fields':
      return <FieldsView object={object} />;
    case 'events':
      return <TimelineView target={target} object={object} />;
    case 'history':
      return <HistoryView history={watched.history} />;
    case 'tree':
      return <Loaded load={loadTree} draw={(m) => <m.TreeView target={target} />} />;
    case 'edit':
      return <Edit target={target} object={object} onSaved={watched.replace} />;
  }
}

function Edit(props: {
  readonly target: ObjectName;
  readonly object: LoadedObject;
  readonly onSaved: (object: LoadedObject) => void;
}) {
  // The text is based on the version at the time the editor opens.
  const [first] = useState(props.object);
  const { target, object, onSaved } = props;
  const { resourceVersion } = object;
  const options = { target, object: first, resourceVersion, onSaved };
  return <Loaded load={loadEditor} draw={(m) => <m.Editor {...options} />} />;
}

/** Conditions, owners, labels, and finalizers. */
function Facts(props: { readonly object: LoadedObject }) {
  const { discovered } = useApp();
  const { value } = props.object;
  const { labels, finalizers } = objectOf(value, 'metadata');
  const owners = ownersOf(value, discovered.kinds);
  const conditions = conditionsOf(value);
  return (
    <div class="facts">
      {conditions.length > 0 && (
        <p>
          {conditions.map(({ type, status, tone, message }) => (
            <span key={type} class={`chip ${tone}`} title={message}>
              {type}: {status}
            </span>
          ))}
        </p>
      )}
      {owners.length > 0 && (
        <p>
          Owned by{' '}
          {owners.map(({ text, name, isController }) => {
            const label = `${text}${isController ? ' (controller)' : ''}`;
            if (name === undefined) return <span key={text}>{label}</span>;
            return (
              <Link key={text} to={objectRoute(name)}>
                {label}
              </Link>
            );
          })}
        </p>
      )}
      {isObject(labels) && (
        <p>
          {Object.entries(labels).map(([name, text]) => (
            <code key={name} class="tag">{`${name}=${String(text)}`}</code>
          ))}
        </p>
      )}
      {Array.isArray(finalizers) && finalizers.length > 0 && (
        <p>Finalizers: {finalizers.map(String).join(', ')}</p>
      )}
    </div>
  );
}

/** A message above an object. */
interface Notice {
  readonly tone: 'fault' | 'plain';
  readonly text: string;
}

/** The current version of an object and its state. */
interface WatchedObject {
  /** Undefined until it is read. */
  readonly object: LoadedObject | undefined;
  readonly notice: Notice | undefined;
  /** State of the watch; undefined for kinds that cannot be listed. */
  readonly state: TableState | undefined;
  readonly history: ObjectHistory;
  /** Replaces the version with the result of a write. */
  replace(object: LoadedObject): void;
  /** Reads the current version, for users who may not watch. */
  reload(): void;
}

const deletedText = 'The object has been deleted. This is its last known state.';
/** Delay before an object that could not be read is read again. */
const rereadMs = 5_000;

/** Reads an object, and again whenever the server reports a change. */
function useObject(target: ObjectName): WatchedObject {
  const app = useApp();
  const { api, clock } = app;
  const redraw = useRedraw();
  const history = useMemo(() => new ObjectHistory(), []);
  const [object, setObject] = useState<LoadedObject>();
  const [notice, setNotice] = useState<Notice>();
  const [attempt, setAttempt] = useState(0);
  const isListable = target.kind.verbs.includes('list');
  const now = (): string => new Date(clock.now()).toISOString();
  const store = useTables(isListable ? tableOf(target) : undefined, (change, row) => {
    history.record(row.object, now(), change === 'DELETED' ? 'deleted' : 'present');
  });
  const snapshot = store?.snapshot;
  const [row] = snapshot?.rows ?? [];
  const isRead = !isListable || (snapshot !== undefined && snapshot.state.phase !== 'listing');
  const wasRead = object !== undefined;
  // Without columns, there is no list yet, or the user may not list the kind.
  const isListed = snapshot !== undefined && snapshot.columns.length > 0;
  const isDeleted = isRead && isListed && row === undefined && wasRead;
  const latest = useRef<AbortController | undefined>(undefined);
  // Reads once per version of the row.
  useEffect(() => {
    if (!isRead || isDeleted) return;
    if (row !== undefined) history.record(row.object, now());
    if (row !== undefined && object?.resourceVersion === row.resourceVersion) return;
    latest.current?.abort(new Error('there is a newer version'));
    const abort = new AbortController();
    latest.current = abort;
    loadObject(api, target, { signal: abort.signal }).then(
      (loaded) => {
        setObject(loaded);
        setNotice(noticeOf(loaded));
        redraw();
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setNotice({ tone: 'fault', text: messageOf(error) });
        if (!isTransient(error)) return;
        const timer = clock.after(rereadMs, () => setAttempt((before) => before + 1));
        abort.signal.addEventListener('abort', () => timer.stop());
      },
    );
  }, [isRead, row?.resourceVersion, isDeleted, attempt]);
  useEffect(() => () => latest.current?.abort(new Error('closed')), []);
  return {
    object,
    notice: isDeleted ? { tone: 'plain', text: deletedText } : notice,
    state: stateOf(snapshot?.state),
    history,
    replace: setObject,
    reload: () => {
      store?.restart();
      // A list that is refused before the next frame is drawn changes none of the states above.
      setAttempt((before) => before + 1);
    },
  };
}

/** A user who may read the object but not list its kind sees it without live updates. */
function stateOf(state: TableState | undefined): TableState | undefined {
  return state?.phase === 'refused' ? { ...state, phase: 'static' } : state;
}

function noticeOf({ value }: LoadedObject): Notice | undefined {
  const isTerminating = textOf(objectOf(value, 'metadata'), 'deletionTimestamp') !== '';
  return isTerminating ? { tone: 'plain', text: 'The object is being deleted.' } : undefined;
}

/** A table of one object. */
function tableOf({ kind, namespace, name }: ObjectName): TablesQuery {
  return {
    kind,
    namespaces: namespace === undefined ? [] : [namespace],
    labelSelector: '',
    fieldSelector: `metadata.name=${selectorValue(name)}`,
    pageSize: 1,
    objects: 'whole',
  };
}

/** Escapes a value of a field selector. */
function selectorValue(text: string): string {
  return text.replace(/[\\,=]/g, '\\$&');
}

/**
 * Confirms and deletes an object, with preconditions on its UID and, by default, its
 * resourceVersion.
 */
function DeleteDialog(props: {
  readonly target: ObjectName;
  /** Undefined if the user may not read it. */
  readonly object: LoadedObject | undefined;
  readonly onClose: () => void;
}) {
  const { target, onClose } = props;
  const app = useApp();
  const [opened] = useState(props.object);
  const [propagation, setPropagation] = useState('');
  const [isUnchanged, setUnchanged] = useState(true);
  const [grace, setGrace] = useState('');
  const act = async (): Promise<undefined> => {
    const policy = asPropagation(propagation);
    const uid = textOf(objectOf(opened?.value ?? {}, 'metadata'), 'uid');
    const how: Deletion = {
      ...(opened === undefined ? {} : { uid }),
      ...(policy === undefined ? {} : { propagation: policy }),
      ...(opened !== undefined && isUnchanged ? { resourceVersion: opened.resourceVersion } : {}),
      ...(grace === '' ? {} : { gracePeriodSeconds: Number(grace) }),
    };
    const outcome = await deleteObject(app.api, target, how);
    app.announce(`${target.name} is ${outcome === 'deleted' ? 'deleted' : 'being deleted'}.`);
    return undefined;
  };
  return (
    <ActionDialog
      title={`Delete ${target.kind.kind} ${target.name}?`}
      action="Delete"
      isDangerous
      act={act}
      onClose={onClose}
    >
      <p>This cannot be undone.</p>
      <PropagationChoice value={propagation} onChange={setPropagation} />
      {opened !== undefined && (
        <Toggle label="Only if unchanged" isOn={isUnchanged} onChange={setUnchanged} />
      )}
      <Field label="Grace period in seconds">
        <input
          type="number"
          min="0"
          placeholder="object default"
          value={grace}
          onInput={(event) => setGrace(event.currentTarget.value)}
        />
      </Field>
    </ActionDialog>
  );
}

/** Sets the number of replicas; opens when the current number is loaded. */
function ScaleDialog(props: { readonly target: ObjectName; readonly onClose: () => void }) {
  const { target, onClose } = props;
  const app = useApp();
  const [scale, setScale] = useState<Scale>();
  const [desired, setWanted] = useState('');
  // Reads once when the dialog opens.
  useEffect(() => {
    readScale(app.api, target).then(
      (read) => {
        setScale(read);
        setWanted(String(read.desired));
      },
      (error: unknown) => {
        app.announce(messageOf(error));
        onClose();
      },
    );
  }, []);
  if (scale === undefined) return null;
  const act = async (): Promise<undefined> => {
    const next = { ...scale, desired: Number(desired) };
    const after = await writeScale(app.api, target, next).catch(async (error: unknown) => {
      // After a conflict, the user may confirm the number for the current version.
      setScale(await readScale(app.api, target));
      throw error;
    });
    app.announce(`${target.name} scaled to ${after.desired} replicas.`);
    return undefined;
  };
  return (
    <ActionDialog title={`Scale ${target.name}`} action="Scale" act={act} onClose={onClose}>
      <p>Current replicas: {scale.current}</p>
      <Field label="Replicas">
        <input
          type="number"
          required
          value={desired}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      </Field>
    </ActionDialog>
  );
}
