import {
  type Clock,
  type Logger,
  type MaybePromise,
  pendingPromise,
  type Timer,
} from '@wheelhouse/machinery';

/** The opened parts of a server, closed together. */
export class OpenParts {
  readonly #closers: (() => MaybePromise<void>)[] = [];

  /** Registers a part for closing and returns it. */
  add<Part extends { close(): MaybePromise<void> } | undefined>(part: Part): Part {
    if (part !== undefined) this.#closers.push(() => part.close());
    return part;
  }

  /**
   * Closes the parts one after the other, the last first. Rejects with the first error after all of
   * them were asked to close. A second call does nothing.
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
 * A reference to a part that is built from its own dependents: the kinds of the registry allocate
 * Service numbers, and the allocator reads the registry. `connect` must be called once, before the
 * first request.
 */
export class Port<Part> {
  readonly #name: string;
  #part: Part | undefined;

  /** @param name names the part in errors */
  constructor(name: string) {
    this.#name = name;
  }

  connect(part: Part): void {
    this.#part = part;
  }

  /** Returns the part. Throws before `connect`. */
  readonly get = (): Part => {
    if (this.#part === undefined) throw new Error(`${this.#name} is used before it is connected`);
    return this.#part;
  };
}

/** Work that runs concurrently with requests. */
export interface Background {
  close(): Promise<void>;
}

/** Background work that starts later than the server. */
export interface LateBackground extends Background {
  /** Resolves when the work has started, cannot start, or was closed before it started. */
  readonly begun: Promise<void>;
}

/**
 * Starts background work after the server is ready and a pause, in which the first clients are
 * served. `close` stops the work, whether it has started or not. Logs an error if the work cannot
 * start.
 * @param options.pauseMs the pause in milliseconds; undefined for none
 */
export function beginAfter(
  ready: Promise<void>,
  {
    clock,
    logger,
    pauseMs,
  }: { readonly clock: Clock; readonly logger: Logger; readonly pauseMs: number | undefined },
  begin: () => Promise<Background>,
): LateBackground {
  let running: Promise<Background | undefined> | undefined;
  let isClosed = false;
  let timer: Timer | undefined;
  const { promise: begun, resolve: hasBegun } = pendingPromise();
  const start = () => {
    running = begin().catch((error: unknown) => {
      logger.error('background work could not start', { error: String(error) });
      return undefined;
    });
    running.then(() => hasBegun());
  };
  ready.then(() => {
    if (isClosed) return;
    if (pauseMs === undefined) start();
    else timer = clock.after(pauseMs, start);
  }, hasBegun);
  return {
    begun,
    async close() {
      isClosed = true;
      timer?.stop();
      if (running === undefined) hasBegun();
      await (await running)?.close();
    },
  };
}
