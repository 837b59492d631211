import { join } from 'node:path';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { eventually, type ResponseBody, startTestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let directory: string;
beforeEach(() => {
  directory = temporaryFolder();
});

const roles = '/apis/rbac.authorization.svc.io/v1/clusterroles';
const bindings = '/apis/rbac.authorization.svc.io/v1/clusterrolebindings';

/** Damage to the stored bytes of default roles and bindings, by the end of their keys. */
const roleDamages: Damages = {
  'clusterroles/admin': () => '{"kind":"Clus\u0000',
  'clusterroles/edit': () => '',
  'clusterroles/view': () => '[]',
  'clusterroles/system:discovery': () => 'null',
  'clusterroles/system:basic-user': ({ metadata: _, ...rest }) => JSON.stringify(rest),
  'clusterroles/system:heapster': (object) => JSON.stringify({ ...object, rules: { a: 1 } }),
  'clusterroles/system:node-problem-detector': (object) =>
    JSON.stringify({ ...object, rules: [1, null, {}, []] }),
  'clusterroles/system:node-proxier': (object) =>
    JSON.stringify({ ...object, rules: [{ verbs: 'get' }] }),
  'clusterroles/system:monitoring': (object) =>
    JSON.stringify({ ...object, metadata: { labels: [1] } }),
  'clusterroles/system:node': (object) =>
    JSON.stringify({ ...object, aggregationRule: { clusterRoleSelectors: ['a', null] } }),
  'clusterrolebindings/system:discovery': () => '{',
  'clusterrolebindings/system:basic-user': (object) =>
    JSON.stringify({ ...object, subjects: [1, null], roleRef: 'x' }),
};

type Damages = Readonly<Record<string, (object: ResponseBody) => string>>;

async function damageAll(damages: Damages): Promise<void> {
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  const { records } = await store.range({ prefix: '/', limit: 10_000 });
  for (const [end, change] of Object.entries(damages)) {
    const record = records.find(({ key }) => key.endsWith(end));
    if (record === undefined) throw new Error(`nothing is stored under ${end}`);
    const text = change(JSON.parse(Buffer.from(record.value).toString('utf8')));
    await store.put({ key: record.key, value: Buffer.from(text), expect: record.modRevision });
  }
  await store.close();
}

test('AUTHZ-7: a server starts with damaged roles and bindings, and reports them', async () => {
  const store = { type: 'embedded', directory } as const;
  await (await startTestServer({ store })).stop();
  await damageAll(roleDamages);
  const reports: string[] = [];
  const error = (message: string, fields?: object) =>
    reports.push(`${message} ${JSON.stringify(fields)}`);
  const server = await withServer({ store, logger: { ...silentLogger, error } });
  expect((await server.get('/readyz')).text).toBe('ok');
  expect((await server.get('/api/v1/namespaces')).status).toBe(200);
  for (const name of ['admin', 'edit', 'view', 'system:discovery', 'system:basic-user']) {
    expect((await server.get(`${roles}/${name}`)).status, name).toBe(500);
    expect(reports.join('\n')).toMatch(new RegExp(`cannot reconcile a damaged .*"name":"${name}"`));
  }
  expect((await server.get(`${bindings}/system:discovery`)).status).toBe(500);
  expect((await server.get(`${roles}/cluster-admin`)).status).toBe(200);
});

const flows = 'flowcontrol.apiserver.svc.io';

/** Values that are unreadable as objects, and values with a shape that the kind does not have. */
const otherDamages: Damages = {
  'flowschemas/catch-all': () => '{"kind":"Flow\u0000',
  'flowschemas/exempt': () => '',
  'flowschemas/probes': () => 'null',
  'flowschemas/global-default': (object) => JSON.stringify({ ...object, spec: [1] }),
  'flowschemas/service-accounts': (object) =>
    JSON.stringify({ ...object, spec: { ...object.spec, rules: [1, null, { subjects: {} }] } }),
  'flowschemas/system-nodes': ({ spec: _, ...rest }) => JSON.stringify(rest),
  'prioritylevelconfigurations/catch-all': () => '[]',
  'prioritylevelconfigurations/exempt': ({ spec: _, ...rest }) => JSON.stringify(rest),
  'prioritylevelconfigurations/workload-low': (object) =>
    JSON.stringify({ ...object, spec: { type: 'Limited', limited: [null] } }),
  'prioritylevelconfigurations/node-high': () => '{',
  'apiservices/v1.apps': () => '{',
  'apiservices/v1.batch': ({ spec: _, ...rest }) => JSON.stringify(rest),
  'services/specs/default/svc': () => '"',
  'services/endpoints/default/svc': () => '1',
};

test('OPS-3: a server starts with damaged default objects, and reports them', async () => {
  const own = {
    store: { type: 'embedded', directory },
    controllers: ['*'],
    controllersPauseMs: 0,
    flowControl: { type: 'priority-and-fairness', objects: 'followed' },
    listen: { host: '127.0.0.1', port: 0, tls: { certDir: join(directory, 'certs') } },
  } as const;
  await (await startTestServer(own)).stop();
  await damageAll(otherDamages);
  const reports: string[] = [];
  const error = (message: string, fields?: object) =>
    reports.push(`${message} ${JSON.stringify(fields)}`);
  const server = await withServer({ ...own, logger: { ...silentLogger, error } });
  expect((await server.get('/readyz')).text).toBe('ok');
  for (const name of ['catch-all', 'exempt', 'probes']) {
    const report = `a default object is damaged .*"flowschemas".*"name":"${name}"`;
    expect(reports.join('\n')).toMatch(new RegExp(report));
  }
  expect((await server.get(`/apis/${flows}/v1/flowschemas/catch-all`)).status).toBe(500);
  const remade = `/apis/${flows}/v1/prioritylevelconfigurations/exempt`;
  await eventually(
    async () => (await server.get(remade)).body.spec?.type === 'Exempt',
    'the exempt level is not repaired',
  );
  expect((await server.get('/api/v1/namespaces')).status).toBe(200);
});
