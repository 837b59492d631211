import type { Clock, Timer } from '@wheelhouse/machinery';

/** Callbacks that run once, when the server begins to end its streams. */
export interface ShutdownSignal {
  subscribe(callback: () => void): { close(): void };
  fire(): void;
}

/** Streams that are ended in a second at least, however long they may take: upstream's figure. */
const perSecondMin = 200;
const stepMs = 25;

/**
 * The signal. With a grace period (`--shutdown-watch-termination-grace-period`) the callbacks run
 * spread over it, so that those who watch do not all come to another server at once.
 */
export function createShutdownSignal(options: {
  readonly clock: Clock;
  readonly graceMs?: number | undefined;
}): ShutdownSignal {
  const { clock, graceMs = 0 } = options;
  const callbacks = new Set<() => void>();
  const run = (atMost: number): void => {
    for (const callback of [...callbacks].slice(0, atMost)) {
      callbacks.delete(callback);
      callback();
    }
  };
  return {
    subscribe(callback) {
      callbacks.add(callback);
      return { close: () => callbacks.delete(callback) };
    },
    fire() {
      if (graceMs <= 0) return run(callbacks.size);
      const perSecond = Math.max((callbacks.size * 1000) / graceMs, perSecondMin);
      const atOnce = Math.ceil((perSecond * stepMs) / 1000);
      const until = clock.monotonic() + graceMs;
      run(atOnce);
      const timer: Timer = clock.every(stepMs, () => {
        run(clock.monotonic() >= until ? callbacks.size : atOnce);
        if (callbacks.size === 0) timer.stop();
      });
    },
  };
}
