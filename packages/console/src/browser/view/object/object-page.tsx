import { isObject } from '@wheelhouse/machinery/browser';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isScalable } from '../../model/actions.ts';
import { objectOf } from '../../model/failure.ts';
import { conditionsOf } from '../../model/insight/timeline.ts';
import { type ObjectName, resourceName } from '../../model/kinds.ts';
import { objectCommand } from '../../model/kubectl.ts';
import { type LoadedObject, ownersOf } from '../../model/object.ts';
import { type ObjectTab, objectRoute, objectTabs, tableRoute } from '../../model/route.ts';
import { useApp, useModule, usePage } from '../parts/app.ts';
import { Button, KindMark, Link, LiveStatus } from '../parts/basics.tsx';
import { DeleteDialog, ScaleDialog } from './dialogs.tsx';
import { FieldsView } from './fields-view.tsx';
import { type FollowedObject, useObject } from './followed-object.ts';
import { HistoryView } from './history-view.tsx';
import { TextView } from './text-view.tsx';
import { TimelineView } from './timeline-view.tsx';

const tabLabels: Readonly<Record<ObjectTab, string>> = {
  yaml: 'YAML',
  json: 'JSON',
  tree: 'Tree',
  events: 'Timeline',
  history: 'History',
  fields: 'Fields',
  edit: 'Edit',
};

/** The editor and the graph come with libraries of their own. */
const loadEditor = () => import('../edit/editor.tsx');
const loadTree = () => import('./tree-view.tsx');

/** One object, followed while it is shown. */
export function ObjectPage(props: { readonly target: ObjectName; readonly tab: ObjectTab }) {
  const { target, tab } = props;
  const app = useApp();
  const followed = useObject(target);
  const [dialog, setDialog] = useState<'delete' | 'scale'>();
  const { kind, name } = target;
  const copy = () => app.copy(objectCommand(target, tab === 'edit' ? 'edit' : 'get'));
  const canScale = isScalable(target);
  const canDelete = kind.verbs.includes('delete');
  usePage(`${kind.kind} ${name}`, [
    { label: 'Copy as kubectl', run: copy },
    ...tabsOf(target).map((one) => ({
      label: `Show ${tabLabels[one]}`,
      run: () => app.workspace.go(objectRoute(target, one)),
    })),
    ...(canScale ? [{ label: 'Scale', run: () => setDialog('scale') }] : []),
    ...(canDelete ? [{ label: 'Delete', run: () => setDialog('delete') }] : []),
  ]);
  const { object, notice, state } = followed;
  // Neither there nor on its way: there is nothing to act on or to look at.
  const isAbsent = object === undefined && notice !== undefined;
  const close = (): void => setDialog(undefined);
  return (
    <section class="page object-page">
      <Heading target={target}>
        {object !== undefined && state !== undefined && <LiveStatus state={state} />}
        <Button act={copy}>Copy as kubectl</Button>
        {canScale && !isAbsent && <Button act={() => setDialog('scale')}>Scale</Button>}
        {canDelete && !isAbsent && (
          <Button act={() => setDialog('delete')} class="danger">
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
      {!isAbsent && <Tabs target={target} current={tab} />}
      <div class="body">
        {object !== undefined && <Body {...{ target, tab, followed, object }} />}
        {object === undefined && notice === undefined && <p role="status">Loading…</p>}
      </div>
      {dialog === 'delete' && <DeleteDialog target={target} object={object} onClose={close} />}
      {dialog === 'scale' && <ScaleDialog target={target} onClose={close} />}
    </section>
  );
}

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

function Tabs(props: { readonly target: ObjectName; readonly current: ObjectTab }) {
  const { target, current } = props;
  const place = useRef<HTMLElement>(null);
  // On a narrow screen the current tab may be out of view.
  useEffect(() => {
    const tab = place.current?.querySelector('[aria-current=page]');
    tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav class="tabs" aria-label="Views of the object" ref={place}>
      {tabsOf(target).map((tab) => (
        <Link
          key={tab}
          to={objectRoute(target, tab)}
          aria-current={tab === current ? 'page' : undefined}
        >
          {tabLabels[tab]}
        </Link>
      ))}
    </nav>
  );
}

function Body(props: {
  readonly target: ObjectName;
  readonly tab: ObjectTab;
  readonly followed: FollowedObject;
  readonly object: LoadedObject;
}) {
  const { target, tab, followed, object } = props;
  switch (tab) {
    case 'yaml':
    case 'json':
      return <TextView object={object} format={tab} />;
    case 'fields':
      return <FieldsView object={object} />;
    case 'events':
      return <TimelineView target={target} object={object} />;
    case 'history':
      return <HistoryView history={followed.history} />;
    case 'tree':
      return <Tree target={target} />;
    case 'edit':
      return <Edit target={target} object={object} onSaved={followed.replace} />;
  }
}

function Tree(props: { readonly target: ObjectName }) {
  const module = useModule(loadTree);
  if (module === undefined) return <p role="status">Loading…</p>;
  return <module.TreeView target={props.target} />;
}

function Edit(props: {
  readonly target: ObjectName;
  readonly object: LoadedObject;
  readonly onSaved: (object: LoadedObject) => void;
}) {
  const module = useModule(loadEditor);
  // The text begins from the object as it was when the editor was opened.
  const [first] = useState(props.object);
  if (module === undefined) return <p role="status">Loading…</p>;
  const { target, object, onSaved } = props;
  const { resourceVersion } = object;
  return <module.Editor {...{ target, object: first, resourceVersion, onSaved }} />;
}

/** Owners, labels and finalizers: what says how the object hangs together with others. */
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
        <p>Waits for finalizers: {finalizers.map(String).join(', ')}</p>
      )}
    </div>
  );
}
