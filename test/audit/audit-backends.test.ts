import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@wheelhouse/machinery';
import { type AuditBackendSettings, auditFlags, readOptions } from '@wheelhouse/server/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { atEnd, untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, startTestServer, type TestServer } from '../support/harness.ts';
import { buildPrograms, type Programs, run } from '../support/program.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { type AuditEvent, type AuditFolder, auditFolder, blocking, named } from './audit-run.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const all = { rules: [{ level: 'RequestResponse' }] };

function folderOf(...args: Parameters<typeof auditFolder>): AuditFolder {
  const folder = untilEnd(auditFolder(...args));
  return folder;
}

/** Starts a server that is stopped at the end of the test, unless it was stopped before. */
async function serverOf(change: Parameters<typeof startTestServer>[0]): Promise<TestServer> {
  const server = await startTestServer(change);
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= server.stop();
    return stopped;
  };
  atEnd(stop);
  return { ...server, stop };
}

async function count(server: TestServer, series: string): Promise<number> {
  const { text } = await server.get('/metrics');
  const line = text.split('\n').find((sample) => sample.startsWith(`${series} `));
  return Number(line?.split(' ')[1] ?? 0);
}

describe('webhook', async () => {
  const service = await untilEnd(startWebhookService());

  const start = async (
    backend: Partial<AuditBackendSettings> & { readonly configFile?: string },
    rules: { rules: object[] } = all,
  ) => {
    service.received.length = 0;
    const { policyFile } = folderOf(rules).settings;
    const configFile = service.kubeconfig({ path: '/events', user: { token: 'for-the-service' } });
    const webhook = { ...blocking, configFile, initialBackoffMs: 5, ...backend };
    return serverOf({ audit: { policyFile, webhook } });
  };
  const events = (): AuditEvent[] =>
    service.received.flatMap(({ body }) => body['items'] as object[] as AuditEvent[]);
  const onlyMaps = {
    omitStages: ['RequestReceived'],
    rules: [{ level: 'Metadata', resources: [{ group: '', resources: ['configmaps'] }] }],
  };
  const batch = { bufferSize: 100, batchSizeMax: 3, waitMs: 60_000, throttle: undefined };

  test('OPS-2: events go to the webhook in batches, and the rest at shutdown', async () => {
    service.answer = () => ({ status: 200 });
    const server = await start({ mode: 'batch', batch }, onlyMaps);
    for (let index = 0; index < 5; index += 1) await server.post(maps, configMap(`w${index}`));
    await eventually(async () => service.received.length === 1, 'the first list');
    const [first] = service.received;
    expect(first).toMatchObject({ method: 'POST', path: expect.stringMatching(/^\/events/) });
    expect(first?.headers.authorization).toBe('Bearer for-the-service');
    expect(first?.body).toMatchObject({
      kind: 'EventList',
      apiVersion: 'audit.svc.io/v1',
      metadata: {},
    });
    const names = first?.body.items.map((item) => (item['objectRef'] as JsonObject)['name']);
    expect(names).toEqual(['w0', 'w1', 'w2']);
    expect(first?.body.items[0]).not.toHaveProperty('kind');
    await server.stop();
    expect(events().map(({ objectRef }) => objectRef.name)).toEqual(['w0', 'w1', 'w2', 'w3', 'w4']);
  });

  test('OPS-2: a service is trusted by its own certificate, without its authority', async () => {
    service.answer = () => ({ status: 200 });
    const cluster = { 'certificate-authority': service.file('leaf.crt', service.leafPem) };
    const configFile = service.kubeconfig({ path: '//events/%2F/', cluster });
    const server = await start({ mode: 'blocking', configFile }, onlyMaps);
    expect((await server.post(maps, configMap('trusted'))).status).toBe(201);
    await eventually(async () => service.received.length === 1, 'the event');
    expect(service.received[0]?.path).toMatch(/^\/events\?/);
  });

  test('OPS-2: a refused batch is posted again', async () => {
    let refusals = 2;
    service.answer = () => (refusals-- > 0 ? { status: 503 } : { status: 200 });
    const server = await start({ mode: 'batch', batch: { ...batch, batchSizeMax: 1 } }, onlyMaps);
    await server.post(maps, configMap('again'));
    await eventually(async () => service.received.length === 3, 'the third attempt');
    const texts = new Set(service.received.map(({ text }) => text));
    expect(texts.size).toBe(1);
    expect(await count(server, 'apiserver_audit_error_total{plugin="webhook"}')).toBe(0);
  });

  test('OPS-2: mode blocking waits for the backend and tolerates a loss', async () => {
    service.answer = () => ({ status: 200 });
    const server = await start({ mode: 'blocking' }, onlyMaps);
    service.answer = () => ({ status: 500 });
    expect((await server.post(maps, configMap('lost'))).status).toBe(201);
    await eventually(async () => service.received.length === 5, 'five attempts');
    await eventually(
      async () => (await count(server, 'apiserver_audit_error_total{plugin="webhook"}')) === 1,
      'the loss in the metrics',
    );
    expect(await count(server, 'apiserver_audit_requests_rejected_total')).toBe(0);
  });

  test('OPS-2: mode blocking-strict fails a request that cannot be recorded', async () => {
    service.answer = () => ({ status: 200 });
    const rules = { rules: onlyMaps.rules };
    const server = await start({ mode: 'blocking-strict' }, rules);
    expect((await server.post(maps, configMap('kept'))).status).toBe(201);
    service.answer = () => ({ status: 500 });
    const refused = await server.post(maps, configMap('unrecorded'));
    expect(refused.status).toBe(500);
    expect(refused.body.message).toBe(
      `Internal Server Error: "${maps}": failed to store audit event`,
    );
    service.answer = () => ({ status: 200 });
    expect((await server.get(`${maps}/unrecorded`)).status).toBe(404);
    expect(await count(server, 'apiserver_audit_requests_rejected_total')).toBe(1);
  });
});

describe('log', () => {
  test('OPS-2: on a full disk a request whose arrival must be recorded fails', async () => {
    const folder = folderOf(
      { rules: [{ level: 'Metadata', verbs: ['create'] }] },
      { path: '/dev/full', mode: 'blocking-strict' },
    );
    const server = await serverOf({ audit: folder.settings });
    const refused = await server.post(maps, configMap('a'));
    expect(refused.status).toBe(500);
    expect(refused.body.message).toContain('failed to store audit event');
    expect((await server.get(`${maps}/a`)).status).toBe(404);
    expect(await count(server, 'apiserver_audit_error_total{plugin="log"}')).toBe(1);
  });

  test('OPS-2: oversized events lose their objects and say so', async () => {
    const folder = folderOf(all, { truncate: { eventBytesMax: 2000, batchBytesMax: 4000 } });
    const server = await serverOf({ audit: folder.settings });
    const small = named();
    await server.post(maps, configMap('small'), { headers: small.headers });
    expect((await folder.lastOf(small.id)).requestObject).toBeDefined();
    const large = named();
    const body = configMap('large', { data: { a: 'x'.repeat(5000) } });
    await server.post(maps, body, { headers: large.headers });
    const event = await folder.lastOf(large.id);
    expect(event).not.toHaveProperty('requestObject');
    expect(event).not.toHaveProperty('responseObject');
    expect(event.annotations['audit.svc.io/truncated']).toBe('true');
    await server.get(`/api?${'x'.repeat(3000)}`);
    await eventually(
      async () => (await count(server, 'apiserver_audit_error_total{plugin="truncate"}')) > 0,
      'an event that is too large without objects',
    );
  });

  test('OPS-2: the legacy format is one human-readable line', async () => {
    const folder = folderOf(all, { format: 'legacy' });
    const server = await serverOf({ audit: folder.settings });
    const { id, headers } = named();
    await server.get(maps, { headers: { ...headers, 'user-agent': 'me "you"' } });
    const line = await eventually(async () =>
      readFileSync(folder.logPath, 'utf8')
        .split('\n')
        .find((text) => text.includes(`id="${id}" stage="ResponseComplete"`)),
    );
    expect(line.replace(/^\S+ /, '')).toBe(
      `AUDIT: id="${id}" stage="ResponseComplete" ip="127.0.0.1" method="list" user="system:admin" groups="\\"system:masters\\",\\"system:authenticated\\"" as="<self>" asgroups="<lookup>" user-agent="me \\"you\\"" namespace="default" uri="${maps}" response="200"`,
    );
  });

  test('OPS-2: mode batch writes events after the request, or at shutdown', async () => {
    const batch = { bufferSize: 100, batchSizeMax: 50, waitMs: 60_000, throttle: undefined };
    const folder = folderOf(
      { rules: [{ level: 'Metadata', verbs: ['create'] }], omitStages: ['RequestReceived'] },
      { mode: 'batch', batch },
    );
    const server = await serverOf({ audit: folder.settings });
    for (let index = 0; index < 4; index += 1) await server.post(maps, configMap(`b${index}`));
    expect(folder.events()).toEqual([]);
    await server.stop();
    const names = folder.events().map(({ objectRef }) => objectRef.name);
    expect(names).toEqual(['b0', 'b1', 'b2', 'b3']);
  });

  test('OPS-2: a log continues an earlier one and rotates', async () => {
    const size = { sizeMaxBytes: 4000 };
    const folder = folderOf({ rules: [{ level: 'Metadata' }] }, size);
    const ids: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      const server = await startTestServer({ audit: folder.settings });
      for (let index = 0; index < 10; index += 1) {
        const { id, headers } = named();
        ids.push(id);
        await server.get('/version', { headers });
      }
      await server.stop();
    }
    const { readdirSync } = await import('node:fs');
    const logs = join(folder.directory, 'logs');
    const files = readdirSync(logs);
    expect(files.length).toBeGreaterThan(2);
    const text = files.map((name) => readFileSync(join(logs, name), 'utf8')).join('');
    for (const id of ids) {
      const seen = text.split('\n').filter((line) => line.includes(`"${id}"`));
      expect(seen, id).toHaveLength(2);
    }
  });
});

describe('start', () => {
  let programs: Programs;
  beforeAll(async () => {
    programs = await buildPrograms();
  }, 60_000);
  afterAll(() => programs.remove());

  const serve = async (folder: AuditFolder, ...flags: string[]) =>
    run(programs.wheelhouse, [
      'serve',
      '--secure-port=0',
      '--bind-address=127.0.0.1',
      '--storage-backend=memory',
      `--data-dir=${join(folder.directory, 'data')}`,
      ...flags,
    ]);

  test('OPS-2: an unusable policy or log stops the start with one line', async () => {
    const folder = folderOf(all);
    const { policyFile } = folder.settings;
    const wrong = join(folder.directory, 'wrong.yaml');
    writeFileSync(wrong, 'apiVersion: audit.svc.io/v1\nkind: Policy\nrules:\n- level: Some\n');
    const log = (path: string) => `--audit-log-path=${join(folder.directory, path)}`;
    const outcomes = await Promise.all([
      serve(folder, `--audit-policy-file=${wrong}`, log('a')),
      serve(folder, `--audit-policy-file=${join(folder.directory, 'none')}`, log('a')),
      serve(folder, `--audit-policy-file=${policyFile}`, log('policy.json/below')),
    ]);
    for (const { code, stdout } of outcomes)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const lines = outcomes.map(({ stderr }) => stderr.trim().split('\n').at(-1));
    expect(lines).toEqual([
      `error: loading audit policy file: rules[0].level: Unsupported value: "Some": supported values: "None", "Metadata", "Request", "RequestResponse": from file ${wrong}`,
      expect.stringMatching(/^error: --audit-policy-file: open .*none: no such file or directory$/),
      expect.stringMatching(/^error: the audit log .*policy.json\/below cannot be written: /),
    ]);
  }, 60_000);

  const reads = (...args: string[]) => {
    const outcome = readOptions(args);
    return outcome.kind === 'options' ? outcome.options.config.audit : undefined;
  };

  test('OPS-2: the flags have kube-apiserver’s defaults', () => {
    const files = ['--audit-policy-file=p', '--audit-log-path=l', '--audit-webhook-config-file=w'];
    expect(reads(...files)).toEqual({
      policyFile: 'p',
      log: {
        mode: 'blocking',
        batch: { bufferSize: 10_000, batchSizeMax: 1, waitMs: 0, throttle: undefined },
        truncate: undefined,
        path: 'l',
        format: 'json',
        ageMaxDays: 0,
        backupsMax: 0,
        sizeMaxBytes: 100 * 1024 * 1024,
        compress: false,
      },
      webhook: {
        mode: 'batch',
        batch: {
          bufferSize: 10_000,
          batchSizeMax: 400,
          waitMs: 30_000,
          throttle: { perSecond: 10, burst: 15 },
        },
        truncate: undefined,
        configFile: 'w',
        initialBackoffMs: 10_000,
      },
    });
    expect(reads('--audit-log-path=l')).toBeUndefined();
    expect(Object.keys(auditFlags)).toHaveLength(32);
  });

  test.each([
    [
      '--audit-log-mode=later',
      'invalid audit log mode later, allowed modes are "batch,blocking,blocking-strict"',
    ],
    ['--audit-log-format=xml', 'invalid audit log format xml, allowed formats are "legacy,json"'],
    ['--audit-log-maxage=-1', "--audit-log-maxage -1 can't be a negative number"],
    ['--audit-log-version=v2', 'invalid group version, allowed versions are ["audit.svc.io/v1"]'],
    [
      '--audit-log-truncate-max-event-size=0',
      'invalid audit truncate log max event size 0, must be a positive number',
    ],
    [
      '--audit-webhook-truncate-max-batch-size=1',
      'invalid audit truncate webhook max batch size 1, must be greater than max event size (102400)',
    ],
    [
      '--audit-webhook-batch-buffer-size=0',
      'invalid audit batch webhook buffer size 0, must be a positive number',
    ],
    [
      '--audit-webhook-batch-throttle-qps=0',
      'invalid audit batch webhook throttle QPS 0, must be a positive number',
    ],
    [
      '--audit-webhook-batch-throttle-qps=a',
      'invalid argument "a" for "--audit-webhook-batch-throttle-qps" flag: strconv.ParseFloat: parsing "a": invalid syntax',
    ],
  ])('OPS-2: %s is refused', (flag, message) => {
    const files = ['--audit-policy-file=p', '--audit-log-path=l', '--audit-webhook-config-file=w'];
    expect(() => readOptions([...files, flag])).toThrow(message);
  });
});
