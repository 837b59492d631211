import type { Revision, StoredRecord, StoreEvent } from '../contract.ts';
import type { Change } from './database.ts';
import {
  encodeHead,
  encodeLogKey,
  encodeLogRecord,
  type Head,
  headSize,
  logRecordSize,
  type StoreState,
} from './record.ts';

/** What a batch has made of one key. */
interface KeyInBatch {
  readonly head: Head;
  readonly record: StoredRecord | undefined;
}

const noValue = Buffer.alloc(0);

/** The writes that become durable together; revisions are given out here and hold if it commits. */
export class CommitBatch {
  readonly changes: Change[] = [];
  readonly events: StoreEvent[] = [];
  readonly #keys = new Map<string, KeyInBatch>();
  readonly #before: StoreState;
  #revision: Revision;
  #touched = false;
  compacted: Revision;
  swept: Revision;

  constructor(before: StoreState) {
    this.#before = before;
    this.#revision = before.revision;
    this.compacted = before.compacted;
    this.swept = before.swept;
  }

  get nextRevision(): Revision {
    return this.#revision + 1;
  }

  /** Whether there is anything to commit. */
  get dirty(): boolean {
    const { compacted, swept } = this.#before;
    return (
      this.#touched ||
      this.changes.length > 0 ||
      this.compacted !== compacted ||
      this.swept !== swept
    );
  }

  state(): StoreState {
    return { revision: this.#revision, compacted: this.compacted, swept: this.swept };
  }

  /** What this batch has already written to the key, if it has. */
  record(key: string): KeyInBatch | undefined {
    return this.#keys.get(key);
  }

  /** Commits even without a change: proves that the store can write. */
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
    const revision = this.#append({ kind: 'put', keyBytes, value, createRevision, previous });
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
    const { keyBytes, previous } = write;
    const gone = { kind: 'delete', keyBytes, value: noValue, createRevision: 0, previous } as const;
    const revision = this.#append(gone);
    const head = { modRevision: revision, createRevision: 0, deleted: true };
    this.#keys.set(write.key, { head, record: undefined });
    this.events.push({ type: 'delete', key: write.key, revision });
    return revision;
  }

  /** Removes a superseded record from the log. */
  forget(revision: Revision): void {
    const key = encodeLogKey(Buffer.allocUnsafe(8), revision);
    this.changes.push({ table: 'log', key, value: undefined });
  }

  /** Removes a deleted key from the index. */
  forgetKey(keyBytes: Buffer): void {
    this.changes.push({ table: 'heads', key: keyBytes, value: undefined });
  }

  #append(write: {
    readonly kind: 'put' | 'delete';
    readonly keyBytes: Buffer;
    readonly value: Buffer;
    readonly createRevision: Revision;
    readonly previous: Revision;
  }): Revision {
    this.#revision += 1;
    const revision = this.#revision;
    const { keyBytes, value, kind, createRevision, previous } = write;
    const record = encodeLogRecord(Buffer.allocUnsafe(logRecordSize(keyBytes, value)), {
      kind,
      keyBytes,
      value,
      createRevision,
      previous,
      revision,
    });
    const logKey = encodeLogKey(Buffer.allocUnsafe(8), revision);
    const head = { modRevision: revision, createRevision, deleted: kind === 'delete' };
    this.changes.push(
      { table: 'log', key: logKey, value: record },
      { table: 'heads', key: keyBytes, value: encodeHead(Buffer.allocUnsafe(headSize), head) },
    );
    return revision;
  }
}
