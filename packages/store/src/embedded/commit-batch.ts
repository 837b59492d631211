import type { Revision, StoredRecord, StoreEvent } from '../contract.ts';
import type { NewRecord } from './frame.ts';
import type { LogState } from './record-log.ts';

/** The newest write of a key. */
export interface Head {
  readonly modRevision: Revision;
  /** Create revision of the key; 0 if it is deleted. */
  readonly createRevision: Revision;
  readonly deleted: boolean;
}

/** The state of a key after a batch. */
interface KeyInBatch {
  readonly head: Head;
  readonly record: StoredRecord | undefined;
}

const noValue = Buffer.alloc(0);

/**
 * Writes that become durable together. The batch assigns their revisions, which are valid if it
 * commits.
 */
export class CommitBatch {
  readonly records: NewRecord[] = [];
  readonly events: StoreEvent[] = [];
  readonly #keys = new Map<string, KeyInBatch>();
  readonly #before: LogState;
  #revision: Revision;
  #touched = false;
  compacted: Revision;

  constructor(before: LogState) {
    this.#before = before;
    this.#revision = before.revision;
    this.compacted = before.compacted;
  }

  get nextRevision(): Revision {
    return this.#revision + 1;
  }

  /** Whether the batch has anything to commit. */
  get dirty(): boolean {
    return this.#touched || this.records.length > 0 || this.compacted !== this.#before.compacted;
  }

  state(): LogState {
    return { revision: this.#revision, compacted: this.compacted };
  }

  /** The write of this batch to the key, if any. */
  record(key: string): KeyInBatch | undefined {
    return this.#keys.get(key);
  }

  /** Makes the batch commit even without changes, which proves that the store can write. */
  touch(): void {
    this.#touched = true;
  }

  put(write: {
    readonly key: string;
    readonly keyBytes: Buffer;
    readonly value: Buffer;
    readonly createRevision: Revision;
    readonly previous: Revision;
    readonly hint: unknown;
  }): Revision {
    const { key, keyBytes, value, createRevision, previous, hint } = write;
    this.#revision += 1;
    const revision = this.#revision;
    this.records.push({ kind: 'put', key, keyBytes, value, createRevision, previous, revision });
    this.#keys.set(key, {
      head: { modRevision: revision, createRevision, deleted: false },
      record: { key, value, createRevision, modRevision: revision },
    });
    this.events.push({ type: 'put', key, value, createRevision, revision, hint });
    return revision;
  }

  delete(write: {
    readonly key: string;
    readonly keyBytes: Buffer;
    readonly previous: Revision;
  }): Revision {
    const { key, keyBytes, previous } = write;
    this.#revision += 1;
    const revision = this.#revision;
    const fields = { key, keyBytes, value: noValue, createRevision: 0, previous, revision };
    this.records.push({ kind: 'delete', ...fields });
    const head = { modRevision: revision, createRevision: 0, deleted: true };
    this.#keys.set(key, { head, record: undefined });
    this.events.push({ type: 'delete', key, revision });
    return revision;
  }
}
