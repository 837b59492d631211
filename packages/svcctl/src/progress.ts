import { humanDuration } from '@wheelhouse/machinery';
import type { Session } from './session.ts';

/** A wait that is over sooner is not mentioned. */
const patienceMs = 2_000;

/** Runs a wait and, on a terminal, shows on standard error what it is for and how long it lasts. */
export async function withProgress<T>(
  session: Session,
  text: string,
  wait: () => Promise<T>,
): Promise<T> {
  const { clock, io } = session;
  if (io.status === undefined) return wait();
  const started = clock.monotonic();
  const ticker = clock.every(1_000, () => {
    const passed = clock.monotonic() - started;
    if (passed >= patienceMs) io.status?.(`${text} … ${humanDuration(passed)}`);
  });
  try {
    return await wait();
  } finally {
    ticker.stop();
    io.status('');
  }
}

/** Fewest steps of which it is shown how many are done. */
const stepsMin = 10;

/** Shows, on a terminal and of many steps, which one is done now; `done` of `total` ends it. */
export function showStep(
  { io }: Session,
  { text, done, total }: { readonly text: string; readonly done: number; readonly total: number },
): void {
  if (total < stepsMin) return;
  io.status?.(done >= total ? '' : `${text} ${done + 1} of ${total}`);
}
