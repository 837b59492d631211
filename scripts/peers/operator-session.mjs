// Plays the session of an operator: commands of kubectl from a file, line by line, and then every
// object that the server has.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serverAddress } from './pod-networks.mjs';
import { call, eventually, programPath } from './servers.mjs';
import { ordered, plain, sessionLines, wordsOf } from './sessions.mjs';

const examples = join(import.meta.dirname, 'operator-examples');
const repeatWithinMs = 120_000;
const settleWithinMs = 300_000;
const availableWithinMs = 240_000;
/** Objects of which none has changed for this long are compared. */
const quietMs = 10_000;

/** Resources that change all the time, or that say nothing about an operator. */
const uncompared = [
  ...['events', 'leases', 'nodes', 'componentstatuses', 'endpoints', 'endpointslices'],
  ...['flowschemas', 'prioritylevelconfigurations', 'controllerrevisions', 'csinodes'],
];

/** The path of kubectl; undefined if there is none. */
export const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });

/** Runs kubectl while this process continues to play kubelets. */
export function runKubectl(server, args) {
  const all = [`--kubeconfig=${server.kubeconfig}`, ...args];
  return new Promise((resolve) => {
    execFile(kubectl, all, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ status: error?.code ?? 0, text: `${stdout}${stderr}` }),
    );
  });
}

/** Removes the random parts of names, the addresses of Services, and values that are random. */
export const plainNames = (text, server) =>
  plain(text, server)
    .replace(/\b10\.(96|244)\.\d+\.\d+\b/g, 'ADDRESS')
    .replace(/-[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, '-HASH')
    .replace(/-([bcdfghjklmnpqrstvwxz2456789]{5}|[0-9a-f]{5})\b/g, '-RANDOM')
    .replace(/\b[0-9a-f]{8,64}\b/g, 'HEX')
    .replace(/(extra-params)[a-z0-9]{5}\b/g, '$1RANDOM')
    .replace(/"value": "\d+(\.\d+)?m?s"/g, '"value": "DURATION"')
    .replace(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g, 'CERTIFICATE')
    .replace(/"nodeName": "peer-\d"/g, '"nodeName": "NODE"')
    .replace(/"nodePort": ?3\d{4}/g, '"nodePort": NODE-PORT')
    .replaceAll(server.version, 'VERSION')
    .replace(/ \(x\d+ over \w+\)/g, '')
    .replace(/(spec-hash": ")\w+/g, '$1HASH')
    .replace(/(TimeSeconds": )\d+/g, '$1SECONDS')
    .replace(/read udp \S+->/g, 'read udp SOCKET->')
    .replace(/\\n[A-Za-z0-9+/=]{60,}\\n/g, '\\nENCODED\\n')
    .replace(/"[A-Za-z0-9+/=]{300,}"/g, '"ENCODED"');

/** Writes the configuration with which programs in Pods reach the server as its administrator. */
function writePodsConfig({ kubeconfig, directory, url }) {
  const config = JSON.parse(readFileSync(kubeconfig, 'utf8'));
  const authority = readFileSync(join(directory, 'ca.crt')).toString('base64');
  const server = `https://${serverAddress}:${new URL(url).port}`;
  config.clusters[0].cluster = { server, 'certificate-authority-data': authority };
  writeFileSync(join(directory, 'pods.kubeconfig'), JSON.stringify(config));
}

/** The managers as which the two servers write objects themselves. */
const serverManager =
  /^(kube-apiserver|wheelhouse|[a-z]+-availability|customresourcedefinition-controller)$/;

/** The entries of managers, without the scheduler's, which depend on when it sees the nodes. */
const plainManagers = (entries = []) =>
  entries
    .filter(({ manager }) => manager !== 'kube-scheduler')
    .map((entry) => (serverManager.test(entry.manager) ? { ...entry, manager: 'SERVER' } : entry));

/** Controllers that work side by side add conditions in either order. */
const sortedConditions = ({ conditions, ...status }) => ({
  ...status,
  conditions: [...conditions].sort((left, right) => (left.type < right.type ? -1 : 1)),
});

function objectText(item, server) {
  const { metadata, status } = item;
  const managedFields = plainManagers(metadata.managedFields);
  const plainItem = ordered({
    ...item,
    metadata: { ...metadata, managedFields },
    ...(Array.isArray(status?.conditions) ? { status: sortedConditions(status) } : {}),
  });
  return plainNames(JSON.stringify(plainItem, withoutVendorsTrust, 1), server);
}

/** Omits the volume that the vendor of the reference's tree adds to the credentials of Pods. */
export function withoutVendorsTrust(_, value) {
  if (!Array.isArray(value)) return value;
  return value.filter((item) => item?.configMap?.name !== 'openshift-service-ca.crt');
}

/** Resolves when every Deployment has all its Pods. */
export async function available(server) {
  const isAvailable = async () => {
    const { body } = await call(server, { path: '/apis/apps/v1/deployments' });
    return body.items.every(
      ({ spec, status }) => (status?.availableReplicas ?? 0) === spec.replicas,
    );
  };
  const timing = { withinMs: availableWithinMs, everyMs: 1000 };
  if (!(await eventually(isAvailable, timing))) {
    throw new Error(`${server.name}: not all Deployments are available`);
  }
}

/** Resolves when no object of the collections has changed for a while. */
export async function settle(server, paths) {
  let last = '';
  let since = Date.now();
  const isQuiet = async () => {
    const versions = [];
    for (const { base, plural } of paths) {
      const { body } = await call(server, { path: `${base}/${plural}` });
      versions.push(...(body.items ?? []).map(({ metadata }) => metadata.resourceVersion));
    }
    const now = versions.join();
    if (now !== last) since = Date.now();
    last = now;
    return Date.now() - since > quietMs;
  };
  const isSettled = await eventually(isQuiet, { withinMs: settleWithinMs, everyMs: 1000 });
  if (!isSettled) console.log(`${server.name}: the objects have not settled`);
}

/** The collections of a version that can be listed. */
async function listed(server, base) {
  const { status, body } = await call(server, { path: base });
  if (status !== 200) return [];
  return body.resources
    .filter(({ name, verbs }) => verbs.includes('list') && !uncompared.includes(name))
    .map(({ name }) => ({ base, plural: name }));
}

/** All collections that a server has, each in every version in which it is served. */
async function allCollections(server) {
  const { body } = await call(server, { path: '/apis' });
  const versions = body.groups.flatMap(({ versions: all }) => all);
  const found = await listed(server, '/api/v1');
  for (const { groupVersion } of versions)
    found.push(...(await listed(server, `/apis/${groupVersion}`)));
  return found;
}

const isBuiltIn = ({ metadata: { labels, namespace, name } }) =>
  (namespace === 'default' && name === 'kubernetes') ||
  labels?.['kubernetes.io/bootstrapping'] !== undefined ||
  labels?.['kube-aggregator.kubernetes.io/automanaged'] !== undefined ||
  /^(system-|system:|openshift:)/.test(name) ||
  [namespace, name].some((one) => /^(kube-|openshift-)/.test(one ?? ''));

/** The objects of each collection as text, without those that every server has. */
async function allObjects(server, { isCompared }) {
  const steps = {};
  for (const { base, plural } of await allCollections(server)) {
    const { body } = await call(server, { path: `${base}/${plural}` });
    const texts = (body.items ?? [])
      .filter((item) => !isBuiltIn(item) && isCompared(item))
      .map((item) => objectText(item, server));
    if (texts.length > 0) steps[`objects of ${base}/${plural}`] = texts.sort().join('\n');
  }
  return steps;
}

/**
 * Runs a session.
 *
 * @param options.name the name of the operator, whose folder of examples has the session
 * @param options.source the folder that SOURCE stands for in the session
 * @param options.isCompared whether an object at the end is compared
 * @returns the output of each step
 */
export async function playSession(server, { name, source, isCompared = () => true }) {
  const steps = {};
  const run = async (words) => {
    const { status, text } = await runKubectl(server, words);
    return { status, output: `exit ${status}\n${plainNames(text, server)}` };
  };
  const repeat = async (words) => {
    let last;
    const succeeds = async () => {
      last = await run(words);
      return last.status === 0;
    };
    const timing = { withinMs: repeatWithinMs, everyMs: 1000 };
    if (!(await eventually(succeeds, timing)))
      console.log(`${server.name}: ${words.join(' ')} fails`);
    return last;
  };
  writePodsConfig(server);
  let number = 0;
  for (const line of sessionLines(join('operator-examples', name, 'session.txt'))) {
    number += 1;
    const [first, ...rest] = wordsOf(line).map((word) =>
      word
        .replace(/^SOURCE\//, `${source}/`)
        .replace(/^EXAMPLES\//, `${examples}/${name}/`)
        .replace('DIRECTORY/', `${server.directory}/`),
    );
    if (process.env.PEERS_KEEP) console.log(`${new Date().toISOString()} ${line}`);
    if (first === 'settle') await settle(server, await allCollections(server));
    else if (first === 'available') await available(server);
    else {
      const { output } = first === 'until' ? await repeat(rest) : await run([first, ...rest]);
      steps[`${number} ${line}`] = output
        .replaceAll(source, 'SOURCE')
        .replaceAll(examples, 'EXAMPLES');
    }
  }
  return { ...steps, ...(await allObjects(server, { isCompared })) };
}
