// Loaded into a server's process before the server: measures the longest step of the main thread.
// SIGUSR2 begins a measurement, and ends the one that runs; a line on standard error says which.
import { openSync, readSync, writeSync } from 'node:fs';

/** Nanoseconds on a CPU of the calling thread, as the first of three numbers. */
const statistics = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const buffer = Buffer.alloc(64);

/** CPU time of the main thread, in milliseconds. */
function threadCpuMs() {
  // Reading the time of the process brings the time of the running thread up to date.
  process.cpuUsage();
  const length = readSync(statistics, buffer, 0, buffer.length, 0);
  return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
}

let measurement;
let count = 0;

/** Runs once in every turn of the event loop, so that the loop never waits while it is measured. */
function turn(of) {
  if (measurement !== of) return;
  const nowMs = threadCpuMs();
  const stepMs = nowMs - of.lastMs;
  of.turns += 1;
  if (stepMs > of.longestMs) of.longestMs = stepMs;
  of.lastMs = threadCpuMs();
  setImmediate(turn, of);
}

function say(line) {
  writeSync(2, `${JSON.stringify(line)}\n`);
}

process.on('SIGUSR2', () => {
  if (measurement === undefined) {
    count += 1;
    measurement = { longestMs: 0, turns: 0, lastMs: threadCpuMs() };
    say({ msg: `measurement ${count} begins` });
    setImmediate(turn, measurement);
    return;
  }
  const { longestMs, turns } = measurement;
  measurement = undefined;
  say({ msg: `measurement ${count} ends`, longestMs, turns });
});
