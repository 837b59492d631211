import { errorText, itemAt, type MaybePromise, nextTurn } from '@wheelhouse/machinery';
import {
  type PutRequest,
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  unchangedOperations,
  type WatchRequest,
} from './contract.ts';

/** How values are translated between the store and its user. */
export interface ValueForm {
  /**
   * Translates a stored value for the user. A value for which it throws is reported as unreadable.
   */
  readonly read: (value: Buffer, key: string) => Buffer;
  /** Whether the value of an event with this hint is already in the user's form. */
  readonly isRead?: (hint: unknown) => boolean;
  /** Translates a value for the store; if absent, values are stored as written. */
  readonly write?: (request: PutRequest) => Buffer;
}

/**
 * Carries the written value to watchers in this process, so that they need not translate it back.
 */
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

/** Number of values of a range that are translated before yielding to the event loop. */
const recordsAtOnce = 200;

type Mapped = Pick<StoredRecord, 'value' | 'unreadable' | 'failure'>;

/**
 * A store that translates values with `form.read` and `form.write`. Events of writes through this
 * store keep the writer's value and hint; other hints describe stored values and are dropped.
 */
export function mappedStore(store: Store, form: ValueForm): Store {
  const { read, isRead, write } = form;
  /** A value that cannot be read must not fail the others. */
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
    ...unchangedOperations(store),
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
  };
}

/**
 * Converts the values of records, in order. Returns a promise if the conversion is asynchronous.
 */
export type ConvertRecords = (records: readonly StoredRecord[]) => MaybePromise<readonly Buffer[]>;

/**
 * A read-only store whose values pass through an asynchronous converter in batches. A value that
 * cannot be converted fails the read or ends the watch, with the converter's error as the cause.
 * Hints describe the original values and are dropped.
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
    ...unchangedOperations(store),
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

/** The events with converted values; a promise if the converter returns one. */
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

/** Translates events, in order. Returns a promise if the translation is asynchronous. */
type ChangeEvents = (batch: readonly StoreEvent[]) => MaybePromise<readonly StoreEvent[]>;

/** Number of waiting events that are translated at a time. */
const batchEvents = 500;

/**
 * Translates the events of a watch and delivers them in order, synchronously as long as the
 * translation is. A failed translation ends the watch with its error.
 */
export class EventLine {
  readonly #request: WatchRequest;
  readonly #change: ChangeEvents;
  readonly #waiting: StoreEvent[] = [];
  /** Settles when the waiting events have been delivered; rejects if they never will be. */
  #work: Promise<void> | undefined;
  /** Everything up to this revision has been delivered while later events wait. */
  #passed: Revision;
  #ended: StoreError | undefined;
  #closed = false;
  #watch: StoreWatch | undefined;

  constructor(request: WatchRequest, change: ChangeEvents) {
    this.#request = request;
    this.#change = change;
    this.#passed = request.after;
  }

  add(events: readonly StoreEvent[]): void {
    if (this.#closed) return;
    for (const event of events) this.#waiting.push(event);
    if (this.#work !== undefined) return;
    const work = this.#run();
    if (work === undefined) return;
    this.#work = work;
    work.catch(() => {});
  }

  /** Ends the watch once the waiting events have been delivered. */
  end(reason: StoreError): void {
    if (this.#work === undefined) this.#finish(reason);
    else this.#ended = reason;
  }

  over(watch: StoreWatch): StoreWatch {
    this.#watch = watch;
    if (this.#closed) watch.close();
    const line = this;
    return {
      get progress() {
        return line.#work === undefined ? watch.progress : line.#passed;
      },
      reached(revision) {
        const reached = watch.reached(revision);
        if (!(reached instanceof Promise)) return line.#work;
        return reached.then(() => line.#work);
      },
      close() {
        line.#closed = true;
        line.#waiting.length = 0;
        watch.close();
      },
    };
  }

  /** Delivers all waiting events; undefined if all of it happened synchronously. */
  #run(): Promise<void> | undefined {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchEvents);
      this.#passed = Math.max(this.#passed, itemAt(batch, 0).revision - 1);
      let changed: MaybePromise<readonly StoreEvent[]>;
      try {
        changed = this.#change(batch);
      } catch (error) {
        this.#finish(endOf(error));
        return undefined;
      }
      if (changed instanceof Promise) return this.#runOn(changed);
      this.#pass(changed);
    }
    return undefined;
  }

  async #runOn(first: Promise<readonly StoreEvent[]>): Promise<void> {
    try {
      let changed: MaybePromise<readonly StoreEvent[]> = first;
      for (;;) {
        this.#pass(await changed);
        if (this.#waiting.length === 0) break;
        changed = this.#change(this.#waiting.splice(0, batchEvents));
      }
    } catch (error) {
      const failure = endOf(error);
      this.#work = undefined;
      this.#finish(failure);
      throw failure;
    }
    this.#work = undefined;
    if (this.#ended !== undefined) this.#finish(this.#ended);
  }

  #pass(events: readonly StoreEvent[]): void {
    if (this.#closed) return;
    this.#passed = events.at(-1)?.revision ?? this.#passed;
    this.#request.onEvents(events);
  }

  #finish(reason: StoreError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watch?.close();
    this.#request.onEnd(reason);
  }
}

function endOf(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const message = errorText(error);
  return new StoreError({ code: 'unavailable', message, cause: error });
}
