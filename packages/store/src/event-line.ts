import { errorText, itemAt, type MaybePromise } from '@wheelhouse/machinery';
import {
  type Revision,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchRequest,
} from './contract.ts';

/** Changes the form of events, in their order; a promise where it takes a while. */
export type ChangeEvents = (batch: readonly StoreEvent[]) => MaybePromise<readonly StoreEvent[]>;

/** So many events are changed at a time, when many wait. */
const batchEvents = 500;

/**
 * The events of a watch on their way through a change of form, which are passed on in their order;
 * at once, while no change takes a promise. A change that fails ends the watch with its error.
 */
export class EventLine {
  readonly #request: WatchRequest;
  readonly #change: ChangeEvents;
  readonly #waiting: StoreEvent[] = [];
  /** Settles when all that waits now has been passed on; rejects when it never will be. */
  #work: Promise<void> | undefined;
  /** Everything up to here has been passed on while events wait. */
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

  /** Passes on all that waits; undefined when nothing had to be waited for. */
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
