import {
  andThen,
  type Clock,
  errorText,
  itemAt,
  type MaybePromise,
  nextTurn,
  pacedBytesMin,
  runInSlices,
} from '@wheelhouse/machinery';
import {
  eventBytes,
  failedCallback,
  type PutRequest,
  pieceBytes,
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  unchangedOperations,
  type WatchRequest,
} from './contract.ts';

/** The translation of values between the store and its user. */
export interface ValueMapping {
  /**
   * Translates a stored value for the user. A value for which it throws is reported as unreadable.
   */
  readonly read: (value: Buffer, key: string) => Buffer;
  /** Does the work of `read` in steps, for large values (TRUST-2). */
  readonly readSteps: (value: Buffer, key: string) => Generator<void, Buffer>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Whether the value of an event with this hint needs no translation. */
  readonly isMapped?: (hint: unknown) => boolean;
  /** Translates a value for the store; if absent, values are stored unchanged. */
  readonly write?: (request: PutRequest) => Buffer;
}

/**
 * Carries the written value to watchers in this process, so that they need not translate it back.
 */
class WriteHint {
  readonly mapping: ValueMapping;
  readonly value: Buffer;
  readonly hint: unknown;

  constructor(mapping: ValueMapping, { value, hint }: PutRequest) {
    this.mapping = mapping;
    this.value = value;
    this.hint = hint;
  }
}

type Mapped = Pick<StoredRecord, 'value' | 'unreadable' | 'failure'>;

/** Number of small events that are translated together without slices. */
const quickEvents = 8;

/** Translates records and events by a mapping. */
class ValueReader {
  readonly #mapping: ValueMapping;

  constructor(mapping: ValueMapping) {
    this.#mapping = mapping;
  }

  readonly #record = <T extends StoredRecord | undefined>(stored: T): T =>
    stored === undefined || stored.unreadable !== undefined
      ? stored
      : { ...stored, ...this.#mapped(stored.value, stored.key) };

  /** A record, translated in slices if it is large. */
  readonly one = <T extends StoredRecord | undefined>(stored: T): MaybePromise<T> => {
    if (stored === undefined || !isLarge(stored.value.length)) return this.#record(stored);
    const translated = runInSlices(this.#recordSteps([stored]), this.#mapping.clock);
    const first = (records: readonly StoredRecord[]) => itemAt(records, 0) as T;
    return andThen(translated, first);
  };

  readonly records = (records: readonly StoredRecord[]): MaybePromise<StoredRecord[]> =>
    runInSlices(this.#recordSteps(records), this.#mapping.clock);

  readonly events: ChangeEvents = (events) => {
    const isQuick =
      events.length <= quickEvents &&
      events.every((event) => !isLarge(eventBytes(event)) || this.#unread(event) === undefined);
    return isQuick
      ? events.map((event) => this.#event(event))
      : runInSlices(this.#eventSteps(events), this.#mapping.clock);
  };

  *#recordSteps(records: readonly StoredRecord[]): Generator<void, StoredRecord[]> {
    const all: StoredRecord[] = [];
    for (const stored of records) {
      const { value, key, unreadable } = stored;
      const isDivided = isLarge(value.length) && unreadable === undefined;
      all.push(
        isDivided ? { ...stored, ...(yield* this.#mappedSteps(value, key)) } : this.#record(stored),
      );
      yield;
    }
    return all;
  }

  *#eventSteps(events: readonly StoreEvent[]): Generator<void, StoreEvent[]> {
    const all: StoreEvent[] = [];
    for (const event of events) {
      const unread = isLarge(eventBytes(event)) ? this.#unread(event) : undefined;
      all.push(
        unread === undefined
          ? this.#event(event)
          : { ...unread, ...(yield* this.#mappedSteps(unread.value, unread.key)) },
      );
      yield;
    }
    return all;
  }

  #event(event: StoreEvent): StoreEvent {
    const unread = this.#unread(event);
    if (unread !== undefined) return { ...unread, ...this.#mapped(unread.value, unread.key) };
    if (event.type !== 'put' || !this.#isOwn(event.hint)) return event;
    const { value, hint } = event.hint;
    return { ...event, value, hint };
  }

  /** The event without its hint if its value must be translated. */
  #unread(event: StoreEvent): PutEvent | undefined {
    if (!isReadable(event)) return undefined;
    const { hint, ...plain } = event;
    return this.#mapping.isMapped?.(hint) || this.#isOwn(hint) ? undefined : plain;
  }

  #isOwn(hint: unknown): hint is WriteHint {
    return hint instanceof WriteHint && hint.mapping === this.#mapping;
  }

  #mapped(value: Buffer, key: string): Mapped {
    try {
      return { value: this.#mapping.read(value, key) };
    } catch (error) {
      return unreadable(value, error);
    }
  }

  *#mappedSteps(value: Buffer, key: string): Generator<void, Mapped> {
    try {
      return { value: yield* this.#mapping.readSteps(value, key) };
    } catch (error) {
      return unreadable(value, error);
    }
  }
}

const isLarge = (bytes: number) => bytes >= pacedBytesMin;

/** Reports an untranslatable value in its record, so that it does not fail the others. */
function unreadable(value: Buffer, error: unknown): Mapped {
  return { value, unreadable: errorText(error), failure: 'decoding' };
}

/**
 * Returns a store that translates the values of another. Events of writes through this
 * store keep the writer's value and hint; other hints describe stored values and are dropped.
 */
export function mappedStore(store: Store, mapping: ValueMapping): Store {
  const { write } = mapping;
  const { one, records, events } = new ValueReader(mapping);
  const toStored = (request: PutRequest): PutRequest =>
    write === undefined
      ? request
      : { ...request, value: write(request), hint: new WriteHint(mapping, request) };
  return {
    ...unchangedOperations(store),
    get: (key, at) => andThen(store.get(key, at), one),
    async range(request) {
      const result = await store.range(request);
      return { ...result, records: await records(result.records) };
    },
    async put(request) {
      const result = await store.put(toStored(request));
      return result.ok ? result : { ok: false, current: await one(result.current) };
    },
    async delete(request) {
      const result = await store.delete(request);
      return result.ok ? result : { ok: false, current: await one(result.current) };
    },
    watch: (request) => watchChanged(store, request, events),
  };
}

/**
 * Converts the values of records, in order. Returns a promise if the conversion is asynchronous.
 */
export type ConvertRecords = (records: readonly StoredRecord[]) => MaybePromise<readonly Buffer[]>;

/**
 * Returns a read-only store that converts the values of another in batches. A value that
 * cannot be converted fails the read or ends the watch, with the converter's error as the cause.
 * Hints describe the original values and are dropped.
 */
export function convertedStore(store: Store, convert: ConvertRecords): Store {
  const records = async (stored: readonly StoredRecord[]): Promise<StoredRecord[]> => {
    const readable = stored.filter(({ unreadable }) => unreadable === undefined);
    let values: readonly Buffer[];
    try {
      values = await convert(readable);
    } catch (error) {
      throw conversionError(error);
    }
    const converted = new Map(readable.map((original, at) => [original, itemAt(values, at)]));
    return stored.map((original) => ({
      ...original,
      value: converted.get(original) ?? original.value,
    }));
  };
  const readOnly = () =>
    Promise.reject(new StoreError({ code: 'refused', message: 'a converted store is read-only' }));
  return {
    ...unchangedOperations(store),
    async get(key, at) {
      const record = await store.get(key, at);
      return record === undefined ? undefined : (await records([record]))[0];
    },
    async range(request) {
      const result = await store.range(request);
      return { ...result, records: await records(result.records) };
    },
    put: readOnly,
    delete: readOnly,
    watch: (request) => watchChanged(store, request, (batch) => convertEvents(batch, convert)),
  };
}

/** Watches a store whose events are translated in order. */
export async function watchChanged(
  store: Store,
  request: WatchRequest,
  change: ChangeEvents,
): Promise<StoreWatch> {
  const queue = new EventQueue(request, change);
  const watch = await store.watch({
    ...request,
    onEvents: (events) => queue.add(events),
    onEnd: (reason) => queue.end(reason),
  });
  return queue.attach(watch);
}

/** The error of a failed conversion, whose cause is the converter's error. */
function conversionError(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  return new StoreError({ code: 'unavailable', message: errorText(cause), cause });
}

/** The events with converted values; a promise if the converter returns one. */
function convertEvents(
  batch: readonly StoreEvent[],
  convert: ConvertRecords,
): MaybePromise<readonly StoreEvent[]> {
  return andThen(convert(recordsOf(batch)), (values) => withValues(batch, values));
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

/** Number of waiting events that are translated together, not counting the rest of a revision. */
const batchEvents = 500;

/** Memory of waiting events above which no further ones are accepted, bytes. */
const waitingBytesMax = 64 * 1024 * 1024;

/** Approximate memory of an event. */
const memoryOf = (event: StoreEvent) => eventBytes(event) + 2 * event.key.length + 200;

/**
 * Translates the events of a watch and delivers them in order, synchronously as long as the
 * translation is. A failed translation ends the watch with its error, and `compacted` ends it if
 * the translation falls far behind, so that its client reads the newest state instead.
 */
class EventQueue {
  readonly #request: WatchRequest;
  readonly #change: ChangeEvents;
  readonly #waiting: StoreEvent[] = [];
  #waitingBytes = 0;
  /** Resolves when the waiting events have been delivered; rejects if their translation fails. */
  #work: Promise<void> | undefined;
  /** The revision up to which all events have been delivered while later ones wait. */
  #delivered: Revision;
  #ended: StoreError | undefined;
  #closed = false;
  /** Why events were not delivered. */
  #failure: StoreError | undefined;
  #watch: StoreWatch | undefined;

  constructor(request: WatchRequest, change: ChangeEvents) {
    this.#request = request;
    this.#change = change;
    this.#delivered = request.after;
  }

  /** Adds events and starts to translate them. */
  add(events: readonly StoreEvent[]): void {
    if (this.#closed) return;
    if (this.#waitingBytes > waitingBytesMax) {
      const message = 'the changes arrive faster than their values are translated';
      this.#fail(new StoreError({ code: 'compacted', message }));
      return;
    }
    for (const event of events) {
      this.#waiting.push(event);
      this.#waitingBytes += memoryOf(event);
    }
    if (this.#work !== undefined) return;
    const work = this.#drain();
    if (work === undefined) return;
    this.#work = work;
    work.catch(() => {});
  }

  /** Ends the watch once the waiting events have been delivered. */
  end(reason: StoreError): void {
    if (this.#work === undefined) this.#finish(reason);
    else this.#ended = reason;
  }

  /** Returns the watch whose progress takes the waiting events into account. */
  attach(watch: StoreWatch): StoreWatch {
    this.#watch = watch;
    if (this.#closed) watch.close();
    const queue = this;
    return {
      get progress() {
        const isBehind = queue.#work !== undefined || queue.#failure !== undefined;
        return isBehind ? queue.#delivered : watch.progress;
      },
      reached(revision) {
        if (queue.#failure !== undefined) return Promise.reject(queue.#failure);
        const reached = watch.reached(revision);
        if (!(reached instanceof Promise)) return queue.#work;
        return reached.then(() => queue.#work);
      },
      close() {
        queue.#drop();
        watch.close();
      },
    };
  }

  /** Delivers all waiting events; returns undefined if all were delivered synchronously. */
  #drain(): Promise<void> | undefined {
    if (this.#waiting.length === 0) return undefined;
    const batch = this.#take();
    this.#delivered = Math.max(this.#delivered, itemAt(batch, 0).revision - 1);
    let changed: MaybePromise<readonly StoreEvent[]>;
    try {
      changed = this.#change(batch);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
    if (changed instanceof Promise) return this.#drainAsync(changed);
    try {
      this.#deliver(changed);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
    // Events that were added during the delivery may already be in work.
    if (this.#waiting.length === 0 || this.#work !== undefined) return undefined;
    return this.#drainAsync(nextTurn().then(() => []));
  }

  async #drainAsync(first: Promise<readonly StoreEvent[]>): Promise<void> {
    try {
      let changed: MaybePromise<readonly StoreEvent[]> = first;
      for (;;) {
        this.#deliver(changed instanceof Promise ? await changed : changed);
        if (this.#failure !== undefined) throw this.#failure;
        if (this.#waiting.length === 0) break;
        if (!(changed instanceof Promise)) await nextTurn();
        changed = this.#change(this.#take());
      }
    } catch (error) {
      this.#work = undefined;
      throw this.#fail(error);
    }
    this.#work = undefined;
    if (this.#ended !== undefined) this.#finish(this.#ended);
  }

  /** Takes the next waiting events, with all events of their last revision. */
  #take(): readonly StoreEvent[] {
    const waiting = this.#waiting;
    let bytes = 0;
    let end = 0;
    while (end < waiting.length && end < batchEvents && bytes < pieceBytes) {
      bytes += eventBytes(itemAt(waiting, end));
      end += 1;
    }
    const last = waiting[end - 1]?.revision;
    while (waiting[end]?.revision === last && end < waiting.length) end += 1;
    const taken = waiting.splice(0, end);
    for (const event of taken) this.#waitingBytes -= memoryOf(event);
    return taken;
  }

  #deliver(events: readonly StoreEvent[]): void {
    if (this.#closed || events.length === 0) return;
    try {
      this.#request.onEvents(events);
    } catch (error) {
      throw failedCallback(error);
    }
    this.#delivered = events.at(-1)?.revision ?? this.#delivered;
  }

  #fail(error: unknown): StoreError {
    this.#failure ??= conversionError(error);
    this.#finish(this.#failure);
    return this.#failure;
  }

  #finish(reason: StoreError): void {
    if (this.#closed) return;
    this.#drop();
    this.#watch?.close();
    this.#request.onEnd(reason);
  }

  /** Forgets the waiting events; no others are accepted. */
  #drop(): void {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
  }
}
