import { errorText, nextTurn } from '@wheelhouse/machinery';
import type { PutRequest, Store, StoredRecord, StoreEvent } from './contract.ts';

/** How the values of a store differ from what its user reads and writes. */
export interface ValueForm {
  /** The value as the user reads it. A value for which it throws is reported as unreadable. */
  readonly read: (value: Buffer, key: string) => Buffer;
  /** Whether the value of an event with this hint is in the user's form already. */
  readonly isRead?: (hint: unknown) => boolean;
  /** The value as the store keeps it; absent: as it is written. */
  readonly write?: (request: PutRequest) => Buffer;
}

/** Carries what was written to the writer's own watchers, which need not read it back. */
class WrittenHint {
  readonly form: ValueForm;
  readonly value: Buffer;
  readonly hint: unknown;

  constructor(form: ValueForm, { value, hint }: PutRequest) {
    this.form = form;
    this.value = value;
    this.hint = hint;
  }
}

/** How many values of a range are read before other work has its turn. */
const recordsAtOnce = 200;

type Mapped = Pick<StoredRecord, 'value' | 'unreadable' | 'failure'>;

/**
 * A store whose values pass through `form.read` on their way out, and through `form.write` on their
 * way in. Events of writes through this store keep the writer's value and hint; other hints describe
 * the stored form and are dropped.
 */
export function mappedStore(store: Store, form: ValueForm): Store {
  const { read, isRead, write } = form;
  /** One value that cannot be read must not take the others with it. */
  const mapped = (value: Buffer, key: string): Mapped => {
    try {
      return { value: read(value, key) };
    } catch (error) {
      const unreadable = errorText(error);
      return { value, unreadable, failure: 'decoding' };
    }
  };
  const record = <T extends StoredRecord | undefined>(found: T): T =>
    found === undefined || found.unreadable !== undefined
      ? found
      : { ...found, ...mapped(found.value, found.key) };
  const event = (one: StoreEvent): StoreEvent => {
    if (one.type !== 'put' || one.unreadable !== undefined || isRead?.(one.hint)) return one;
    const { hint, ...plain } = one;
    if (hint instanceof WrittenHint && hint.form === form)
      return { ...plain, value: hint.value, hint: hint.hint };
    return { ...plain, ...mapped(one.value, one.key) };
  };
  const written = (request: PutRequest): PutRequest =>
    write === undefined
      ? request
      : { ...request, value: write(request), hint: new WrittenHint(form, request) };
  return {
    sharing: store.sharing,
    currentRevision: (prefix) => store.currentRevision(prefix),
    compactRevision: () => store.compactRevision(),
    get(key, at) {
      const found = store.get(key, at);
      return found instanceof Promise ? found.then(record) : record(found);
    },
    async range(request) {
      const result = await store.range(request);
      const records: StoredRecord[] = [];
      for (const [at, one] of result.records.entries()) {
        if (at > 0 && at % recordsAtOnce === 0) await nextTurn();
        records.push(record(one));
      }
      return { ...result, records };
    },
    async put(request) {
      const result = await store.put(written(request));
      return result.ok ? result : { ok: false, current: record(result.current) };
    },
    async delete(request) {
      const result = await store.delete(request);
      return result.ok ? result : { ok: false, current: record(result.current) };
    },
    watch: (request) =>
      store.watch({ ...request, onEvents: (events) => request.onEvents(events.map(event)) }),
    compact: (revision) => store.compact(revision),
    ping: () => store.ping(),
    sizeBytes: () => store.sizeBytes(),
    snapshot: () => store.snapshot(),
    close: () => store.close(),
  };
}
