import { once } from 'node:events';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { adminToken, eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Clients over HTTP/1.1 that end their side of the connection after a request, but still read. */

const server = await withServer();
const maps = '/api/v1/namespaces/default/configmaps';

const getText = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;

async function dial() {
  const { hostname, port } = new URL(server.url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: false,
  });
  let received = '';
  socket.on('data', (bytes) => {
    received += bytes;
  });
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  await once(socket, 'secureConnect');
  return { socket, closed, received: () => received };
}

/** Sends requests and the end of the client's side; returns the answers, up to the end. */
async function answersTo(...requests: string[]): Promise<string> {
  const { socket, received } = await dial();
  const ended = once(socket, 'end');
  socket.end(requests.join(''));
  await ended;
  return received();
}

const statusesIn = (answers: string) =>
  [...answers.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));

describe('a client that ends its side of the connection', () => {
  test('gets the answer to a short request', async () => {
    const answer = await answersTo(getText('/api/v1/namespaces/default'));
    expect(statusesIn(answer)).toEqual([200]);
    expect(answer).toContain('"name":"default"');
  });

  test('gets the answers to pipelined requests', async () => {
    const get = getText('/api/v1/namespaces/default');
    expect(statusesIn(await answersTo(get, get, get))).toEqual([200, 200, 200]);
  });

  test('gets 504 at once if the answer would take long', async () => {
    const answer = await answersTo(getText(`${maps}?resourceVersion=1000000`));
    expect(statusesIn(answer)).toEqual([504]);
    expect(answer).toContain('Timeout: request did not complete within the allotted timeout');
  });

  test('ends its watches', async () => {
    const { socket, closed, received } = await dial();
    socket.write(getText(`${maps}?watch=true`));
    await eventually(async () => received().includes('200 OK'));
    socket.end();
    await closed;
  });
});
