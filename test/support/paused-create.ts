import http2 from 'node:http2';
import { atEnd } from './cleanup.ts';
import { configMap } from './harness.ts';

/**
 * Begins to create a ConfigMap over a connection of its own; `finish` sends the rest of the body,
 * and `status` resolves with the answer's.
 */
export function pausedCreate(
  server: { readonly url: string; readonly token: string },
  name: string,
): { readonly status: Promise<number>; finish(): void } {
  const session = http2.connect(server.url, { rejectUnauthorized: false });
  session.on('error', () => {});
  atEnd(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/api/v1/namespaces/default/configmaps',
    authorization: `Bearer ${server.token}`,
    'content-type': 'application/json',
  });
  const body = JSON.stringify(configMap(name));
  stream.write(body.slice(0, 10));
  const status = new Promise<number>((resolve, reject) => {
    stream.on('response', (headers) => resolve(Number(headers[':status'])));
    stream.on('error', reject);
    stream.on('close', () => reject(new Error('closed without an answer')));
  });
  stream.resume();
  return { status, finish: () => void stream.end(body.slice(10)) };
}
