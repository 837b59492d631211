import type { ByteRun } from '@wheelhouse/machinery';
import type { Entry } from './contract.ts';

const comma = 0x2c;
const runBytes = 16 * 1024;

/** Some neighbours, `from` inclusive, `to` exclusive. */
interface Entries {
  readonly entries: readonly Entry[];
  readonly from: number;
  readonly to: number;
  /** Others follow them. */
  readonly endsWithComma: boolean;
}

/** Entries as runs of 16 KiB or one entry more, so that a writer can stop soon. */
export function* runsOf({ entries, from, to, endsWithComma }: Entries): Generator<EntryRun> {
  let start = from;
  let bytes = 0;
  for (let end = from + 1; end <= to; end += 1) {
    bytes += (entries[end - 1] as Entry).json.length;
    if (bytes < runBytes && end < to) continue;
    yield new EntryRun({ entries, from: start, to: end, endsWithComma: endsWithComma || end < to });
    start = end;
    bytes = 0;
  }
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
  /** The entry that is being copied, and how much of it has been. */
  #at: number;
  #done = 0;

  constructor(options: Entries) {
    const { entries, from, to, endsWithComma } = options;
    this.#entries = entries;
    this.#at = from;
    this.#to = to;
    this.#commas = endsWithComma ? to : to - 1;
    let length = this.#commas - from;
    for (let at = from; at < to; at += 1) length += (entries[at] as Entry).json.length;
    this.length = length;
  }

  copyNext(target: Buffer, start: number, bytes: number): void {
    const end = start + bytes;
    let to = start;
    while (to < end) {
      if (this.#at >= this.#to) throw new Error('nothing is left of these entries');
      const { json } = this.#entries[this.#at] as Entry;
      const left = json.length - this.#done;
      if (left > end - to) {
        target.set(json.subarray(this.#done, this.#done + end - to), to);
        this.#done += end - to;
        return;
      }
      if (left > 0) target.set(this.#done === 0 ? json : json.subarray(this.#done), to);
      to += left;
      const hasComma = this.#at < this.#commas;
      if (hasComma && to === end) {
        this.#done = json.length;
        return;
      }
      if (hasComma) {
        target[to] = comma;
        to += 1;
      }
      this.#at += 1;
      this.#done = 0;
    }
  }
}
