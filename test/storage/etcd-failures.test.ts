import type { Lease } from '@wheelhouse/kinds/types/coordination/v1';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { openEtcdStore } from '@wheelhouse/store';
import { hasEtcd, startTestEtcd, type TestEtcd } from '@wheelhouse/store/testing';
import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configure, startAdmissionService, webhook } from '../admission/admission-service.ts';
import { forgeNamesake } from '../authentication/forged-certificates.ts';
import { atEnd, temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, startTestServer, type TestServer } from '../support/harness.ts';
import { type Issued, issue } from '../support/issued-certificate.ts';
import { passing, skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';
import { onEtcd, quickElection, reachedBy, startLine } from './etcd-config.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const leasePath = '/apis/coordination.svc.io/v1/namespaces/svc-system/leases/test-controllers';

describe.skipIf(!hasEtcd)('failing etcd', () => {
  test('STORE-2: requests fail at once while etcd is down, and succeed when it is back', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const server = await withServer(onEtcd(etcd));
    await server.post(maps, configMap('before'));
    const watch = await server.watch(`${maps}?watch=true`);
    await watch.until((events) => events.length === 1);

    await etcd.kill();
    const startMs = performance.now();
    const answers = await Promise.all([
      server.get(`${maps}/before`),
      server.get(maps),
      server.post(maps, configMap('lost')),
      server.remove(`${maps}/before`),
    ]);
    expect(performance.now() - startMs).toBeLessThan(5000);
    for (const { status, body } of answers) {
      expect([status, body.reason, body.message]).toEqual([
        503,
        'ServiceUnavailable',
        'the store is unavailable',
      ]);
    }
    // Reads that need not be the newest are still answered.
    expect((await server.get(`${maps}/before?resourceVersion=0`)).status).toBe(200);
    const failing = await eventually(async () => {
      const answer = await server.get('/readyz');
      return answer.status === 500 ? answer : undefined;
    });
    expect(failing.text).toContain('[-]store failed: reason withheld\n');
    expect(failing.text).toContain('[-]store-readiness failed: reason withheld\n');

    await etcd.start();
    await eventually(async () => (await server.get(`${maps}/before`)).status === 200);
    expect((await server.post(maps, configMap('after'))).status).toBe(201);
    await watch.until((events) => events.length === 2);
    expect(watch.events.map(({ object }) => object.metadata.name)).toEqual(['before', 'after']);
    await eventually(async () => (await server.get('/readyz')).status === 200);
    watch.close();
  });

  test('STORE-2: a read waits while the connection to etcd is lost for a moment', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const line = await startLine(etcd);
    const server = await withServer(onEtcd(etcd, { servers: [line.url] }));
    await server.post(maps, configMap('a'));
    await line.cut();
    const reads = [server.get(`${maps}/a`), server.get(maps)];
    // Answered from the cache after the reads have begun.
    expect((await server.get(`${maps}/a?resourceVersion=0`)).status).toBe(200);
    await line.restore();
    for (const read of reads) expect((await read).status).toBe(200);
  });

  test('STORE-2: no request waits longer than its timeout for a frozen etcd', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const clock = skippingClock();
    const server = await withServer({
      ...onEtcd(etcd, { healthcheckTimeoutMs: 300, readycheckTimeoutMs: 300 }),
      limits: { requestTimeoutMs: 6000 },
      clock,
    });
    await server.post(maps, configMap('a'));
    await etcd.pause();
    const startMs = clock.monotonic();
    const sent = Promise.all([
      server.get(`${maps}/a`),
      server.get(maps),
      server.post(maps, configMap('b')),
    ]);
    const answers = await passing(clock, sent);
    expect(clock.monotonic() - startMs).toBeLessThan(8000);
    for (const { status, body } of answers) {
      expect([status, body.reason]).toEqual([504, 'Timeout']);
      expect(body.message).toMatch(/^Timeout: request did not complete within/);
    }
    expect((await server.get('/readyz')).status).toBe(500);
    etcd.resume();
    await eventually(async () => (await server.get(`${maps}/a`)).status === 200);
    await eventually(async () => (await server.get('/readyz')).status === 200);
  });

  test('STORE-2: the start fails with one clear error if etcd does not answer', async () => {
    const opening = openEtcdStore({
      connection: { servers: ['http://127.0.0.1:1'] },
      clock: systemClock,
      callTimeoutMs: 1000,
      startTimeoutMs: 300,
    });
    await expect(opening).rejects.toThrow(/^etcd at http:\/\/127\.0\.0\.1:1 is not available: .+$/);
  });

  test('STORE-2: a server switches to the next member if its member is lost', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const line = await startLine(etcd);
    const config = onEtcd(etcd, { servers: [line.url, etcd.url] });
    const server = await withServer(config);
    await server.post(maps, configMap('one'));
    const watch = await server.watch(`${maps}?watch=true`);
    await line.cut();
    await eventually(async () => (await server.post(maps, configMap('two'))).status !== 503);
    await watch.until((events) => events.some(({ object }) => object.metadata.name === 'two'));
    watch.close();
  });

  test('the start waits when etcd is lost while APIServices are read', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const line = await startLine(etcd);
    const waiting: string[] = [];
    const warn = (message: string) => void waiting.push(message);
    line.dropped = '/apiservices/';
    const starting = withServer({
      ...onEtcd(etcd, { servers: [line.url] }),
      logger: { ...silentLogger, warn },
    });
    await Promise.race([
      starting,
      eventually(async () => waiting.includes('waiting for the store before starting')),
    ]);
    line.dropped = undefined;
    const server = await starting;
    expect((await server.get('/readyz')).status).toBe(200);
  });

  test('STORE-2: an address is free after etcd was lost while it was claimed', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const line = await startLine(etcd);
    const server = await withServer(onEtcd(etcd, { servers: [line.url] }));
    const admission = await startAdmissionService();
    atEnd(admission.stop);
    const rules = [
      { operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['services'] },
    ];
    const { remove } = await configure(server, 'validating', [
      webhook(admission, { path: '/deny', rules }),
    ]);
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 's' },
      spec: { clusterIP: '10.0.0.99', ports: [{ port: 80 }] },
    };
    const services = '/api/v1/namespaces/default/services';
    let cutting: Promise<void> | undefined;
    admission.answer('/deny', () => {
      cutting ??= line.cut();
      return { allowed: false };
    });
    expect((await server.post(services, service)).status).toBe(400);
    expect(cutting).toBeDefined();
    await cutting;
    await line.restore();
    await eventually(async () => (await server.get(services)).status === 200);
    await remove();
    await eventually(async () => {
      const { status, text } = await server.post(services, service);
      expect([201, 503], text).toContain(status);
      return status === 201;
    }, 'the address to be free');
  });
});

describe.skipIf(!hasEtcd)('leader election', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterAll(() => etcd.dispose());

  const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const holder = async (server: TestServer) =>
    (await server.get(leasePath)).body.spec?.holderIdentity as string | undefined;

  test('STORE-2: controllers run on one server, and on another if it is lost', async () => {
    const line = await startLine(etcd);
    const config = { ...onEtcd(etcd), leaderElection: quickElection };
    const first = await withServer(reachedBy(config, line.url));
    const leader = await eventually(() => holder(first), 'a leader');
    const second = await withServer(config);
    await second.post('/api/v1/namespaces', namespace('led'));
    await second.remove('/api/v1/namespaces/led');
    await eventually(async () => (await second.get('/api/v1/namespaces/led')).status === 404);
    expect(await holder(second)).toBe(leader);
    await second.post('/api/v1/namespaces', namespace('orphaned'));

    await line.cut();
    await second.remove('/api/v1/namespaces/orphaned');
    const next = await eventually(async () => {
      // As long as there is no other leader, the deletion is not finished.
      const { status } = await second.get('/api/v1/namespaces/orphaned');
      const now = await holder(second);
      if (now === leader) expect(status).toBe(200);
      return now === leader ? undefined : now;
    }, 'another leader');
    expect(next).not.toBe('');
    await eventually(async () => (await second.get('/api/v1/namespaces/orphaned')).status === 404);
    const { spec } = (await second.get<Lease>(leasePath)).body;
    expect(spec).toMatchObject({ leaseDurationSeconds: 2, leaseTransitions: 1 });
    expect(spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  test('STORE-2: a stopping server releases its leadership at once', async () => {
    const slow = { leaseDurationMs: 60_000, renewDeadlineMs: 40_000, retryPeriodMs: 30_000 };
    const config = { ...onEtcd(etcd), leaderElection: { ...quickElection, ...slow } };
    const first = await startTestServer(config);
    const leader = await eventually(() => holder(first), 'a leader');
    const second = await withServer(config);
    expect(await holder(second)).toBe(leader);
    await first.stop();
    const next = await eventually(async () => (await holder(second)) || undefined, 'a new leader');
    expect(next).not.toBe(leader);
    await second.post('/api/v1/namespaces', namespace('led'));
    await second.remove('/api/v1/namespaces/led');
    await eventually(async () => (await second.get('/api/v1/namespaces/led')).status === 404);
  });
});

describe.skipIf(!hasEtcd)('etcd over TLS', () => {
  test('STORE-2: the server shows etcd its certificate and rejects an unknown etcd', async () => {
    const directory = temporaryFolder();
    const authority = await issue({ subject: 'CN=etcd', authority: true, ...anyTime });
    const stranger = await issue({ subject: 'CN=stranger', authority: true, ...anyTime });
    const host = [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])];
    const member = await issue({ subject: 'CN=m', issuer: authority, more: host, ...anyTime });
    const client = await issue({ subject: 'CN=root', issuer: authority, ...anyTime });
    const ca = written(directory, 'ca.pem', authority.certificate.toString('pem'));
    const memberCa = written(directory, 'member-ca.pem', member.certificate.toString('pem'));
    const strangerCa = written(directory, 'other.pem', stranger.certificate.toString('pem'));
    const [cert, key] = await pair(directory, 'member', member);
    const [certFile, keyFile] = await pair(directory, 'client', client);
    const etcd = await untilEnd(startTestEtcd({ tls: { ca, cert, key } }));

    const server = await withServer(onEtcd(etcd, { caFile: ca, certFile, keyFile }));
    expect((await server.post(maps, configMap('a'))).status).toBe(201);
    expect((await server.get(`${maps}/a`)).status).toBe(200);

    const { readFileSync } = await import('node:fs');
    const opening = (
      files: { ca: string; certificate?: string; key?: string },
      url: string = etcd.url,
    ) =>
      openEtcdStore({
        connection: {
          servers: [url],
          ca: readFileSync(files.ca),
          ...(files.certificate === undefined || files.key === undefined
            ? {}
            : { identity: identityIn({ certificate: files.certificate, key: files.key }) }),
        },
        clock: systemClock,
        callTimeoutMs: 1000,
        startTimeoutMs: 300,
      });
    const identityIn = (files: { certificate: string; key: string }) => () => ({
      certificate: readFileSync(files.certificate),
      key: readFileSync(files.key),
    });
    const unserved = /is not available/;
    await expect(opening({ ca })).rejects.toThrow(unserved);
    const whole = { certificate: certFile, key: keyFile };
    await expect(opening({ ca: strangerCa, ...whole })).rejects.toThrow(unserved);
    // The certificate is valid for one address and for no name.
    const elsewhere = await startLine(etcd, { host: '127.0.0.2' });
    atEnd(() => elsewhere.cut());
    await expect(opening({ ca, ...whole }, elsewhere.url)).rejects.toThrow(unserved);
    const named = etcd.url.replace('127.0.0.1', 'localhost');
    await expect(opening({ ca, ...whole }, named)).rejects.toThrow(unserved);
    await (await opening({ ca, ...whole })).close();
    // A member's own certificate is trusted without its authority.
    const trusting = await withServer(onEtcd(etcd, { caFile: memberCa, certFile, keyFile }));
    expect((await trusting.post(maps, configMap('b'))).status).toBe(201);
    // Through a socket, the certificate must be valid for the socket's name.
    const socket = await startLine(etcd, { path: join(directory, '127.0.0.1:2379') });
    const misnamed = await startLine(etcd, { path: join(directory, 'etcd.sock') });
    for (const line of [socket, misnamed]) atEnd(() => line.cut());
    for (const scheme of ['unix:', 'unixs:']) {
      const url = socket.url.replace('unix:', scheme);
      await (await opening({ ca, ...whole }, url)).close();
    }
    await expect(opening({ ca, ...whole }, misnamed.url)).rejects.toThrow(unserved);
  });
});

describe.skipIf(!hasEtcd)('a certificate of etcd with the name of its issuer', () => {
  test('STORE-2, TRUST-5: is verified with the authority', async () => {
    const directory = temporaryFolder();
    const authority = await issue({ subject: 'CN=clients', authority: true, ...anyTime });
    const client = await issue({ subject: 'CN=root', issuer: authority, ...anyTime });
    const clients = written(directory, 'clients.pem', authority.certificate.toString('pem'));
    const [certFile, keyFile] = await pair(directory, 'client', client);
    const { caPem, certificatePem, keyPem } = forgeNamesake();
    const caFile = written(directory, 'ca.pem', caPem);
    const cert = written(directory, 'member.pem', certificatePem);
    const key = written(directory, 'member.key', keyPem);
    const etcd = await untilEnd(startTestEtcd({ tls: { ca: clients, cert, key } }));
    const server = await withServer(onEtcd(etcd, { caFile, certFile, keyFile }));
    expect((await server.post(maps, configMap('a'))).status).toBe(201);
    // The server waits 20 seconds for an etcd that it trusts.
    const clock = skippingClock();
    const untrusted = onEtcd(etcd, { caFile: clients, certFile, keyFile });
    const refused = passing(clock, startTestServer({ ...untrusted, clock }));
    await expect(refused).rejects.toThrow(/is not available/);
  });
});

describe.skipIf(!hasEtcd)('a renewed certificate', () => {
  test('STORE-2: the next connection to etcd uses a renewed certificate', async () => {
    const directory = temporaryFolder();
    const [first, second] = await Promise.all(
      ['CN=first', 'CN=second'].map((subject) => issue({ subject, authority: true, ...anyTime })),
    );
    const host = [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])];
    const of = (issuer: Issued | undefined, more: x509.Extension[] = []) =>
      issue({ subject: 'CN=root', ...(issuer === undefined ? {} : { issuer }), more, ...anyTime });
    const authorityOf = (issuer: Issued | undefined) => issuer?.certificate.toString('pem') ?? '';
    const caFile = written(directory, 'ca.pem', authorityOf(first));
    const clients = written(directory, 'clients.pem', authorityOf(first));
    const [cert, key] = await pair(directory, 'member', await of(first, host));
    const [certFile, keyFile] = await pair(directory, 'client', await of(first));
    const etcd = await untilEnd(startTestEtcd({ tls: { ca: clients, cert, key } }));
    const server = await withServer(onEtcd(etcd, { caFile, certFile, keyFile }));
    expect((await server.post(maps, configMap('a'))).status).toBe(201);

    await etcd.kill();
    written(directory, 'clients.pem', authorityOf(second));
    await pair(directory, 'client', await of(second));
    await etcd.start();
    const write = async () => (await server.post(maps, configMap('b'))).status === 201;
    await eventually(write, 'a write with the renewed certificate');
  });
});

/** A validity period around the current time. */
const anyTime = { fromDays: -3650, toDays: 3650 };

function written(directory: string, name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

async function pair(directory: string, name: string, issued: Issued) {
  const exported = await globalThis.crypto.subtle.exportKey('pkcs8', issued.keys.privateKey);
  const key = x509.PemConverter.encode(exported, 'PRIVATE KEY');
  return [
    written(directory, `${name}.pem`, issued.certificate.toString('pem')),
    written(directory, `${name}.key`, key),
  ] as const;
}
