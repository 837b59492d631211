import { readFileSync } from 'node:fs';
import { driveFuzz } from '../fuzz/drive.ts';
import { buildPrograms, startProcess } from '../support/program.ts';
import { onServer, type SiegePart, timeLimit } from './part.ts';

const requestsPerRound = 10_000;
/**
 * Growth during the second half of a run that counts as a leak; the first half fills caches and
 * history.
 */
const growthMax = { ratio: 1.5, mib: 100 };

/** Resident memory of a process in MiB. */
function residentMib(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) / 1024);
}

/**
 * A round is 10,000 requests of the fuzzer, which must cause neither an answer of 500 nor a leak.
 */
export const fuzzPart: SiegePart = {
  name: 'fuzz',
  summary: 'Malformed and odd requests; a round is 10,000 of them.',
  defaultRounds: 10,
  async run(options) {
    const { seed, rounds, log } = options;
    const programs = await buildPrograms();
    const server = await startProcess(programs);
    const isOver = timeLimit(options);
    try {
      const { url, token } = server;
      const pid = server.child.pid as number;
      const samples = [residentMib(pid)];
      const statuses = new Map<number, number>();
      let round = 0;
      for (; round < rounds && !isOver(); round++) {
        const from = round * requestsPerRound;
        const to = from + requestsPerRound;
        const name = `seed ${seed}, round ${round}`;
        const report = await onServer({ name, server }, () =>
          driveFuzz({ url, token, seed, from, to }),
        );
        if (report.faults.length > 0) {
          throw new Error(`seed ${seed}, round ${round}:\n${report.faults.join('\n')}`);
        }
        for (const [status, count] of report.statuses) {
          statuses.set(status, (statuses.get(status) ?? 0) + count);
        }
        samples.push(residentMib(pid));
        log(`${to} requests, ${samples.at(-1)} MiB resident`);
      }
      const last = samples.at(-1) ?? 0;
      const middle = samples[Math.floor(samples.length / 2)] ?? last;
      if (samples.length >= 6 && last > middle * growthMax.ratio + growthMax.mib) {
        throw new Error(`seed ${seed}: memory grows from ${middle} to ${last} MiB`);
      }
      const answers = [...statuses].sort(([left], [right]) => left - right);
      return {
        requests: round * requestsPerRound,
        residentMib: last,
        statuses: answers.map(([status, count]) => `${status}: ${count}`).join(', '),
      };
    } finally {
      await server.remove();
      programs.remove();
    }
  },
};
