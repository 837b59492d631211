import type { Counter, Histogram, MetricRegistry } from '@wheelhouse/machinery';

/** What a gate made of a request; undefined: the request did not come so far. */
export type Recognised = 'success' | 'failure' | 'error';
export type Judged = 'allowed' | 'denied' | 'no-opinion' | 'error';

/** A request's way through the gates, in monotonic milliseconds; 0 for a gate it did not leave. */
export interface Passage {
  readonly startMs: number;
  readonly recognised: Recognised | undefined;
  /** Who sent it, whomever it then acts as. */
  readonly requester: { readonly name: string } | undefined;
  readonly recognisedMs: number;
  /** Where there is an audit log. */
  readonly recordedMs: number;
  /** It has come to flow control. */
  readonly arrivedMs: number;
  readonly enteredMs: number;
  readonly judged: Judged | undefined;
  readonly judgedMs: number;
}

const attemptBuckets = Array.from({ length: 15 }, (_, step) => 0.001 * 2 ** step);
const filterBuckets = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30];

/**
 * Counts at the gates under upstream's names (OPS-1). What it gives is called once for each request,
 * at its end, and finds all series by properties.
 */
export function createGateMetrics(options: {
  readonly registry: MetricRegistry;
  /** Names that are told apart; of the others, those of mail addresses. */
  readonly knownUsers: readonly string[];
}): (passage: Passage) => void {
  const { registry } = options;
  const authentication = attempts(registry, 'authentication');
  const authorization = attempts(registry, 'authorization');
  const filters = filterMetrics(registry);
  const countUser = userCounter(options);
  return (passage) => {
    const { startMs, recognised, recognisedMs, requester, judged, judgedMs, enteredMs } = passage;
    if (recognised !== undefined) {
      const seconds = (recognisedMs - startMs) / 1000;
      authentication(recognised, seconds);
      filters.authentication.observe(seconds);
    }
    if (requester !== undefined) countUser(requester);
    filters.passed(passage);
    if (judged === undefined) return;
    const seconds = (judgedMs - enteredMs) / 1000;
    authorization(judged, seconds);
    if (judged === 'allowed') filters.authorization.observe(seconds);
  };
}

type Attempt = (result: string, seconds: number) => void;

/** Series are made when there is something to count, and then found by the result. */
function attempts(registry: MetricRegistry, gate: 'authentication' | 'authorization'): Attempt {
  const stability = 'ALPHA';
  const labels = ['result'];
  const total = registry.counter({
    name: gate === 'authentication' ? 'authentication_attempts' : 'authorization_attempts_total',
    help: `Requests that came to ${gate}, by how that ended.`,
    stability,
    labels,
  });
  const duration = registry.histogram({
    name: `${gate}_duration_seconds`,
    help: `How long ${gate} of requests took, by how that ended.`,
    stability,
    labels,
    buckets: attemptBuckets,
  });
  const known = new Map<string, { readonly total: Counter; readonly duration: Histogram }>();
  return (result, seconds) => {
    let series = known.get(result);
    if (series === undefined) {
      series = { total: total.of(result), duration: duration.of(result) };
      known.set(result, series);
    }
    series.total.add(1);
    series.duration.observe(seconds);
  };
}

function filterMetrics(registry: MetricRegistry) {
  const family = registry.histogram({
    name: 'apiserver_request_filter_duration_seconds',
    help: 'How long requests were at each gate before their endpoint.',
    stability: 'ALPHA',
    labels: ['filter'],
    buckets: filterBuckets,
  });
  const of = (filter: string) => family.of(filter);
  const [impersonation, fairness] = [of('impersonation'), of('priorityandfairness')];
  let audit: Histogram | undefined;
  return {
    authentication: of('authentication'),
    authorization: of('authorization'),
    /** The gates between those. */
    passed({ recognisedMs, recordedMs, arrivedMs, enteredMs }: Passage): void {
      if (recordedMs > 0) {
        audit ??= of('audit');
        audit.observe((recordedMs - recognisedMs) / 1000);
      }
      if (arrivedMs === 0) return;
      impersonation.observe((arrivedMs - (recordedMs > 0 ? recordedMs : recognisedMs)) / 1000);
      if (enteredMs > 0) fairness.observe((enteredMs - arrivedMs) / 1000);
    },
  };
}

/** The same client comes again and again, with the same value for its user. */
function userCounter({
  registry,
  knownUsers,
}: Parameters<typeof createGateMetrics>[0]): (user: { readonly name: string }) => void {
  const family = registry.counter({
    name: 'authenticated_user_requests',
    help: 'Requests whose sender was recognised, by who that was as far as names are told apart.',
    stability: 'ALPHA',
    labels: ['username'],
  });
  const names = new Set(knownUsers);
  const shown = (name: string): string => {
    if (names.has(name)) return name;
    return name.includes('@') ? 'email_id' : 'other';
  };
  let last: { readonly user: object; readonly counter: Counter } | undefined;
  return (user) => {
    if (last?.user !== user) last = { user, counter: family.of(shown(user.name)) };
    last.counter.add(1);
  };
}
