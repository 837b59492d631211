import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SiegePart, timeLimit } from '../part.ts';
import { BrokenHistory, type HistoryReport, runHistory } from './history.ts';
import { demand } from './truth.ts';

/** Number of histories that run before the first one that counts. */
const rehearsals = 12;
/** One in this many histories is run twice. */
const repetitionPeriod = 250;

/** A round is one history; round n has the run's seed plus n. */
export const simulationPart: SiegePart = {
  name: 'simulation',
  summary: 'Whole servers on a simulated clock, disk, and network; a round is one history.',
  defaultRounds: 5000,
  async run(options) {
    const { seed, rounds, log } = options;
    const isOver = timeLimit(options);
    // Values that the server keeps for the life of the process must be the same in all histories.
    for (let i = 0; i < rehearsals; i++) await runHistory(i);
    const total = { writes: 0, answers: 0, lost: 0, crashes: 0, events: 0 };
    const digest = createHash('sha256');
    let firstDigest = '';
    let lastDigest = '';
    let histories = 0;
    let repeated = 0;
    for (; histories < rounds && !isOver(); histories++) {
      const report = await runHistory(seed + histories).catch((error) => explain(error, log));
      add(total, report);
      lastDigest = digestOf(report);
      firstDigest ||= lastDigest;
      digest.update(lastDigest);
      if (histories % repetitionPeriod === 0) {
        checkRepeats(seed + histories, report, await runHistory(seed + histories));
        repeated += 1;
      }
      if ((histories + 1) % 1000 === 0) log(`${histories + 1} histories`);
    }
    const digests = { digest: digest.digest('hex'), firstDigest, lastDigest };
    return { histories, ...total, repeated, ...digests };
  },
};

function digestOf({ trace }: HistoryReport): string {
  return createHash('sha256').update(trace.join('\n')).digest('hex');
}

/** Saves the trace of a history that violated a guarantee. */
function explain(error: unknown, log: (line: string) => void): never {
  if (error instanceof BrokenHistory) {
    const path = join(tmpdir(), `wheelhouse-simulation-${error.seed}.trace`);
    writeFileSync(path, error.trace.join('\n'));
    log(`the trace of seed ${error.seed} is in ${path}`);
  }
  throw error;
}

type Totals = { -readonly [Name in Exclude<keyof HistoryReport, 'trace'>]: number };

function add(total: Totals, report: HistoryReport): void {
  for (const name of Object.keys(total) as (keyof Totals)[]) total[name] += report[name];
}

/** Checks that a seed determines the history byte for byte, regardless of earlier ones. */
function checkRepeats(seed: number, { trace }: HistoryReport, again: HistoryReport): void {
  const at = trace.findIndex((line, index) => line !== again.trace[index]);
  const isSame = at < 0 && trace.length === again.trace.length;
  demand(
    isSame,
    () => `seed ${seed} went on in two ways at line ${at}: ${trace[at]} / ${again.trace[at]}`,
  );
}
