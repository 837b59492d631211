import type { Revision, StoreEvent } from '../contract.ts';

const eventsMax = 4096;
const bytesMax = 8 * 1024 * 1024;

/**
 * The last events of a store, so that a watch which begins a moment behind the present need not ask
 * etcd, which lets the past wait for a tenth of a second.
 */
export class EventTail {
  #events: StoreEvent[] = [];
  #head = 0;
  #bytes = 0;
  /** Everything after this revision is here. */
  floor: Revision;

  constructor(floor: Revision) {
    this.floor = floor;
  }

  add(event: StoreEvent): void {
    this.#events.push(event);
    this.#bytes += sizeOf(event);
    while (this.#events.length - this.#head > eventsMax || this.#bytes > bytesMax) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined) break;
      this.#drop(oldest);
    }
    if (this.#head < eventsMax) return;
    this.#events = this.#events.slice(this.#head);
    this.#head = 0;
  }

  /** Forgets what came up to a revision. */
  forget(revision: Revision): void {
    for (;;) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined || oldest.revision > revision) break;
      this.#drop(oldest);
    }
    this.floor = Math.max(this.floor, revision);
  }

  /** The events after a revision that is not below the floor. */
  after(revision: Revision): readonly StoreEvent[] {
    let from = this.#events.length;
    while (from > this.#head && (this.#events[from - 1]?.revision ?? 0) > revision) from -= 1;
    return this.#events.slice(from);
  }

  #drop(oldest: StoreEvent): void {
    this.#head += 1;
    this.#bytes -= sizeOf(oldest);
    this.floor = oldest.revision;
  }
}

function sizeOf(event: StoreEvent): number {
  return event.key.length + (event.type === 'put' ? event.value.length : 0);
}
