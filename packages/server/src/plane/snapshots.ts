import { definitionsPrefix } from '@wheelhouse/kinds';
import { type Dialect, pause, programClock } from '@wheelhouse/machinery';
import type { Checkpoint, CheckpointedStore } from '@wheelhouse/store';
import type { PlaneSnapshot, RestoredPlane } from './types.ts';

/** Nothing has been written for so long: what the start leads to is done. */
const quietMs = 30;
/** The controllers begin to write a moment after the plane is ready. */
const beginWithinMs = 100;
const quietWithinMs = 1000;
const pollMs = 5;

/** Takes snapshots of a plane's store and returns to them (PLANE-3). */
export class Snapshots {
  readonly #checkpoints = new WeakMap<PlaneSnapshot, Checkpoint>();
  readonly #last: string;
  #store: CheckpointedStore | undefined;
  #quiet: Promise<void> | undefined;

  constructor(dialect: Dialect) {
    // A kind goes after its objects, so that their watchers hear of each before the end.
    this.#last = definitionsPrefix(dialect.group('apiextensions'));
  }

  readonly take = async (): Promise<PlaneSnapshot> => {
    const store = this.#open();
    // Else each restore would take away what controllers make at the start: default accounts.
    this.#quiet ??= untilQuiet(store);
    await this.#quiet;
    const checkpoint = store.checkpoint();
    const snapshot = { resourceVersion: String(checkpoint.revision) };
    this.#checkpoints.set(snapshot, checkpoint);
    return snapshot;
  };

  readonly restore = async (snapshot: PlaneSnapshot): Promise<RestoredPlane> => {
    const store = this.#open();
    const checkpoint = this.#checkpoints.get(snapshot);
    if (checkpoint === undefined) throw new Error('the snapshot is not one of this plane');
    const { revision, changes } = store.restore(checkpoint, { last: this.#last });
    return { resourceVersion: String(revision), changes };
  };

  /** Receives the plane's store, if it is one that can return to earlier states. */
  readonly openedStore = (store: CheckpointedStore): void => {
    this.#store = store;
  };

  #open(): CheckpointedStore {
    if (this.#store !== undefined) return this.#store;
    throw new Error('snapshots need a plane that keeps its objects in memory');
  }
}

async function untilQuiet(store: CheckpointedStore): Promise<void> {
  const startMs = performance.now();
  let revision = await store.currentRevision();
  let sinceMs = startMs + beginWithinMs - quietMs;
  while (performance.now() < Math.min(sinceMs + quietMs, startMs + quietWithinMs)) {
    await pause(programClock, { ms: pollMs });
    const now = await store.currentRevision();
    if (now === revision) continue;
    revision = now;
    sinceMs = Math.max(performance.now(), sinceMs);
  }
}
