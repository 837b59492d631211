import { appendAll, itemAt } from '@wheelhouse/machinery';
import { decodeFrame, type FramedRecord } from './frame.ts';
import type { KeyChain, LogIndex, Place } from './log-index.ts';
import { keyOfRecord } from './record.ts';
import { type Segment, segmentHeaderBytes } from './segment.ts';

/** About as much as one frame of copies holds. */
const copiedBytesMax = 512 * 1024;
/** Longer histories of one key wait until compaction has cut them. */
const chainBytesMax = 2 ** 20;
const wasteBytesMin = 2 ** 20;

/** How much waste is worth copying what lies between it. */
export type Urgency = 'normal' | 'urgent';

/**
 * Frees segments, oldest first, by copying what is still needed of them to the log's end. It needs
 * no more space than one segment at a time.
 *
 * A key's records keep their order in the log, oldest first, since a record is copied together with
 * all newer ones of its key, in one frame. So no deletion leaves the log before what it deletes.
 */
export class Cleaner {
  readonly #index: LogIndex;
  readonly #segments: readonly Segment[];
  readonly #copy: (collect: () => readonly Place[]) => Promise<void>;
  readonly #remove: (victim: Segment) => Promise<void>;
  readonly #isPaused: () => boolean;
  #running: Promise<void> | undefined;

  constructor(options: {
    readonly index: LogIndex;
    /** Oldest first; the last one is written to. */
    readonly segments: readonly Segment[];
    /** Copies the places that `collect` gives when no other write is under way. */
    readonly copy: (collect: () => readonly Place[]) => Promise<void>;
    readonly remove: (victim: Segment) => Promise<void>;
    readonly isPaused: () => boolean;
  }) {
    this.#index = options.index;
    this.#segments = options.segments;
    this.#copy = options.copy;
    this.#remove = options.remove;
    this.#isPaused = options.isPaused;
  }

  /** Rejects with StoreError when the disk fails; what was freed until then stays so. */
  clean(urgency: Urgency): Promise<void> {
    this.#running ??= this.#cleanAll(urgency).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #cleanAll(urgency: Urgency): Promise<void> {
    for (let left = this.#segments.length; left > 0 && !this.#isPaused(); left--) {
      const victim = itemAt(this.#segments, 0);
      if (this.#segments.length < 2 || !this.#isWorth(victim, urgency)) return;
      if (victim.liveBytes > 0) await this.#empty(victim);
      if (victim.liveBytes > 0 || this.#isPaused()) return;
      await this.#remove(victim);
    }
  }

  #isWorth(victim: Segment, urgency: Urgency): boolean {
    if (victim.liveBytes === 0) return true;
    let used = 0;
    let live = 0;
    for (const { end, liveBytes } of this.#segments) {
      used += end - segmentHeaderBytes;
      live += liveBytes;
    }
    const waste = used - live;
    return urgency === 'urgent' ? waste > live / 8 : waste > Math.max(live, wasteBytesMin);
  }

  async #empty(victim: Segment): Promise<void> {
    const bytes = victim.read(0, victim.end);
    const moved = new Set<KeyChain>();
    let records: FramedRecord[] = [];
    let size = 0;
    const flush = async () => {
      const piece = records;
      records = [];
      size = 0;
      if (!this.#isPaused()) await this.#copy(() => this.#collect({ victim, bytes, piece, moved }));
    };
    for (let at = segmentHeaderBytes; at < victim.end; ) {
      const frame = decodeFrame(bytes, at, victim.header.seed);
      if (frame === undefined) return;
      for (const record of frame.records) {
        records.push(record);
        size += record.size;
        if (size >= copiedBytesMax) await flush();
      }
      at = frame.end;
    }
    if (records.length > 0) await flush();
  }

  #collect(from: {
    readonly victim: Segment;
    readonly bytes: Buffer;
    readonly piece: readonly FramedRecord[];
    readonly moved: Set<KeyChain>;
  }): Place[] {
    const { victim, bytes, piece, moved } = from;
    const places: Place[] = [];
    for (const { revision, offset } of piece) {
      const chain = this.#index.chain(keyOfRecord(bytes, offset));
      if (chain === undefined || moved.has(chain)) continue;
      const group = groupOf(chain, { victim, revision });
      if (group === undefined) continue;
      moved.add(chain);
      appendAll(places, group);
    }
    return places;
  }
}

/** The live place of a revision in the victim and all newer ones of its key, oldest first. */
function groupOf(
  chain: KeyChain,
  from: { readonly victim: Segment; readonly revision: number },
): Place[] | undefined {
  const group: Place[] = [];
  let bytes = 0;
  let place: Place | undefined = chain.head;
  for (; place !== undefined && place.revision >= from.revision; place = place.older) {
    if (place.isDead) continue;
    group.push(place);
    bytes += place.size;
    if (bytes > chainBytesMax && group.length > 1) return undefined;
  }
  const oldest = group.at(-1);
  if (oldest?.revision !== from.revision || oldest.segment !== from.victim) return undefined;
  return group.reverse();
}
