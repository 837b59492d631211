import type { PutRequest, StoreEvent } from '../contract.ts';

/**
 * Puts of this process that are in flight, so that their events get their hints. A hint describes
 * the bytes, so it fits any event with the same key and bytes.
 */
export class PendingPuts {
  readonly #byKey = new Map<string, PutRequest[]>();

  add(put: PutRequest): void {
    if (put.hint === undefined) return;
    const others = this.#byKey.get(put.key);
    if (others === undefined) this.#byKey.set(put.key, [put]);
    else others.push(put);
  }

  remove(put: PutRequest): void {
    const others = this.#byKey.get(put.key);
    const at = others?.indexOf(put) ?? -1;
    if (others === undefined || at < 0) return;
    others.splice(at, 1);
    if (others.length === 0) this.#byKey.delete(put.key);
  }

  /** The event, with the hint of the pending put that caused it. */
  withHint(event: StoreEvent): StoreEvent {
    if (event.type !== 'put' || this.#byKey.size === 0) return event;
    const put = this.#byKey.get(event.key)?.find(({ value }) => value.equals(event.value));
    return put === undefined ? event : { ...event, value: put.value, hint: put.hint };
  }
}
