// Runs Wheelhouse and kube-apiserver on one etcd, in sequence and concurrently: each must serve,
// change, and delete what the other stored. Prints the differences; fails if there are any.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { register } from 'tsx/esm/api';
import {
  call,
  eventually,
  freePort,
  pause,
  programPath,
  startEtcd,
  startProgram,
} from './servers.mjs';

register();
const { builtinKinds } = await import('@wheelhouse/kinds');
const { dialectOf } = await import('@wheelhouse/machinery');

const token = 'takeover-admin-token';
const root = join(import.meta.dirname, '..', '..');
const reference = programPath({ variable: 'KUBE_APISERVER', name: 'kube-apiserver' });
const etcd = programPath({ variable: 'ETCD', name: 'etcd' });
if (reference === undefined || etcd === undefined) {
  console.log('skipped: takeover.mjs needs KUBE_APISERVER and ETCD (see README.md)');
  process.exit(0);
}

const differences = [];
const differ = (what, detail) => {
  differences.push(what);
  console.log(`DIFFERENT ${what}${detail === undefined ? '' : `\n  ${detail}`}`);
};

const directory = mkdtempSync(join(tmpdir(), 'peers-takeover-'));
const at = (name) => join(directory, name);
execFileSync('openssl', ['genrsa', '-out', at('sa.key'), '2048'], { stdio: 'ignore' });
writeFileSync(at('tokens.csv'), `${token},admin,admin,"system:masters"\n`);

/**
 * Starts one of the servers on an etcd. Both get the same flags.
 *
 * @param host concurrent servers share a port, as they would on separate hosts
 * @param address the address that the server advertises
 */
async function startOn(store, { name, port, host = '127.0.0.1', address = '192.0.2.1' }) {
  const flags = [
    `--etcd-servers=${store.url}`,
    `--bind-address=${host}`,
    `--advertise-address=${address}`,
    `--secure-port=${port}`,
    `--cert-dir=${at(`certs-${name}`)}`,
    `--service-account-key-file=${at('sa.key')}`,
    `--service-account-signing-key-file=${at('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    '--service-cluster-ip-range=10.0.0.0/24',
    `--token-auth-file=${at('tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--allow-privileged=true',
    '--disable-admission-plugins=ServiceAccount',
    '--runtime-config=api/alpha=false',
    ...(process.env.TAKEOVER_FLAGS?.split(' ') ?? []),
  ];
  const own = ['--dialect=kubernetes', '--controllers=api-server', `--data-dir=${at('data')}`];
  const main = join(root, 'bin', 'wheelhouse.js');
  const [command, args] =
    name === 'reference'
      ? [reference, flags]
      : [process.execPath, [main, 'serve', ...own, ...flags]];
  const log = at(`${name}-${port}.log`);
  const program = startProgram({ command, args, log });
  const server = { name, url: `https://${host}:${port}`, token, stop: program.stop };
  const isReady = async () => {
    if (program.child.exitCode !== null)
      throw new Error(`${name} ended while starting; see ${log}`);
    const answer = await call(server, { path: '/readyz' }).catch(() => undefined);
    return answer?.status === 200;
  };
  if (!(await eventually(isReady, { withinMs: 60_000 }))) throw new Error(`see ${log}`);
  return server;
}

async function onEtcd(work) {
  const folder = mkdtempSync(join(directory, 'store-'));
  const { url, program } = await startEtcd({ directory: folder, etcd });
  try {
    await work({ url });
  } finally {
    await program.stop();
  }
}

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.takeover.example.com' },
  spec: {
    group: 'takeover.example.com',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.oars', statusReplicasPath: '.status.oars' },
        },
        additionalPrinterColumns: [{ name: 'Oars', type: 'integer', jsonPath: '.spec.oars' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  oars: { type: 'integer', default: 2 },
                  cargo: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                },
              },
              status: { type: 'object', properties: { oars: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
};
const boats = '/apis/takeover.example.com/v1/namespaces/default/boats';
const boat = (name) => ({
  apiVersion: 'takeover.example.com/v1',
  kind: 'Boat',
  metadata: { name },
  spec: { cargo: { z: 1, a: [9007199254740993n, 0.5, null, 'é'] } },
});

/** JSON with integers that a number cannot represent. */
const bodyOf = (object) =>
  JSON.parse(
    JSON.stringify(object, (_, value) => (typeof value === 'bigint' ? Number(value) : value)),
  );

/** An object of every kind that can be created, by its collection. */
function examples() {
  const found = [];
  for (const def of builtinKinds(dialectOf('kubernetes'))) {
    const { example, group, resource, scope } = def;
    const version = def.versions.find(({ served }) => served);
    if (example === undefined || version === undefined || def.isVirtual || def.isComputed) continue;
    if (!def.verbs.includes('create') || !def.verbs.includes('get')) continue;
    const object = example();
    const base = group === '' ? '/api/v1' : `/apis/${object.apiVersion}`;
    const place = scope === 'Namespaced' ? '/namespaces/default' : '';
    delete object.metadata.namespace;
    found.push({ path: `${base}${place}/${resource}`, object, def });
  }
  return found;
}

async function createAll(server) {
  const made = [];
  for (const { path, object } of examples()) {
    const { status, body } = await call(server, { method: 'POST', path, body: object });
    if (status === 201) made.push(`${path}/${body.metadata.name}`);
    else if (status !== 404) console.log(`  ${server.name} ${status} ${path}: ${body.message}`);
  }
  await establish(server, definition);
  for (const name of ['one', 'two']) {
    const { status, body } = await call(server, {
      method: 'POST',
      path: boats,
      body: bodyOf(boat(name)),
    });
    if (status !== 201) throw new Error(body.message);
    made.push(`${boats}/${name}`);
  }
  return made;
}

async function establish(server, crd) {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const made = await call(server, { method: 'POST', path, body: crd });
  if (made.status !== 201) throw new Error(made.body.message);
  const { group, names } = crd.spec;
  const isServed = async () =>
    (await call(server, { path: `/apis/${group}/v1/${names.plural}` })).status === 200;
  if (!(await eventually(isServed, { withinMs: 10_000 })))
    throw new Error(`${group} is not served`);
}

/** All objects of a server by path, as text with sorted members. */
async function everything(server) {
  const objects = new Map();
  const groups = (await call(server, { path: '/apis' })).body.groups;
  const all = groups.flatMap(({ versions }) =>
    versions.map(({ groupVersion }) => `/apis/${groupVersion}`),
  );
  for (const base of ['/api/v1', ...all]) {
    const { body } = await call(server, { path: base });
    for (const { name, verbs, namespaced } of body.resources ?? []) {
      if (name.includes('/') || !verbs.includes('list') || name === 'componentstatuses') continue;
      const list = await listed(server, `${base}/${name}`);
      if (list === undefined) {
        differ(`${server.name} cannot list ${base}/${name}`);
        continue;
      }
      for (const item of list.body.items) {
        const { namespace, name: own } = item.metadata;
        const place = namespaced ? `/namespaces/${namespace}` : '';
        const path = `${base}${place}/${name}/${own}`;
        objects.set(path, (await call(server, { path })).body);
      }
    }
  }
  return objects;
}

/** The answer to a list; the cache of a newly defined kind takes a moment to fill. */
function listed(server, path) {
  const list = async () => {
    const answer = await call(server, { path });
    return answer.status === 200 ? answer : undefined;
  };
  return eventually(list, { withinMs: 10_000 });
}

const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
};
const textOf = (object) => JSON.stringify(sorted(object));

/** Objects that the servers themselves keep up to date. */
const isAlive = (path) =>
  /\/leases\/|\/events\/|\/endpoints(lices)?\/kubernetes$|apiservices\//.test(path) ||
  /configmaps\/(extension-apiserver-authentication|kube-apiserver-legacy)/.test(path);

async function takeOver(first, second) {
  console.log(`# ${second} takes over from ${first}`);
  await onEtcd(async (store) => {
    const port = await freePort();
    const writer = await startOn(store, { name: first, port });
    const made = await createAll(writer);
    const before = await everything(writer);
    await writer.stop();
    const reader = await startOn(store, { name: second, port });
    const after = await everything(reader);
    compare({ before, after, first, second });
    for (const path of made) await useUp(reader, path);
    await reader.stop();
    console.log(`  ${before.size} objects before, ${after.size} after, ${made.length} used up`);
  });
}

function compare({ before, after, first, second }) {
  for (const [path, object] of before) {
    const found = after.get(path);
    if (isAlive(path) || isReconciled(object, found)) continue;
    if (found === undefined) differ(`${path}: not served by ${second}`);
    else if (textOf(object) !== textOf(found)) {
      differ(path, whereTheyDiffer({ [first]: textOf(object), [second]: textOf(found) }));
    }
  }
}

/** A default role to which the second server has added the rules of its release. */
function isReconciled(object, found) {
  const isDefault = object.metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'];
  const isWritten = found?.metadata.resourceVersion !== object.metadata.resourceVersion;
  return isDefault === 'true' && isWritten;
}

/** The ends of the texts, from shortly before their first difference. */
function whereTheyDiffer(texts) {
  const [left, right] = Object.values(texts);
  let same = 0;
  while (left[same] === right[same]) same += 1;
  const from = Math.max(0, same - 60);
  const shown = Object.entries(texts).map(
    ([name, text]) => `${name}: ${text.slice(from, same + 200)}`,
  );
  return shown.join('\n  ');
}

/** Changes and then deletes an object. */
async function useUp(server, path) {
  const metadata = { annotations: { touched: 'yes' } };
  const patched = await call(server, { method: 'PATCH', path, body: { metadata } });
  if (patched.status !== 200) differ(`PATCH ${path}: ${patched.status}`, patched.body.message);
  const put = await call(server, { method: 'PUT', path, body: patched.body });
  if (put.status !== 200) differ(`PUT ${path}: ${put.status}`, put.body.message);
  const body = { gracePeriodSeconds: 0 };
  const deleted = await call(server, { method: 'DELETE', path, body });
  if (deleted.status !== 200) differ(`DELETE ${path}: ${deleted.status}`, deleted.body.message);
  const left = await call(server, { path });
  const isGone = left.status === 404 || left.body.metadata?.deletionTimestamp !== undefined;
  if (!isGone) differ(`DELETE ${path}: it is still there`);
}

/** Follows a collection; `events` contains type, name, and resourceVersion. */
function follow(server, path) {
  const events = [];
  const sent = request(`${server.url}${path}?watch=true`, {
    rejectUnauthorized: false,
    headers: { authorization: `Bearer ${token}` },
  });
  let rest = '';
  sent.on('response', (answer) =>
    answer.on('data', (part) => {
      const lines = (rest + part).split('\n');
      rest = lines.pop();
      for (const line of lines.filter((text) => text !== '')) {
        const { type, object } = JSON.parse(line);
        events.push(`${type} ${object.metadata?.name} ${object.metadata?.resourceVersion}`);
      }
    }),
  );
  sent.on('error', () => {});
  sent.end();
  return { events, close: () => sent.destroy() };
}

const maps = '/api/v1/namespaces/default/configmaps';

/** Increments a counter that others increment too. */
async function increment(server, path) {
  for (;;) {
    const { body } = await call(server, { path });
    body.data.n = String(Number(body.data.n) + 1);
    const { status } = await call(server, { method: 'PUT', path, body });
    if (status === 200) return;
    if (status !== 409) throw new Error(`PUT ${path}: ${status}`);
  }
}

async function writeMaps(server, count) {
  for (let index = 0; index < count; index += 1) {
    const name = `${server.name}-${index}`;
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { n: '0' } };
    await call(server, { method: 'POST', path: maps, body });
    await call(server, { method: 'PATCH', path: `${maps}/${name}`, body: { data: { n: '1' } } });
    if (index % 2 === 0) await call(server, { method: 'DELETE', path: `${maps}/${name}` });
  }
}

async function sideBySide() {
  console.log('# side by side');
  await onEtcd(async (store) => {
    const servers = [];
    const port = await freePort();
    for (const name of ['reference', 'wheelhouse']) {
      const last = servers.length + 1;
      const place = { port, host: `127.0.0.${last}`, address: `192.0.2.${last}` };
      servers.push(await startOn(store, { name, ...place }));
    }
    await listTogether(servers);
    await writeTogether(servers);
    await countTogether(servers);
    await serviceTogether(servers);
    await defineTogether(servers);
    const [before, after] = [await everything(servers[0]), await everything(servers[1])];
    compare({ before, after, first: 'reference', second: 'wheelhouse' });
    compare({ before: after, after: before, first: 'wheelhouse', second: 'reference' });
    for (const server of servers) await server.stop();
  });
}

/** Checks that both servers are and remain in the endpoints of their own Service. */
async function listTogether(servers) {
  const path = '/api/v1/namespaces/default/endpoints/kubernetes';
  const addresses = async (server) => {
    const { body } = await call(server, { path });
    const subsets = body.subsets ?? [];
    return subsets.flatMap((subset) => subset.addresses.map(({ ip }) => ip)).join();
  };
  const both = '192.0.2.1,192.0.2.2';
  const areBoth = async () => {
    for (const server of servers) if ((await addresses(server)) !== both) return false;
    return true;
  };
  if (!(await eventually(areBoth, { withinMs: 30_000 }))) {
    differ(`the endpoints are ${await addresses(servers[0])} and not ${both}`);
    return;
  }
  const { metadata } = (await call(servers[0], { path })).body;
  await pause(reconcileMs);
  const after = (await call(servers[1], { path })).body.metadata;
  if (after.resourceVersion !== metadata.resourceVersion) differ('the endpoints keep changing');
}

/** Longer than the reference's interval between two reconciliations of its endpoints. */
const reconcileMs = 12_000;
const mapsEach = 100;

/** Both servers write; every watch must see each write once, in the same order. */
async function writeTogether(servers) {
  const watches = servers.map((server) => follow(server, maps));
  await eventually(() => watches.every(({ events }) => events.length > 0), { withinMs: 10_000 });
  const [first] = watches;
  await Promise.all(servers.map((server) => writeMaps(server, mapsEach)));
  const written = servers.length * mapsEach * 2.5;
  const isComplete = () =>
    watches.every(({ events }) => events.filter((event) => /-\d+ /.test(event)).length >= written);
  await eventually(isComplete, { withinMs: 10_000 });
  for (const [index, { events, close }] of watches.entries()) {
    close();
    const own = events.filter((event) => /-\d+ /.test(event));
    if (own.length !== written)
      differ(`${servers[index].name} saw ${own.length} of ${written} writes`);
    if (new Set(own).size !== own.length) differ(`${servers[index].name} saw a write twice`);
    const expected = first.events.filter((event) => /-\d+ /.test(event));
    if (own.join() !== expected.join()) differ('the watches saw different orders');
  }
  console.log(`  ${written} writes seen by both`);
}

async function countTogether(servers) {
  const body = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'counter' },
    data: { n: '0' },
  };
  await call(servers[0], { method: 'POST', path: maps, body });
  const path = `${maps}/counter`;
  const increments = servers.map(async (server) => {
    for (let index = 0; index < 50; index += 1) await increment(server, path);
  });
  await Promise.all(increments);
  for (const server of servers) {
    const { n } = (await call(server, { path })).body.data;
    if (n !== '100') differ(`${server.name} counted ${n} instead of 100`);
  }
}

async function serviceTogether(servers) {
  const path = '/api/v1/namespaces/default/services';
  const create = async (server, index) => {
    const metadata = { name: `${server.name}-${index}` };
    const spec = { type: 'NodePort', ports: [{ port: 80 }] };
    const body = { apiVersion: 'v1', kind: 'Service', metadata, spec };
    const answer = await call(server, { method: 'POST', path, body });
    if (answer.status !== 201)
      differ(`POST ${metadata.name}: ${answer.status}`, answer.body.message);
    return answer.body.spec;
  };
  const rounds = Array.from({ length: 60 }, (_, index) => index);
  const made = await Promise.all(
    servers.map(async (server) => {
      const specs = [];
      for (const index of rounds) specs.push(await create(server, index));
      return specs;
    }),
  );
  const specs = made.flat();
  const addresses = new Set(specs.map(({ clusterIP }) => clusterIP));
  const ports = new Set(specs.map((spec) => spec.ports[0].nodePort));
  if (addresses.size !== specs.length) differ(`${specs.length - addresses.size} addresses twice`);
  if (ports.size !== specs.length) differ(`${specs.length - ports.size} node ports twice`);
  console.log(`  ${specs.length} Services with numbers of their own`);
}

async function defineTogether([first, second]) {
  for (const [maker, user] of [
    [first, second],
    [second, first],
  ]) {
    const group = `${maker.name}.example.com`;
    const crd = structuredClone(definition);
    crd.metadata.name = `boats.${group}`;
    crd.spec.group = group;
    await establish(maker, crd);
    const path = `/apis/${group}/v1/namespaces/default/boats`;
    const isServed = async () => (await call(user, { path })).status === 200;
    if (!(await eventually(isServed, { withinMs: 10_000 }))) {
      differ(`a kind made on ${maker.name} is not served by ${user.name}`);
      continue;
    }
    const body = { ...bodyOf(boat('b')), apiVersion: `${group}/v1` };
    const made = await call(user, { method: 'POST', path, body });
    const read = await call(maker, { path: `${path}/b` });
    if (textOf(made.body) !== textOf(read.body)) {
      const texts = { [user.name]: textOf(made.body), [maker.name]: textOf(read.body) };
      differ(`${path}/b`, whereTheyDiffer(texts));
    }
  }
}

const parts = {
  'reference-first': () => takeOver('reference', 'wheelhouse'),
  'wheelhouse-first': () => takeOver('wheelhouse', 'reference'),
  together: sideBySide,
};
const chosen = process.env.TAKEOVER_PARTS?.split(',') ?? Object.keys(parts);
for (const part of chosen) await parts[part]();
if (!process.env.PEERS_KEEP) rmSync(directory, { recursive: true, force: true });
else console.log(`kept ${directory}`);
console.log(differences.length === 0 ? 'no differences' : `${differences.length} differences`);
process.exit(differences.length === 0 ? 0 : 1);
