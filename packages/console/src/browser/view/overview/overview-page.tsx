import { useEffect, useState } from 'preact/hooks';
import { messageOf, textOf } from '../../model/failure.ts';
import {
  type Activity,
  countedKinds,
  countObjects,
  followActivity,
  followedKinds,
  type KindCount,
  type MetricsSample,
  readMetrics,
  type TrafficPoint,
  trafficBetween,
} from '../../model/insight/overview.ts';
import { apiVersionOf, isBrowsable, type Kind } from '../../model/kinds.ts';
import { objectRoute, tableRoute } from '../../model/route.ts';
import { useApp, useModule, useNow, usePage, useRedraw } from '../parts/app.ts';
import { Age, Empty, KindMark, Link } from '../parts/basics.tsx';

/** The version, contents, and activity of the server. */
export function OverviewPage() {
  const { api, discovered } = useApp();
  const [version, setVersion] = useState('');
  const counts = useCounts();
  usePage('Overview');
  useEffect(() => {
    let isUnmounted = false;
    api.json({ path: '/version' }).then(
      (response) => !isUnmounted && setVersion(textOf(response, 'gitVersion')),
      () => {},
    );
    return () => {
      isUnmounted = true;
    };
  }, [api]);
  const kinds = discovered.kinds.filter(isBrowsable).length;
  // Only kinds that are still served.
  const all = countedKinds(discovered.kinds).flatMap((kind) => counts.get(keyOf(kind)) ?? []);
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

/** Interval of counting objects. */
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
        counts.set(keyOf(count.kind), count);
        redraw();
      },
    }).catch(() => {});
    return () => abort.abort(new Error('closed'));
    // Counts again, since other clients create and delete objects.
  }, [api, discovered, counts, redraw, turn]);
  return counts;
}

const keyOf = (kind: Kind): string => `${apiVersionOf(kind)} ${kind.resource}`;

/** The number of objects per kind, by group; leaves out kinds without objects. */
function Inventory(props: { readonly counts: readonly KindCount[] }) {
  const groups = new Map<string, KindCount[]>();
  for (const entry of props.counts) {
    if (entry.count === 0) continue;
    const group = entry.kind.group || 'core';
    groups.set(group, [...(groups.get(group) ?? []), entry]);
  }
  const sortedGroups = [...groups].sort(
    ([left], [right]) => totalOf(groups, right) - totalOf(groups, left),
  );
  return (
    <section class="panel inventory" aria-label="Inventory">
      <h2>Inventory</h2>
      {sortedGroups.map(([group, counts]) => (
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

const activitiesMax = 60;
/** Maximum concurrent watches. Over HTTP/1.1, a browser has six connections in total. */
const streamsMax = { many: 100, few: 1 };

const activityVerbs: Readonly<Record<Activity['type'], readonly [verb: string, tone: string]>> = {
  ADDED: ['created', 'good'],
  MODIFIED: ['changed', 'warn'],
  DELETED: ['deleted', 'bad'],
};

/** Created, changed, and deleted objects, live. */
function ActivityFeed() {
  const { api, clock, discovered, hasManyStreams, workspace } = useApp();
  const redraw = useRedraw();
  const [signIns, setSignIns] = useState(0);
  useEffect(() => {
    const unlisten = workspace.onResume(() => setSignIns((before) => before + 1));
    return () => void unlisten();
  }, [workspace]);
  const [feed] = useState<{ items: readonly Activity[] }>(() => ({ items: [] }));
  useEffect(() => {
    const max = hasManyStreams ? streamsMax.many : streamsMax.few;
    return followActivity({
      api,
      clock,
      kinds: followedKinds(discovered.kinds, max),
      onActivity(activity) {
        feed.items = [activity, ...feed.items].slice(0, activitiesMax);
        redraw();
      },
    });
    // An expired sign-in ends the watches.
  }, [api, clock, discovered, hasManyStreams, feed, redraw, signIns]);
  return (
    <section class="panel activity" aria-label="Changes">
      <h2>Changes</h2>
      {feed.items.length === 0 && <Empty>Changes appear here as they happen.</Empty>}
      <ol class="feed">
        {feed.items.map((item) => (
          <Item key={`${item.type} ${item.resourceVersion} ${item.target.name}`} activity={item} />
        ))}
      </ol>
    </section>
  );
}

function Item(props: { readonly activity: Activity }) {
  const { type, target, manager, atMs } = props.activity;
  const { kind, namespace, name } = target;
  const [verb, tone] = activityVerbs[type];
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

/** Loads the charts with their library on first use. */
const loadChart = () => import('./chart.tsx');

const samplePeriodMs = 2_000;
const pointsMax = 150;

/**
 * Request rates and latencies from the server's metrics.
 * @param props.objects Number of objects; undefined if unknown
 */
function Traffic(props: { readonly objects: number | undefined }) {
  const { points, message } = usePoints();
  const { module: chart } = useModule(loadChart);
  const last = points.at(-1);
  const times = points.map(({ atMs }) => atMs / 1000);
  const series = (of: (point: TrafficPoint) => number | undefined) =>
    points.map((point) => of(point) ?? null);
  return (
    <section class="traffic" aria-label="Traffic">
      <ul class="figures">
        <Figure label="Objects" value={formatNumber(props.objects)} />
        <Figure label="Requests per second" value={formatNumber(last?.requestsPerSecond)} />
        <Figure label="Errors per second" value={formatNumber(last?.errorsPerSecond)} />
        <Figure label="Median latency" value={formatNumber(last?.medianMs)} unit="ms" />
        <Figure label="99th percentile" value={formatNumber(last?.p99Ms)} unit="ms" />
        <Figure label="In flight" value={formatNumber(last?.inFlight)} />
      </ul>
      {message !== '' && <p class="faint">Charts are unavailable: {message}</p>}
      {message === '' && chart !== undefined && (
        <div class="charts">
          <chart.Chart
            title="Requests per second"
            times={times}
            lines={[
              { label: 'all', color: '--link', values: series((point) => point.requestsPerSecond) },
              { label: 'failed', color: '--bad', values: series((point) => point.errorsPerSecond) },
            ]}
          />
          <chart.Chart
            title="Latency in milliseconds"
            times={times}
            lines={[
              { label: 'median', color: '--good', values: series((point) => point.medianMs) },
              { label: '99th percentile', color: '--warn', values: series((point) => point.p99Ms) },
            ]}
          />
        </div>
      )}
    </section>
  );
}

function Figure(props: { readonly label: string; readonly value: string; readonly unit?: string }) {
  const { label, value, unit } = props;
  return (
    <li class="figure">
      <span class="figure-label">{label}</span>
      <span class="figure-value">
        {value}
        {unit !== undefined && value !== '–' && <small> {unit}</small>}
      </span>
    </li>
  );
}

function formatNumber(value: number | undefined): string {
  if (value === undefined) return '–';
  return value >= 100 ? value.toFixed(0) : String(Number(value.toFixed(1)));
}

/** Reads the metrics periodically while the page is shown. */
function usePoints(): { readonly points: readonly TrafficPoint[]; readonly message: string } {
  const { api, clock } = useApp();
  const [points, setPoints] = useState<readonly TrafficPoint[]>([]);
  const [message, setMessage] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    let before: MetricsSample | undefined;
    const read = async (): Promise<void> => {
      const { signal } = abort;
      const { text } = await api.send({ path: '/metrics', accept: 'text/plain', signal });
      const sample = readMetrics(text, clock.now());
      const point = before === undefined ? undefined : trafficBetween(before, sample);
      before = sample;
      setMessage('');
      if (point !== undefined) setPoints((all) => [...all, point].slice(-pointsMax));
    };
    let isReading = false;
    const turn = (): void => {
      if (isReading) return;
      isReading = true;
      read()
        .catch((error: unknown) => {
          if (!abort.signal.aborted) setMessage(messageOf(error));
        })
        .then(() => {
          isReading = false;
        });
    };
    turn();
    const timer = clock.every(samplePeriodMs, turn);
    return () => {
      timer.stop();
      abort.abort(new Error('closed'));
    };
  }, [api, clock]);
  return { points, message };
}
