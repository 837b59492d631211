import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import { join } from 'node:path';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { describe, expect, test } from 'vitest';
import { atEnd, untilEnd } from '../support/cleanup.ts';
import { configMap, connect, eventually } from '../support/harness.ts';
import { pausedCreate } from '../support/paused-create.ts';
import { buildPrograms, run, startProcess } from '../support/program.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';

const programs = await untilEnd(buildPrograms());

async function start(...flags: string[]) {
  const server = await untilEnd(startProcess(programs, { flags }));
  const client = connect(server.url);
  atEnd(client.close);
  return { server, ...client.calls, as: { token: server.token } };
}

/** The server of the tests that neither stop nor damage it. */
const common = await start();

describe.skipIf(!hasEtcd)('startup', () => {
  test('STORE-2: waits for an etcd that starts a little later', async () => {
    const etcd = await untilEnd(startTestEtcd());
    await etcd.kill();
    const starting = start(`--etcd-servers=${etcd.url}`);
    // A start that had given up by then would reject.
    await Promise.race([starting, new Promise((resolve) => setTimeout(resolve, 1500))]);
    await etcd.start();
    const { get, as } = await starting;
    expect((await get('/readyz', as)).text).toBe('ok');
  });
});

describe('SIGTERM', () => {
  test('HEALTH-3: readyz fails first, requests continue, watches end, exit code is 0', async () => {
    const { server, get, post, watch, as } = await start('--shutdown-delay-duration=1500ms');
    const configMaps = '/api/v1/namespaces/default/configmaps';
    const watching = await watch(`${configMaps}?watch=true`, as);
    const paused = pausedCreate(server, 'in-flight');
    server.child.kill('SIGTERM');
    await server.logged('stopping');
    const during = await eventually(async () => {
      const answer = await get('/readyz?verbose', as);
      return answer.status === 500 && answer;
    });
    expect(during.text).toContain('[-]shutdown failed: reason withheld\n');
    expect((await get('/livez', as)).status).toBe(200);
    expect((await post(configMaps, configMap('late'), as)).status).toBe(201);
    await watching.until((events) => events.some(({ object }) => object.metadata.name === 'late'));
    paused.finish();
    expect(await paused.status).toBe(201);
    await watching.ended;
    expect(watching.events.every(({ type }) => type === 'ADDED')).toBe(true);
    expect(await server.exited).toBe(0);
  });

  test('HEALTH-3: without a delay a request in flight finishes and is stored', async () => {
    const { server } = await start();
    const paused = pausedCreate(server, 'kept');
    const session = connect(server.url);
    atEnd(session.close);
    await session.calls.get('/readyz', { token: server.token });
    server.child.kill('SIGTERM');
    await server.logged('stopping');
    paused.finish();
    expect(await paused.status).toBe(201);
    expect(await server.exited).toBe(0);
    const again = await untilEnd(startProcess(programs, { dataDir: server.dataDir }));
    const client = connect(again.url);
    atEnd(client.close);
    const { calls } = client;
    const kept = await calls.get('/api/v1/namespaces/default/configmaps/kept', {
      token: again.token,
    });
    expect(kept.status).toBe(200);
  });

  test('HEALTH-3: a watch that is admitted during the shutdown ends as well', async () => {
    const service = await untilEnd(startWebhookService());
    const server = await withServer({
      authentication: {
        webhook: { configFile: service.kubeconfig(), version: 'v1', cacheTtlMs: 0 },
      },
    });
    const status = { authenticated: true, user: { username: 'amy', groups: ['system:masters'] } };
    let answer = (_reply: object) => {};
    service.answer = () =>
      new Promise<object>((resolve) => {
        answer = resolve;
      });
    const { calls, close } = connect(server.url);
    atEnd(close);
    const path = '/api/v1/configmaps?watch=true';
    const early = await calls.watch(path);
    const watching = calls.watch(path, { token: 'late' });
    await eventually(() => Promise.resolve(service.received.length === 1));
    const started = performance.now();
    const stopped = server.server.stop();
    await early.ended;
    answer({ apiVersion: 'authentication.svc.io/v1', kind: 'TokenReview', status });
    expect((await watching).status).toBe(200);
    await (await watching).ended;
    await stopped;
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  test('HEALTH-3: a watch ends without an error after its last event', async () => {
    const { server, as } = await start();
    const session = http2.connect(server.url, { rejectUnauthorized: false });
    atEnd(() => session.destroy());
    session.on('error', () => {});
    const stream = session.request({
      ':path': '/api/v1/configmaps?watch=true',
      authorization: `Bearer ${as.token}`,
    });
    await new Promise((resolve) => stream.on('response', resolve));
    stream.resume();
    const ended = new Promise<string>((resolve) => {
      stream.on('end', () => resolve('end'));
      stream.on('error', () => resolve('error'));
    });
    server.child.kill('SIGTERM');
    expect(await ended).toBe('end');
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_NO_ERROR);
    expect(await server.exited).toBe(0);
  });

  test('OPS-4: SIGINT acts like SIGTERM, and a second signal exits at once', async () => {
    const { server } = await start();
    server.child.kill('SIGINT');
    expect(await server.exited).toBe(0);
    const { server: waiting } = await start('--shutdown-delay-duration=1m');
    waiting.child.kill('SIGTERM');
    await waiting.logged('stopping');
    waiting.child.kill('SIGTERM');
    expect(await waiting.exited).toBe(130);
  });
});

describe('the data directory', () => {
  test('STORE-1: a second server on it exits with 1 and one line', async () => {
    const { server, get, as } = common;
    const second = await run(programs.wheelhouse, [
      'serve',
      '--secure-port=0',
      `--data-dir=${server.dataDir}`,
    ]);
    expect(second.code).toBe(1);
    expect(second.stdout).toBe('');
    expect(second.stderr).toMatch(
      new RegExp(
        `^error: data directory \\S+ is in use by process ${server.child.pid} on host .+\n$`,
      ),
    );
    expect((await get('/readyz', as)).status).toBe(200);
  });

  test('STORE-1: after kill -9 the next start has every acknowledged write', async () => {
    const { server, post, as } = await start();
    const created = await post('/api/v1/namespaces/default/configmaps', configMap('durable'), as);
    expect(created.status).toBe(201);
    server.child.kill('SIGKILL');
    expect(await server.exited).toBe('SIGKILL');
    const again = await untilEnd(startProcess(programs, { dataDir: server.dataDir }));
    const client = connect(again.url);
    atEnd(client.close);
    const path = '/api/v1/namespaces/default/configmaps/durable';
    const found = await client.calls.get(path, { token: again.token });
    expect(found.body.metadata.resourceVersion).toBe(created.body.metadata.resourceVersion);
    expect(again.token).toBe(server.token);
  });

  test('STORE-1: a damaged store is refused with one line', async () => {
    const { server } = await start();
    server.child.kill('SIGTERM');
    await server.exited;
    const file = join(server.dataDir, 'store', 'log', 'log.1');
    const bytes = readFileSync(file);
    bytes.fill(0xa5, 0, 8192);
    writeFileSync(file, bytes);
    const { code, stderr } = await run(programs.wheelhouse, [
      'serve',
      '--secure-port=0',
      `--data-dir=${server.dataDir}`,
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: [^\n]*(damaged|corrupt)[^\n]*\n$/);
  });

  test('STORE-1: secrets in it are readable by its owner only', () => {
    const { server } = common;
    for (const name of ['admin.token', 'admin.kubeconfig', 'store/log/log.1']) {
      expect([name, statSync(join(server.dataDir, name)).mode & 0o077]).toEqual([name, 0]);
    }
    const keys = ['certificates/ca.key', 'certificates/apiserver.key'];
    for (const name of keys) expect(statSync(join(server.dataDir, name)).mode & 0o077).toBe(0);
  });

  test('STORE-1: a directory that cannot be created is one line and exit code 1', async () => {
    const { code, stderr } = await run(programs.wheelhouse, [
      'serve',
      '--secure-port=0',
      '--data-dir=/dev/null/data',
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: [^\n]+\n$/);
  });

  test('OPS-4: a port in use is one line and exit code 1, and the store is released', async () => {
    const { server } = common;
    const port = new URL(server.url).port;
    const dataDir = `${server.dataDir}-other`;
    atEnd(() => rmSync(dataDir, { recursive: true, force: true }));
    const args = ['serve', '--bind-address=127.0.0.1', `--data-dir=${dataDir}`];
    const taken = await run(programs.wheelhouse, [...args, `--secure-port=${port}`]);
    expect(taken.code).toBe(1);
    expect(taken.stderr).toBe(
      `error: cannot listen on 127.0.0.1:${port}: another program uses the port (EADDRINUSE)\n`,
    );
    expect(existsSync(dataDir)).toBe(true);
  });

  test('OPS-4: an unknown flag is refused by name', async () => {
    const { code, stderr } = await run(programs.wheelhouse, ['serve', '--no-such-flag']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: unknown flag: --no-such-flag\n$/);
  });
});

describe('the log', () => {
  test('OPS-4: lines are JSON, and -v=3 logs requests with their Audit-Id', async () => {
    const { server, get, as } = await start('-v=3');
    const auditId = 'a-name-of-mine';
    const path = '/api/v1/namespaces/default/configmaps?limit=5';
    const answer = await get(path, { ...as, headers: { 'audit-id': auditId } });
    expect(answer.headers['audit-id']).toBe(auditId);
    await eventually(async () => server.lines().some((line) => line.auditId === auditId));
    const line = server.lines().find((entry) => entry.auditId === auditId);
    expect(line).toMatchObject({
      level: 'debug',
      msg: 'request',
      method: 'GET',
      path: '/api/v1/namespaces/default/configmaps',
      status: 200,
      user: 'system:admin',
    });
    for (const { ts, level, msg } of server.lines()) {
      expect(new Date(String(ts)).toISOString()).toBe(ts);
      expect(['debug', 'info', 'warn', 'error']).toContain(level);
      expect(typeof msg).toBe('string');
    }
  });

  test('OPS-4: without -v requests are not logged', async () => {
    const { server, get, as } = await start();
    await get('/version', as);
    server.child.kill('SIGTERM');
    await server.exited;
    expect(server.lines().map(({ msg }) => msg)).toEqual([
      'listening',
      'ready',
      'stopping',
      'stopped',
    ]);
  });

  test('OPS-4: it never has credentials or Secret data, at any verbosity', async () => {
    const { server, post, get, as } = await start('-v=10');
    const secret = 'c2VjcmV0LXZhbHVlLW9mLW1pbmU=';
    await post(
      '/api/v1/namespaces/default/secrets',
      { metadata: { name: 's' }, data: { key: secret } },
      as,
    );
    await get('/api/v1/namespaces/default/secrets/s', as);
    await get('/api/v1/secrets', { token: 'a-wrong-token-of-mine' });
    server.child.kill('SIGTERM');
    await server.exited;
    const log = server.log();
    expect(log).toContain('/api/v1/namespaces/default/secrets/s');
    for (const hidden of [secret, server.token, 'a-wrong-token-of-mine', 'Bearer ']) {
      expect(log).not.toContain(hidden);
    }
  });

  test('OPS-4: every answer has an Audit-Id, the client’s own if it is valid', async () => {
    const { get, as } = common;
    const answer = await get('/api/v1/nodes', as);
    const again = await get('/api/v1/nodes', as);
    expect(answer.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(again.headers['audit-id']).not.toBe(answer.headers['audit-id']);
    const odd = await get('/api/v1/nodes', { ...as, headers: { 'audit-id': 'a b\t"c"' } });
    expect(odd.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/);
    const long = { 'audit-id': ['i d="'.repeat(200), 'second'] };
    const first = await get('/api/v1/nodes', { ...as, headers: long });
    expect(first.headers['audit-id']).toBe(long['audit-id'][0]);
    const empty = await get('/api/v1/nodes', { ...as, headers: { 'audit-id': ['', 'second'] } });
    expect(empty.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/);
    for (const path of ['/readyz', '/nope', '/api/v1/namespaces/absent']) {
      expect((await get(path, as)).headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});
