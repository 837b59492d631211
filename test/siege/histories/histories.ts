import { type Random, randomOf } from '@wheelhouse/machinery';
import { hasEtcd } from '@wheelhouse/store/testing';
import { buildPrograms, type Programs } from '../../support/program.ts';
import { type SiegeFigures, type SiegeOptions, type SiegePart, timeLimit } from '../part.ts';
import { type Ground, type GroundName, groundNames, hasFakeClock, startGround } from './ground.ts';
import { expectRemains, type HistoryReport, type Remains, runHistory } from './history.ts';
import { resources } from './resources.ts';

const historyMs = 8000;
/** Number of histories after which processes are restarted without data. */
const groundHistories = 6;

/** Runs histories on real processes. A round is one history on each type of store. */
export const historiesPart: SiegePart = {
  name: 'histories',
  summary:
    'Real servers, on their own store and on etcd, are killed, stopped, and cut off; an order ' +
    'explains all answers, and watches miss nothing. A round is 8 s on each store.',
  defaultRounds: 5,
  run: runHistories,
};

/** A ground, and the remains of the histories on it. */
interface Used {
  readonly ground: Ground;
  readonly remains: Remains[];
}

async function runHistories(options: SiegeOptions): Promise<SiegeFigures> {
  const { seed, rounds, log } = options;
  const isOver = timeLimit(options);
  const totals = new Map<string, number>();
  const programs = await buildPrograms();
  const used = new Map<GroundName, Used>();
  const names = groundNames.filter((name) => name === 'embedded' || hasEtcd);
  if (!hasEtcd) log('there is no etcd: only the embedded store is attacked');
  if (!hasFakeClock) log('there is no libfaketime: clocks are not set');
  try {
    for (let round = 0; round < rounds && !isOver(); round += 1) {
      for (const name of names) {
        if (isOver()) break;
        const random = randomOf(seed + round);
        const at = await groundFor(name, { used, programs, random });
        const report = await oneHistory(at, { seed, round, random });
        add(totals, report, name);
        log(`round ${round}, ${name}: ${summary(report)}`);
      }
    }
  } finally {
    await Promise.all([...used.values()].map(({ ground }) => ground.remove()));
    programs.remove();
  }
  return Object.fromEntries(totals);
}

/** The ground of this name, restarted after enough histories. */
async function groundFor(
  name: GroundName,
  options: {
    readonly used: Map<GroundName, Used>;
    readonly programs: Programs;
    readonly random: Random;
  },
): Promise<Used> {
  const { used, programs, random } = options;
  const found = used.get(name);
  if (found !== undefined && found.remains.length < groundHistories) return found;
  used.delete(name);
  await found?.ground.remove();
  // With a short history, watchers that were disconnected must start over.
  const flags = random.chance(0.3) ? ['--etcd-compaction-interval=1s'] : [];
  const made = { ground: await startGround(programs, { name, flags }), remains: [] };
  used.set(name, made);
  return made;
}

async function oneHistory(
  { ground, remains }: Used,
  { seed, round, random }: { readonly seed: number; readonly round: number; random: Random },
): Promise<HistoryReport> {
  try {
    const report = await runHistory({
      ground,
      random,
      namespace: `history-${round}`,
      resource: random.pick(resources),
      milliseconds: historyMs,
      leastWrites: 50,
      workers: 6 + random.below(6),
      keys: 1 + random.below(5),
      thinkMs: 2 + random.below(20),
      holdMs: 2500,
      restMs: 1500,
      isCompacted: random.chance(0.3),
    });
    await expectRemains(ground, remains);
    remains.push(report.remains);
    return report;
  } catch (cause) {
    const at = `seed ${seed}, round ${round}, ${ground.name}`;
    const logs = ground.servers.map(({ log }) => log.slice(-2000)).join('\n');
    throw new Error(`${at}: ${String(cause)}\n${logs}`, { cause });
  }
}

function add(totals: Map<string, number>, report: HistoryReport, ground: GroundName): void {
  const plus = (figure: string, more: number) => {
    totals.set(figure, (totals.get(figure) ?? 0) + more);
  };
  plus(`${ground} histories`, 1);
  for (const [name, count] of figuresOf(report)) plus(`${ground} ${name}`, count);
}

function figuresOf(report: HistoryReport): readonly (readonly [string, number])[] {
  const { faults, statuses, remains: _, ...counts } = report;
  const byStatus = [...statuses].map(([status, count]) => [`status ${status}`, count] as const);
  return [...Object.entries(counts), ...faults, ...byStatus];
}

function summary(report: HistoryReport): string {
  return figuresOf(report)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');
}
