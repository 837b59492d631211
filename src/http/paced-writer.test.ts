import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { NodeBodySink } from './node-body.ts';
import { PacedWriter } from './paced-writer.ts';

test('a piece that cannot be made is told, whether at once or after a pause', async () => {
  for (const before of [0, 40]) {
    const failures: unknown[] = [];
    const target = new Writable({ write: (_chunk, _encoding, done) => setImmediate(done) });
    const told = new Promise<void>((resolve) => {
      const writer = new PacedWriter({
        target: new NodeBodySink(target),
        pieces: pieces(before),
        onProgress: () => {},
        onFailure: (error) => {
          failures.push(error);
          resolve();
        },
      });
      writer.run();
    });
    await told;
    expect(failures).toEqual([new Error('no more')]);
    expect(target.writableEnded).toBe(false);
  }
});

function* pieces(count: number): Generator<Buffer> {
  for (let i = 0; i < count; i++) yield Buffer.alloc(64 * 1024);
  throw new Error('no more');
}

test('pieces of all sizes come out whole and in order', async () => {
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
  const sink = new NodeBodySink(target);
  const onFailure = (error: unknown) => void target.destroy(error as Error);
  new PacedWriter({ target: sink, pieces: sent, onProgress: () => {}, onFailure }).run();
  await ended;
  expect(Buffer.concat(taken).equals(Buffer.concat(sent))).toBe(true);
  const small = taken.filter(({ length }) => length < 5);
  expect(small.length, 'small pieces go out joined').toBeLessThan(sent.length / 4);
});
