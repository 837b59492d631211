import type { Clock, Timer } from '../base/clock.ts';

/** What runs beside the requests. */
export interface Background {
  close(): Promise<void>;
}

/**
 * Starts something when the server is ready, after a pause that whoever waited for it has to himself;
 * `close` stops it, begun or not.
 */
export function beginAfter(
  ready: Promise<void>,
  { clock, pauseMs }: { readonly clock: Clock; readonly pauseMs: number | undefined },
  begin: () => Promise<Background>,
): Background {
  let running: Promise<Background> | undefined;
  let isClosed = false;
  let timer: Timer | undefined;
  const start = () => {
    running = begin();
  };
  ready.then(
    () => {
      if (isClosed) return;
      if (pauseMs === undefined) start();
      else timer = clock.after(pauseMs, start);
    },
    () => {},
  );
  return {
    async close() {
      isClosed = true;
      timer?.stop();
      await (await running?.catch(() => undefined))?.close();
    },
  };
}
