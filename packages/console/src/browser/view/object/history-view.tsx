import type { EarlierWrite, ObjectHistory, Revision } from '../../model/insight/history.ts';
import { Age } from '../parts/age.tsx';
import { Empty } from '../parts/basics.tsx';
import { ChangeList } from '../parts/changes.tsx';

/** The writes of an object since its page was opened, by the managers that made them. */
export function HistoryView(props: { readonly history: ObjectHistory }) {
  const { revisions, earlier } = props.history;
  return (
    <>
      <p class="hint">Changes since this page was opened, as the watch reports them.</p>
      {revisions.length <= 1 && <Empty>The object has not changed since.</Empty>}
      <ol class="timeline">
        {revisions.map((revision) => (
          <Entry key={`${revision.resourceVersion} ${revision.event}`} revision={revision} />
        ))}
      </ol>
      {earlier.length > 0 && (
        <>
          <h2>Before</h2>
          <p class="hint">
            The last write of each manager before this page was opened, with the fields it owned
            then. The server keeps no earlier versions.
          </p>
          <ol class="timeline">
            {earlier.map((one) => (
              <Earlier key={`${one.manager} ${one.operation} ${one.subresource}`} write={one} />
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
          by <strong>{manager || 'an unrecorded writer'}</strong>
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
  'seen first': 'Opened',
  changed: 'Changed',
  deleted: 'Deleted',
};

function Entry(props: { readonly revision: Revision }) {
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
      {changes.map((one) => (
        <section key={`${one.manager} ${one.subresource}`} class="by-manager">
          <h3>
            by <strong>{one.manager || 'an unrecorded writer'}</strong>
            {one.subresource !== '' && <span class="chip">{one.subresource}</span>}
          </h3>
          <ChangeList changes={one.changes} none="No field changed." />
        </section>
      ))}
    </li>
  );
}
