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
