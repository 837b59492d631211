// Runs the same session of kubectl commands against both servers and compares what kubectl prints.
import { spawnSync } from 'node:child_process';
import { manifests } from './kubectl-manifests.mjs';
import { onBoth, programPath } from './servers.mjs';
import { compareSession, plain, sessionLines, wordsOf } from './sessions.mjs';

const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });

function runCommand(line, server) {
  const [words, name] = line.split(' <<');
  const ran = spawnSync(kubectl, [`--kubeconfig=${server.kubeconfig}`, ...wordsOf(words)], {
    input: name === undefined ? '' : JSON.stringify(manifests[name]),
    encoding: 'utf8',
    env: { ...process.env, EDITOR: 'true', KUBECTL_EXTERNAL_DIFF: 'diff -u' },
    timeout: 60_000,
  });
  return `exit ${ran.status}\n${plain(ran.stdout, server)}${plain(ran.stderr, server)}`;
}

function play(server) {
  const lines = sessionLines('kubectl-session.txt');
  return Object.fromEntries(
    lines.map((line, index) => [`${index + 1}. ${line}`, runCommand(line, server)]),
  );
}

/** kubectl's own version; a source build does not contain it. */
function clientVersion() {
  const client = spawnSync(kubectl, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
  const { gitVersion } = JSON.parse(client.stdout).clientVersion;
  const isNamed = gitVersion.includes('Format') === false;
  return isNamed ? gitVersion : (process.env.KUBERNETES_VERSION ?? 'unknown');
}

if (kubectl === undefined) {
  console.log('skipped: needs KUBECTL (see README.md)');
} else {
  compareSession({
    name: `kubectl${process.env.PEERS_SUFFIX ?? ''}`,
    program: 'kubectl',
    version: clientVersion(),
    script: 'kubectl.mjs',
    what: 'A session',
    step: 'commands',
    sides: await onBoth(play),
  });
}
