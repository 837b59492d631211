import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Output, type OutputStream } from './output.ts';
import { frameType } from './protocol.ts';

/** A stream whose only frame has been added to the control frames. */
const ended = (): OutputStream => ({
  id: 1,
  isReady: false,
  canSend: false,
  pendingBytes: 0,
  sendWindow: 0,
  ending: true,
  endSent: true,
  resetsAtEnd: false,
  mustNotify: false,
  aborted: false,
  finished: false,
  take: () => {},
  notifyDrained: () => {},
});

test.each([
  ['is complete', null, { finished: true, unwritten: 0 }],
  // Node 22 and later report the destruction of a socket to its writes; their streams end with it.
  ['fails', new Error('destroyed'), { finished: false, unwritten: 1 }],
])('a stream whose last write %s', (_, error, expected) => {
  const socket = new Socket();
  const callbacks: ((error?: Error | null) => void)[] = [];
  const write = (_bytes: Buffer, callback: (error?: Error | null) => void) => {
    callbacks.push(callback);
    return true;
  };
  Object.assign(socket, { write });
  Object.defineProperty(socket, 'writable', { value: true });
  const owner = { streamEnded: () => {}, streamFinished: () => {} };
  const output = new Output({ socket, owner, memory: { charge: () => {} } });
  const stream = ended();
  output.frame({ type: frameType.headers, flags: 0, stream: stream.id, bytes: 0 });
  output.addEnded(stream);
  output.flush();
  callbacks[0]?.(error);
  expect({ finished: stream.finished, unwritten: output.unwritten.length }).toEqual(expected);
});
