import http2 from 'node:http2';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { adminToken, startTestServer } from '../support/harness.ts';

describe('a body that never arrives', () => {
  test('API-9: is answered 504 at its deadline and holds nothing afterwards', async () => {
    const clock = new FakeClock(Date.now());
    const server = await startTestServer({ clock });
    const session = http2.connect(server.url, { rejectUnauthorized: false });
    try {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/api/v1/namespaces/default/configmaps',
        authorization: `Bearer ${adminToken}`,
        'content-type': 'application/json',
      });
      stream.on('error', () => {});
      stream.write('{"kind":');
      const status = new Promise<number>((resolve) => {
        stream.on('response', (headers) => resolve(Number(headers[':status'])));
      });
      const ticking = setInterval(() => clock.advance(5_000), 20);
      try {
        expect(await status).toBe(504);
      } finally {
        clearInterval(ticking);
      }
    } finally {
      session.destroy();
      const before = performance.now();
      await server.stop();
      expect(performance.now() - before).toBeLessThan(20_000);
    }
  });
});
