import { once } from 'node:events';
import { connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { issueCertificate } from './generated-certificates.ts';
import { startHttpServer } from './server.ts';

const now = systemClock.now();
const life = { notBefore: now - 1e9, notAfter: now + 1e9 };
const ca = issueCertificate({ commonName: 'ca', usage: 'ca', ...life });
const names = { commonName: 'test', usage: 'server', hosts: ['127.0.0.1'] } as const;
const { certificatePem, keyPem } = issueCertificate({ ...names, issuer: ca, ...life });

test('a body that ended before it was read is returned, also an empty one', async () => {
  const server = await startHttpServer({
    listen: { host: '127.0.0.1', port: 0, tls: { certificate: certificatePem, key: keyPem } },
    onExchange: async (exchange) => {
      await pause(30);
      const body = await exchange.body(100);
      exchange.send({ status: 200, headers: {}, body: Buffer.from(`<${body}>`) });
    },
    logger: silentLogger,
    clock: systemClock,
  });
  const session = connect(`https://127.0.0.1:${server.address.port}`, { ca: ca.certificatePem });
  try {
    for (const body of ['', 'text', '']) {
      const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
      stream.write(body);
      await pause(5);
      stream.end();
      stream.setEncoding('utf8');
      let text = '';
      stream.on('data', (chunk: string) => {
        text += chunk;
      });
      await once(stream, 'end', { signal: AbortSignal.timeout(5000) });
      expect(text).toBe(`<${body}>`);
    }
  } finally {
    session.destroy();
    await server.close();
  }
});

test('a body that is relayed over HTTP/1.1 may take any time', async () => {
  const limits = { headersTimeoutMs: 50, bodyTimeoutMs: 50, sweepPeriodMs: 20 };
  const server = await startHttpServer({
    listen: { host: '127.0.0.1', port: 0, tls: 'plaintext' },
    onExchange: (exchange) => {
      let received = '';
      if (exchange.url === '/read') return;
      exchange.bodyStream()?.deliverTo({
        piece: (bytes) => {
          received += bytes;
        },
        end: () => exchange.send({ status: 200, headers: {}, body: Buffer.from(received) }),
      });
    },
    limits,
    logger: silentLogger,
    clock: systemClock,
  });
  const dial = () => connectTcp(server.address.port, '127.0.0.1').setEncoding('utf8');
  const start = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nab`;
  const relayed = dial();
  const answer = once(relayed, 'data', { signal: AbortSignal.timeout(5000) });
  try {
    relayed.write(start('/relay'));
    await expect.poll(() => server.inFlight).toBe(1);
    // A later request shows that the time of the earlier one is over.
    const late = dial();
    late.write(start('/read'));
    const [refusal] = await once(late, 'data', { signal: AbortSignal.timeout(5000) });
    expect(refusal).toMatch(/^HTTP\/1.1 408 /);
    relayed.write('cd');
    expect((await answer).join()).toMatch(/^HTTP\/1.1 200 OK.*abcd$/s);
  } finally {
    relayed.destroy();
    await server.close();
  }
});
