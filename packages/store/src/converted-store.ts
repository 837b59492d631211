import { errorText, itemAt, type MaybePromise } from '@wheelhouse/machinery';
import { type Store, type StoredRecord, StoreError, type StoreEvent } from './contract.ts';
import { EventLine } from './event-line.ts';

/** Gives the values of records in another form, in their order; a promise where it takes a while. */
export type ConvertRecords = (records: readonly StoredRecord[]) => MaybePromise<readonly Buffer[]>;

/**
 * A store whose values pass, many at a time, through somebody who may take a while or fail: for
 * readers that need a form which only others can make. What cannot be converted fails the read or
 * ends the watch, with the converter's error as the cause. Hints speak of the form before, and are
 * not passed on. Writes are nobody's to make here.
 */
export function convertedStore(store: Store, convert: ConvertRecords): Store {
  const records = async (found: readonly StoredRecord[]): Promise<StoredRecord[]> => {
    const readable = found.filter(({ unreadable }) => unreadable === undefined);
    const values = await converting(() => convert(readable));
    const made = new Map(readable.map((one, at) => [one, itemAt(values, at)]));
    return found.map((one) => ({ ...one, value: made.get(one) ?? one.value }));
  };
  const readOnly = () =>
    Promise.reject(new StoreError({ code: 'refused', message: 'a view cannot be written to' }));
  return {
    sharing: store.sharing,
    currentRevision: (prefix) => store.currentRevision(prefix),
    compactRevision: () => store.compactRevision(),
    async get(key, at) {
      const found = await store.get(key, at);
      return found === undefined ? undefined : (await records([found]))[0];
    },
    async range(request) {
      const result = await store.range(request);
      return { ...result, records: await records(result.records) };
    },
    put: readOnly,
    delete: readOnly,
    async watch(request) {
      const line = new EventLine(request, (batch) => convertEvents(batch, convert));
      const watch = await store.watch({
        ...request,
        onEvents: (events) => line.add(events),
        onEnd: (reason) => line.end(reason),
      });
      return line.over(watch);
    },
    compact: (revision) => store.compact(revision),
    ping: () => store.ping(),
    sizeBytes: () => store.sizeBytes(),
    snapshot: () => store.snapshot(),
    close: () => store.close(),
  };
}

async function converting<T>(work: () => MaybePromise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw conversionError(error);
  }
}

function conversionError(cause: unknown): StoreError {
  const message = errorText(cause);
  return new StoreError({ code: 'unavailable', message, cause });
}

/** The events with their values in the other form; a promise where the converter gives one. */
function convertEvents(
  batch: readonly StoreEvent[],
  convert: ConvertRecords,
): MaybePromise<readonly StoreEvent[]> {
  const failed = (error: unknown): never => {
    throw conversionError(error);
  };
  const put = (values: readonly Buffer[]) => withValues(batch, values);
  let made: MaybePromise<readonly Buffer[]>;
  try {
    made = convert(recordsOf(batch));
  } catch (error) {
    return failed(error);
  }
  return made instanceof Promise ? made.then(put, failed) : put(made);
}

function withValues(batch: readonly StoreEvent[], values: readonly Buffer[]): StoreEvent[] {
  let at = 0;
  return batch.map((event) => {
    if (!isReadable(event)) return event;
    const { hint: _, ...plain } = event;
    at += 1;
    return { ...plain, value: itemAt(values, at - 1) };
  });
}

type PutEvent = Extract<StoreEvent, { readonly type: 'put' }>;

const isReadable = (event: StoreEvent): event is PutEvent =>
  event.type === 'put' && event.unreadable === undefined;

const recordsOf = (batch: readonly StoreEvent[]): StoredRecord[] =>
  batch.filter(isReadable).map(({ key, value, createRevision, revision }) => {
    return { key, value, createRevision, modRevision: revision };
  });
