import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';

/*
 * Durable puts of 1 KiB from 1, 32 and 128 concurrent writers, with one watch on everything, then
 * the time to open the result and to read it. `node --import tsx bench/store.bench.ts [seconds]`.
 */
const seconds = Number(process.argv[2] ?? 1);
const directory = await mkdtemp(join(tmpdir(), 'wheelhouse-bench-'));
const value = Buffer.alloc(1024, 'wheelhouse');

async function measurePuts(writers: number): Promise<void> {
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  let events = 0;
  await store.watch({
    prefix: '/',
    after: await store.currentRevision(),
    onEvents: (batch) => {
      events += batch.length;
    },
    onEnd: () => {},
  });
  let puts = 0;
  const begin = performance.now();
  const loop0 = performance.eventLoopUtilization();
  const cpu0 = process.cpuUsage();
  const write = async (writer: number) => {
    for (let step = 0; performance.now() - begin < seconds * 1000; step++) {
      const key = `/registry/pods/default/w${writers}-${writer}-${step % 100}`;
      const current = await store.get(key);
      await store.put({ key, value, expect: current?.modRevision ?? 0 });
      puts += 1;
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
  const elapsed = performance.now() - begin;
  const loop = performance.eventLoopUtilization(loop0);
  const cpu = process.cpuUsage(cpu0);
  console.log({
    writers,
    putsPerSecond: Math.round((puts / elapsed) * 1000),
    mainThreadMicrosPerPut: Math.round((loop.active * 1000) / puts),
    processMicrosPerPut: Math.round((cpu.user + cpu.system) / puts),
    events,
    megabytes: Math.round((await store.sizeBytes()) / 2 ** 20),
  });
  await store.compact(await store.currentRevision());
  await store.close();
}

for (const writers of [1, 32, 128]) await measurePuts(writers);
const opening = performance.now();
const store = await openEmbeddedStore({ directory, clock: systemClock });
const opened = performance.now();
const { records } = await store.range({ prefix: '/' });
console.log({
  openMs: Math.round(opened - opening),
  rangeMs: Math.round(performance.now() - opened),
  records: records.length,
});
await store.close();
await rm(directory, { recursive: true, force: true });
