import type { ByteRun } from '@wheelhouse/machinery';
import type { Entry } from './contract.ts';

const comma = 0x2c;
const openingBrace = 0x7b;
const runBytes = 16 * 1024;

/** Some neighbours, `from` inclusive, `to` exclusive. */
interface Entries {
  readonly entries: readonly Entry[];
  readonly from: number;
  readonly to: number;
  /** Others follow them. */
  readonly endsWithComma: boolean;
  /** As of `ListResult.jsonPieces`. */
  readonly typeBytes: number;
}

/** Entries as runs of 16 KiB or one entry more, so that a writer can stop soon. */
export function* runsOf(options: Entries): Generator<EntryRun> {
  const { entries, from, to, endsWithComma, typeBytes } = options;
  let start = from;
  let bytes = 0;
  for (let end = from + 1; end <= to; end += 1) {
    bytes += lengthAt(entries, end - 1) - typeBytes;
    if (bytes < runBytes && end < to) continue;
    const hasNext = endsWithComma || end < to;
    yield new EntryRun({ entries, from: start, to: end, endsWithComma: hasNext, typeBytes });
    start = end;
    bytes = 0;
  }
}

/** All items of a list as runs; the parameters are those of `ListResult.jsonPieces`. */
export function runsOfAll(entries: readonly Entry[], typeBytes: number): Generator<EntryRun> {
  return runsOf({ entries, from: 0, to: entries.length, endsWithComma: false, typeBytes });
}

/**
 * The JSON of neighbouring entries with commas between them, and one behind the last when more are to
 * follow. It is copied from the entries' own buffers when it is written: a joined copy, kept for the
 * next list, would hold every object's bytes twice.
 */
export class EntryRun implements ByteRun {
  readonly length: number;
  readonly #entries: readonly Entry[];
  readonly #to: number;
  readonly #commas: number;
  readonly #typeBytes: number;
  /** The entry that is being copied, and how much of it, its comma included, has been. */
  #at: number;
  #done = 0;

  constructor(options: Entries) {
    const { entries, from, to, endsWithComma, typeBytes } = options;
    this.#entries = entries;
    this.#at = from;
    this.#to = to;
    this.#commas = endsWithComma ? to : to - 1;
    this.#typeBytes = typeBytes;
    let length = this.#commas - from;
    for (let at = from; at < to; at += 1) length += lengthAt(entries, at) - typeBytes;
    this.length = length;
  }

  copyNext(target: Buffer, start: number, bytes: number): void {
    const end = start + bytes;
    const first = this.#done > 0 ? this.#copyPart(target, start, end) : start;
    const last = this.#copyWhole(target, first, end);
    if (last < end) this.#copyPart(target, last, end);
  }

  /** Copies entries that fit as a whole; returns where the last of them ends. */
  #copyWhole(target: Buffer, start: number, end: number): number {
    const begun = this.#at;
    let at = begun;
    let last = start;
    for (; at < this.#to; at += 1) {
      const next = last + this.#bytesOf(at);
      if (next > end) break;
      last = next;
    }
    this.#at = at;
    // From the last to the first, and with its type, which the end of the one before it replaces:
    // a view of the rest of each would cost more than to copy it.
    const typeBytes = this.#typeBytes;
    let to = last;
    for (at -= 1; at >= begun; at -= 1) {
      const json = this.#jsonAt(at);
      if (at < this.#commas) {
        to -= 1;
        target[to] = comma;
      }
      to -= json.length - typeBytes;
      checkType(json, typeBytes);
      if (to - typeBytes >= start) target.set(json, to - typeBytes);
      else target.set(json.subarray(typeBytes), to);
      if (typeBytes > 0) target[to] = openingBrace;
    }
    return last;
  }

  /** Copies of the next entry what fits; returns where that ends. */
  #copyPart(target: Buffer, start: number, end: number): number {
    if (this.#at >= this.#to) throw nothingLeft();
    const json = this.#jsonAt(this.#at);
    const typeBytes = this.#typeBytes;
    const before = this.#done;
    const all = this.#bytesOf(this.#at);
    const done = Math.min(all, before + end - start);
    const last = start + done - before;
    checkType(json, typeBytes);
    // The comma is not part of the JSON, whose end bounds the view.
    target.set(json.subarray(typeBytes + before, typeBytes + done), start);
    if (before === 0 && typeBytes > 0) target[start] = openingBrace;
    if (done === all && this.#at < this.#commas) target[last - 1] = comma;
    this.#done = done === all ? 0 : done;
    if (done === all) this.#at += 1;
    return last;
  }

  /** Bytes of an entry with its comma. */
  #bytesOf(at: number): number {
    return lengthAt(this.#entries, at) - this.#typeBytes + (at < this.#commas ? 1 : 0);
  }

  #jsonAt(at: number): Buffer {
    const entry = this.#entries[at];
    if (entry === undefined) throw nothingLeft();
    return entry.json;
  }
}

const lengthAt = (entries: readonly Entry[], at: number) => entries[at]?.json.length ?? 0;

const nothingLeft = () => new Error('nothing is left of these entries');

/** The brace of an item takes the place of the comma that ends its type. */
function checkType(json: Buffer, typeBytes: number): void {
  const isType = typeBytes === 0 || json[typeBytes] === comma;
  if (!isType) throw new Error('a stored object does not begin with its type');
}
