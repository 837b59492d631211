import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { driveFuzz } from './drive.ts';

/**
 * `npm run fuzz`: many requests of one seed against a server, and whether it took them all. Exit
 * status 1 when it failed at one or grew without bound.
 */
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    token: { type: 'string' },
    pid: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    from: { type: 'string', default: '0' },
    count: { type: 'string', default: '100000' },
  },
});
const { url, token, pid } = values;
if (url === undefined || token === undefined) throw new Error('--url and --token are needed');

/** Resident memory of the server, MiB; 0 where the system does not tell. */
function residentMib(): number {
  if (pid === undefined) return 0;
  try {
    const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Math.round(Number(found?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}

const seed = Number(values.seed);
const from = Number(values.from);
const to = from + Number(values.count);
const samples = [residentMib()];
console.log(`seed ${seed}, requests ${from} to ${to}, ${samples[0]} MiB resident`);
const report = await driveFuzz({
  url,
  token,
  seed,
  from,
  to,
  onProgress: (done) => {
    samples.push(residentMib());
    console.log(`${done} requests, ${samples.at(-1)} MiB resident`);
  },
});
for (const fault of report.faults) console.log(fault);
const statuses = [...report.statuses].sort(([one], [other]) => one - other);
console.log(statuses.map(([status, count]) => `${status}: ${count}`).join(', '));
const last = residentMib();
/** Growth in the second half counts: the first fills caches and history. */
const middle = samples[Math.floor(samples.length / 2)] ?? last;
const grows = samples.length >= 6 && last > middle * 1.5 + 100;
console.log(
  `${report.faults.length} faults in ${to - from} requests of seed ${seed}, ` +
    `${report.seconds.toFixed(0)} s, ${last} MiB resident at the end${grows ? ': it grows' : ''}`,
);
process.exitCode = report.faults.length > 0 || grows ? 1 : 0;
