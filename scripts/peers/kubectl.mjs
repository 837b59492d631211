// Runs the same session of kubectl commands against both servers and compares what kubectl prints.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifests } from './kubectl-manifests.mjs';
import { storedResult, writeResult } from './results.mjs';
import { onBoth, programPath } from './servers.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });

function commands() {
  const lines = readFileSync(join(folder, 'kubectl-session.txt'), 'utf8').split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

/** The output without names, times, addresses, and numbers that differ from run to run. */
function plain(output, server) {
  return output
    .replaceAll(server.directory, 'DIR')
    .replace(/127\.0\.0\.1:\d+/g, 'HOST')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME')
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME')
    .replace(/(resourceVersion\W+|Resource Version: +)\d+/g, '$1RV')
    .replace(/(LIVE|MERGED)-\d+/g, '$1')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}/g, 'TIME')
    .replaceAll(new URL(server.url).port, 'PORT')
    .replace(/\b10\.0\.0\.\d+\b/g, 'CLUSTER-IP')
    .replace(/eyJ[\w.-]+/g, 'TOKEN')
    .replace(/:3\d{4}\//g, ':NODE-PORT/')
    .replace(/(?<=\s)(\d+[smh])+(?=\s|$)/gm, 'AGE')
    .replace(/<unknown>|<invalid>/g, 'AGE')
    .replace(/[IWE]\d{4} [\d:.]+\s+\d+ /g, 'LOG ')
    .replace(/ +/g, ' ');
}

function runCommand(line, server) {
  const [words, name] = line.split(' <<');
  const args = words.split(' ').map((word) => word.replaceAll('+', ' ').replace(/^\s$/, '+'));
  const ran = spawnSync(kubectl, [`--kubeconfig=${server.kubeconfig}`, ...args], {
    input: name === undefined ? '' : JSON.stringify(manifests[name]),
    encoding: 'utf8',
    env: { ...process.env, EDITOR: 'true', KUBECTL_EXTERNAL_DIFF: 'diff -u' },
    timeout: 60_000,
  });
  return `exit ${ran.status}\n${plain(ran.stdout, server)}${plain(ran.stderr, server)}`;
}

function play(server) {
  const outputs = {};
  for (const [index, line] of commands().entries()) {
    outputs[`${index + 1}. ${line}`] = runCommand(line, server);
  }
  return outputs;
}

function lineDifferences(there, here) {
  const [left, right] = [there, here].map((text) => text.split('\n'));
  const missing = left.filter((line) => !right.includes(line)).map((line) => `  - ${line}`);
  const extra = right.filter((line) => !left.includes(line)).map((line) => `  + ${line}`);
  return [...missing.slice(0, 12), ...extra.slice(0, 12)];
}

if (kubectl === undefined) {
  console.log('skipped: needs KUBECTL (see README.md)');
} else {
  const { reference, wheelhouse } = await onBoth(play);
  if (reference !== undefined && wheelhouse !== undefined) {
    const all = Object.keys(wheelhouse);
    const different = all.filter((line) => wheelhouse[line] !== reference[line]);
    for (const line of different) {
      console.log([line, ...lineDifferences(reference[line], wheelhouse[line])].join('\n'));
    }
    const client = spawnSync(kubectl, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
    const { gitVersion } = JSON.parse(client.stdout).clientVersion;
    const isNamed = gitVersion.includes('Format') === false;
    const name = `kubectl${process.env.PEERS_SUFFIX ?? ''}`;
    writeResult(name, {
      program: 'kubectl',
      version: isNamed ? gitVersion : (process.env.KUBERNETES_VERSION ?? 'unknown'),
      script: 'kubectl.mjs',
      what: `A session of ${all.length} commands, their output compared line by line.`,
      reference: `${all.length} commands`,
      wheelhouse: `${all.length - different.length} commands print the same, ${different.length} do not`,
      differences: storedResult(name)?.differences ?? [],
    });
  }
}
