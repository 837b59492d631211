import { useMemo } from 'preact/hooks';
import type { TableRow } from '../../model/table.ts';
import { useApp } from '../parts/app.ts';

/** How long a row that has just come or changed is lit up, as in the style sheet. */
const freshMs = 2_500;

/** Remembers which rows have just come or changed. */
export function useFresh() {
  const { clock } = useApp();
  return useMemo(() => {
    const since = new Map<string, number>();
    return {
      note(_change: unknown, { key }: TableRow): void {
        const nowMs = clock.now();
        since.delete(key);
        since.set(key, nowMs);
        // Those of before are at the beginning.
        for (const [old, atMs] of since) {
          if (nowMs - atMs < freshMs) break;
          since.delete(old);
        }
      },
      isFresh: ({ key }: TableRow): boolean => {
        const atMs = since.get(key);
        return atMs !== undefined && clock.now() - atMs < freshMs;
      },
    };
  }, [clock]);
}
