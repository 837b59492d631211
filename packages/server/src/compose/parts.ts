import type { Clock, Logger, MaybePromise, Timer } from '@wheelhouse/machinery';

/** The parts of a server that have been opened and are to be closed again. */
export class OpenParts {
  readonly #closers: (() => MaybePromise<void>)[] = [];

  /** Keeps a part, to be closed with the others; gives it back. */
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
 * Stands for a part until it is made, where it is made from what needs it: the kinds of the registry
 * allocate the numbers of Services, and what allocates them reads the registry. `connect` is called
 * once, before the first request.
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

/** What runs beside the requests. */
export interface Background {
  close(): Promise<void>;
}

/**
 * Starts something when the server is ready, after a pause that whoever waited for it has to himself;
 * `close` stops it, begun or not. That it could not begin is told in the log.
 */
export function beginAfter(
  ready: Promise<void>,
  {
    clock,
    logger,
    pauseMs,
  }: { readonly clock: Clock; readonly logger: Logger; readonly pauseMs: number | undefined },
  begin: () => Promise<Background>,
): Background {
  let running: Promise<Background | undefined> | undefined;
  let isClosed = false;
  let timer: Timer | undefined;
  const start = () => {
    running = begin().catch((error: unknown) => {
      logger.error('what runs beside the requests could not begin', { error: String(error) });
      return undefined;
    });
  };
  ready.then(
    () => {
      if (isClosed) return;
      if (pauseMs === undefined) start();
      else timer = clock.after(pauseMs, start);
    },
    () => {},
  );
  return {
    async close() {
      isClosed = true;
      timer?.stop();
      await (await running)?.close();
    },
  };
}
