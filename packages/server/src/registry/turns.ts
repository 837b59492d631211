import { background, type Clock } from '@wheelhouse/machinery';

/** How long one waits for those before: somebody of them may ask a webhook that takes its time. */
const patienceMs = 1000;

/**
 * Lets those who lost a race to write an object try again one after the other. Else each of them loses
 * to all the others, and a hundred writers at once make five thousand attempts (PATCH-4). It is a
 * courtesy only: what is written is on condition of the revision as ever.
 */
export class Turns {
  readonly #clock: Clock;
  /** Resolves when all who asked for a key so far are done; keys nobody waits for are not here. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs a task when it is its turn; `hasWaited` says whether others may have written meanwhile. */
  async take<T>(key: string, task: (hasWaited: boolean) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    let end = (): void => {};
    const own = new Promise<void>((resolve) => {
      end = resolve;
    });
    const all = before === undefined ? own : before.then(() => own);
    this.#last.set(key, all);
    try {
      if (before !== undefined) await this.#patiently(before);
      return await task(before !== undefined);
    } finally {
      end();
      if (this.#last.get(key) === all) this.#last.delete(key);
    }
  }

  #patiently(before: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(patienceMs, resolve);
      const done = before.then(() => {
        timer.stop();
        resolve();
      });
      background({ where: 'endpoint' }, done);
    });
  }
}
