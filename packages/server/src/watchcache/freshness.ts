import { type Clock, deferMicrotask, type MaybePromise } from '@wheelhouse/machinery';
import type { Revision, StoreWatch } from '@wheelhouse/store';

interface Waiter {
  readonly revision: Revision;
  readonly settle: (reached: boolean) => void;
}

/**
 * Waits until the cache has followed the store up to a revision. However many requests wait for
 * however distant revisions, the store is asked for one thing only, the next revision, so that
 * versions from the future cannot fill its memory.
 */
export class Freshness {
  readonly #clock: Clock;
  readonly #progress: () => Revision;
  readonly #waiters = new Set<Waiter>();
  #watch: StoreWatch | undefined;
  #asked: StoreWatch | undefined;

  constructor(options: { clock: Clock; progress: () => Revision }) {
    this.#clock = options.clock;
    this.#progress = options.progress;
  }

  /** The store watch that is followed from now on; undefined while there is none. */
  follow(watch: StoreWatch | undefined): void {
    this.#watch = watch;
    this.check();
  }

  /**
   * True once `revision` is reached, at once and without a promise if it is; false after the time,
   * or when who waits has gone: `onCancel` is given the function to call then.
   */
  waitFor(
    revision: Revision,
    options: {
      readonly timeoutMs: number | undefined;
      readonly onCancel?: (cancel: () => void) => void;
    },
  ): MaybePromise<boolean> {
    if (this.#progress() >= revision) return true;
    return new Promise((resolve) => {
      const { timeoutMs } = options;
      const timer =
        timeoutMs === undefined
          ? undefined
          : this.#clock.after(timeoutMs, () => waiter.settle(this.#progress() >= revision));
      const waiter: Waiter = {
        revision,
        settle: (reached) => {
          timer?.stop();
          this.#waiters.delete(waiter);
          resolve(reached);
        },
      };
      this.#waiters.add(waiter);
      options.onCancel?.(() => waiter.settle(false));
      this.check();
    });
  }

  /** Wakes those whose revision has come. */
  check(): void {
    if (this.#waiters.size === 0) return;
    const progress = this.#progress();
    for (const waiter of this.#waiters) if (waiter.revision <= progress) waiter.settle(true);
    if (this.#waiters.size > 0) this.#ask(progress + 1);
  }

  /** Lets all who wait go with false. */
  giveUp(): void {
    for (const waiter of this.#waiters) waiter.settle(false);
  }

  #ask(revision: Revision): void {
    const watch = this.#watch;
    if (watch === undefined || this.#asked === watch) return;
    const answer = watch.reached(revision);
    if (!(answer instanceof Promise)) {
      deferMicrotask({ where: 'watch' }, () => this.check());
      return;
    }
    this.#asked = watch;
    const done = () => {
      if (this.#asked === watch) this.#asked = undefined;
    };
    answer.then(
      () => {
        done();
        this.check();
      },
      // The watch has ended: its follower asks anew.
      done,
    );
  }
}
