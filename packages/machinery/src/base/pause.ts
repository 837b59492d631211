import type { Clock } from './clock.ts';
import { type FaultPlace, whenAborted } from './faults.ts';

/**
 * Waits for some time of a clock. Rejects with the signal's reason when that aborts first.
 * @param options.where the place of a fault in the signal's listener
 */
export function pause(
  clock: Pick<Clock, 'after'>,
  options: {
    readonly ms: number;
    readonly signal?: AbortSignal | undefined;
    readonly where?: FaultPlace;
  },
): Promise<void> {
  const { ms, signal, where = 'timer' } = options;
  return new Promise((resolve, reject) => {
    const stop = () => {
      timer.stop();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      release?.();
      resolve();
    });
    const release = signal === undefined ? undefined : whenAborted(signal, { where }, stop);
  });
}
