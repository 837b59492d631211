import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { adminToken, configMap } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { flags, frame, headers, postFields, startRawServer, type } from './http2-raw.ts';

const server = await withServer();

/**
 * Sends a request with a body of 200,000 chunks of one byte, and another request behind it.
 * @returns the statuses, and the turns of the event loop until both were answered
 */
async function sentInChunks(target: string) {
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const body = JSON.stringify(configMap('chunks', { data: { text: 'x'.repeat(200_000) } }));
  const fields = [`host: ${hostname}`, `authorization: Bearer ${adminToken}`];
  const chunked = [...fields, 'content-type: application/json', 'transfer-encoding: chunked'];
  const headOf = (line: string, headers: readonly string[]) =>
    `${line} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
  let turns = 0;
  let statuses: string[] = [];
  let answers = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    answers += text;
    statuses = answers.match(/(?<=HTTP\/1.1 )\d+/g) ?? [];
  });
  socket.write(headOf(target, chunked) + body.replaceAll(/./gs, '1\r\n$&\r\n'));
  socket.write(`0\r\n\r\n${headOf('GET /version', fields)}`);
  while (statuses.length < 2 && !socket.destroyed && turns < 1_000_000) {
    await new Promise(setImmediate);
    turns += 1;
  }
  socket.destroy();
  return { statuses, turns };
}

test('TRUST-2: a body in chunks of one byte is read in many turns of the event loop', async () => {
  const { statuses, turns } = await sentInChunks(
    'POST /api/v1/namespaces/default/configmaps?dryRun=All',
  );
  expect(statuses).toEqual(['201', '200']);
  expect(turns).toBeGreaterThan(700);
});

test('TRUST-2: an unread body in chunks of one byte is discarded in many turns', async () => {
  const { statuses, turns } = await sentInChunks('GET /api/v1/namespaces/default/configmaps/none');
  expect(statuses).toEqual(['404', '200']);
  expect(turns).toBeGreaterThan(60);
});

test('TRUST-2: a body in HTTP/2 frames of one byte is read in many turns', async () => {
  const count = 100_000;
  const raw = await untilEnd(
    startRawServer(async (exchange) => {
      const { length } = await exchange.body(count);
      exchange.send({ status: 200, headers: {}, body: Buffer.from(String(length)) });
    }),
  );
  const client = await raw.connect();
  client.greet();
  const byte = frame(type.data, flags.none, 1, 'x');
  const body = Buffer.concat(Array.from({ length: count }, () => byte));
  client.send(headers(1, postFields, flags.endHeaders), body, frame(type.data, flags.endStream, 1));
  let turns = 0;
  const isAnswered = () => client.received.some((received) => received.type === type.data);
  while (!isAnswered() && !client.closed && turns < 1_000_000) {
    await new Promise(setImmediate);
    turns += 1;
  }
  expect((await client.of(type.data, 1)).payload.toString()).toBe(String(count));
  expect(turns).toBeGreaterThan(20);
});
