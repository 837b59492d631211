import { randomOf, systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore, type Store, type StoreEvent } from '@wheelhouse/store';
import {
  createMemoryStore,
  freshStore,
  hasEtcd,
  StoreModel,
  startTestEtcd,
} from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { expectSame } from '../support/same.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const rounds = Number(process.env['MODEL_ROUNDS'] ?? 60);
const keys = ['/a', '/a/x', '/a/y', '/ab', '/b/1', '/b/\ufffd', '/b/\u{1f600}'];
const prefixes = ['', '/', '/a', '/a/', '/b/', '/c'];

const plain = ({ hint: _hint, ...event }: StoreEvent & { hint?: unknown }) => event;

interface Run {
  readonly store: Store;
  readonly model: StoreModel;
  readonly random: (below: number) => number;
  /** The order in which the store decides concurrent writes. */
  readonly order: 'calls' | 'arrival';
}

/**
 * A burst of concurrent writes. Local stores decide writes in the order of the calls, as the model
 * does; a remote store decides them in the order of their arrival, so it receives one at a time.
 */
async function burst({ store, model, random, order }: Run): Promise<void> {
  const actual = [];
  const expected = [];
  for (let i = random(12); i >= 0; i--) {
    const key = keys[random(keys.length)] as string;
    const present = model.get(key)?.modRevision ?? 0;
    const expect = random(4) === 0 ? random(model.revision + 2) : present;
    if (random(3) === 0) {
      actual.push(store.delete({ key, expect }));
      expected.push(model.delete({ key, expect }));
    } else {
      const value = Buffer.from(`${i} ${'v'.repeat(random(20) === 0 ? 5000 : 20)}`);
      actual.push(store.put({ key, value, expect }));
      expected.push(model.put({ key, value, expect }));
    }
    if (order === 'arrival') await actual.at(-1);
  }
  expect((await Promise.all(actual)).map((outcome) => outcome.ok && outcome.revision)).toEqual(
    expected.map((outcome) => outcome.ok && outcome.revision),
  );
}

async function compare(run: Run, compacted: number): Promise<void> {
  const { store, model, random } = run;
  expect(await store.currentRevision()).toBe(model.revision);
  for (let i = 0; i < 4; i++) {
    const revision = compacted + random(model.revision - compacted + 1);
    const key = keys[random(keys.length)] as string;
    expectSame(await store.get(key, revision), model.get(key, revision));
    const request = {
      prefix: prefixes[random(prefixes.length)] as string,
      revision,
      ...(random(2) === 0 && { limit: 1 + random(4) }),
      ...(random(2) === 0 && { after: keys[random(keys.length)] as string }),
    };
    expectSame(await store.range(request), model.range(request));
  }
}

async function check(store: Store, order: Run['order'] = 'calls'): Promise<void> {
  const run: Run = { store, model: new StoreModel(), random: randomOf(seed).below, order };
  const { model, random } = run;
  const watches: (() => Promise<void>)[] = [];
  let compacted = 0;
  for (let round = 0; round < rounds; round++) {
    await burst(run);
    await compare(run, compacted);
    if (random(5) === 0) {
      compacted += random(model.revision - compacted + 1);
      await store.compact(compacted);
    }
    if (random(4) === 0) {
      const prefix = prefixes[random(prefixes.length)] as string;
      const after = compacted + random(model.revision - compacted + 1);
      const seen: StoreEvent[] = [];
      const onEvents = (events: readonly StoreEvent[]) => seen.push(...events);
      const watch = await store.watch({ prefix, after, onEvents, onEnd: () => {} });
      watches.push(async () => {
        await watch.reached(model.revision);
        expectSame(seen.map(plain), model.events({ prefix, after }));
      });
      if (random(2) === 0) await watch.reached(model.revision);
    }
  }
  // A watch that lagged behind a compaction has ended instead.
  for (const verify of watches) {
    await verify().catch((error: { code?: string }) => {
      if (error.code !== 'compacted' && error.code !== 'closed') throw error;
    });
  }
}

test(`the memory store behaves like the model (seed ${seed})`, async () => {
  const store = createMemoryStore();
  await check(store);
  await store.close();
});

test(`the embedded store behaves like the model (seed ${seed})`, async () => {
  const directory = temporaryFolder();
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  await check(store);
  await store.close();
});

test.skipIf(!hasEtcd)(`the etcd store behaves like the model (seed ${seed})`, async () => {
  const etcd = await untilEnd(startTestEtcd());
  const store = await freshStore(etcd);
  await check(store, 'arrival');
  await store.close();
});
