import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type Logger,
  largest,
  type Timer,
} from '@wheelhouse/machinery';
import { remove } from '../registry/commit.ts';
import { decodedEntries, objectKey } from '../registry/object-codec.ts';
import type { Registry } from '../registry/registry.ts';
import type { EntryChange } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { storedVersion, visitEntries } from './tools.ts';
import type { Controller } from './work-queue.ts';

/** Maximum number of concurrent removals. */
const removalsMax = 32;
/** Events that expire within this fraction of their lifetime are removed together. */
const sweepShare = 0.1;
const sweepMsMax = 1000;

/**
 * Removes Events after their TTL since the last write (EVENT-3), as etcd leases do for
 * kube-apiserver: regardless of finalizers, and on condition that the Event is unchanged; watchers
 * receive DELETED. `#due` is sorted by time, because all lifetimes are equal and a change moves its
 * Event to the end. For example, with a lifetime of 60 s, writes of a at 0 s, b at 10 s, and a at
 * 20 s yield `b -> 70 s, a -> 80 s` and one timer, for b.
 */
export function startEventExpiry(options: EventExpiryOptions): Controller {
  const { events, registry, clock, logger } = options;
  const { caches } = registry;
  const expiry = new EventExpiry(options);
  const subscription = caches.of(events).subscribe((change) => expiry.onChange(change));
  const stopping = new AbortController();
  const { signal } = stopping;
  const existing: Entry[] = [];
  const listed = { at: { def: events, namespace: '' }, plural: 'Events', signal };
  const loading = visitEntries({ caches, clock, logger }, listed, (entry) => existing.push(entry))
    .then(() => expiry.addExisting(existing.splice(0)))
    .catch((error: unknown) =>
      logger.error('cannot remove expired Events', { error: String(error) }),
    );
  return {
    async close() {
      subscription.close();
      stopping.abort();
      await Promise.all([expiry.close(), loading]);
    },
  };
}

interface EventExpiryOptions {
  readonly events: ResourceDef;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Lifetime of Events in milliseconds. */
  readonly ttlMs: number;
}

class EventExpiry {
  readonly #options: EventExpiryOptions;
  readonly #sweepMs: number;
  readonly #due = new Map<string, number>();
  #timer: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #closed = false;

  constructor(options: EventExpiryOptions) {
    this.#options = options;
    this.#sweepMs = Math.min(sweepMsMax, options.ttlMs * sweepShare);
  }

  onChange({ previous, current }: EntryChange): void {
    const { clock, ttlMs } = this.#options;
    if (previous !== undefined) this.#due.delete(previous.key);
    if (current === undefined) return;
    this.#due.delete(current.key);
    this.#due.set(current.key, clock.monotonic() + ttlMs);
    this.#schedule();
  }

  /** Adds the Events that existed at startup, ahead of those that have changed since. */
  async addExisting(entries: readonly Entry[]): Promise<void> {
    const { clock, ttlMs } = this.#options;
    const found: (readonly [string, number])[] = [];
    for await (const { metadata } of decodedEntries(entries, clock)) {
      if (this.#closed) return;
      const { name = '', namespace = '' } = metadata;
      const ageMs = Math.max(0, clock.now() - lastWrittenMs(metadata));
      found.push([objectKey(namespace, name), clock.monotonic() + ttlMs - ageMs]);
    }
    const later = [...this.#due];
    const earlier = found.filter(([key]) => !this.#due.has(key)).sort((a, b) => a[1] - b[1]);
    this.#due.clear();
    for (const [key, atMs] of [...earlier, ...later]) this.#due.set(key, atMs);
    // A running timer belongs to a later change, which is due later.
    this.#timer?.stop();
    this.#timer = undefined;
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.stop();
    await this.#sweeping;
  }

  #schedule(): void {
    const { clock } = this.#options;
    const [first] = this.#due.values();
    if (this.#closed || this.#timer !== undefined || first === undefined) return;
    if (this.#sweeping !== undefined) return;
    this.#timer = clock.after(Math.max(first - clock.monotonic(), 0) + this.#sweepMs, () => {
      this.#timer = undefined;
      this.#sweeping = this.#sweep().finally(() => {
        this.#sweeping = undefined;
        this.#schedule();
      });
    });
  }

  async #sweep(): Promise<void> {
    const now = this.#options.clock.monotonic();
    let batch: string[] = [];
    for (const [key, atMs] of this.#due) {
      if (atMs > now || this.#closed) break;
      batch.push(key);
      if (batch.length < removalsMax) continue;
      await Promise.all(batch.map((eventKey) => this.#remove(eventKey)));
      batch = [];
    }
    await Promise.all(batch.map((eventKey) => this.#remove(eventKey)));
  }

  /** Removes one Event; the next sweep retries a failed removal. */
  async #remove(key: string): Promise<void> {
    const { events, registry, logger } = this.#options;
    const entry = registry.caches.of(events).peek(key);
    if (entry === undefined) return void this.#due.delete(key);
    try {
      const target = targetOf(events, entry);
      const outcome = await remove(registry, { target, current: entry });
      if (outcome.type === 'failed') throw outcome.error;
    } catch (error) {
      logger.debug(2, 'cannot remove an expired Event yet', { key, error: String(error) });
    }
  }
}

function targetOf(def: ResourceDef, entry: Entry) {
  const { namespace, name } = entry.index;
  return { def, version: storedVersion(def), namespace, name, subresource: '' };
}

/** The latest time in an Event's metadata, in milliseconds since the epoch; 0 if there is none. */
function lastWrittenMs(metadata: ApiObject['metadata']): number {
  const times = [metadata.creationTimestamp, ...(metadata.managedFields ?? []).map(timeOf)];
  const validMs = times.map((time) => Date.parse(time ?? '')).filter((time) => !Number.isNaN(time));
  return largest(0, validMs);
}

function timeOf(field: { readonly time?: string }): string | undefined {
  return field.time;
}
