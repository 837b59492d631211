import { existsSync, fstatSync, rename, statSync } from 'node:fs';
import { promisify } from 'node:util';
import {
  appendAll,
  background,
  type Clock,
  itemAt,
  type Logger,
  nextTurn,
  syncDirectory,
  type Timer,
} from '@wheelhouse/machinery';
import { type Revision, StoreError } from '../contract.ts';
import { toStoreError } from './disk.ts';
import {
  type CopiedRecord,
  damaged,
  decodeFrame,
  decodeLogRecord,
  encodeFrame,
  type FramedRecord,
  frameSize,
  keyOfRecord,
  type LogRecord,
  type NewRecord,
} from './frame.ts';
import { type KeyChain, LogIndex, type Place } from './log-index.ts';
import { recover, segmentPath } from './recovery.ts';
import {
  encodeHeader,
  newSeed,
  Segment,
  type Spare,
  SparePool,
  segmentHeaderBytes,
  writeDurably,
} from './segment.ts';

const renameAsync = promisify(rename);

/** Maximum delay of a commit's mark, milliseconds. */
const markDelayMs = 1000;
/** Number of compacted writes that one step drops, in a few milliseconds (TRUST-2). */
const droppedAtOnce = 2000;
/** Number of consecutive failed writes after which the log switches to another file. */
const failuresMax = 2;

/** The revisions that a commit makes durable together with its records. */
export interface LogState {
  readonly revision: Revision;
  /** Oldest readable revision. */
  readonly compacted: Revision;
}

/** The segment of a new frame and the positions of its records. */
interface Appended {
  readonly segment: Segment;
  readonly places: readonly FramedRecord[];
}

/**
 * The log of one data directory: segments of frames (frame.ts), appended durably, and their index.
 * A disk error rejects only the current write; the next write tries the same position, and later
 * ones another file (TRUST-8). The next write overwrites a rejected one, which becomes visible only
 * if the process crashes before that.
 */
export class RecordLog {
  readonly index = new LogIndex();
  readonly spares: SparePool;
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #cleaner: Cleaner;
  /** Oldest first; the last one receives writes. */
  readonly #segments: Segment[];
  #lastWrite: Promise<unknown> = Promise.resolve();
  #markTimer: Timer | undefined;
  /**
   * Whether a power loss could still remove the name of a segment, because one was added or a
   * killed process may have added one.
   */
  #isNameUnsynced = true;
  #isClosed = false;
  #readers = 0;
  /** Resolves when all compacted writes have been dropped, or a reader retains the rest. */
  #dropping: Promise<void> | undefined;
  #state: LogState;

  /** Opens a log and builds its index. Throws StoreError `damaged` or `disk-failed`. */
  constructor(options: {
    /** Contains only the log. */
    readonly directory: string;
    readonly clock: Clock;
    readonly logger: Logger;
    /** Size of new segments; by default derived from the sizes of the log and the disk. */
    readonly segmentBytes?: number;
  }) {
    const { directory, clock, logger, segmentBytes } = options;
    this.#directory = directory;
    this.#clock = clock;
    this.#logger = logger;
    try {
      this.#segments = recover(directory, this.index);
    } catch (error) {
      throw toStoreError(error, 'read');
    }
    this.#state = { revision: this.index.revision, compacted: this.index.compacted };
    const usedBytes = () => this.usedBytes;
    try {
      this.spares = new SparePool({ directory, clock, logger, usedBytes, segmentBytes });
    } catch (error) {
      for (const segment of this.#segments) segment.close();
      throw toStoreError(error, 'read');
    }
    this.#cleaner = new Cleaner({
      index: this.index,
      segments: this.#segments,
      copy: (collect) => this.#serialize(() => this.#copy(collect())),
      remove: (victim) => this.#serialize(() => this.#remove(victim)),
      isPaused: () => this.#isClosed || this.#readers > 0,
    });
    this.#scheduleMark();
  }

  /** The durable state of the log. */
  get state(): LogState {
    return this.#state;
  }

  /** Bytes of all frames, live or not. */
  get usedBytes(): number {
    return this.#segments.reduce((sum, { end }) => sum + end - segmentHeaderBytes, 0);
  }

  /** Bytes of records that can still be read. */
  get liveBytes(): number {
    return this.#segments.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
  }

  /** Bytes of all files. */
  get fileBytes(): number {
    return this.#segments.reduce((sum, { size }) => sum + size, this.spares.reservedBytes);
  }

  /** Throws StoreError `unavailable` if the newest file has been moved or removed. */
  checkInPlace(): void {
    const { path, descriptor } = this.#active;
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    const mine = fstatSync(descriptor, { bigint: true });
    if (stats?.ino === mine.ino && stats.dev === mine.dev) return;
    throw new StoreError({
      code: 'unavailable',
      message: `${path} has been removed or replaced`,
    });
  }

  /** Throws StoreError `damaged`, or `disk-failed` if the disk cannot be read. */
  read(place: Place): LogRecord {
    try {
      return decodeLogRecord(place.segment.read(place.offset, place.size), place.revision);
    } catch (error) {
      throw toStoreError(error, 'read');
    }
  }

  /** Retains everything in the index, despite compaction, until the returned function is called. */
  retain(): () => void {
    this.#readers += 1;
    let isRetained = true;
    return () => {
      if (isRetained) this.#readers -= 1;
      isRetained = false;
      this.#compactIndex();
    };
  }

  /**
   * Appends records durably and indexes them, all or none; without records it proves that the log
   * can be written. Rejects with StoreError `no-space` or `disk-failed`.
   */
  commit(records: readonly NewRecord[], state: LogState): Promise<void> {
    return this.#serialize(async () => {
      const { segment, places } = await this.#append({ records, state, purpose: 'other' });
      for (const [position, { key, revision, createRevision, kind }] of records.entries()) {
        const { offset, size } = itemAt(places, position);
        const deleted = kind === 'delete';
        this.index.add({ key, revision, createRevision, deleted, segment, offset, size });
      }
      this.#state = state;
      this.#compactIndex();
    });
  }

  /**
   * Reclaims the space of compacted records where that frees more than it costs. Rejects with
   * StoreError `damaged`, `no-space`, or `disk-failed`.
   */
  async clean(urgency: Urgency): Promise<void> {
    await this.#dropping;
    await this.#cleaner.clean(urgency);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#markTimer?.stop();
    await this.#cleaner.idle();
    await this.#serialize(() => this.#mark());
    await this.spares.close();
    for (const segment of this.#segments.splice(0)) segment.close();
  }

  #compactIndex(): void {
    if (this.#readers > 0 || this.#dropping !== undefined) return;
    this.index.compact(this.#state.compacted);
    if (this.index.drop(droppedAtOnce)) {
      this.#dropping = this.#dropRest();
      background({ where: 'store' }, this.#dropping);
    }
  }

  async #dropRest(): Promise<void> {
    let isLeft = true;
    while (isLeft) {
      await nextTurn();
      if (this.#readers > 0 || this.#isClosed) break;
      this.index.compact(this.#state.compacted);
      isLeft = this.index.drop(droppedAtOnce);
    }
    this.#dropping = undefined;
  }

  get #active(): Segment {
    return itemAt(this.#segments, this.#segments.length - 1);
  }

  /** Runs writes one at a time, in order. */
  #serialize<T>(write: () => Promise<T>): Promise<T> {
    const result = this.#lastWrite.then(write);
    this.#lastWrite = result.catch(() => {});
    return result;
  }

  async #append(frame: {
    readonly records: readonly (NewRecord | CopiedRecord)[];
    readonly state: LogState;
    readonly purpose: 'cleaning' | 'other';
  }): Promise<Appended> {
    const { records, state, purpose } = frame;
    try {
      const segment = await this.#segmentFor(frameSize(records), purpose);
      const { seed } = segment.header;
      const encoded = encodeFrame({ ...state, seed, offset: segment.end, records });
      await segment.append(encoded.bytes);
      this.#scheduleMark();
      return { segment, places: encoded.places };
    } catch (error) {
      throw toStoreError(error, 'write');
    }
  }

  async #segmentFor(bytes: number, purpose: 'cleaning' | 'other'): Promise<Segment> {
    const active = this.#active;
    if (active.failures >= failuresMax || !active.hasRoomFor(bytes)) {
      // If this also fails, the next write tries the old file again.
      active.failures = 0;
      await this.#roll(bytes, purpose);
    }
    if (this.#isNameUnsynced) await syncDirectory(this.#directory);
    this.#isNameUnsynced = false;
    return this.#active;
  }

  /** Continues in a spare. Once it is renamed, the previous file must not be written again. */
  async #roll(bytes: number, purpose: 'cleaning' | 'other'): Promise<void> {
    const spare = await this.spares.take(segmentHeaderBytes + bytes, purpose);
    const { sequence, end } = this.#active;
    const header = {
      sequence: sequence + 1,
      size: spare.size,
      previousEnd: end,
      first: itemAt(this.#segments, 0).sequence,
      seed: newSeed(),
    };
    const path = segmentPath(this.#directory, header.sequence);
    try {
      await writeDurably(spare.descriptor, encodeHeader(header), 0);
      await renameAsync(spare.path, path);
    } catch (error) {
      if (!existsSync(path)) {
        this.spares.putBack(spare);
        throw error;
      }
    }
    this.#isNameUnsynced = true;
    this.#segments.push(new Segment({ path, descriptor: spare.descriptor, header }));
  }

  async #copy(places: readonly Place[]): Promise<void> {
    if (places.length === 0) return;
    const records = places.map((place) => ({
      revision: place.revision,
      bytes: place.segment.read(place.offset, place.size),
    }));
    const appended = await this.#append({ records, state: this.#state, purpose: 'cleaning' });
    for (const [position, place] of places.entries()) {
      const { offset } = itemAt(appended.places, position);
      this.index.move(place, { segment: appended.segment, offset });
    }
  }

  /** Writes the mark first, so that recovery does not expect the removed segment. */
  async #remove(victim: Segment): Promise<void> {
    if (this.#segments[0] !== victim || this.#segments.length < 2) return;
    try {
      await this.#active.mark(victim.sequence + 1);
      this.#segments.shift();
      const { path, descriptor, size } = victim;
      await this.spares.recycle({ path, descriptor, size } satisfies Spare);
    } catch (error) {
      throw toStoreError(error, 'write');
    }
  }

  #scheduleMark(): void {
    if (this.#isClosed) return;
    this.#markTimer ??= this.#clock.after(markDelayMs, () => {
      this.#markTimer = undefined;
      return this.#serialize(() => this.#mark());
    });
  }

  /** A log without a mark, or with an old one, is valid. */
  async #mark(): Promise<void> {
    try {
      await this.#active.mark(itemAt(this.#segments, 0).sequence);
    } catch (error) {
      this.#logger.debug(2, 'Marking the end of the log failed', { error: String(error) });
    }
  }
}

/** Target size of a frame of copies, bytes. */
const copiedBytesMax = 512 * 1024;
/** Limit on one key's history; a longer one is copied after compaction has shortened it. */
const chainBytesMax = 2 ** 20;
const wasteBytesMin = 2 ** 20;

/** How readily the cleaner runs: `urgent` accepts less waste in return for its work. */
type Urgency = 'normal' | 'urgent';

/**
 * Frees segments, oldest first, by copying their live records to the end of the log. It needs the
 * space of one segment at a time.
 *
 * The records of a key stay in order, oldest first, because a record is copied in one frame with
 * all newer ones of its key. So a deletion never leaves the log before the record that it deletes.
 */
class Cleaner {
  readonly #index: LogIndex;
  readonly #segments: readonly Segment[];
  readonly #copy: (collect: () => readonly Place[]) => Promise<void>;
  readonly #remove: (victim: Segment) => Promise<void>;
  readonly #isPaused: () => boolean;
  #running: Promise<void> | undefined;
  /** The highest urgency with which the cleaning in progress was requested. */
  #urgency: Urgency = 'normal';

  constructor(options: {
    readonly index: LogIndex;
    /** Oldest first; the last one receives writes. */
    readonly segments: readonly Segment[];
    /** Copies the records that `collect` returns while no other write is in progress. */
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

  /**
   * Joins a cleaning in progress, whose urgency it may raise. Rejects with StoreError if the disk
   * fails or a segment is damaged; segments freed until then stay free.
   */
  clean(urgency: Urgency): Promise<void> {
    if (this.#running === undefined || urgency === 'urgent') this.#urgency = urgency;
    this.#running ??= this.#cleanAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Resolves when no cleaning is in progress, which ends soon while it is paused. */
  async idle(): Promise<void> {
    await this.#running?.catch(() => {});
  }

  async #cleanAll(): Promise<void> {
    for (let left = this.#segments.length; left > 0 && !this.#isPaused(); left--) {
      const victim = itemAt(this.#segments, 0);
      if (this.#segments.length < 2 || !this.#isWorth(victim)) return;
      if (victim.liveBytes > 0) await this.#empty(victim);
      if (victim.liveBytes > 0 || this.#isPaused()) return;
      await this.#remove(victim);
    }
  }

  #isWorth(victim: Segment): boolean {
    if (victim.liveBytes === 0) return true;
    let used = 0;
    let live = 0;
    for (const { end, liveBytes } of this.#segments) {
      used += end - segmentHeaderBytes;
      live += liveBytes;
    }
    const waste = used - live;
    return this.#urgency === 'urgent' ? waste > live / 8 : waste > Math.max(live, wasteBytesMin);
  }

  async #empty(victim: Segment): Promise<void> {
    const bytes = await victim.readFrames();
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
      if (frame === undefined) throw damaged(`${victim.path} cannot be read after byte ${at}`);
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

/** The live records of a key from the given revision on, oldest first. */
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
