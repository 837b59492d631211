import { expect, test } from 'vitest';
import { RequestHead } from './message-heads.ts';
import { ClosedStreams, ending, Http2Stream, type StreamHost, StreamTable } from './stream.ts';

const host: StreamHost = {
  memory: { charge: () => {} },
  wake: () => {},
  sendHead: () => {},
  sendContinue: () => {},
  reset: () => {},
  consumed: () => {},
};

function streamOf(id: number): Http2Stream {
  const head = new RequestHead(100);
  const windows = { sendWindow: 0, receiveWindowBytes: 0 };
  return new Http2Stream({ id, head, host, remoteEnded: true, ...windows });
}

test('behaves like a Map while streams open and close out of order', () => {
  const table = new StreamTable();
  const map = new Map<number, Http2Stream>();
  let next = 1;
  for (let round = 0; round < 5000; round += 1) {
    // The number of open streams rises and falls, and a few stay open throughout.
    const opens = Math.sin(round / 300) > 0 ? round % 3 !== 0 : round % 3 === 0;
    if (opens) {
      const stream = streamOf(next);
      next += 2 * (1 + (round % 5));
      table.add(stream);
      map.set(stream.id, stream);
    } else {
      const ids = [...map.keys()];
      const stream = map.get(ids[(round * 7) % (ids.length + 1)] ?? -1);
      if (stream === undefined) continue;
      table.delete(stream);
      table.delete(stream);
      map.delete(stream.id);
      expect(table.get(stream.id)).toBe(undefined);
    }
    expect(table.size).toBe(map.size);
    for (const id of [1, next - 2, (round * 2) % next]) expect(table.get(id)).toBe(map.get(id));
  }
  expect(new Set(table.all())).toEqual(new Set(map.values()));
});

test('a receiver that pauses at the last piece receives the end once, when it resumes', () => {
  const stream = streamOf(1);
  stream.remoteEnded = false;
  stream.receive(Buffer.from('body'), 4);
  stream.receiveEnd();
  const seen: string[] = [];
  stream.deliverTo({
    piece(bytes) {
      seen.push(bytes.toString());
      stream.pause();
    },
    end: () => seen.push('end'),
  });
  expect(seen).toEqual(['body']);
  stream.resume();
  stream.resume();
  expect(seen).toEqual(['body', 'end']);
});

test('closed streams have their last ending, and the oldest are forgotten', () => {
  const closed = new ClosedStreams();
  const addOthers = (first: number, count: number) => {
    for (let i = 0; i < count; i += 1) closed.add(first + 2 * i, ending.finished);
  };
  expect(closed.endingOf(0)).toBe(ending.unknown);
  addOthers(1, 120);
  closed.add(1001, ending.resetByClient);
  addOthers(301, 20);
  closed.add(1001, ending.resetByServer);
  expect(closed.endingOf(1001)).toBe(ending.resetByServer);
  expect(closed.endingOf(1)).toBe(ending.unknown);
  expect(closed.endingOf(101)).toBe(ending.finished);
  addOthers(2001, 127);
  expect(closed.endingOf(1001)).toBe(ending.resetByServer);
  closed.add(3001, ending.finished);
  expect(closed.endingOf(1001)).toBe(ending.unknown);
});
