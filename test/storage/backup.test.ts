import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { as, bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';
import { temporaryFile } from '../support/cleanup.ts';
import { configMap, type ResponseOf, type TestServer } from '../support/harness.ts';
import { type BackupBench, createBackupBench, succeed, wheelhouse } from './backup-run.ts';

let bench: BackupBench;
beforeEach(() => {
  bench = createBackupBench();
});

const core = '/api/v1/namespaces/default';
const boats = '/apis/harbour.example.com/v1/namespaces/default/boats';
const boatKind = {
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.harbour.example.com' },
  spec: {
    group: 'harbour.example.com',
    scope: 'Namespaced',
    names: { kind: 'Boat', plural: 'boats' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};

/** Creates objects of built-in kinds and of a custom one. */
async function fill(server: TestServer): Promise<void> {
  await mustCreate(server, `${core}/configmaps`, configMap('kept', { data: { a: '€ 1' } }));
  await mustCreate(server, `${core}/configmaps`, configMap('also'));
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } };
  await mustCreate(server, `${core}/secrets`, { ...secret, data: { word: 'aGlkZGVu' } });
  await mustCreate(server, '/apis/apiextensions.svc.io/v1/customresourcedefinitions', boatKind);
  const boat = { apiVersion: 'harbour.example.com/v1', kind: 'Boat', metadata: { name: 'elisa' } };
  for (let attempt = 0; ; attempt += 1) {
    const answer = await server.post(boats, { ...boat, length: 12 });
    if (answer.status === 201) break;
    if (attempt > 200) throw new Error(answer.text);
  }
  await server.patch(`${core}/configmaps/kept`, { data: { b: '2' } }, 'merge');
}

/** Every object of some kinds, as a client sees it. */
async function everything(server: TestServer): Promise<ApiObject[]> {
  const paths = ['/api/v1/configmaps', '/api/v1/secrets', '/api/v1/namespaces', boats];
  paths.push(`${rbacPath}/clusterroles`, '/apis/apiextensions.svc.io/v1/customresourcedefinitions');
  const lists = await Promise.all(paths.map((path) => server.get(path)));
  expect(lists.map(({ status }) => status)).toEqual(paths.map(() => 200));
  return lists.flatMap(({ body }) => body.items);
}

async function backedUp(): Promise<{ file: string; objects: ApiObject[]; newest: number }> {
  const server = await bench.serve('old');
  await fill(server);
  const objects = await everything(server);
  const newest = Number((await server.get('/api/v1/configmaps')).body.metadata.resourceVersion);
  await server.stop();
  const file = bench.at('backup');
  await succeed('backup', '--data-dir', bench.at('old'), '--to', file);
  return { file, objects, newest };
}

describe('contents', () => {
  test('STORE-5: a restored server has every object in the state of the backup', async () => {
    const { file, objects, newest } = await backedUp();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const said = await succeed('restore', '--from', file, '--data-dir', bench.at('new'));
    expect(said).toMatch(/^restored \d+ objects of revision \d+ \(.*\) to .*\n$/);
    expect(statSync(bench.at('new')).mode & 0o777).toBe(0o700);
    expect(statSync(join(bench.at('new'), 'store', 'log', 'log.1')).mode & 0o777).toBe(0o600);
    const server = await bench.serve('new');
    expect(await everything(server)).toEqual(objects);
    const made = await server.post(`${core}/configmaps`, configMap('made'));
    expect(Number(made.body.metadata.resourceVersion)).toBeGreaterThan(newest + 1e9);
    await server.stop();
    const again = await bench.serve('new');
    expect((await again.get(`${core}/configmaps/made`)).body).toEqual(made.body);
    expect((await again.get(boats)).body.items).toHaveLength(1);
  });

  test('STORE-5: a backup during writes is a consistent snapshot', async () => {
    const server = await bench.serve('old');
    const pairs = 30;
    const data = { filling: 'x'.repeat(100_000) };
    for (let i = 0; i < pairs; i++) {
      for (const side of ['left', 'right']) {
        const body = configMap(`${side}-${i}`, { data: { ...data, n: '0' } });
        await mustCreate(server, `${core}/configmaps`, body);
      }
    }
    let isOver = false;
    let rounds = 0;
    const write = async () => {
      for (let i = 0, n = 1; !isOver; i = (i + 1) % pairs, n += i === 0 ? 1 : 0) {
        for (const side of ['left', 'right']) {
          const path = `${core}/configmaps/${side}-${i}`;
          expect((await server.patch(path, { data: { n: String(n) } }, 'merge')).status).toBe(200);
        }
        rounds += 1;
      }
    };
    const writing = write();
    const file = bench.at('backup');
    try {
      for (let i = 0; i < 3; i++) {
        await succeed('backup', '--kubeconfig', bench.kubeconfig(server), '--to', file, '--force');
      }
    } finally {
      isOver = true;
      await writing;
    }
    expect(rounds).toBeGreaterThan(3);
    await succeed('restore', '--from', file, '--data-dir', bench.at('new'));
    const restored = await bench.serve('new');
    const { items } = (await restored.get(`${core}/configmaps`)).body;
    const count = (side: string, i: number) =>
      Number(items.find((item) => item.metadata.name === `${side}-${i}`)?.['data'].n);
    const left = Array.from({ length: pairs }, (_, i) => count('left', i));
    const right = Array.from({ length: pairs }, (_, i) => count('right', i));
    // There is one writer, so a snapshot contains a prefix of its writes.
    const ahead = left.reduce((sum, n, i) => sum + n - (right[i] as number), 0);
    expect([0, 1]).toContain(ahead);
    expect(left).toEqual([...left].sort((left, right) => right - left));
    expect((left[0] as number) - (left[pairs - 1] as number)).toBeLessThanOrEqual(1);
  });

  test('STORE-5: an in-memory server can be backed up and continue on disk', async () => {
    const server = await bench.serve('unused', { store: { type: 'memory' } });
    await fill(server);
    const objects = await everything(server);
    const file = bench.at('backup');
    await succeed('backup', '--kubeconfig', bench.kubeconfig(server), '--to', file);
    await succeed('restore', '--from', file, '--data-dir', bench.at('new'));
    expect(await everything(await bench.serve('new'))).toEqual(objects);
  });
});

describe('authorization', () => {
  test('STORE-5: a running server returns a backup only to an authorized POST', async () => {
    const tokens = ['reader,reader,1', 'keeper,keeper,2', 'nobody,nobody,3'];
    const tokenFile = temporaryFile('tokens.csv', `${tokens.join('\n')}\n`);
    const server = await bench.serve('old', { authentication: { tokenFile } });
    const grant = async (name: string, verbs: string[], url: string) => {
      const role = roleOf('ClusterRole', name, { rules: [{ nonResourceURLs: [url], verbs }] });
      await mustCreate(server, `${rbacPath}/clusterroles`, role);
      const binding = bindingOf('ClusterRoleBinding', name, { role: name, subjects: [name] });
      await mustCreate(server, `${rbacPath}/clusterrolebindings`, binding);
    };
    await grant('reader', ['get'], '*');
    await grant('keeper', ['post'], '/backup');
    const refused = await server.post('/backup', undefined, as('reader'));
    expect(refused).toMatchObject({ status: 403, body: { kind: 'Status', reason: 'Forbidden' } });
    expect(refused.body.message).toContain('cannot post path "/backup"');
    expect((await server.post('/backup', undefined, as('nobody'))).status).toBe(403);
    expect((await server.post('/backup', undefined, { token: undefined })).status).toBe(403);
    expect((await server.post('/backup', undefined, { token: 'wrong' })).status).toBe(401);
    expect((await server.get('/backup')).status).toBe(405);
    expect((await server.get('/backup', as('reader'))).status).toBe(405);
    const given = await server.post('/backup', undefined, as('keeper'));
    expect(given.status).toBe(200);
    expect(given.headers['content-type']).toBe('application/octet-stream');
    expect(given.text.startsWith('WHEELHOUSE-BACKUP 1\n')).toBe(true);
    const to = bench.at('backup');
    const result = await wheelhouse(
      'backup',
      '--kubeconfig',
      bench.kubeconfig(server, 'nobody'),
      '--to',
      to,
    );
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(
      /^error: the server refused \(403\): .*cannot post path "\/backup".*\n$/,
    );
    expect(readdirSync(bench.at('.')).filter((name) => name.startsWith('backup'))).toEqual([]);
  });
});

describe('resource versions', () => {
  test('STORE-5: older versions are Expired after a restore and never reused', async () => {
    const server = await bench.serve('old');
    await fill(server);
    const before = (await server.get(`${core}/configmaps?limit=1`)).body.metadata;
    const file = bench.at('backup');
    await succeed('backup', '--kubeconfig', bench.kubeconfig(server), '--to', file);
    const kept = (await server.get(`${core}/configmaps/kept`)).body;
    // Written after the backup, so the restore reverts it.
    const lost = await server.patch(`${core}/configmaps/kept`, { data: { c: '3' } }, 'merge');
    const after = lost.body.metadata.resourceVersion;
    await server.stop();
    await succeed('restore', '--from', file, '--data-dir', bench.at('new'));
    const restored = await bench.serve('new');
    for (const version of [before.resourceVersion, after]) {
      const at = `resourceVersion=${version}`;
      const watch = await restored.get(`${core}/configmaps?watch=1&${at}&timeoutSeconds=5`);
      const expired = watch.status === 410 ? watch.body : JSON.parse(watch.text).object;
      expect(expired).toMatchObject({ kind: 'Status', code: 410, reason: 'Expired' });
      const exact = `${core}/configmaps?${at}&resourceVersionMatch=Exact`;
      expect(await restored.get(exact)).toMatchObject({ status: 410, body: { reason: 'Expired' } });
      const newer = await restored.get(
        `${core}/configmaps?${at}&resourceVersionMatch=NotOlderThan`,
      );
      expect(newer.status).toBe(200);
      const { resourceVersion } = newer.body.metadata;
      expect(Number(resourceVersion)).toBeGreaterThan(Number(after) + 1e9);
    }
    const next = `${core}/configmaps?limit=1&continue=${before.continue}`;
    expect(await restored.get(next)).toMatchObject({ status: 410, body: { reason: 'Expired' } });
    expect((await restored.put(`${core}/configmaps/kept`, lost.body)).status).toBe(409);
    const written = await restored.put(`${core}/configmaps/kept`, { ...kept, data: { d: '4' } });
    expect(written.status).toBe(200);
    expect(Number(written.body.metadata.resourceVersion)).toBeGreaterThan(Number(after) + 1e9);
    await restored.stop();
    await succeed('restore', '--from', file, '--data-dir', bench.at('second'));
    const second = await bench.serve('second');
    const again = (await second.get(`${core}/configmaps`)).body.metadata.resourceVersion;
    expect(Number(again)).toBeGreaterThan(Number(written.body.metadata.resourceVersion));
  });
});

describe('keys', () => {
  const account = `${core}/serviceaccounts/default/token`;
  const tokenOf = async (server: TestServer): Promise<string> => {
    const body = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec: {} };
    const answer = await server.post<ResponseOf<TokenRequest>>(account, body);
    expect(answer.status).toBe(201);
    return answer.body.status.token;
  };
  const whoami = (server: TestServer, token: string) =>
    server.post(
      '/apis/authentication.svc.io/v1/selfsubjectreviews',
      { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' },
      { token },
    );

  test('STORE-5: a backup has no keys; if they are restored, tokens stay valid', async () => {
    const server = await bench.serve('old');
    const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await mustCreate(server, `${core}/serviceaccounts`, body);
    const token = await tokenOf(server);
    const authority = server.server.caPem;
    await server.stop();
    const file = bench.at('backup');
    await succeed('backup', '--data-dir', bench.at('old'), '--to', file);
    const held = readFileSync(file, 'latin1');
    for (const name of ['sa.key', 'ca.key', 'apiserver.key']) {
      const pem = readFileSync(join(bench.at('old'), 'certificates', name), 'latin1');
      expect(held).not.toContain(pem.split('\n')[1]);
    }
    await succeed('restore', '--from', file, '--data-dir', bench.at('strange'));
    expect(readdirSync(bench.at('strange'))).toEqual(['store']);
    const strange = await bench.serve('strange');
    expect((await whoami(strange, token)).status).toBe(401);
    expect(strange.server.caPem).not.toBe(authority);
    mkdirSync(bench.at('known'));
    const keys = join(bench.at('known'), 'certificates');
    cpSync(join(bench.at('old'), 'certificates'), keys, { recursive: true });
    writeFileSync(join(bench.at('known'), 'admin.token'), 'kept');
    await succeed('restore', '--from', file, '--data-dir', bench.at('known'));
    expect(readdirSync(bench.at('known'))).toEqual(['admin.token', 'certificates', 'store']);
    const known = await bench.serve('known');
    expect(await whoami(known, token)).toMatchObject({ status: 201 });
    expect(known.server.caPem).toBe(authority);
  });

  test('STORE-5: encrypted values stay encrypted in a backup', async () => {
    const secret = Buffer.alloc(32, 7).toString('base64');
    const resources = [
      { resources: ['secrets'], providers: [{ aescbc: { keys: [{ name: 'k', secret }] } }] },
    ];
    const file = bench.at('encryption.json');
    const head = { apiVersion: 'apiserver.config.svc.io/v1', kind: 'EncryptionConfiguration' };
    writeFileSync(file, JSON.stringify({ ...head, resources }));
    const encryption = { file, reload: 'off' } as const;
    const server = await bench.serve('old', { encryption });
    await fill(server);
    const sealed = (await server.get(`${core}/secrets/s`)).body;
    const to = bench.at('backup');
    await succeed('backup', '--kubeconfig', bench.kubeconfig(server), '--to', to);
    const held = readFileSync(to, 'latin1');
    expect(held).toContain('k8s:enc:aescbc:v1:k:');
    expect(held).not.toContain('aGlkZGVu');
    expect(held).toContain('elisa');
    await succeed('restore', '--from', to, '--data-dir', bench.at('new'));
    const restored = await bench.serve('new', { encryption });
    expect((await restored.get(`${core}/secrets/s`)).body).toEqual(sealed);
    await restored.stop();
    const keyless = await bench.serve('new');
    expect((await keyless.get(`${core}/secrets/s`)).status).toBe(500);
  });
});
