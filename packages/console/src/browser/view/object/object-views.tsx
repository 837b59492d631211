import { useEffect, useMemo, useState } from 'preact/hooks';
import { objectOf, textOf } from '../../model/failure.ts';
import {
  type EarlierWrite,
  type ObjectHistory,
  type Revision,
  type TimelineEntry,
  timelineOf,
} from '../../model/insight/history.ts';
import { printJson } from '../../model/json.ts';
import type { ObjectName } from '../../model/kinds.ts';
import type { LoadedObject } from '../../model/object.ts';
import { type FieldOwner, fieldOwners, ownersByField } from '../../model/ownership.ts';
import { highlight, readYaml, withoutManagedFields } from '../../model/yaml.ts';
import { useApp, useTables } from '../parts/app.ts';
import { Age, Button, Empty, Scrolled, Toggle } from '../parts/basics.tsx';
import { ChangeList } from '../parts/changes.tsx';

/** Managed fields are hidden by default; the choice lasts until the page is reloaded. */
let showsManagedFields = false;

/** The server's YAML, or the same object as JSON. */
export function TextView(props: {
  readonly object: LoadedObject;
  readonly format: 'yaml' | 'json';
}) {
  const { object, format } = props;
  const app = useApp();
  const [isManaged, setManaged] = useState(showsManagedFields);
  const text = useMemo(() => {
    const shown = isManaged ? object.text : withoutManagedFields(object.text);
    return format === 'json' ? asJson(shown) : shown;
  }, [object, format, isManaged]);
  const change = (isOn: boolean): void => {
    showsManagedFields = isOn;
    setManaged(isOn);
  };
  return (
    <>
      <div class="bar">
        <Toggle label="With managed fields" isOn={isManaged} onChange={change} />
        <Button act={() => app.copy(text)}>Copy</Button>
      </div>
      <HighlightedText text={text} />
    </>
  );
}

function HighlightedText(props: { readonly text: string }) {
  const pieces = useMemo(() => highlight(props.text), [props.text]);
  return (
    <pre class="text" tabIndex={0} role="region" aria-label="Text">
      {pieces.map(({ text, style }, index) =>
        style === 'plain' ? (
          text
        ) : (
          <span key={index} class={`mark-${style}`}>
            {text}
          </span>
        ),
      )}
    </pre>
  );
}

function asJson(text: string): string {
  const read = readYaml(text);
  return read.fault === undefined ? printJson(read.value) : text;
}

const pageSize = 200;
/** Maximum number of Events; they are listed by name, so that the latest may be on any page. */
const eventsMax = 5_000;

/** Conditions, Events, creation, and deletion of an object, newest first. */
export function TimelineView(props: {
  readonly target: ObjectName;
  readonly object: LoadedObject;
}) {
  const { target, object } = props;
  const { discovered } = useApp();
  const kind = discovered.kinds.find(
    ({ group, resource }) => group === '' && resource === 'events',
  );
  const uid = textOf(objectOf(object.value, 'metadata'), 'uid');
  const table = useTables(
    kind === undefined
      ? undefined
      : {
          kind,
          // Events of cluster-scoped objects may be in any namespace, usually the default one.
          namespaces: target.namespace === undefined ? [] : [target.namespace],
          labelSelector: '',
          fieldSelector: `involvedObject.uid=${uid}`,
          pageSize,
          objects: 'whole',
        },
  );
  const snapshot = table?.snapshot;
  const events = snapshot?.rows.map((row) => row.object) ?? [];
  const message = snapshot?.state.message;
  const hasMore = snapshot?.more !== undefined && events.length < eventsMax;
  useEffect(() => {
    if (hasMore) void table?.loadMore();
  }, [table, hasMore, events.length]);
  const entries = timelineOf(object.value, events);
  return (
    <>
      {message !== undefined && (
        <p class="warning" role="status">
          {message}
        </p>
      )}
      {kind === undefined && <Empty>The server does not store Events.</Empty>}
      {entries.length === 0 && <Empty>No conditions or Events.</Empty>}
      <ol class="timeline">
        {entries.map((entry, index) => (
          <TimelineItem key={index} entry={entry} />
        ))}
      </ol>
    </>
  );
}

function TimelineItem(props: { readonly entry: TimelineEntry }) {
  const { source, title, message, time, tone, count, reporter } = props.entry;
  return (
    <li class={`entry ${tone}`}>
      <div class="entry-head">
        <strong>{title}</strong>
        {source !== 'metadata' && <span class="chip">{source}</span>}
        {count > 1 && <span class="chip">{count} times</span>}
        <span class="faint">
          <Age time={time} />
          {reporter !== '' && `, ${reporter}`}
        </span>
      </div>
      {message !== '' && <p>{message}</p>}
    </li>
  );
}

/** The writes of an object while its page is open, by field manager. */
export function HistoryView(props: { readonly history: ObjectHistory }) {
  const { revisions, earlier } = props.history;
  return (
    <>
      <p class="hint">Changes since this page was opened.</p>
      {revisions.length <= 1 && <Empty>No changes.</Empty>}
      <ol class="timeline">
        {revisions.map((revision) => (
          <RevisionItem key={`${revision.resourceVersion} ${revision.event}`} revision={revision} />
        ))}
      </ol>
      {earlier.length > 0 && (
        <>
          <h2>Earlier</h2>
          <p class="hint">
            The last write by each manager before this page was opened, and the fields it owned. The
            server does not keep earlier versions.
          </p>
          <ol class="timeline">
            {earlier.map((write) => (
              <Earlier
                key={`${write.manager} ${write.operation} ${write.subresource}`}
                write={write}
              />
            ))}
          </ol>
        </>
      )}
    </>
  );
}

function Earlier(props: { readonly write: EarlierWrite }) {
  const { manager, operation, subresource, time, fields } = props.write;
  return (
    <li class="entry plain">
      <div class="entry-head">
        <strong>{operation === 'Apply' ? 'Applied' : 'Updated'}</strong>
        <span>
          by <strong>{manager || 'an unknown manager'}</strong>
        </span>
        {subresource !== '' && <span class="chip">{subresource}</span>}
        {time !== '' && (
          <span class="faint">
            <Age time={time} />
          </span>
        )}
      </div>
      <details>
        <summary>
          {fields.length} field{fields.length === 1 ? '' : 's'}
        </summary>
        <ul>
          {fields.map((field) => (
            <li key={field}>
              <code>{field}</code>
            </li>
          ))}
        </ul>
      </details>
    </li>
  );
}

const titles: Readonly<Record<Revision['event'], string>> = {
  opened: 'Opened',
  changed: 'Changed',
  deleted: 'Deleted',
};

function RevisionItem(props: { readonly revision: Revision }) {
  const { resourceVersion, time, changes, event } = props.revision;
  return (
    <li class={`entry ${event === 'deleted' ? 'bad' : 'plain'}`}>
      <div class="entry-head">
        <strong>{titles[event]}</strong>
        <code>version {resourceVersion}</code>
        <span class="faint">
          <Age time={time} />
        </span>
      </div>
      {changes.map((change) => (
        <section key={`${change.manager} ${change.subresource}`} class="by-manager">
          <h3>
            by <strong>{change.manager || 'an unknown manager'}</strong>
            {change.subresource !== '' && <span class="chip">{change.subresource}</span>}
          </h3>
          <ChangeList changes={change.changes} none="No field changed." />
        </section>
      ))}
    </li>
  );
}

/** The owners of each field. */
export function FieldsView(props: { readonly object: LoadedObject }) {
  const owners = fieldOwners(props.object.value);
  if (owners.length === 0) return <Empty>No field ownership is recorded.</Empty>;
  return (
    <>
      <ul class="cards managers">
        {owners.map((owner) => (
          <li key={keyOf(owner)} class="card">
            <strong>{owner.manager}</strong>
            <span class="chip">{owner.operation}</span>
            {owner.subresource !== '' && <span class="chip">{owner.subresource}</span>}
            <span class="faint">
              {owner.fields.length} field{owner.fields.length === 1 ? '' : 's'}{' '}
              <Age time={owner.time} />
            </span>
          </li>
        ))}
      </ul>
      <Scrolled label="Owners by field">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Owned by</th>
            </tr>
          </thead>
          <tbody>
            {[...ownersByField(owners)].map(([field, by]) => (
              <tr key={field}>
                <td>
                  <code>{field}</code>
                </td>
                <td>{by.map(ownerText).join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
    </>
  );
}

function keyOf({ manager, operation, subresource }: FieldOwner): string {
  return `${manager} ${operation} ${subresource}`;
}

function ownerText({ manager, operation, subresource }: FieldOwner): string {
  const of = subresource === '' ? '' : `, ${subresource}`;
  return `${manager} (${operation.toLowerCase()}${of})`;
}
