import { systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';

/*
 * The child of the crash test: writes to the store in argv[2] from 16 loops until it is killed, and
 * prints a line `key revision value` for each write once it is acknowledged (`-` for a deletion).
 */
const directory = process.argv[2];
const round = process.argv[3];
if (directory === undefined) throw new Error('usage: writer <directory> <round>');
const store = await openEmbeddedStore({ directory, clock: systemClock });
process.stdout.write(`opened ${await store.currentRevision()}\n`);

async function writeForever(loop: number): Promise<never> {
  for (let step = 0; ; step++) {
    const key = `/crash/${loop}/${step % 5}`;
    const current = await store.get(key);
    const remove = current !== undefined && step % 7 === 3;
    const text = `${round}.${loop}.${step}.`;
    const expect = current?.modRevision ?? 0;
    const result = remove
      ? await store.delete({ key, expect })
      : await store.put({ key, value: Buffer.from(text + 'x'.repeat(step % 3000)), expect });
    if (!result.ok) throw new Error(`lost a race on ${key} that nobody else writes`);
    process.stdout.write(`${key} ${result.revision} ${remove ? '-' : text}\n`);
    if (loop === 0 && step % 50 === 49) await store.compact(Math.max(0, result.revision - 200));
  }
}

await Promise.all(Array.from({ length: 16 }, (_, loop) => writeForever(loop)));
