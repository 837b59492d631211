import type { ObjectHistory, Revision } from '../../model/insight/history.ts';
import { Age } from '../parts/age.tsx';
import { Empty } from '../parts/basics.tsx';
import { ChangeList } from '../parts/changes.tsx';

/** The writes of an object since its page was opened, by the managers that made them. */
export function HistoryView(props: { readonly history: ObjectHistory }) {
  const { revisions } = props.history;
  return (
    <>
      <p class="hint">Changes since this page was opened, as the watch reports them.</p>
      {revisions.length <= 1 && <Empty>The object has not changed since.</Empty>}
      <ol class="timeline">
        {revisions.map((revision) => (
          <Entry key={`${revision.resourceVersion} ${revision.event}`} revision={revision} />
        ))}
      </ol>
    </>
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
