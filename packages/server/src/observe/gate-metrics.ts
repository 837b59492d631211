import type { Counter, Histogram, MetricRegistry } from '@wheelhouse/machinery';
import { NotRecognised } from '../gates/authn/authentication.ts';
import { NotPermitted } from '../gates/authz/authorization.ts';
import type {
  Admitted,
  Answered,
  Authenticated,
  Authorized,
  Failure,
  TimedOut,
} from '../request/request-state.ts';

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
}): (request: Answered | TimedOut) => void {
  const { registry } = options;
  const authentication = attempts(registry, 'authentication');
  const authorization = attempts(registry, 'authorization');
  const filters = filterMetrics(registry);
  const countUser = userCounter(options);
  const recognized = (result: 'success' | 'failure' | 'error', tookMs: number): void => {
    authentication(result, tookMs / 1000);
    filters.authentication.observe(tookMs / 1000);
  };
  return ({ last, failure }) => {
    if (last.phase === 'arrived') return;
    if (last.phase === 'received') {
      if (!(failure?.error instanceof NotRecognised)) return;
      const result = failure.error.credential === 'bad' ? 'error' : 'failure';
      return recognized(result, failure.failedMs - last.startMs);
    }
    recognized('success', last.authenticatedMs - last.startMs);
    countUser(last.requester);
    filters.passed(last);
    if (last.phase === 'authorized') {
      const seconds = (last.authorizedMs - last.admittedMs) / 1000;
      authorization('allowed', seconds);
      filters.authorization.observe(seconds);
    } else if (last.phase === 'admitted') {
      const result = refusalOf(failure);
      if (result === undefined || failure === undefined) return;
      authorization(result, (failure.failedMs - last.admittedMs) / 1000);
    }
  };
}

/** How authorization refused a request; undefined where something else ended it. */
function refusalOf(failure: Failure | undefined): 'error' | 'denied' | 'no-opinion' | undefined {
  if (!(failure?.error instanceof NotPermitted)) return undefined;
  const { decision, error } = failure.error.result;
  if (error !== undefined) return 'error';
  return decision === 'deny' ? 'denied' : 'no-opinion';
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
    passed(request: Authenticated | Admitted | Authorized): void {
      const { authenticatedMs, recordedMs } = request;
      if (recordedMs !== undefined) {
        audit ??= of('audit');
        audit.observe((recordedMs - authenticatedMs) / 1000);
      }
      if (request.phase === 'authenticated') return;
      const { seat, admittedMs } = request;
      if (seat.arrivalMs === undefined) return;
      impersonation.observe((seat.arrivalMs - (recordedMs ?? authenticatedMs)) / 1000);
      fairness.observe((admittedMs - seat.arrivalMs) / 1000);
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
