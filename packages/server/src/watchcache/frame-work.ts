import type { Slices } from '@wheelhouse/machinery';
import type { Entry, EventEncoder, WatchEventType } from './contract.ts';

/** Who wants a frame: a watcher, whose slices it is made in. */
interface Reader {
  readonly slices: Slices;
}

/** A frame as far as it is made. */
interface Work {
  readonly key: string;
  readonly entry: Entry;
  readonly steps: Iterator<void, Buffer>;
  /** Those who come back for it. */
  readonly readers: Set<Reader>;
  outcome: { readonly frame: Buffer } | { readonly error: unknown } | undefined;
}

/**
 * Makes frames of large objects in steps, one at a time (TRUST-2): whoever wants another frame
 * works on this one first, so that however many watchers wait, one object is decoded for them. A
 * frame that nobody comes back for is given up.
 */
export class FrameWork {
  #current: Work | undefined;

  /**
   * The frame of an entry, or undefined where the slice ends before it is made: the reader asks
   * again in a later slice, or calls `release`. Throws what the encoder throws.
   *
   * @param event.key names the encoding and type: equal keys make equal frames of one entry
   */
  make(
    reader: Reader,
    event: {
      readonly key: string;
      readonly type: WatchEventType;
      readonly entry: Entry;
      readonly frameSteps: NonNullable<EventEncoder['frameSteps']>;
    },
  ): Buffer | undefined {
    const { key, type, entry } = event;
    this.#current ??= {
      key,
      entry,
      steps: event.frameSteps(type, entry),
      readers: new Set(),
      outcome: undefined,
    };
    const work = this.#current;
    const isOwn = work.entry === entry && work.key === key;
    if (isOwn) work.readers.add(reader);
    const outcome = outcomeOf(work, reader.slices);
    if (!isOwn || outcome === undefined) return undefined;
    this.#current = undefined;
    if ('error' in outcome) throw outcome.error;
    return outcome.frame;
  }

  /** The reader does not come back soon: it has gone, or has to be waited for. */
  release(reader: Reader): void {
    const work = this.#current;
    if (work?.readers.delete(reader) === true && work.readers.size === 0) this.#current = undefined;
  }
}

/** Goes on with a frame until it is made or the slice is over. */
function outcomeOf(work: Work, slices: Slices): Work['outcome'] {
  try {
    while (work.outcome === undefined && !slices.over) {
      const step = work.steps.next();
      if (step.done === true) work.outcome = { frame: step.value };
    }
  } catch (error) {
    work.outcome = { error };
  }
  return work.outcome;
}
