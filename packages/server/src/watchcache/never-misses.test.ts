import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Random, randomOf, StatusError, systemClock } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { openEmbeddedStore, type Revision, type Store } from '@wheelhouse/store';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import type { ResourceCache, WatchHandle } from './contract.ts';
import type { EntryFilter } from './entry.ts';
import {
  openCache,
  prefix,
  putWidget,
  removeWidget,
  settle,
  TestReader,
  watchSpec,
} from './testing.ts';

const teams = ['red', 'blue'];
const namespaces = ['a', 'b', 'c'];
const namesPerNamespace = 12;

/** The results of all writes: the revision and team of each key. */
type Model = Map<string, { readonly revision: Revision; readonly team: string }>;

async function writeSomething(store: Store, model: Model, random: Random): Promise<void> {
  const namespace = random.pick(namespaces);
  const name = `n${random.below(namesPerNamespace)}`;
  await writeTo({ store, model, random }, { namespace, name });
}

async function writeTo(
  { store, model, random }: { store: Store; model: Model; random: Random },
  { namespace, name }: { namespace: string; name: string },
): Promise<void> {
  const path = `${namespace}/${name}`;
  const [dice, team, value, hint] = [
    random.fraction(),
    random.pick(teams),
    random.fraction(),
    random.chance(0.5),
  ];
  if (model.has(path) && dice < 0.3) {
    await removeWidget(store, path);
    model.delete(path);
    return;
  }
  model.set(path, {
    revision: await putWidget(store, { namespace, name, team, value, hint }),
    team,
  });
}

/** Writes many objects concurrently, so that the store may report them in one batch. */
async function writeBurst(store: Store, model: Model, random: Random): Promise<void> {
  const writes: Promise<void>[] = [];
  for (const namespace of namespaces) {
    for (let i = 0; i < namesPerNamespace; i++) {
      if (random.chance(0.7)) {
        writes.push(writeTo({ store, model, random }, { namespace, name: `n${i}` }));
      }
    }
  }
  await Promise.all(writes);
}

/** Checks that a list at an exact revision equals the store's state there, or fails with 410. */
async function checkExact(cache: ResourceCache, store: Store, random: Random): Promise<void> {
  const newest = await store.currentRevision();
  const revision = Math.max(1, newest - random.below(120));
  const resourceVersionMatch = 'Exact';
  const rest = { namespace: '', limit: undefined, continueToken: undefined, filter: undefined };
  const request = { ...rest, resourceVersion: String(revision), resourceVersionMatch } as const;
  try {
    const list = await cache.list(request);
    const found = [...list.entries()].map(({ key, revision: at }) => [prefix + key, at]);
    if (revision < (await store.compactRevision())) return;
    const { records } = await store.range({ prefix, revision });
    expect(found).toEqual(records.map(({ key, modRevision }) => [key, modRevision]));
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    expect([error.code, revision < (await store.compactRevision())]).toEqual([410, true]);
  }
}

/** A correct client: lists, watches from that version, resumes, and lists again on 410. */
class Client {
  readonly #random: Random;
  readonly #namespace: string;
  readonly #team: string | undefined;
  readonly #name: string | undefined;
  #revisions = new Map<string, Revision>();
  #last: Revision | undefined;
  #reader: TestReader | undefined;
  #handle: WatchHandle | undefined;
  relists = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#namespace = random.pick(['', '', 'a', 'b']);
    this.#team = random.pick([undefined, 'red', 'blue']);
    this.#name = this.#namespace !== '' && random.chance(0.2) ? 'n3' : undefined;
  }

  get #filter(): EntryFilter | undefined {
    return this.#team === undefined ? undefined : (index) => index.labels.team === this.#team;
  }

  async step(cache: ResourceCache): Promise<void> {
    const dice = this.#random.fraction();
    if (this.#reader === undefined || this.#reader.ended !== undefined) await this.connect(cache);
    else if (dice < 0.1) this.disconnect();
    else if (dice < 0.3) this.#reader.pause();
    else if (dice < 0.6) this.#reader.resume();
  }

  /** Drops the connection; events that have arrived count, and the others must be sent again. */
  disconnect(): void {
    this.#take();
    this.#handle?.close();
    this.#reader = undefined;
  }

  async connect(cache: ResourceCache): Promise<void> {
    this.#take();
    if (this.#last === undefined) await this.#list(cache);
    this.#reader = new TestReader();
    this.#handle = await cache.watch(
      watchSpec(this.#reader, {
        namespace: this.#namespace,
        name: this.#name,
        filter: this.#filter,
        resourceVersion: String(this.#last),
        allowBookmarks: this.#random.chance(0.5),
      }),
    );
  }

  resume(): void {
    this.#reader?.resume();
  }

  check(model: Model): void {
    this.#take();
    const expected = [...model]
      .filter(([path]) => this.#namespace === '' || path.startsWith(`${this.#namespace}/`))
      .filter(([path]) => this.#name === undefined || path.endsWith(`/${this.#name}`))
      .filter(([, { team }]) => this.#team === undefined || team === this.#team)
      .map(([path, { revision }]) => [path, revision] as const);
    expect(new Map([...this.#revisions].sort())).toEqual(new Map(expected.sort()));
  }

  async #list(cache: ResourceCache): Promise<void> {
    this.relists += 1;
    const revisions = new Map<string, Revision>();
    const limit = this.#random.pick([undefined, 5]);
    let continueToken: string | undefined;
    do {
      const list = await cache.list({
        namespace: this.#namespace,
        name: this.#name,
        resourceVersion: undefined,
        resourceVersionMatch: undefined,
        limit,
        continueToken,
        filter: this.#filter,
      });
      for (const entry of list.entries()) revisions.set(entry.key, entry.revision);
      this.#last = list.revision;
      continueToken = list.continueToken;
    } while (continueToken !== undefined);
    this.#revisions = revisions;
  }

  #take(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    // There are tens of thousands of events: `expect` for each would take most of the time.
    for (const { type, name, revision } of reader.events.splice(0)) {
      const last = this.#last ?? 0;
      const isInOrder = type === 'BOOKMARK' ? revision >= last : revision > last;
      if (!isInOrder) expect.fail(`${type} of revision ${revision} after ${last}`);
      if (type !== 'BOOKMARK') this.#apply(type, name ?? '', revision);
      this.#last = revision;
    }
    const { ended } = reader;
    if (ended?.type === 'error') {
      expect((ended.error as StatusError).code).toBe(410);
      this.#last = undefined;
    }
  }

  #apply(type: string, name: string, revision: Revision): void {
    const isPresent = this.#revisions.has(name);
    if (isPresent === (type === 'ADDED'))
      expect.fail(`${type} of ${name}: present is ${isPresent}`);
    if (type === 'DELETED') this.#revisions.delete(name);
    else this.#revisions.set(name, revision);
  }
}

interface Trial {
  readonly store: Store;
  readonly random: Random;
  readonly steps: number;
}

async function runTrial({ store, random, steps }: Trial): Promise<number> {
  const clock = new FakeClock();
  const model: Model = new Map();
  const options = {
    historyMs: 20_000,
    historyChangesMax: 60,
    watchLagChangesMax: 40,
    random: random.fraction,
  };
  let cache = openCache(store, clock, options);
  const clients = Array.from({ length: 12 }, () => new Client(random));
  for (let step = 0; step < steps; step++) {
    if (random.chance(0.1)) await writeBurst(store, model, random);
    for (let i = 0; i < 2 * random.fraction(); i++) await writeSomething(store, model, random);
    if (random.chance(0.1)) await checkExact(cache, store, random);
    for (const client of clients) if (random.chance(0.4)) await client.step(cache);
    if (random.chance(0.3)) await settle();
    if (random.chance(0.2)) clock.advance(random.fraction() * 10_000);
    if (random.chance(0.15)) await store.compact(Math.max(1, (await store.currentRevision()) - 10));
    if (random.chance(0.02)) {
      for (const client of clients) client.disconnect();
      cache.close();
      cache = openCache(store, clock, options);
    }
    if (step % 25 === 24) await checkAll({ clients, cache, model });
  }
  cache.close();
  return clients.reduce((sum, client) => sum + client.relists, 0);
}

async function checkAll(options: {
  clients: readonly Client[];
  cache: ResourceCache;
  model: Model;
}): Promise<void> {
  const { clients, cache, model } = options;
  for (const client of clients) client.resume();
  await settle();
  for (let attempt = 0; attempt < 3; attempt++) {
    for (const client of clients) {
      client.resume();
      await client.step(cache);
      client.resume();
    }
    await settle();
  }
  for (const client of clients) {
    client.disconnect();
    await client.connect(cache);
  }
  await settle();
  for (const client of clients) {
    client.disconnect();
    await client.connect(cache);
  }
  await settle();
  for (const client of clients) client.check(model);
}

const seed = Number(process.env.SEED ?? 20260721);

test.each([0, 1, 2])(`list plus watch never misses a change (seed ${seed} + %d)`, async (nth) => {
  const random = randomOf(seed + nth);
  const relists = await runTrial({ store: createMemoryStore(), random, steps: 300 });
  expect(relists).toBeGreaterThan(12);
});

test(`list plus watch never misses a change of the embedded store (seed ${seed})`, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'watchcache-'));
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  try {
    const relists = await runTrial({ store, random: randomOf(seed), steps: 150 });
    expect(relists).toBeGreaterThan(12);
  } finally {
    await store.close();
    await rm(directory, { recursive: true, force: true });
  }
});

test(`an exact list equals the store's range at every revision (seed ${seed})`, async () => {
  const random = randomOf(seed);
  const store = createMemoryStore();
  const model: Model = new Map();
  const cache = openCache(store, new FakeClock());
  await cache.ready();
  for (let i = 0; i < 250; i++) await writeSomething(store, model, random);
  const late = openCache(store, new FakeClock());
  await late.ready();
  for (let revision = 1; revision <= 250; revision++) {
    const { records } = await store.range({ prefix, revision });
    const expected = records.map(({ key, modRevision }) => [key, modRevision]);
    for (const source of revision % 40 === 0 ? [cache, late] : [cache]) {
      const list = await source.list({
        namespace: '',
        resourceVersion: String(revision),
        resourceVersionMatch: 'Exact',
        limit: undefined,
        continueToken: undefined,
        filter: undefined,
      });
      const seen = [...list.entries()].map((entry) => [prefix + entry.key, entry.revision]);
      expect([revision, seen]).toEqual([revision, expected]);
    }
  }
});
