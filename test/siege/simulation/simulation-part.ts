import { type SiegePart, timeLimit } from '../part.ts';
import { type HistoryReport, runHistory } from './history.ts';

/** A round is one history; that of round n has the seed of the run plus n. */
export const simulationPart: SiegePart = {
  name: 'simulation',
  summary: 'Whole servers on a simulated clock, disk, and network; a round is one history.',
  defaultRounds: 5000,
  async run(options) {
    const { seed, rounds, log } = options;
    const isOver = timeLimit(options);
    const total = { writes: 0, answers: 0, lost: 0, crashes: 0, events: 0 };
    let histories = 0;
    for (; histories < rounds && !isOver(); histories++) {
      add(total, await runHistory(seed + histories));
      if ((histories + 1) % 1000 === 0) log(`${histories + 1} histories`);
    }
    return { histories, ...total };
  },
};

type Totals = { -readonly [Name in Exclude<keyof HistoryReport, 'digest'>]: number };

function add(total: Totals, report: HistoryReport): void {
  for (const name of Object.keys(total) as (keyof Totals)[]) total[name] += report[name];
}
