import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { createHealth, issueCertificate } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { freshNamespace, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const endpoints = ['healthz', 'livez', 'readyz'] as const;
const hooks = [
  'generic-apiserver-start-informers',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'start-system-namespaces-controller',
  'bootstrap-controller',
  'rbac/bootstrap-roles',
];

/** Additional names that programs which know kube-apiserver request. */
const namesOfKubernetes = [
  'informer-sync',
  'poststarthook/priority-and-fairness-config-producer',
  'poststarthook/priority-and-fairness-config-consumer',
  'poststarthook/priority-and-fairness-filter',
  'poststarthook/storage-object-count-tracker-hook',
  'poststarthook/scheduling/bootstrap-system-priority-classes',
  'poststarthook/kube-apiserver-autoregistration',
  'poststarthook/apiservice-status-local-available-controller',
  'poststarthook/apiservice-status-remote-available-controller',
  'poststarthook/apiservice-openapi-controller',
  'poststarthook/apiservice-wait-for-first-sync',
  'poststarthook/start-apiserver-admission-initializer',
  'poststarthook/start-service-ip-repair-controllers',
  'poststarthook/start-kube-aggregator-informers',
  'poststarthook/apiservice-discovery-controller',
  'autoregister-completion',
];

const server = await withServer();

/** Names of the checks in a verbose answer, in order. */
function checksOf(text: string): string[] {
  return [...text.matchAll(/^\[[+-]\](\S+) /gm)].map(([, name]) => name ?? '');
}

describe('a healthy server', () => {
  test.each(endpoints)(
    'HEALTH-1: /%s answers ok as plain text, without a credential',
    async (endpoint) => {
      for (const token of [undefined, 'test-admin-token']) {
        const answer = await server.get(`/${endpoint}`, { token });
        expect(answer.status).toBe(200);
        expect(answer.text).toBe('ok');
        expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
        expect(answer.headers['x-content-type-options']).toBe('nosniff');
      }
    },
  );

  test.each(endpoints)(
    'HEALTH-1: /%s?verbose lists every check, one per line',
    async (endpoint) => {
      const { status, text } = await server.get(`/${endpoint}?verbose`);
      expect(status).toBe(200);
      const lines = text.split('\n');
      expect(lines.at(-1)).toBe('');
      expect(lines.at(-2)).toBe(`${endpoint} check passed`);
      for (const line of lines.slice(0, -2)) expect(line).toMatch(/^\[\+\]\S+ ok$/);
      expect(lines[0]).toBe('[+]ping ok');
    },
  );

  test('HEALTH-1: verbose counts with any value', async () => {
    for (const query of ['verbose=', 'verbose=0', 'verbose=false']) {
      expect((await server.get(`/livez?${query}`)).text).toContain('livez check passed\n');
    }
  });

  test('HEALTH-1: excluded checks are marked, and unknown ones are noted in order', async () => {
    const { status, text } = await server.get(
      '/readyz?verbose&exclude=ping&exclude=nope&exclude=log&exclude=absent',
    );
    expect(status).toBe(200);
    expect(text).toContain('[+]ping excluded: ok\n');
    expect(text).toContain('[+]log excluded: ok\n');
    expect(text).toMatch(
      /\nwarn: some health checks cannot be excluded: no matches for "absent","nope"\nreadyz check passed\n$/,
    );
  });

  test('HEALTH-1: without verbose exclusions are not shown', async () => {
    expect((await server.get('/livez?exclude=nope')).text).toBe('ok');
  });

  test('HEALTH-1: HEAD returns only headers, and other methods are refused', async () => {
    const head = await server.request('HEAD', '/readyz');
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect((await server.post('/readyz', {})).status).toBe(405);
  });

  test('HEALTH-2: checks have kube-apiserver’s names, and shutdown is in readyz only', async () => {
    const all = [
      'ping',
      'log',
      'store',
      ...hooks.map((name) => `poststarthook/${name}`),
      'autoregister-completion',
    ].sort();
    for (const endpoint of endpoints) {
      const found = checksOf((await server.get(`/${endpoint}?verbose`)).text).sort();
      const wanted = endpoint === 'readyz' ? [...all, 'shutdown'].sort() : all;
      expect(found).toEqual(expect.arrayContaining(wanted));
      expect(found.includes('shutdown')).toBe(endpoint === 'readyz');
    }
  });

  test('HEALTH-2: each check has its own path under livez and readyz', async () => {
    for (const endpoint of endpoints) {
      for (const name of checksOf((await server.get(`/${endpoint}?verbose`)).text)) {
        const answer = await server.get(`/${endpoint}/${name}`);
        expect([name, answer.status, answer.text]).toEqual([name, 200, 'ok']);
      }
    }
  });

  test('HEALTH-2: a check that does not exist is 404', async () => {
    expect((await server.get('/livez/nope')).status).toBe(404);
    expect((await server.get('/livez/shutdown')).status).toBe(404);
    expect((await server.get('/healthz/poststarthook')).status).toBe(404);
  });

  test('HEALTH-2: in the kubernetes dialect the store’s check is called etcd', async () => {
    const kubernetes = await withServer({ dialect: 'kubernetes' });
    expect((await kubernetes.get('/readyz/etcd')).text).toBe('ok');
    expect((await kubernetes.get('/readyz/store')).status).toBe(404);
    const checks = checksOf((await kubernetes.get('/readyz?verbose')).text);
    expect(checks).toEqual(expect.arrayContaining(namesOfKubernetes));
    expect(checksOf((await kubernetes.get('/livez?verbose')).text)).not.toContain('informer-sync');
  });
});

test('HEALTH-2: a client certificate for other servers has a check of its own', async () => {
  const directory = temporaryFolder();
  const [certFile, keyFile] = [join(directory, 'proxy.crt'), join(directory, 'proxy.key')];
  const [notBefore, notAfter] = [Date.now() - 60_000, Date.now() + 3_600_000];
  const pair = issueCertificate({ commonName: 'proxy', usage: 'client', notBefore, notAfter });
  writeFileSync(certFile, pair.certificatePem);
  writeFileSync(keyFile, pair.keyPem);
  const certificate = { certFile, keyFile };
  const aggregation = { certificate, routing: 'any', redirects: 'rejected' } as const;
  const aggregating = await withServer({ dialect: 'kubernetes', aggregation });
  const path = '/readyz/poststarthook/aggregator-reload-proxy-client-cert';
  expect((await aggregating.get(path)).text).toBe('ok');
  expect((await server.get(path)).status).toBe(404);
});

test('HEALTH-3: startup has a grace period in livez but not in readyz', async () => {
  const clock = new FakeClock();
  const health = createHealth({ clock, logger: silentLogger, livezGracePeriodMs: 5000 });
  const unfinished = () => Promise.reject(new Error('not finished'));
  health.add({ name: 'poststarthook/slow', run: unfinished }, { boot: true });
  const status = async (path: string) => (await health.answer(path, new URLSearchParams()))?.status;
  expect(await status('/livez')).toBe(200);
  expect(await status('/readyz')).toBe(500);
  clock.advance(5001);
  expect(await status('/livez')).toBe(500);
});

describe('a server whose store is unavailable', () => {
  const failure = (endpoint: string, check: string) => ({ endpoint, check });

  async function expectStoreFails({ endpoint, check }: ReturnType<typeof failure>, on: TestServer) {
    const whole = await on.get(`/${endpoint}`);
    expect(whole.status).toBe(500);
    expect(whole.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(whole.text).toContain(`[-]${check} failed: reason withheld\n`);
    expect(whole.text).toContain('[+]ping ok\n');
    expect(whole.text.endsWith(`${endpoint} check failed\n`)).toBe(true);
    expect((await on.get(`/${endpoint}?exclude=${check}`)).status).toBe(200);
    const single = await on.get(`/${endpoint}/${check}`);
    expect(single.status).toBe(500);
    expect(single.text).toMatch(/^internal server error: .+\n$/);
  }

  test('HEALTH-4: a removed data directory fails its check and livez', async () => {
    const directory = temporaryFolder();
    const failing = await withServer({ store: { type: 'embedded', directory } });
    expect((await failing.get('/readyz/store')).text).toBe('ok');
    rmSync(directory, { recursive: true });
    for (const endpoint of endpoints) await expectStoreFails(failure(endpoint, 'store'), failing);
  });

  test('HEALTH-4: a working server stays healthy under writes', async () => {
    const namespace = await freshNamespace(server);
    const writes = Array.from({ length: 20 }, (_, n) =>
      server.post(`/api/v1/namespaces/${namespace}/configmaps`, {
        metadata: { name: `c${n}` },
      }),
    );
    expect((await server.get('/readyz/store')).status).toBe(200);
    for (const write of await Promise.all(writes)) expect(write.status).toBe(201);
  });
});
