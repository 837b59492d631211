// Runs the same session of helm commands against both servers, with the controllers and played
// kubelets that `--wait` and hooks depend on, and compares what helm prints and stores.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { haveControllers, startControllers } from './controllers.mjs';
import { playNodes } from './played-nodes.mjs';
import { call, onBoth, programPath, runProgram } from './servers.mjs';
import { compareSession, ordered, plain, sessionLines, wordsOf } from './sessions.mjs';

const chart = join(dirname(fileURLToPath(import.meta.url)), 'chart');
const helm = programPath({ variable: 'HELM', name: 'helm' });

/** Runs helm while this process continues to play kubelets. */
function runHelm(args, { home }) {
  const env = {
    ...process.env,
    HELM_CACHE_HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_DATA_HOME: home,
  };
  return runProgram(helm, args, { env, timeout: 180_000 });
}

async function runCommand(line, { server, home }) {
  if (line.startsWith('GET ')) {
    const { status, body } = await call(server, { path: line.slice('GET '.length) });
    return `${status}\n${plain(JSON.stringify(ordered(body), undefined, 1), server)}`;
  }
  const words = wordsOf(line).map((word) => (word === 'CHART' ? chart : word));
  const ran = await runHelm([`--kubeconfig=${server.kubeconfig}`, ...words], { home });
  const output = `${plain(ran.stdout, server)}${plain(ran.stderr, server)}`;
  const named = output
    .replaceAll(chart, 'CHART')
    .replace(/-[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, '-HASH')
    .replace(/modifiedAt=\d+/g, 'modifiedAt=TIME')
    .replace(/\(0x[0-9a-f]+\)|\(nil\)/g, '(POINTER)');
  return `exit ${ran.status}\n${named}`;
}

async function play(server) {
  const home = join(server.directory, 'helm');
  const controllers = startControllers(server);
  const nodes = playNodes(server, { names: ['peer-0', 'peer-1'] });
  const outputs = {};
  try {
    for (const [index, line] of sessionLines('helm-session.txt').entries()) {
      outputs[`${index + 1}. ${line}`] = await runCommand(line, { server, home });
    }
  } finally {
    await nodes.stop();
    await controllers.stop();
  }
  return outputs;
}

if (helm === undefined || !haveControllers) {
  console.log('skipped: needs HELM, KUBE_CONTROLLER_MANAGER, and KUBE_SCHEDULER (see README.md)');
} else {
  const version = spawnSync(helm, ['version', '--template={{.Version}}'], { encoding: 'utf8' });
  compareSession({
    name: `helm${process.env.PEERS_SUFFIX ?? ''}`,
    program: 'helm',
    version: version.stdout.trim(),
    script: 'helm.mjs',
    what: 'With controllers and played kubelets, a session',
    step: 'commands',
    sides: await onBoth(play),
  });
}
