import type { Store, StoredRecord, StoreEvent } from './contract.ts';

/**
 * A store whose values pass through `read` on their way out: for readers that need another form
 * than the stored one. Events whose writer's hint says so are in that form already; the hints of
 * others are of no use to the reader.
 */
export function mappedStore(
  store: Store,
  form: {
    readonly read: (value: Buffer) => Buffer;
    readonly isRead: (hint: unknown) => boolean;
  },
): Store {
  const { read, isRead } = form;
  /** One value that cannot be read must not take the others with it. */
  const mapped = (value: Buffer): Pick<StoredRecord, 'value' | 'unreadable'> => {
    try {
      return { value: read(value) };
    } catch (error) {
      return { value, unreadable: error instanceof Error ? error.message : String(error) };
    }
  };
  const record = <T extends StoredRecord | undefined>(found: T): T =>
    found === undefined || found.unreadable !== undefined
      ? found
      : { ...found, ...mapped(found.value) };
  const event = (one: StoreEvent): StoreEvent => {
    if (one.type !== 'put' || one.unreadable !== undefined || isRead(one.hint)) return one;
    const { hint: _, ...plain } = one;
    return { ...plain, ...mapped(one.value) };
  };
  return {
    currentRevision: (prefix) => store.currentRevision(prefix),
    compactRevision: () => store.compactRevision(),
    get(key, at) {
      const found = store.get(key, at);
      return found instanceof Promise ? found.then(record) : record(found);
    },
    async range(request) {
      const result = await store.range(request);
      return { ...result, records: result.records.map(record) };
    },
    async put(request) {
      const result = await store.put(request);
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
