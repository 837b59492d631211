import type { Clock } from '@wheelhouse/machinery/browser';

/** The browser's clock. */
export const browserClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const handle = setTimeout(task, delayMs);
    return { stop: () => clearTimeout(handle) };
  },
  every(periodMs, task) {
    const handle = setInterval(task, periodMs);
    return { stop: () => clearInterval(handle) };
  },
};
