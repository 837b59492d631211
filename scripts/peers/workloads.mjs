// Runs kube-controller-manager and kube-scheduler, with played nodes or with those of kwok, against
// both servers and compares the resulting workloads and the logs of both programs.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { haveControllers, startControllers } from './controllers.mjs';
import { haveKwok, runKwok } from './kwok-nodes.mjs';
import { playNodes } from './played-nodes.mjs';
import { storedResult, writeResult } from './results.mjs';
import { onBoth } from './servers.mjs';
import { playScenarios } from './workload-scenarios.mjs';

/**
 * Log lines of a program that lost a race against another writer; which of them appear varies, on
 * either server.
 */
const race = new RegExp(
  [
    'the object has been modified',
    'StorageError: invalid object',
    'because it is being terminated',
    '(replicasets|pods)[a-z.]* \\\\*"[^"]+" not found',
    'object is being deleted',
  ].join('|'),
);

/** The error lines of a klog file without their variable parts, each once. */
function errorLines(path) {
  const lines = readFileSync(path, 'utf8').split('\n');
  const errors = lines.filter((line) => /^E\d{4} /.test(line) && !race.test(line));
  const plain = errors.map((line) =>
    line
      .replace(/^E\d{4} \S+\s+\d+ /, '')
      .replace(/127\.0\.0\.1:\d+/g, 'HOST')
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
      .replace(/-[a-z0-9]{8,10}(-[a-z0-9]{5})?\b/g, '-HASH')
      .replace(/0x[0-9a-f]+/g, 'ADDRESS')
      .replace(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'TIME'),
  );
  return [...new Set(plain)].sort();
}

const withKwok = process.argv[2] === 'kwok';
const kubelets = withKwok
  ? { run: runKwok, program: `kwok ${process.env.KWOK_VERSION ?? ''}`.trim() }
  : { run: playNodes, program: 'played kubelets' };

async function play(server) {
  const { programs, logs, stop } = startControllers(server);
  const nodes = kubelets.run(server, { names: ['peer-0', 'peer-1'] });
  try {
    const states = await playScenarios(server);
    const alive = programs.every(({ child }) => child.exitCode === null);
    return {
      states,
      alive,
      nodeErrors: nodes.errors,
      errors: { manager: errorLines(logs.manager), scheduler: errorLines(logs.scheduler) },
    };
  } finally {
    await nodes.stop();
    await stop();
  }
}

function summary({ states, alive, errors }) {
  const all = Object.values(states);
  const done = all.filter((state) => state.failed === undefined).length;
  const logged = errors.manager.length + errors.scheduler.length;
  const ended = alive ? '' : '; a program ended';
  return `${done} of ${all.length} scenarios reach their state; ${logged} distinct error lines${ended}`;
}

function differences({ reference, wheelhouse }) {
  const found = [];
  for (const [name, state] of Object.entries(wheelhouse.states)) {
    if (isDeepStrictEqual(state, reference.states[name])) continue;
    const [there, here] = [reference.states[name], state].map((value) => JSON.stringify(value));
    found.push(`${name}: reference ${there}, Wheelhouse ${here}`);
  }
  for (const program of ['manager', 'scheduler']) {
    const known = new Set(reference.errors[program]);
    for (const line of wheelhouse.errors[program]) {
      if (!known.has(line)) found.push(`${program} logs here alone: ${line}`);
    }
  }
  return found;
}

if (!haveControllers) {
  console.log('skipped: workloads need KUBE_CONTROLLER_MANAGER and KUBE_SCHEDULER (see README.md)');
} else if (withKwok && !haveKwok) {
  console.log('skipped: workloads of kwok need KWOK (see README.md)');
} else {
  const results = await onBoth(play);
  for (const [name, result] of Object.entries(results)) console.log(`${name}: ${summary(result)}`);
  for (const line of results.wheelhouse?.nodeErrors ?? []) console.log(`played nodes: ${line}`);
  if (results.reference !== undefined && results.wheelhouse !== undefined) {
    const found = differences(results);
    for (const line of found) console.log(`difference: ${line}`);
    const name = withKwok ? 'workloads-kwok' : 'workloads';
    const reasons = storedResult(name)?.differences ?? [];
    writeResult(name, {
      program: `kube-controller-manager and kube-scheduler, with ${kubelets.program}`,
      version: process.env.KUBERNETES_VERSION ?? 'unknown',
      script: 'workloads.mjs',
      what: `With the credentials of their service accounts: ${Object.keys(results.wheelhouse.states).join(', ')}.`,
      reference: summary(results.reference),
      wheelhouse: summary(results.wheelhouse),
      differences: reasons,
    });
  }
}
