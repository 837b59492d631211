import { objectOf, textOf } from '../../model/failure.ts';
import { type Happening, timelineOf } from '../../model/insight/timeline.ts';
import type { ObjectName } from '../../model/kinds.ts';
import type { LoadedObject } from '../../model/object.ts';
import { Age } from '../parts/age.tsx';
import { useApp, useTables } from '../parts/app.ts';
import { Empty } from '../parts/basics.tsx';

const pageSize = 200;

/** Conditions, Events, and the ends of its life: what happened to an object, newest first. */
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
          // Events about what has no namespace are in any, mostly in the default one.
          namespaces: target.namespace === undefined ? [] : [target.namespace],
          labelSelector: '',
          fieldSelector: `involvedObject.uid=${uid}`,
          pageSize,
          objects: 'whole',
        },
  );
  const events = table?.snapshot.rows.map((row) => row.object) ?? [];
  const message = table?.snapshot.state.message;
  const happenings = timelineOf(object.value, events);
  return (
    <>
      {message !== undefined && (
        <p class="warning" role="status">
          {message}
        </p>
      )}
      {kind === undefined && <Empty>The server keeps no Events.</Empty>}
      {happenings.length === 0 && <Empty>Nothing has been reported.</Empty>}
      <ol class="timeline">
        {happenings.map((happening, index) => (
          <Entry key={index} happening={happening} />
        ))}
      </ol>
    </>
  );
}

function Entry(props: { readonly happening: Happening }) {
  const { source, title, message, time, tone, count, reporter } = props.happening;
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
