import type { Clock, MaybePromise } from '@wheelhouse/machinery';
import {
  type PutRequest,
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WriteResult,
} from '@wheelhouse/store';
import {
  createMemoryStore,
  type DeleteRequest,
  type RangeRequest,
  type RangeResult,
  type StoreSnapshot,
  type WatchRequest,
} from '@wheelhouse/store/testing';
import type { Truth } from './truth.ts';
import type { World } from './world.ts';

/**
 * One process's access to the store, whose calls fail, wait, and overtake each other. `disk`
 * behaves like a store in the process: writes wait for a sync, a batch is written entirely or not
 * at all, and a crash keeps some prefix of the unacknowledged writes. `network` behaves like an
 * etcd: each call may be rejected, lost, or executed without an answer, even much later.
 */
export type SharedKind = 'disk' | 'network';

/** One process's part of the store. */
export interface ProcessStore {
  readonly store: Store;
  /** Ends the process: some of its unacknowledged writes are durable nevertheless. */
  crash(): Promise<void>;
  /** Ends one of the watches, like a broken connection. */
  cutWatch(): void;
}

/** The part that outlives the processes of a history. */
export interface Backend {
  readonly kind: SharedKind | 'log';
  /** Opens the store for a starting process. */
  open(clock: Clock): Promise<ProcessStore>;
  compact(revision: Revision): Promise<void>;
}

/** A store in memory, to which processes have unreliable access. */
export async function memoryBackend(options: {
  readonly world: World;
  readonly truth: Truth;
  readonly kind: SharedKind;
}): Promise<Backend> {
  const { world, truth, kind } = options;
  const disk = createMemoryStore();
  await truth.follow(disk);
  return {
    kind,
    async open() {
      const store = new SimulatedStore(world, disk, kind);
      return { store, crash: () => store.crash(), cutWatch: () => store.cutWatch() };
    },
    compact: (revision) => disk.compact(revision),
  };
}

interface UnsyncedWrite {
  readonly apply: () => Promise<WriteResult>;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: StoreError) => void;
}

/** The outcomes of a write over the network other than an answer. */
const faultsOfWrites = [
  ['refused', 0.05],
  ['lost', 0.03],
  ['late', 0.03],
  ['unanswered', 0.04],
] as const;

const never = <T>() => new Promise<T>(() => {});

function failure(code: 'unavailable' | 'timed-out' | 'no-space'): StoreError {
  return new StoreError({ code, message: `simulated: ${code}` });
}

export class SimulatedStore implements Store {
  readonly sharing: Store['sharing'];
  readonly #world: World;
  readonly #disk: Store;
  readonly #kind: SharedKind;
  /** Writes of an earlier process are read back without the hints of their writers. */
  readonly #bootRevision: Revision;
  readonly #watches = new Set<RemoteWatch>();
  #unsynced: UnsyncedWrite[] = [];
  #isDead = false;

  /** @param disk the durable state, which outlives this process */
  constructor(world: World, disk: Store, kind: SharedKind) {
    this.#world = world;
    this.#disk = disk;
    this.#kind = kind;
    this.sharing = kind === 'network' ? 'shared' : 'own';
    this.#bootRevision = disk.currentRevision() as Revision;
  }

  /**
   * Ends the process at once: a prefix of its unsynced writes is on the disk, none is acknowledged.
   */
  async crash(): Promise<void> {
    this.#isDead = true;
    this.#world.drop(this);
    for (const watch of this.#watches) watch.close();
    const kept = this.#unsynced.slice(0, this.#world.random.below(this.#unsynced.length + 1));
    this.#unsynced = [];
    for (const { apply } of kept) await apply();
  }

  /** Ends one of the watches, like a broken connection. */
  cutWatch(): void {
    const watches = [...this.#watches];
    if (watches.length > 0) this.#world.random.pick(watches).cut(failure('unavailable'));
  }

  currentRevision(): MaybePromise<Revision> {
    return this.#read(() => this.#disk.currentRevision());
  }

  compactRevision(): MaybePromise<Revision> {
    return this.#read(() => this.#disk.compactRevision());
  }

  get(key: string, at?: Revision): MaybePromise<StoredRecord | undefined> {
    return this.#read(() => this.#disk.get(key, at));
  }

  async range(request: RangeRequest): Promise<RangeResult> {
    return this.#read(() => this.#disk.range(request));
  }

  put(request: PutRequest): Promise<WriteResult> {
    const { hint: _, ...bare } = request;
    const sent = this.#kind === 'disk' ? request : bare;
    return this.#write(() => this.#disk.put(sent));
  }

  delete(request: DeleteRequest): Promise<WriteResult> {
    return this.#write(() => this.#disk.delete(request));
  }

  async watch(request: WatchRequest): Promise<StoreWatch> {
    if (this.#isDead) return never();
    if (this.#kind === 'disk') return this.#disk.watch(this.#withoutOldHints(request));
    await this.#read(() => undefined);
    const watch = new RemoteWatch(this.#world, this.#disk, request);
    await watch.open();
    watch.onClosed = () => this.#watches.delete(watch);
    this.#watches.add(watch);
    return watch;
  }

  async compact(revision: Revision): Promise<void> {
    await this.#read(() => this.#disk.compact(revision));
  }

  async ping(): Promise<void> {
    await this.#read(() => undefined);
  }

  sizeBytes(): Promise<number> {
    return this.#disk.sizeBytes();
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#disk.snapshot();
  }

  /** The disk belongs to the history. */
  async close(): Promise<void> {
    await this.crash();
  }

  #withoutOldHints(request: WatchRequest): WatchRequest {
    const strip = (event: StoreEvent): StoreEvent => {
      if (event.type === 'delete' || event.revision > this.#bootRevision) return event;
      const { hint: _, ...bare } = event;
      return bare;
    };
    const onEvents = (events: readonly StoreEvent[]) => {
      if (!this.#isDead) request.onEvents(events.map(strip));
    };
    return { ...request, onEvents };
  }

  #read<T>(look: () => MaybePromise<T>): MaybePromise<T> {
    if (this.#isDead) return never<T>();
    const world = this.#world;
    if (this.#kind === 'disk') return look();
    return new Promise<T>((resolve, reject) => {
      world.later(this, () => {
        if (world.strikes(0.02)) {
          reject(failure('unavailable'));
          return;
        }
        if (world.strikes(0.02)) {
          reject(failure('timed-out'));
          return;
        }
        const found = Promise.resolve().then(look);
        // Other answers may overtake this one.
        if (world.random.chance(0.5)) found.then(resolve, reject);
        else found.then(...this.#delayed(resolve, reject));
      });
    });
  }

  #delayed<T>(resolve: (value: T) => void, reject: (error: unknown) => void) {
    const world = this.#world;
    return [
      (value: T) => world.later(this, () => resolve(value)),
      (error: unknown) => world.later(this, () => reject(error)),
    ] as const;
  }

  #write(apply: () => Promise<WriteResult>): Promise<WriteResult> {
    if (this.#isDead) return never();
    return this.#kind === 'disk' ? this.#writeToDisk(apply) : this.#send(apply);
  }

  #writeToDisk(apply: () => Promise<WriteResult>): Promise<WriteResult> {
    if (this.#world.strikes(0.03)) return Promise.reject(failure('no-space'));
    return new Promise((resolve, reject) => {
      this.#unsynced.push({ apply, resolve, reject });
      this.#world.later(this, () => void this.#sync());
    });
  }

  /** Writes the pending batch in order, entirely or not at all. */
  async #sync(): Promise<void> {
    const batch = this.#unsynced;
    this.#unsynced = [];
    if (batch.length > 0 && this.#world.strikes(0.04)) {
      for (const { reject } of batch) reject(failure('no-space'));
      return;
    }
    for (const { apply, resolve, reject } of batch) apply().then(resolve, reject);
  }

  #send(apply: () => Promise<WriteResult>): Promise<WriteResult> {
    const world = this.#world;
    return new Promise((resolve, reject) => {
      const answer = (result: WriteResult) => world.later(this, () => resolve(result));
      const timeOut = () => world.later(this, () => reject(failure('timed-out')));
      const fates = {
        refused: () => world.later(this, () => reject(failure('unavailable'))),
        lost: timeOut,
        // Executed whenever it arrives, possibly long after its writer has given up or ended.
        late: () => {
          world.later(this.#disk, () => void apply());
          timeOut();
        },
        unanswered: () => world.later(this, () => void apply().then(timeOut)),
        answered: () => world.later(this, () => void apply().then(answer, reject)),
      };
      const fault = faultsOfWrites.find(([, probability]) => world.strikes(probability));
      fates[fault?.[0] ?? 'answered']();
    });
  }
}

/** A watch over the network: its events lag behind the store, and it may end at any time. */
class RemoteWatch implements StoreWatch {
  readonly #world: World;
  readonly #disk: Store;
  readonly #request: WatchRequest;
  readonly #arriving: StoreEvent[] = [];
  readonly #waiters: { revision: Revision; resolve: () => void; reject: (e: unknown) => void }[] =
    [];
  #watch: StoreWatch | undefined;
  #isClosed = false;
  progress: Revision;
  onClosed: () => void = () => {};

  constructor(world: World, disk: Store, request: WatchRequest) {
    this.#world = world;
    this.#disk = disk;
    this.#request = request;
    this.progress = request.after;
  }

  async open(): Promise<void> {
    const { prefix, after } = this.#request;
    this.#watch = await this.#disk.watch({
      prefix,
      after,
      onEvents: (events) => this.#receive(events),
      onEnd: (reason) => this.cut(reason),
    });
  }

  reached(revision: Revision): MaybePromise<void> {
    if (this.progress >= revision) return undefined;
    return new Promise((resolve, reject) => {
      this.#waiters.push({ revision, resolve, reject });
      const report = () => this.#world.later(this, () => this.#report());
      // The store reports its progress when it reaches the revision.
      void Promise.resolve(this.#watch?.reached(revision)).then(report, () => {});
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#watch?.close();
    this.#world.drop(this);
    const closed = new StoreError({ code: 'closed', message: 'the watch has been closed' });
    for (const { reject } of this.#waiters.splice(0)) reject(closed);
    this.onClosed();
  }

  cut(reason: StoreError): void {
    if (this.#isClosed) return;
    this.close();
    this.#request.onEnd(reason);
  }

  #receive(events: readonly StoreEvent[]): void {
    this.#arriving.push(...events);
    for (const _ of events) this.#world.later(this, () => this.#handOn());
  }

  /** Delivers some of the arrived events, in order. */
  #handOn(): void {
    const count = 1 + this.#world.random.below(3);
    const events = this.#arriving.splice(0, count);
    if (events.length === 0 || this.#isClosed) return;
    this.#request.onEvents(events);
    this.#advance(events.at(-1)?.revision ?? 0);
  }

  /** Reports the progress of the watch, requested by a waiter. */
  #report(): void {
    const caughtUp = this.#watch?.progress ?? 0;
    if (this.#arriving.length > 0) this.#request.onEvents(this.#arriving.splice(0));
    this.#advance(caughtUp);
  }

  #advance(revision: Revision): void {
    this.progress = Math.max(this.progress, revision);
    const due = this.#waiters.filter((waiter) => waiter.revision <= this.progress);
    for (const waiter of due) {
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      waiter.resolve();
    }
  }
}
