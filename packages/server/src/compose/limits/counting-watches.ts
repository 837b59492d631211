import type { WatchCounts } from '../../gates/flowcontrol/watch-counts.ts';
import type { RequestMetrics } from '../../observe/request-metrics.ts';

/** Counts the watches that stand, besides measuring them. */
export function countingWatches(requests: RequestMetrics, watches: WatchCounts): RequestMetrics {
  return {
    ...requests,
    longRunning(exchange, info, time) {
      const over = requests.longRunning(exchange, info, time);
      if (info.verb !== 'watch') return over;
      const forget = watches.began(info);
      return () => {
        over();
        forget();
      };
    },
  };
}
