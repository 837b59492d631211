import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { createApiClient } from './api-client.ts';

const servers: WebSocketServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    for (const socket of server.clients) socket.terminate();
    server.close();
  }
});

/** Opens a connection to a server; resolves with both of its ends. */
async function connect({ autoPong }: { readonly autoPong: boolean }) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong });
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clock = new FakeClock();
  const client = createApiClient({ server: `http://127.0.0.1:${port}` });
  const accepted = once(server, 'connection');
  const { messages } = await client.webSocket({ path: '/x', protocols: ['p'], clock });
  const [socket] = await accepted;
  return { clock, messages, socket };
}

describe('an idle connection', () => {
  test('sends pings, and stays open while the other side responds', async () => {
    const { clock, messages, socket } = await connect({ autoPong: true });
    for (let seconds = 0; seconds < 120; seconds += 5) {
      const pinged = once(socket, 'ping');
      clock.advance(5_000);
      await pinged;
      // The response has arrived when the data that follows it has.
      const read = once(messages, 'data');
      socket.send('still here');
      await read;
    }
    expect(messages.destroyed).toBe(false);
    messages.destroy();
  });

  test('ends after a minute without a response', async () => {
    const { clock, messages } = await connect({ autoPong: false });
    const ended = once(messages.resume(), 'end');
    for (let seconds = 0; seconds < 70; seconds += 5) clock.advance(5_000);
    await ended;
  });
});
