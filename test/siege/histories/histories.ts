import { hasEtcd } from '../../../src/storage/etcd/testing.ts';
import { randomOf } from '../../fuzz/random.ts';
import { buildPrograms, type Programs } from '../../program.ts';
import { type SiegeFigures, type SiegeOptions, type SiegePart, timeLimit } from '../part.ts';
import { type Ground, type GroundName, groundNames, startGround } from './ground.ts';
import { type HistoryReport, runHistory } from './history.ts';

const historyMs = 8000;

/** Runs histories on real processes; a round is one history on each kind of store. */
export const historiesPart: SiegePart = {
  name: 'histories',
  summary:
    'Real servers, on their own store and on etcd, are killed, stopped, and cut off; an order ' +
    'explains all answers, and watches miss nothing. A round is 8 s on each store.',
  defaultRounds: 5,
  run: runHistories,
};

async function runHistories(options: SiegeOptions): Promise<SiegeFigures> {
  const { seed, rounds, log } = options;
  const isOver = timeLimit(options);
  const totals = new Map<string, number>();
  const programs = await buildPrograms();
  const grounds = new Map<GroundName, Ground>();
  const names = groundNames.filter((name) => name === 'embedded' || hasEtcd);
  if (names.length === 1) log('there is no etcd: only the embedded store is attacked');
  try {
    for (let round = 0; round < rounds && !isOver(); round += 1) {
      for (const name of names) {
        if (isOver()) break;
        const ground = grounds.get(name) ?? (await started(programs, { name }));
        grounds.set(name, ground);
        const report = await oneHistory(ground, { seed, round });
        add(totals, report, name);
        log(`round ${round}, ${name}: ${summary(report)}`);
      }
    }
  } finally {
    await Promise.all([...grounds.values()].map((ground) => ground.remove()));
    programs.remove();
  }
  return Object.fromEntries(totals);
}

function started(programs: Programs, { name }: { readonly name: GroundName }): Promise<Ground> {
  return startGround(programs, { name, flags: [] });
}

async function oneHistory(
  ground: Ground,
  { seed, round }: { readonly seed: number; readonly round: number },
): Promise<HistoryReport> {
  const random = randomOf(seed + round);
  try {
    return await runHistory({
      ground,
      random,
      namespace: `history-${round}`,
      milliseconds: historyMs,
      leastWrites: 50,
      workers: 6 + random.below(6),
      keys: 1 + random.below(5),
      thinkMs: 2 + random.below(20),
      holdMs: 2500,
      restMs: 1500,
    });
  } catch (cause) {
    const at = `seed ${seed}, round ${round}, ${ground.name}`;
    throw new Error(`${at}: ${String(cause)}`, { cause });
  }
}

function add(totals: Map<string, number>, report: HistoryReport, ground: GroundName): void {
  const plus = (figure: string, more: number) => {
    totals.set(figure, (totals.get(figure) ?? 0) + more);
  };
  const { faults, ...counts } = report;
  plus(`${ground} histories`, 1);
  for (const [name, count] of Object.entries(counts)) plus(`${ground} ${name}`, count);
  for (const [fault, count] of faults) plus(`${ground}: ${fault}`, count);
}

function summary({ faults, ...counts }: HistoryReport): string {
  const all = [...Object.entries(counts), ...faults];
  return all.map(([name, count]) => `${count} ${name}`).join(', ');
}
