import { mkdtempSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { randomOf, systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { adminToken, startTestServer } from '../support/harness.ts';
import { listenLocally } from '../support/local-server.ts';
import { handOver, leadHere } from './extension-server.ts';

const group = 'metrics.example.com';
const rounds = 75;

const good = [
  'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.0 404 Not Found\r\nset-cookie: a\r\nset-cookie: b\r\n\r\nuntil the end',
  'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nbytes',
  'HTTP/1.1 302 Found\r\nlocation: https://x/\r\ncontent-length: 0\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nlonger than it says, HTTP/1.1 200 OK\r\n\r\n',
];
const parts = [
  '\r\n',
  ': ',
  'HTTP/1.1 ',
  '\0',
  '\u00ff',
  '-1',
  '99999999999999999999',
  ' ',
  'chunked',
];

/** An answer with some of its bytes removed, duplicated, or replaced. */
function mangled(next: (below: number) => number): Buffer {
  let text = good[next(good.length)] ?? '';
  for (let count = next(4); count > 0; count -= 1) {
    const at = next(text.length);
    const cut = next(2) === 0 ? next(12) : 0;
    const put = next(3) === 0 ? text.slice(0, next(40)) : (parts[next(parts.length)] ?? '');
    text = text.slice(0, at) + put + text.slice(at + cut);
  }
  return Buffer.from(text, 'latin1');
}

test('ADM-4: every request ends, regardless of the aggregated server’s answer', async () => {
  const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  const { below: next } = randomOf(seed);
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-fuzz-'));
  const hosts = ['ext.default.svc'];
  const made = ensureServingCertificates({ certDir: directory, hosts, clock: systemClock });
  let isHostile = false;
  const hostile = tls.createServer({ cert: made.certificatePem, key: made.keyPem }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (asked: Buffer) => {
      const isOurs = asked.includes('system:kube-aggregator') || !isHostile;
      socket.write(isOurs ? (good[0] ?? '') : mangled(next));
      if (!isOurs && next(2) === 0) socket.end();
    });
  });
  const port = await listenLocally(hostile);
  const server = await startTestServer({ limits: { requestTimeoutMs: 300 } });
  try {
    await leadHere(server, 'ext');
    const caBundle = Buffer.from(made.caPem).toString('base64');
    await handOver(server, { port, caBundle }, { group });
    isHostile = true;
    const ask = () =>
      new Promise<string>((resolve) => {
        const asksMore = next(4) === 0;
        const request = https.request(`${server.url}/apis/${group}/v1/namespaces/a/things`, {
          rejectUnauthorized: false,
          agent: false,
          method: ['GET', 'HEAD', 'POST'][next(3)],
          headers: {
            authorization: `Bearer ${adminToken}`,
            ...(asksMore ? { connection: 'Upgrade', upgrade: 'x' } : {}),
          },
        });
        request.on('error', () => resolve('cut off'));
        request.on('upgrade', (_, socket) => {
          socket.destroy();
          resolve('upgraded');
        });
        request.on('response', (answer) => {
          answer.on('error', () => resolve('cut off'));
          answer.on('end', () => resolve(String(answer.statusCode)));
          answer.resume();
        });
        request.setTimeout(50_000, () => resolve('no end'));
        request.end();
      });
    for (let round = 0; round < rounds; round += 15) {
      const outcomes = await Promise.all(Array.from({ length: 15 }, ask));
      expect(outcomes, `FUZZ_SEED=${seed}`).not.toContain('no end');
    }
    expect((await server.get('/api/v1/namespaces/default')).status).toBe(200);
  } finally {
    await server.stop();
    hostile.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
