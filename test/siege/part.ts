import { setTimeout as wait } from 'node:timers/promises';
import type { ServerProcess } from '../support/program.ts';

/** Options of one run of a part of the siege. */
export interface SiegeOptions {
  /** Determines every random choice; printed on failure. */
  readonly seed: number;
  /** Number of repetitions; each part defines what one round is. */
  readonly rounds: number;
  /**
   * Ends the run after the round in which this many seconds have passed; if absent, all rounds run.
   */
  readonly seconds?: number;
  /** Prints a line of progress. */
  readonly log: (line: string) => void;
}

/** The measurements of a part by name, with the unit last: `{ histories: 500, lagMsMax: 14 }`. */
export type SiegeFigures = Readonly<Record<string, number | string>>;

/**
 * One type of attack on a server, seeded and bounded in count and time. A short run of each is a
 * test beside it (`<name>.test.ts`); `npm run siege` runs them for any duration. `run` rejects with
 * the seed and the round in its message if a guarantee does not hold.
 */
export interface SiegePart {
  readonly name: string;
  /** One sentence for `npm run siege -- --help`. */
  readonly summary: string;
  /** Number of rounds unless the command line specifies it. */
  readonly defaultRounds: number;
  run(options: SiegeOptions): Promise<SiegeFigures>;
}

/** Returns a function that returns true once the time of a run is up. */
export function timeLimit({ seconds }: Pick<SiegeOptions, 'seconds'>): () => boolean {
  if (seconds === undefined) return () => false;
  const end = performance.now() + seconds * 1000;
  return () => performance.now() >= end;
}

/** Milliseconds in which a server whose client has failed may exit. */
const exitMs = 500;
const logBytesMax = 4000;

/**
 * Runs a part of a siege against a server. Its rejection includes the state of the server: whether
 * it runs, or how it exited, and the end of its standard error.
 *
 * @param of.name name of the work in errors
 */
export async function onServer<Result>(
  of: { readonly name: string; readonly server: ServerProcess },
  work: () => Promise<Result>,
): Promise<Result> {
  const { name, server } = of;
  try {
    return await work();
  } catch (cause) {
    const exit = await Promise.race([server.exited, wait(exitMs)]);
    const state = exit === undefined ? 'still runs' : `has exited (${exit})`;
    const log = server.log().slice(-logBytesMax);
    throw new Error(`${name}: ${String(cause)}\nthe server ${state}; its log ends:\n${log}`, {
      cause,
    });
  }
}
