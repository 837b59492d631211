// Creates the input of `older-data.test.ts`: the data file of an older server, and the objects that
// it served from it. Arguments: a commit, and the folder to create. Run it with the last commit
// before the layout of data directories or of stored objects changes; its output is kept forever.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const [commit, target] = process.argv.slice(2);
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-older-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const tree = join(folder, 'tree');
const dataDir = join(folder, 'data');

mkdirSync(tree);
const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 2 ** 28 });
execFileSync('tar', ['-x', '-C', tree], { input: archive });
symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));

const start = `import('${pathToFileURL(join(tree, 'src', 'main.ts'))}').then(({ main }) =>
  main(process.argv.slice(1)).then((code) => process.exit(code)))`;
const flags = ['--secure-port=0', '--bind-address=127.0.0.1', '--authorization-mode=RBAC'];
const server = spawn(
  process.execPath,
  ['--import', 'tsx', '--eval', start, 'serve', `--data-dir=${dataDir}`, ...flags],
  { cwd: tree, stdio: ['ignore', 'ignore', 'pipe'] },
);
let log = '';
const url = await new Promise((resolve, reject) => {
  server.stderr.on('data', (chunk) => {
    log += chunk;
    const listening = /"msg":"listening","url":"([^"]+)"/.exec(log);
    if (listening !== null && log.includes('"msg":"ready"')) resolve(listening[1]);
  });
  server.on('exit', () => reject(new Error(log)));
});
const token = readFileSync(join(dataDir, 'admin.token'), 'utf8').trim();

function call(method, path, body) {
  const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
  const headers = { authorization: `Bearer ${token}`, 'content-type': type };
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}${path}`,
      { method, headers, rejectUnauthorized: false },
      (answer) => {
        const chunks = [];
        answer.on('data', (chunk) => chunks.push(chunk));
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: answer.statusCode, body: text === '' ? {} : JSON.parse(text) });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const groups = { rbac: 'rbac.authorization.svc.io', crd: 'apiextensions.svc.io' };
const old = '/api/v1/namespaces/old';
const containers = [{ name: 'a', image: 'b' }];
const schema = {
  type: 'object',
  properties: { spec: { type: 'object', properties: { length: { type: 'integer' } } } },
};
const boats = {
  group: 'harbour.example.com',
  scope: 'Namespaced',
  names: { kind: 'Boat', plural: 'boats', singular: 'boat', listKind: 'BoatList' },
  versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
};
const viewers = {
  roleRef: { apiGroup: groups.rbac, kind: 'ClusterRole', name: 'view' },
  subjects: [{ kind: 'User', name: 'u', apiGroup: groups.rbac }],
};
const deployment = {
  selector: { matchLabels: { a: 'b' } },
  template: { metadata: { labels: { a: 'b' } }, spec: { containers } },
};
const reported = {
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: 'example.com/x',
  reportingInstance: 'i',
  action: 'a',
  reason: 'r',
  type: 'Normal',
  regarding: { kind: 'Pod', namespace: 'old', name: 'p' },
};
const inNamespace = (group) => `/apis/${group}/v1/namespaces/old`;

/**
 * Path, apiVersion, kind, name, and the other members. An old server rejects what it does not know.
 */
const objects = [
  ['/api/v1/namespaces', 'v1', 'Namespace', 'old', {}],
  [`${old}/configmaps`, 'v1', 'ConfigMap', 'c', { data: { k: '€' } }],
  [`${old}/secrets`, 'v1', 'Secret', 's', { stringData: { k: 'v' } }],
  [`${old}/services`, 'v1', 'Service', 'svc1', { spec: { ports: [{ port: 80 }] } }],
  [`${old}/pods`, 'v1', 'Pod', 'p', { spec: { containers } }],
  [`${inNamespace('apps')}/deployments`, 'apps/v1', 'Deployment', 'd', { spec: deployment }],
  [`${inNamespace(groups.rbac)}/rolebindings`, `${groups.rbac}/v1`, 'RoleBinding', 'rb', viewers],
  ['/apis/storage.svc.io/v1/csidrivers', 'storage.svc.io/v1', 'CSIDriver', 'csi', { spec: {} }],
  [`${inNamespace('events.svc.io')}/events`, 'events.svc.io/v1', 'Event', 'e', reported],
  [
    `/apis/${groups.crd}/v1/customresourcedefinitions`,
    `${groups.crd}/v1`,
    'CustomResourceDefinition',
    'boats.harbour.example.com',
    { spec: boats },
  ],
];
for (const [path, apiVersion, kind, name, rest] of objects) {
  const { status, body } = await call('POST', path, {
    apiVersion,
    kind,
    metadata: { name },
    ...rest,
  });
  if (status >= 300) console.error(`${path}: ${status} ${body.message}`);
}
const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' } };
await call('PATCH', `${old}/configmaps/applied?fieldManager=m`, { ...applied, data: { k: 'v' } });
const gone = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'gone' } };
await call('POST', `${old}/configmaps`, gone);
await call('DELETE', `${old}/configmaps/gone`);
await new Promise((resolve) => setTimeout(resolve, 2000));
const boat = { apiVersion: 'harbour.example.com/v1', kind: 'Boat', metadata: { name: 'elisa' } };
await call('POST', `${inNamespace('harbour.example.com')}/boats`, {
  ...boat,
  spec: { length: 12 },
});

/** All objects, by collection. */
const served = {};
const versions = ['/api/v1'];
for (const { preferredVersion } of (await call('GET', '/apis')).body.groups) {
  versions.push(`/apis/${preferredVersion.groupVersion}`);
}
for (const version of versions) {
  for (const { name, verbs } of (await call('GET', version)).body.resources) {
    if (name.includes('/') || !verbs.includes('list')) continue;
    const { items = [] } = (await call('GET', `${version}/${name}`)).body;
    if (items.length > 0) served[`${version}/${name}`] = items;
  }
}
server.kill('SIGTERM');
await new Promise((resolve) => server.on('exit', resolve));

mkdirSync(target, { recursive: true });
const keep = (name, bytes) =>
  writeFileSync(join(target, `${name}.gz`), gzipSync(bytes, { level: 9 }));
keep('data.mdb', readFileSync(join(dataDir, 'store', 'data.mdb')));
keep('objects.json', JSON.stringify(served));
