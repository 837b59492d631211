/** What the server's metrics say at one moment. */
export interface MetricsSample {
  readonly atMs: number;
  /** Requests since the server began, by whether they were answered with an error. */
  readonly requests: { readonly all: number; readonly failed: number };
  /** Durations of requests: how many took at most so many seconds. Long-running ones are left out. */
  readonly durations: ReadonlyMap<number, number>;
  /** Requests being answered, and objects in memory, where the server says. */
  readonly inFlight: number;
}

/** What happened between two samples. */
export interface TrafficPoint {
  readonly atMs: number;
  readonly requestsPerSecond: number;
  readonly failuresPerSecond: number;
  /** Undefined when nothing was asked. */
  readonly medianMs: number | undefined;
  readonly p99Ms: number | undefined;
  readonly inFlight: number;
}

const longRunning = /verb="(WATCH|CONNECT|WATCHLIST)"/i;

/** Reads the exposition text of `/metrics`; lines that mean nothing here are passed over. */
export function readMetrics(text: string, atMs: number): MetricsSample {
  let [all, failed, inFlight] = [0, 0, 0];
  const durations = new Map<number, number>();
  for (const line of text.split('\n')) {
    if (!line.startsWith('apiserver_')) continue;
    const value = Number(line.slice(line.lastIndexOf(' ') + 1));
    if (!Number.isFinite(value)) continue;
    if (line.startsWith('apiserver_request_total{')) {
      all += value;
      if (/code="[45]/.test(line)) failed += value;
    } else if (line.startsWith('apiserver_request_duration_seconds_bucket{')) {
      if (longRunning.test(line)) continue;
      const limit = Number(/le="([^"]+)"/.exec(line)?.[1]?.replace('+Inf', 'Infinity'));
      if (!Number.isNaN(limit)) durations.set(limit, (durations.get(limit) ?? 0) + value);
    } else if (line.startsWith('apiserver_current_inflight_requests{')) inFlight += value;
  }
  return { atMs, requests: { all, failed }, durations, inFlight };
}

/** What happened from one sample to the next; undefined when the server began anew between them. */
export function trafficBetween(
  before: MetricsSample,
  after: MetricsSample,
): TrafficPoint | undefined {
  const seconds = (after.atMs - before.atMs) / 1000;
  const requests = after.requests.all - before.requests.all;
  if (seconds <= 0 || requests < 0) return undefined;
  const counts = [...after.durations]
    .map(([limit, count]) => [limit, count - (before.durations.get(limit) ?? 0)] as const)
    .sort(([one], [other]) => one - other);
  return {
    atMs: after.atMs,
    requestsPerSecond: requests / seconds,
    failuresPerSecond: (after.requests.failed - before.requests.failed) / seconds,
    medianMs: quantileMs(counts, 0.5),
    p99Ms: quantileMs(counts, 0.99),
    inFlight: after.inFlight,
  };
}

/** Like `histogram_quantile`: within a bucket, durations are taken to be spread evenly. */
function quantileMs(
  buckets: readonly (readonly [limit: number, count: number])[],
  quantile: number,
): number | undefined {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  const rank = total * quantile;
  let [lower, below] = [0, 0];
  for (const [limit, count] of buckets) {
    if (count >= rank) {
      if (limit === Number.POSITIVE_INFINITY) return lower * 1000;
      const share = count === below ? 1 : (rank - below) / (count - below);
      return (lower + (limit - lower) * share) * 1000;
    }
    [lower, below] = [limit, count];
  }
  return lower * 1000;
}
