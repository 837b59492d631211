import https from 'node:https';
import tls from 'node:tls';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { adminToken, configMap, eventually, freshNamespace } from '../support/harness.ts';
import { passing, skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';

const sharedClock = skippingClock();
const server = await withServer({ clock: sharedClock });

const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;

interface PlainWatch {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly lines: string[];
  readonly ended: Promise<void>;
  destroy(): void;
}

/** A watch over HTTP/1.1. */
function watchPlainly(url: string): Promise<PlainWatch> {
  return new Promise((resolve, reject) => {
    const request = https.get(`${server.url}${url}`, {
      headers: { authorization: `Bearer ${adminToken}` },
      rejectUnauthorized: false,
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const lines: string[] = [];
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        const parts = (rest + chunk).split('\n');
        rest = parts.pop() ?? '';
        lines.push(...parts);
      });
      const ended = new Promise<void>((finish) => response.on('end', finish));
      response.on('error', () => {});
      resolve({ headers: response.headers, lines, ended, destroy: () => request.destroy() });
    });
  });
}

test('WATCH-1: over HTTP/1.1 the stream is chunked, one document per line', async () => {
  const namespace = await freshNamespace(server);
  const watch = await watchPlainly(`${path(namespace)}?watch=true&timeoutSeconds=60`);
  expect(watch.headers['transfer-encoding']).toBe('chunked');
  expect(watch.headers['content-type']).toBe('application/json');
  const text = 'line\nbreak \u2028 ünïcode';
  const made = await server.post(path(namespace), configMap('a', { data: { text } }));
  await server.remove(`${path(namespace)}/a`);
  await eventually(async () => watch.lines.length === 2);
  const events = watch.lines.map((line) => JSON.parse(line));
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED']);
  expect(events[0].object).toEqual(made.body);
  await passing(sharedClock, watch.ended);
  expect(watch.lines).toHaveLength(2);
});

test('WATCH-4: bookmarks are sent about once a minute', async () => {
  const clock = new FakeClock();
  const timed = await withServer({ clock });
  const namespace = await freshNamespace(timed);
  const from = (await timed.get(path(namespace))).body.metadata.resourceVersion;
  const watch = await timed.watch(
    `${path(namespace)}?watch=true&allowWatchBookmarks=true&resourceVersion=${from}`,
  );
  const quiet = await timed.watch(`${path(namespace)}?watch=true`);
  clock.advance(59_000);
  const written = await timed.post(path(namespace), configMap('a'));
  await watch.until((events) => events.length === 1);
  for (let minute = 1; minute <= 3; minute++) {
    clock.advance(61_500);
    await watch.until((events) => events.length === 1 + minute, `bookmark ${minute}`);
  }
  const types = watch.events.map(({ type }) => type);
  expect(types).toEqual(['ADDED', 'BOOKMARK', 'BOOKMARK', 'BOOKMARK']);
  const version = Number(watch.events[1]?.object.metadata.resourceVersion);
  expect(version).toBeGreaterThanOrEqual(Number(written.body.metadata.resourceVersion));
  expect(quiet.events.map(({ type }) => type)).toEqual(['ADDED']);
  watch.close();
  quiet.close();
});

test('WATCH-7: a client that does not read is cut off and delays no other client', async () => {
  const namespace = await freshNamespace(server);
  const url = `${path(namespace)}?watch=true`;
  const slow = await openUnread(url);
  const reader = await server.watch(url);
  const filler = 'x'.repeat(900_000);
  const rounds = 45;
  await server.post(path(namespace), configMap('big', { data: { filler, round: '0' } }));
  const heldBefore = process.memoryUsage().rss;
  for (let round = 1; round < rounds; round++) {
    const answer = await server.patch(
      `${path(namespace)}/big`,
      { data: { round: String(round) } },
      'merge',
    );
    expect(answer.status).toBe(200);
  }
  await reader.until((events) => events.length === rounds, 'all events for the one who reads');
  const rounded = reader.events.map(({ object }) => Number(object.data.round));
  expect(rounded).toEqual(Array.from({ length: rounds }, (_, round) => round));
  const text = await slow.readOn();
  // The client finally receives what the sockets held; the rest was never queued for it.
  expect(text.length).toBeLessThan(20 * 1024 * 1024);
  expect(text.startsWith('HTTP/1.1 200 OK\r\n')).toBe(true);
  expect(text.endsWith('\r\n0\r\n\r\n')).toBe(true);
  expect(process.memoryUsage().rss - heldBefore).toBeLessThan(1024 * 1024 * 1024);
  reader.close();
}, 120_000);

/** Opens a watch on a raw socket and reads nothing until resumed. */
function openUnread(url: string): Promise<{ readOn(): Promise<string> }> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const socket = tls.connect(
      {
        host: hostname,
        port: Number(port),
        rejectUnauthorized: false,
        ALPNProtocols: ['http/1.1'],
      },
      () => {
        socket.write(
          `GET ${url} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${adminToken}\r\n\r\n`,
        );
        const chunks: Buffer[] = [];
        socket.once('readable', () => {
          socket.pause();
          const readOn = () =>
            new Promise<string>((finish) => {
              const look = () => {
                const last = chunks.at(-1);
                if (last?.subarray(-5).toString() === '0\r\n\r\n') done();
              };
              const done = () => {
                socket.destroy();
                finish(Buffer.concat(chunks).toString('latin1'));
              };
              socket.on('data', (chunk: Buffer) => {
                chunks.push(chunk);
                look();
              });
              socket.on('close', done);
              socket.resume();
            });
          resolve({ readOn });
        });
      },
    );
    socket.on('error', reject);
  });
}

test('WATCH-7: clients that come and go leak nothing', async () => {
  const namespace = await freshNamespace(server);
  for (let round = 0; round < 5; round++) {
    const watches = await Promise.all(
      Array.from({ length: 20 }, () => server.watch(`${path(namespace)}?watch=true`)),
    );
    const plain = await watchPlainly(`${path(namespace)}?watch=true`);
    plain.destroy();
    for (const watch of watches) watch.close();
    await Promise.all(watches.map((watch) => watch.ended));
  }
  const kept = await server.watch(`${path(namespace)}?watch=true`);
  await server.post(path(namespace), configMap('after'));
  await kept.until((events) => events.length === 1);
  kept.close();
});
