import { useEffect, useState } from 'preact/hooks';
import { type Activity, followActivity, followedKinds } from '../../model/insight/activity.ts';
import { objectRoute } from '../../model/route.ts';
import { Age } from '../parts/age.tsx';
import { useApp, useRedraw } from '../parts/app.ts';
import { Empty, KindMark, Link } from '../parts/basics.tsx';

const shownMax = 60;
/** Streams at a time: over HTTP/1.1 a browser has six connections for everything. */
const streamsMax = { many: 100, few: 1 };

const verbs: Readonly<Record<Activity['type'], readonly [verb: string, tone: string]>> = {
  ADDED: ['created', 'good'],
  MODIFIED: ['changed', 'warn'],
  DELETED: ['deleted', 'bad'],
};

/** What is created, changed, and deleted, as it happens. */
export function ActivityFeed() {
  const { api, clock, discovered, hasManyStreams } = useApp();
  const redraw = useRedraw();
  const [feed] = useState<{ items: readonly Activity[] }>(() => ({ items: [] }));
  useEffect(() => {
    const max = hasManyStreams ? streamsMax.many : streamsMax.few;
    return followActivity({
      api,
      clock,
      kinds: followedKinds(discovered.kinds, max),
      onActivity(activity) {
        feed.items = [activity, ...feed.items].slice(0, shownMax);
        redraw();
      },
    });
  }, [api, clock, discovered, hasManyStreams, feed, redraw]);
  return (
    <section class="panel activity" aria-label="Changes">
      <h2>Changes</h2>
      {feed.items.length === 0 && <Empty>Changes appear here as they happen.</Empty>}
      <ol class="feed">
        {feed.items.map((one) => (
          <Item key={`${one.type} ${one.resourceVersion} ${one.target.name}`} activity={one} />
        ))}
      </ol>
    </section>
  );
}

function Item(props: { readonly activity: Activity }) {
  const { type, target, manager, atMs } = props.activity;
  const { kind, namespace, name } = target;
  const [verb, tone] = verbs[type];
  const label = namespace === undefined ? name : `${namespace}/${name}`;
  return (
    <li>
      <KindMark kind={kind.kind} group={kind.group} />
      <span class="feed-text">
        <Link to={objectRoute(target)}>{label}</Link>
        <small class="faint">
          {kind.kind}
          {manager !== '' && `, by ${manager}`}, <Age time={new Date(atMs).toISOString()} />
        </small>
      </span>
      <span class={`chip ${tone}`}>{verb}</span>
    </li>
  );
}
