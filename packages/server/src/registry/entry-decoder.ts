import {
  type ApiObject,
  background,
  type Clock,
  paceFor,
  runAtPace,
  runInOnePiece,
} from '@wheelhouse/machinery';
import type { Entry } from '../watchcache/entry.ts';
import { decodedAt, decodeEntry } from './object-codec.ts';

/** What a follower does with the objects of one kind. */
interface Reading<Read> {
  /** Returns what the follower needs of an object, in steps. */
  readonly read: (object: ApiObject) => Iterator<void, Read>;
  /** Receives it, or undefined for a removed object. */
  readonly use: (read: Read | undefined) => void;
}

/** Steps that consist of a result. */
const finished = <Result>(value: Result): Iterator<void, Result> => ({
  next: () => ({ done: true, value }),
});

/**
 * Decodes entries for a follower of a cache: small ones immediately, and large ones in slices, from
 * a later turn of the event loop on, because the turn that reports a change has done much work
 * already (TRUST-2). Drops an entry that is overtaken by a newer one of the same object.
 */
export class EntryDecoder {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The newest large entry of each object, until it is passed on. */
  readonly #pending = new Map<string, Entry>();
  readonly #running = new Set<Promise<void>>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Passes on the object of its newest entry, or undefined; `id` identifies the object. */
  pass(id: string, entry: Entry | undefined, use: (object: ApiObject | undefined) => void): void {
    this.passRead(id, entry, { read: finished, use });
  }

  /** Passes on what is read of the object. */
  passRead<Read>(id: string, entry: Entry | undefined, { read, use }: Reading<Read>): void {
    this.#pending.delete(id);
    const pace = entry === undefined ? undefined : paceFor(this.#clock, entry.json.length);
    if (entry === undefined || pace === undefined) {
      use(entry && runInOnePiece(read(decodeEntry(entry))));
      return;
    }
    this.#pending.set(id, entry);
    const isCurrent = () => this.#pending.get(id) === entry;
    const decode = async () => {
      await pace.pause();
      if (!isCurrent()) return;
      const object = await decodedAt(pace, entry);
      if (!isCurrent()) return;
      const result = await runAtPace(read(object), pace);
      await pace.pause();
      if (!isCurrent()) return;
      this.#pending.delete(id);
      use(result);
    };
    const running = decode().finally(() => {
      this.#running.delete(running);
      if (isCurrent()) this.#pending.delete(id);
    });
    this.#running.add(running);
    background({ where: 'controller' }, running);
  }

  /** Resolves when no large entry is waiting. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
