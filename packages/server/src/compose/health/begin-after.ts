import type { Clock, Logger, Timer } from '@wheelhouse/machinery';

/** What runs beside the requests. */
export interface Background {
  close(): Promise<void>;
}

/**
 * Starts something when the server is ready, after a pause that whoever waited for it has to himself;
 * `close` stops it, begun or not. That it could not begin is told in the log.
 */
export function beginAfter(
  ready: Promise<void>,
  {
    clock,
    logger,
    pauseMs,
  }: { readonly clock: Clock; readonly logger: Logger; readonly pauseMs: number | undefined },
  begin: () => Promise<Background>,
): Background {
  let running: Promise<Background | undefined> | undefined;
  let isClosed = false;
  let timer: Timer | undefined;
  const start = () => {
    running = begin().catch((error: unknown) => {
      logger.error('what runs beside the requests could not begin', { error: String(error) });
      return undefined;
    });
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
      await (await running)?.close();
    },
  };
}
