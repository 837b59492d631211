import { existsSync, fstatSync, rename, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Clock, itemAt, type Logger, type Timer } from '@wheelhouse/machinery';
import { type Revision, StoreError } from '../contract.ts';
import { Cleaner, type Urgency } from './cleaner.ts';
import {
  type CopiedRecord,
  encodeFrame,
  type FramedRecord,
  frameSize,
  type NewRecord,
} from './frame.ts';
import { translate } from './host-errors.ts';
import { syncDirectory } from './log-builder.ts';
import { LogIndex, type Place } from './log-index.ts';
import { decodeLogRecord, type LogRecord } from './record.ts';
import { recover, segmentPath } from './recovery.ts';
import { encodeHeader, newSeed, Segment, segmentHeaderBytes, writeDurably } from './segment.ts';
import { type Spare, SparePool } from './spare-pool.ts';

const renameAsync = promisify(rename);

/** How long the mark of a commit may wait. */
const markDelayMs = 1000;
/** After so many failed writes in a row the log goes on in another file. */
const failuresMax = 2;

export interface LogState {
  readonly revision: Revision;
  /** Oldest readable revision. */
  readonly compacted: Revision;
}

/** What is appended together: where a record comes from does not matter to a frame. */
interface Appended {
  readonly segment: Segment;
  readonly places: readonly FramedRecord[];
}

/**
 * The log of one data directory: segments of frames (frame.ts), appended to durably, and the index
 * of what they hold. An error of the disk rejects the write at hand and nothing else; the next write
 * tries again, in the same place and then in another file (TRUST-8). A write that was rejected is
 * overwritten by the next one; only a crash before that can make it appear.
 */
export class RecordLog {
  readonly index = new LogIndex();
  readonly spares: SparePool;
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #cleaner: Cleaner;
  /** Oldest first; the last one is written to. */
  readonly #segments: Segment[];
  #turn: Promise<unknown> = Promise.resolve();
  #marking: Timer | undefined;
  /**
   * A power loss could still take the name of a segment: one has been added, or a process that was
   * killed may have added one.
   */
  #isNameUnsynced = true;
  #isClosed = false;
  #readers = 0;
  #state: LogState;

  /** Opens a log and reads its index. Throws StoreError `damaged` or `disk-failed`. */
  constructor(options: {
    /** Holds nothing but the log. */
    readonly directory: string;
    readonly clock: Clock;
    readonly logger: Logger;
    /** Of new segments; goes by the size of the log and the disk when absent. */
    readonly segmentBytes?: number;
  }) {
    const { directory, clock, logger, segmentBytes } = options;
    this.#directory = directory;
    this.#clock = clock;
    this.#logger = logger;
    try {
      this.#segments = recover(directory, this.index);
    } catch (error) {
      throw translate(error, 'read');
    }
    this.#state = { revision: this.index.revision, compacted: this.index.compacted };
    const usedBytes = () => this.usedBytes;
    this.spares = new SparePool({ directory, clock, logger, usedBytes, segmentBytes });
    this.#cleaner = new Cleaner({
      index: this.index,
      segments: this.#segments,
      copy: (collect) => this.#inTurn(() => this.#copy(collect())),
      remove: (victim) => this.#inTurn(() => this.#remove(victim)),
      isPaused: () => this.#isClosed || this.#readers > 0,
    });
    this.#markSoon();
  }

  /** Where the log stands, durably. */
  get state(): LogState {
    return this.#state;
  }

  /** Bytes of frames, needed or not. */
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

  /** Throws StoreError `unavailable` when the newest file is no longer where it was. */
  checkInPlace(): void {
    const { path, descriptor } = this.#active;
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    const mine = fstatSync(descriptor, { bigint: true });
    if (found?.ino === mine.ino && found.dev === mine.dev) return;
    throw new StoreError({
      code: 'unavailable',
      message: `${path} is not the file that was opened: it has been removed or replaced`,
    });
  }

  /** Throws StoreError `damaged`, or `disk-failed` when the disk does not give the bytes. */
  read(place: Place): LogRecord {
    try {
      return decodeLogRecord(place.segment.read(place.offset, place.size), place.revision);
    } catch (error) {
      throw translate(error, 'read');
    }
  }

  /** Keeps all that the index has now, compacted or not, until the result is called. */
  hold(): () => void {
    this.#readers += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#readers -= 1;
      isHeld = false;
      this.#forget();
    };
  }

  /**
   * Makes records durable and adds them to the index, all or none; without any, proves that the log
   * can be written. Rejects with StoreError `no-space` or `disk-failed`.
   */
  commit(records: readonly NewRecord[], state: LogState): Promise<void> {
    return this.#inTurn(async () => {
      const { segment, places } = await this.#append({ records, state, purpose: 'other' });
      for (const [position, { key, revision, createRevision, kind }] of records.entries()) {
        const { offset, size } = itemAt(places, position);
        const deleted = kind === 'delete';
        this.index.add({ key, revision, createRevision, deleted, segment, offset, size });
      }
      this.#state = state;
      this.#forget();
    });
  }

  /** Gives back the space of what compaction has dropped, as far as that is worth it. */
  clean(urgency: Urgency): Promise<void> {
    return this.#cleaner.clean(urgency);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#marking?.stop();
    await this.#inTurn(() => this.#mark());
    await this.spares.close();
    for (const segment of this.#segments.splice(0)) segment.close();
  }

  #forget(): void {
    if (this.#readers === 0) this.index.compact(this.#state.compacted);
  }

  get #active(): Segment {
    return itemAt(this.#segments, this.#segments.length - 1);
  }

  /** One write at a time. */
  #inTurn<T>(write: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(write);
    this.#turn = result.catch(() => {});
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
      this.#markSoon();
      return { segment, places: encoded.places };
    } catch (error) {
      throw translate(error, 'write');
    }
  }

  async #segmentFor(bytes: number, purpose: 'cleaning' | 'other'): Promise<Segment> {
    const active = this.#active;
    if (active.failures >= failuresMax || !active.hasRoomFor(bytes)) {
      // If this fails, too, the next write begins with the old file again.
      active.failures = 0;
      await this.#roll(bytes, purpose);
    }
    if (this.#isNameUnsynced) await syncDirectory(this.#directory);
    this.#isNameUnsynced = false;
    return this.#active;
  }

  /** Goes on in a spare. What is renamed is in use: the file before it must not be written again. */
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

  /** The mark comes first: what is missing before the first segment is not missed. */
  async #remove(victim: Segment): Promise<void> {
    if (this.#segments[0] !== victim || this.#segments.length < 2) return;
    try {
      await this.#active.mark(victim.sequence + 1);
      this.#segments.shift();
      const { path, descriptor, size } = victim;
      await this.spares.recycle({ path, descriptor, size } satisfies Spare);
    } catch (error) {
      throw translate(error, 'write');
    }
  }

  #markSoon(): void {
    if (this.#isClosed) return;
    this.#marking ??= this.#clock.after(markDelayMs, () => {
      this.#marking = undefined;
      return this.#inTurn(() => this.#mark());
    });
  }

  /** A log without a mark, or with an old one, is a sound log. */
  async #mark(): Promise<void> {
    try {
      await this.#active.mark(itemAt(this.#segments, 0).sequence);
    } catch (error) {
      this.#logger.debug(2, 'marking the end of the log failed', { error: String(error) });
    }
  }
}
