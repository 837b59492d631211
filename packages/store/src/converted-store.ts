import type { MaybePromise } from '@wheelhouse/machinery';
import {
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchRequest,
} from './contract.ts';

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
    const made = new Map(readable.map((one, at) => [one, values[at] as Buffer]));
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
      const line = new ConversionLine(request, convert);
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
  const message = cause instanceof Error ? cause.message : String(cause);
  return new StoreError({ code: 'unavailable', message, cause });
}

/** So many events are converted at a time, when many wait. */
const batchEvents = 500;

/** Events that wait for their turn at the converter: they are passed on in their order. */
class ConversionLine {
  readonly #request: WatchRequest;
  readonly #convert: ConvertRecords;
  readonly #waiting: StoreEvent[] = [];
  /** Settles when all that waits now has been passed on; rejects when it never will be. */
  #work: Promise<void> | undefined;
  /** Everything up to here has been passed on while events wait. */
  #passed: Revision;
  #ended: StoreError | undefined;
  #closed = false;
  #watch: StoreWatch | undefined;

  constructor(request: WatchRequest, convert: ConvertRecords) {
    this.#request = request;
    this.#convert = convert;
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

  /** What the store ends the watch with comes behind what still waits. */
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

  /** Passes on all that waits; undefined when nobody had to be waited for. */
  #run(): Promise<void> | undefined {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchEvents);
      this.#passed = Math.max(this.#passed, (batch[0] as StoreEvent).revision - 1);
      let made: MaybePromise<readonly Buffer[]>;
      try {
        made = this.#convert(recordsOf(batch));
      } catch (error) {
        this.#finish(conversionError(error));
        return undefined;
      }
      if (made instanceof Promise) return this.#runOn(batch, made);
      this.#pass(batch, made);
    }
    return undefined;
  }

  async #runOn(batch: readonly StoreEvent[], made: Promise<readonly Buffer[]>): Promise<void> {
    let next: { readonly batch: readonly StoreEvent[]; made: MaybePromise<readonly Buffer[]> } = {
      batch,
      made,
    };
    try {
      for (;;) {
        this.#pass(next.batch, await next.made);
        if (this.#waiting.length === 0) break;
        const more = this.#waiting.splice(0, batchEvents);
        next = { batch: more, made: this.#convert(recordsOf(more)) };
      }
    } catch (error) {
      const failure = conversionError(error);
      this.#work = undefined;
      this.#finish(failure);
      throw failure;
    }
    this.#work = undefined;
    if (this.#ended !== undefined) this.#finish(this.#ended);
  }

  #pass(batch: readonly StoreEvent[], values: readonly Buffer[]): void {
    if (this.#closed) return;
    let at = 0;
    const events = batch.map((event) => {
      if (!isReadable(event)) return event;
      const { hint: _, ...plain } = event;
      at += 1;
      return { ...plain, value: values[at - 1] as Buffer };
    });
    this.#passed = (batch.at(-1) as StoreEvent).revision;
    this.#request.onEvents(events);
  }

  #finish(reason: StoreError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watch?.close();
    this.#request.onEnd(reason);
  }
}

type PutEvent = Extract<StoreEvent, { readonly type: 'put' }>;

const isReadable = (event: StoreEvent): event is PutEvent =>
  event.type === 'put' && event.unreadable === undefined;

const recordsOf = (batch: readonly StoreEvent[]): StoredRecord[] =>
  batch.filter(isReadable).map(({ key, value, createRevision, revision }) => {
    return { key, value, createRevision, modRevision: revision };
  });
