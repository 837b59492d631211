import { Socket } from 'node:net';
import { MemoryBudget } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { requestHead } from './client-connection.ts';
import { Http2Connection } from './http2-connection.ts';
import { writeHead } from './output.ts';
import { flag, frameHeadBytes, frameType, preface } from './protocol.ts';

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes + payload.length);
  writeHead(bytes, 0, { type, flags, stream, bytes: payload.length });
  payload.copy(bytes, frameHeadBytes);
  return bytes;
}

/** A connection whose client receives bytes when the test says so. */
function slowConnection() {
  const socket = new Socket();
  const written: Buffer[] = [];
  const accepts: (() => void)[] = [];
  const write = (bytes: Buffer, accept: () => void) => {
    written.push(Buffer.from(bytes));
    accepts.push(accept);
    return false;
  };
  Object.assign(socket, { write });
  Object.defineProperty(socket, 'writable', { value: true });
  const clock = new FakeClock();
  const connection = new Http2Connection({
    socket,
    core: {
      clock,
      memory: new MemoryBudget({ limitBytes: 1e9 }),
      limits: { headerBytesMax: 65_536, headersTimeoutMs: 10_000, streamsPerConnectionMax: 100 },
      shed: () => {},
    },
    onRequest: (stream) => {
      stream.respond({ status: 200, headers: {}, contentLength: 5, empty: false });
      stream.end(Buffer.from('hello'));
    },
  });
  return { socket, clock, connection, written, accepts };
}

test('a retired connection stays open until a slow client has received the last answer', async () => {
  const { socket, clock, connection, written, accepts } = slowConnection();
  const fields = { ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': 'a' };
  const whole = flag.endHeaders | flag.endStream;
  const none = Buffer.alloc(0);
  const settings = frame(frameType.settings, 0, 0, none);
  const request = frame(frameType.headers, whole, 1, requestHead(fields));
  socket.emit('data', Buffer.concat([preface, settings, request]));
  const has = (text: string) => () => Buffer.concat(written).includes(text);
  await expect.poll(has('hello')).toBe(true);
  connection.retire();
  socket.emit('data', frame(frameType.ping, flag.ack, 0, Buffer.from('shutdown')));
  clock.advance(60_000);
  expect(socket.destroyed).toBe(false);
  expect(connection.closed).toBe(false);
  for (const accept of accepts.splice(0)) accept();
  await expect.poll(has('shutdown')).toBe(true);
  for (const accept of accepts.splice(0)) accept();
  await expect.poll(() => connection.closed).toBe(true);
  clock.advance(1000);
  expect(socket.destroyed).toBe(true);
});
