import { useEffect, useState } from 'preact/hooks';
import { textOf } from '../../model/failure.ts';
import { countedKinds, countObjects, type KindCount } from '../../model/insight/inventory.ts';
import { apiVersionOf, isBrowsable } from '../../model/kinds.ts';
import { tableRoute } from '../../model/route.ts';
import { useApp, useNow, usePage, useRedraw } from '../parts/app.ts';
import { KindMark, Link } from '../parts/basics.tsx';
import { ActivityFeed } from './activity-feed.tsx';
import { Traffic } from './traffic.tsx';

/** What the server is, what it has, and what happens on it. */
export function OverviewPage() {
  const { api, discovered } = useApp();
  const [version, setVersion] = useState('');
  const counts = useCounts();
  usePage('Overview');
  useEffect(() => {
    let isGone = false;
    api.json({ path: '/version' }).then(
      (answer) => !isGone && setVersion(textOf(answer, 'gitVersion')),
      () => {},
    );
    return () => {
      isGone = true;
    };
  }, [api]);
  const kinds = discovered.kinds.filter(isBrowsable).length;
  const all = [...counts.values()];
  const counted = all.flatMap(({ count }) => count ?? []);
  const objects = counted.length === 0 ? undefined : counted.reduce((sum, count) => sum + count, 0);
  return (
    <section class="page overview">
      <header class="heading">
        <h1>Overview</h1>
        <p class="faint">
          {kinds} kinds of objects{version === '' ? '' : `, version ${version}`}
        </p>
      </header>
      <Traffic objects={objects} />
      <div class="columns">
        <Inventory counts={all} />
        <ActivityFeed />
      </div>
    </section>
  );
}

/** How often the objects are counted anew. */
const recountMs = 20_000;

function useCounts(): ReadonlyMap<string, KindCount> {
  const { api, discovered } = useApp();
  const redraw = useRedraw();
  const turn = Math.floor(useNow(recountMs) / recountMs);
  const [counts] = useState(() => new Map<string, KindCount>());
  useEffect(() => {
    const abort = new AbortController();
    countObjects(api, countedKinds(discovered.kinds), {
      signal: abort.signal,
      onCount(count) {
        counts.set(`${apiVersionOf(count.kind)} ${count.kind.resource}`, count);
        redraw();
      },
    }).catch(() => {});
    return () => abort.abort(new Error('closed'));
    // Counted anew in each turn, as others create and delete.
  }, [api, discovered, counts, redraw, turn]);
  return counts;
}

/** How many objects there are of each kind, by groups; kinds without any are left to the navigation. */
function Inventory(props: { readonly counts: readonly KindCount[] }) {
  const groups = new Map<string, KindCount[]>();
  for (const one of props.counts) {
    if (one.count === 0) continue;
    const group = one.kind.group || 'core';
    groups.set(group, [...(groups.get(group) ?? []), one]);
  }
  const sorted = [...groups].sort(
    ([one], [other]) => totalOf(groups, other) - totalOf(groups, one),
  );
  return (
    <section class="panel inventory" aria-label="Inventory">
      <h2>Inventory</h2>
      {sorted.map(([group, counts]) => (
        <section key={group}>
          <h3>{group}</h3>
          <ul class="tiles">
            {counts.map(({ kind, count, message }) => (
              <li key={kind.resource}>
                <Link to={tableRoute(kind)} class="tile" title={message || undefined}>
                  <KindMark kind={kind.kind} group={kind.group} />
                  <span class="tile-name">{kind.resource}</span>
                  <span class="tile-count">
                    {count ?? (message === '' ? 'no access' : 'unknown')}
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </section>
  );
}

function totalOf(groups: ReadonlyMap<string, readonly KindCount[]>, group: string): number {
  return (groups.get(group) ?? []).reduce((sum, { count }) => sum + (count ?? 0), 0);
}
