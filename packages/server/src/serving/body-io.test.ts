import { Writable } from 'node:stream';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { PacedWriter } from './body-io.ts';
import { NodeBodySink } from './http1-exchange.ts';

test('a piece that cannot be made is reported, at once or after a pause', async () => {
  for (const before of [0, 40]) {
    const failures: unknown[] = [];
    const target = new Writable({ write: (_chunk, _encoding, done) => setImmediate(done) });
    const failed = new Promise<void>((resolve) => {
      const writer = new PacedWriter({
        target: new NodeBodySink(target, { charge: () => {} }),
        pieces: pieces(before),
        clock: new FakeClock(),
        onProgress: () => {},
        onFailure: (error) => {
          failures.push(error);
          resolve();
        },
      });
      writer.run();
    });
    await failed;
    expect(failures).toEqual([new Error('no more')]);
    expect(target.writableEnded).toBe(false);
  }
});

function* pieces(count: number): Generator<Buffer> {
  for (let i = 0; i < count; i++) yield Buffer.alloc(64 * 1024);
  throw new Error('no more');
}

test('pieces of all sizes are written completely and in order', async () => {
  const sizes = [1, 0, 300, 8191, 8192, 5, 5, 70_000, 2, 600_000, 1, 1];
  const sent = Array.from({ length: 40 }, (_, round) =>
    sizes.map((size, index) => Buffer.alloc(size, round * sizes.length + index)),
  ).flat();
  const taken: Buffer[] = [];
  const target = new Writable({
    write(chunk: Buffer, _encoding, done) {
      taken.push(chunk);
      setImmediate(done);
    },
  });
  const ended = new Promise<void>((resolve) => void target.on('finish', resolve));
  const sink = new NodeBodySink(target, { charge: () => {} });
  const onFailure = (error: unknown) => void target.destroy(error as Error);
  const clock = new FakeClock();
  new PacedWriter({ target: sink, pieces: sent, clock, onProgress: () => {}, onFailure }).run();
  await ended;
  expect(Buffer.concat(taken).equals(Buffer.concat(sent))).toBe(true);
  const small = taken.filter(({ length }) => length < 5);
  expect(small.length, 'small pieces go out joined').toBeLessThan(sent.length / 4);
});

/**
 * A writer over pieces that each take `costMs` to produce; records whether their source returned.
 */
function costlyWriter(costMs: number) {
  const clock = new FakeClock();
  const source = { made: 0, returned: false };
  function* costly(): Generator<Buffer> {
    try {
      for (;;) {
        clock.advance(costMs);
        source.made += 1;
        yield Buffer.alloc(20 * 1024);
      }
    } finally {
      source.returned = true;
    }
  }
  const write = (_chunk: Buffer, _encoding: string, done: () => void) => done();
  const target = new Writable({ write, highWaterMark: 1_000_000 });
  const sink = new NodeBodySink(target, { charge: () => {} });
  const onFailure = () => {};
  const writer = new PacedWriter({
    target: sink,
    pieces: costly(),
    clock,
    onProgress: () => {},
    onFailure,
  });
  return { source, target, writer };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('TRUST-2: slow pieces are made in slices', async () => {
  const { source, writer } = costlyWriter(3);
  writer.run();
  expect(source.made).toBe(2);
  await nextTurn();
  expect(source.made).toBe(4);
  writer.run();
  expect(source.made, 'a drain is no further slice').toBe(4);
  writer.stop();
});

test('TRUST-3: the source of an answer is closed when the reader is gone', async () => {
  const { source, target, writer } = costlyWriter(3);
  writer.run();
  target.destroy();
  await nextTurn();
  expect(source).toEqual({ made: 2, returned: true });
  expect(writer.over).toBe(true);
  const stopped = costlyWriter(3);
  stopped.writer.run();
  stopped.writer.stop();
  await nextTurn();
  expect(stopped.source).toEqual({ made: 2, returned: true });
});
