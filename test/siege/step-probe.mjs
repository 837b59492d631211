// Loaded into a server's process before the server: measures the longest step of the main thread.
// SIGUSR2 starts or ends a measurement; a line on standard error reports which. With STEPS_PROFILE,
// the line at the end names the functions of the longest step.
import { openSync, readSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector';

/** The file whose first number is the CPU time of the calling thread in nanoseconds. */
const statistics = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const buffer = Buffer.alloc(64);

/** CPU time of the main thread, in milliseconds. */
function threadCpuMs() {
  // Reading the time of the process updates the time of the running thread.
  process.cpuUsage();
  const length = readSync(statistics, buffer, 0, buffer.length, 0);
  return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
}

let measurement;
let count = 0;

/** Runs once per turn of the event loop, so that the loop never waits during a measurement. */
function turn(of) {
  if (measurement !== of) return;
  const nowMs = threadCpuMs();
  const stepMs = nowMs - of.lastMs;
  of.turns += 1;
  const nowUs = wallUs();
  if (stepMs > of.longestMs) {
    of.longestMs = stepMs;
    of.longest = { fromUs: of.lastUs, toUs: nowUs };
  }
  of.lastMs = threadCpuMs();
  of.lastUs = nowUs;
  setImmediate(turn, of);
}

const wallUs = () => Number(process.hrtime.bigint() / 1000n);

const profiler = process.env['STEPS_PROFILE'] === undefined ? undefined : new Session();
if (profiler !== undefined) {
  profiler.connect();
  profiler.post('Profiler.enable');
  profiler.post('Profiler.setSamplingInterval', { interval: 200 });
}

/**
 * The functions with the most samples in a time span, with the numbers of samples of each and its
 * callees.
 */
function functionsOf(profile, { fromUs, toUs }) {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map();
  for (const { id, children = [] } of profile.nodes) {
    for (const child of children) parents.set(child, id);
  }
  const counts = new Map();
  let atUs = profile.startTime;
  profile.samples.forEach((sample, index) => {
    atUs += profile.timeDeltas[index];
    if (atUs < fromUs || atUs > toUs) return;
    const seen = new Set();
    for (let id = sample; id !== undefined; id = parents.get(id)) {
      const { functionName, lineNumber } = nodes.get(id).callFrame;
      const name = `${functionName || 'anonymous'}:${lineNumber}`;
      if (seen.has(name)) continue;
      seen.add(name);
      const count = counts.get(name) ?? { own: 0, all: 0 };
      counts.set(name, count);
      count.all += 1;
      if (id === sample) count.own += 1;
    }
  });
  return [...counts]
    .sort(([, left], [, right]) => right.all - left.all)
    .slice(0, 60)
    .map(([name, { own, all }]) => `${all} (${own}) ${name}`);
}

function say(line) {
  writeSync(2, `${JSON.stringify(line)}\n`);
}

process.on('SIGUSR2', () => {
  if (measurement === undefined) {
    count += 1;
    profiler?.post('Profiler.start');
    measurement = { longestMs: 0, turns: 0, lastMs: threadCpuMs(), lastUs: wallUs() };
    say({ msg: `measurement ${count} begins` });
    setImmediate(turn, measurement);
    return;
  }
  const { longestMs, longest, turns } = measurement;
  measurement = undefined;
  let functions;
  profiler?.post('Profiler.stop', (_, stopped) => {
    functions = longest === undefined ? [] : functionsOf(stopped.profile, longest);
  });
  say({ msg: `measurement ${count} ends`, longestMs, turns, functions });
});
