import type { MaybePromise } from '@wheelhouse/machinery';

/** What has been opened so far. */
export class OpenParts {
  readonly #closers: (() => MaybePromise<void>)[] = [];

  /** Has a part closed when the server ends; gives the part. */
  add<Part extends { close(): MaybePromise<void> } | undefined>(part: Part): Part {
    if (part !== undefined) this.#closers.push(() => part.close());
    return part;
  }

  /**
   * Closes the parts, the last first, one after the other. Rejects with the first error once all of
   * them have been asked to close; to close twice is to close once.
   */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}

/**
 * Stands for a part that is made from what needs it, as the numbers of Services are from the
 * registry, whose kinds give them out. `connect` is called once, before the first request.
 */
export class Port<Part> {
  readonly #name: string;
  #part: Part | undefined;

  /** @param name what errors call the part */
  constructor(name: string) {
    this.#name = name;
  }

  connect(part: Part): void {
    this.#part = part;
  }

  /** The part. Throws before `connect`. */
  readonly get = (): Part => {
    if (this.#part === undefined) throw new Error(`${this.#name} is used before it is connected`);
    return this.#part;
  };
}
