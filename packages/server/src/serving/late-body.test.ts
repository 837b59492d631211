import { once } from 'node:events';
import { connect } from 'node:http2';
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
