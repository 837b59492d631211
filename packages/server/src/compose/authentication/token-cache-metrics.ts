import type { MetricRegistry } from '@wheelhouse/machinery';
import type { TokenCacheMeter } from '../../gates/authn/contract.ts';

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts verdicts on bearer tokens under the reference's names (OPS-1). */
export function tokenCacheMeter(registry: MetricRegistry): TokenCacheMeter {
  const definition = (name: string, help: string) => ({
    name: `authentication_token_cache_${name}`,
    help,
    stability: 'ALPHA' as const,
    labels: ['status'],
  });
  const requests = registry.counter(
    definition('request_total', 'Tokens looked up, by whether their verdict was cached.'),
  );
  const durations = registry.histogram({
    ...definition('request_duration_seconds', 'Time until the verdict on a token was there.'),
    buckets,
  });
  const fetches = registry.counter(
    definition('fetch_total', 'Verdicts on tokens that had to be found, by how that ended.'),
  );
  const active = registry.gauge(
    definition('active_fetch_count', 'Requests that ask the webhook, or wait for an answer.'),
  );
  const [inFlight, blocked] = [active.of('in_flight'), active.of('blocked')];
  const seriesOf = (from: 'hit' | 'miss') => ({
    requests: requests.of(from),
    durations: durations.of(from),
  });
  const series = { hit: seriesOf('hit'), miss: seriesOf('miss') };
  const answered = (from: 'hit' | 'miss', tookMs: number) => {
    series[from].requests.add(1);
    series[from].durations.observe(tookMs / 1000);
  };
  return {
    answered,
    missed(result) {
      answered('miss', 0);
      fetches.of(result).add(1);
    },
    fetching() {
      inFlight.add(1);
      return (result) => {
        inFlight.add(-1);
        fetches.of(result).add(1);
      };
    },
    blocked() {
      blocked.add(1);
      return () => blocked.add(-1);
    },
  };
}
