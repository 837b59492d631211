import {
  emptyOrderedMap,
  firstIndex,
  type OrderedMap,
  orderedMapDelete,
  orderedMapGet,
  orderedMapOf,
  orderedMapRank,
  orderedMapSet,
  orderedMapValues,
} from '@wheelhouse/machinery';
import { byteOrdered, type Revision } from '../contract.ts';
import { recordOverhead } from './frame.ts';
import type { Segment } from './segment.ts';

/** One write of a key and its position in the log. */
export interface Place {
  readonly revision: Revision;
  readonly createRevision: Revision;
  readonly deleted: boolean;
  readonly chain: KeyChain;
  segment: Segment;
  offset: number;
  readonly size: number;
  /** The previous write of the key while it is readable. */
  older: Place | undefined;
  /** Whether compaction has dropped it, so that its bytes can be reclaimed. */
  isDead: boolean;
}

/** All readable writes of one key, newest first. */
export interface KeyChain {
  readonly key: string;
  head: Place;
}

/** A record as stored in the log. */
interface PlacedRecord {
  readonly key: string;
  readonly revision: Revision;
  readonly createRevision: Revision;
  readonly deleted: boolean;
  readonly segment: Segment;
  readonly offset: number;
  readonly size: number;
}

/**
 * The in-memory index of the log: the writes of each key, and all writes since the oldest readable
 * revision in order. Replaying a log yields the same index.
 */
export class LogIndex {
  /** The newest state that the replay has reached. */
  revision: Revision = 0;
  compacted: Revision = 0;
  #chains: OrderedMap<KeyChain> = emptyOrderedMap();
  /** The chains during a replay; sorted once at its end. */
  #unsorted: Map<string, KeyChain> | undefined = new Map();
  /**
   * Writes after `compacted`, in order, after those that `drop` has yet to visit; entries before
   * `#recentFrom` are obsolete.
   */
  #recent: Place[] = [];
  #recentFrom = 0;
  /** Whether the replay added writes out of order. */
  #isRecentUnsorted = false;

  /** Ends the replay. */
  sort(): void {
    this.#sortRecent();
    const chains = [...(this.#unsorted ?? [])].map(
      ([key, chain]) => [byteOrdered(key), chain] as const,
    );
    chains.sort(([left], [right]) => (left < right ? -1 : 1));
    this.#chains = orderedMapOf(chains);
    this.#unsorted = undefined;
  }

  chain(key: string): KeyChain | undefined {
    return this.#unsorted === undefined
      ? orderedMapGet(this.#chains, byteOrdered(key))
      : this.#unsorted.get(key);
  }

  get size(): number {
    return this.#unsorted?.size ?? this.#chains.size;
  }

  /** Chains of keys with a prefix that follow a key, in byte order; valid for one turn. */
  *chains(range: {
    readonly prefix: string;
    readonly after?: string | undefined;
  }): Generator<KeyChain> {
    const first = byteOrdered(range.prefix);
    const after = range.after === undefined ? undefined : byteOrdered(range.after);
    const start = after !== undefined && after >= first ? after : first;
    let from = orderedMapRank(this.#chains, start);
    if (after === start && orderedMapGet(this.#chains, start) !== undefined) from += 1;
    for (const chain of orderedMapValues(this.#chains, { from, to: this.#chains.size })) {
      if (!chain.key.startsWith(range.prefix)) return;
      yield chain;
    }
  }

  /** Writes after a revision, in order. */
  writesAfter(after: Revision, limit: number): Place[] {
    const from = this.#recentAfter(after);
    return this.#recent.slice(from, from + limit);
  }

  /** Adds a record of the log. A record that is already indexed has moved. */
  add(record: PlacedRecord): void {
    const chain = this.chain(record.key);
    if (chain === undefined) this.#addChain(record);
    else if (record.revision > chain.head.revision) this.#addNewest(chain, record);
    else this.#addOlder(chain, record);
  }

  /** Records the new position of a write. */
  move(place: Place, to: { readonly segment: Segment; readonly offset: number }): void {
    const bytes = place.size + recordOverhead;
    if (!place.isDead) place.segment.liveBytes -= bytes;
    place.segment = to.segment;
    place.offset = to.offset;
    if (!place.isDead) place.segment.liveBytes += bytes;
  }

  /** Makes `revision` the oldest readable one; `drop` frees what no read can see any longer. */
  compact(revision: Revision): void {
    if (revision <= this.compacted) return;
    this.#sortRecent();
    this.compacted = revision;
  }

  /**
   * Drops the writes that no read at `compacted` or later can see. Each call visits at most
   * `writesMax` writes; returns whether more remain.
   */
  drop(writesMax = Number.POSITIVE_INFINITY): boolean {
    for (let left = writesMax; ; left -= 1) {
      const place = this.#recent[this.#recentFrom];
      if (place === undefined || place.revision > this.compacted) break;
      if (left === 0) return true;
      this.#recentFrom += 1;
      this.#dropOlder(place);
      if (place.deleted) this.#dropDeletion(place);
    }
    if (this.#recentFrom * 2 > this.#recent.length) {
      this.#recent = this.#recent.slice(this.#recentFrom);
      this.#recentFrom = 0;
    }
    return false;
  }

  #addChain(record: PlacedRecord): void {
    if (record.deleted && record.revision <= this.compacted) return;
    const chain = { key: record.key } as KeyChain;
    chain.head = this.#place(chain, record, undefined);
    if (this.#unsorted !== undefined) this.#unsorted.set(record.key, chain);
    else this.#chains = orderedMapSet(this.#chains, byteOrdered(record.key), chain);
    this.#addRecent(chain.head);
  }

  #addNewest(chain: KeyChain, record: PlacedRecord): void {
    const place = this.#place(chain, record, chain.head);
    chain.head = place;
    if (record.revision > this.compacted) this.#addRecent(place);
    else {
      this.#dropOlder(place);
      if (place.deleted) this.#dropDeletion(place);
    }
  }

  /** Adds a copy of an indexed record, or of one whose original was removed. */
  #addOlder(chain: KeyChain, record: PlacedRecord): void {
    let newer = chain.head;
    let place: Place | undefined = newer;
    while (place !== undefined && place.revision > record.revision) {
      newer = place;
      place = place.older;
    }
    if (place?.revision === record.revision) {
      this.move(place, record);
      return;
    }
    if (newer.revision <= this.compacted) return;
    if (record.deleted && record.revision <= this.compacted) return;
    newer.older = this.#place(chain, record, place);
    this.#addRecent(newer.older);
  }

  #place(chain: KeyChain, record: PlacedRecord, older: Place | undefined): Place {
    const { revision, createRevision, deleted, segment, offset, size } = record;
    segment.liveBytes += size + recordOverhead;
    return {
      revision,
      createRevision,
      deleted,
      chain,
      segment,
      offset,
      size,
      older,
      isDead: false,
    };
  }

  #addRecent(place: Place): void {
    if (place.revision <= this.compacted) return;
    const last = this.#recent.at(-1);
    const isNext = last === undefined || last.revision < place.revision;
    if (isNext || this.#unsorted !== undefined) {
      this.#recent.push(place);
      if (!isNext) this.#isRecentUnsorted = true;
    } else this.#recent.splice(this.#recentAfter(place.revision), 0, place);
  }

  #sortRecent(): void {
    if (!this.#isRecentUnsorted) return;
    this.#recent.sort((left, right) => left.revision - right.revision);
    this.#isRecentUnsorted = false;
  }

  /** Index of the first write after a revision. */
  #recentAfter(revision: Revision): number {
    const recent = this.#recent;
    return firstIndex(
      { from: this.#recentFrom, to: recent.length },
      (index) => (recent[index]?.revision ?? 0) <= revision,
    );
  }

  #dropOlder(place: Place): void {
    for (let older = place.older; older !== undefined; older = older.older) this.#drop(older);
    place.older = undefined;
  }

  /** Newer writes of the key may still link to the deletion, which reads as absent either way. */
  #dropDeletion(place: Place): void {
    this.#drop(place);
    if (place.chain.head !== place) return;
    const { key } = place.chain;
    if (this.#unsorted !== undefined) this.#unsorted.delete(key);
    else this.#chains = orderedMapDelete(this.#chains, byteOrdered(key));
  }

  #drop(place: Place): void {
    if (!place.isDead) place.segment.liveBytes -= place.size + recordOverhead;
    place.isDead = true;
  }
}
