import type { Clock } from '@wheelhouse/machinery';

/** How long the outcome of a check is good for, by what it was. */
const outcomeMs = { passed: 20_000, failed: 3_000 };

/** Time between two retries of failed reads while all checks pass: doubled from the first. */
const retryMs = { first: 60_000, longest: 600_000 };

/** The check of a KMS plugin: one at a time, whose outcome is good for a while. */
export class PluginCheck {
  readonly #clock: Clock;
  readonly #run: () => Promise<void>;
  readonly #onRecovered: () => void;
  #last: { readonly atMs: number; readonly error: Error | undefined } | undefined;
  #running: Promise<void> | undefined;
  #hasFailedReads = false;
  /** The next retry of failed reads; undefined where the first check that passes may retry them. */
  #retry: { readonly atMs: number; readonly waitMs: number } | undefined;

  /**
   * @param options.onRecovered called when a check passes after a failed read. A value that the
   *   plugin never decrypts fails again each time, so the calls become rarer, down to one in ten
   *   minutes, until a check fails or nothing has failed since the last call.
   */
  constructor(options: {
    readonly clock: Clock;
    readonly run: () => Promise<void>;
    readonly onRecovered: () => void;
  }) {
    this.#clock = options.clock;
    this.#run = options.run;
    this.#onRecovered = options.onRecovered;
  }

  /** Why the last check failed; undefined where it passed, or none has ended yet. */
  get lastError(): Error | undefined {
    return this.#last?.error;
  }

  /** Notes that a value could not be opened, for want of the plugin. */
  readFailed(): void {
    this.#hasFailedReads = true;
  }

  /** Checks the plugin, unless the last outcome is still good. Rejects when it is not well. */
  check(): Promise<void> {
    this.#running ??= this.#check().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #check(): Promise<void> {
    const last = this.#last;
    if (last !== undefined) {
      const goodMs = last.error === undefined ? outcomeMs.passed : outcomeMs.failed;
      if (this.#clock.monotonic() - last.atMs < goodMs) {
        if (last.error !== undefined) throw last.error;
        return;
      }
    }
    try {
      await this.#run();
    } catch (reason) {
      const error = reason instanceof Error ? reason : new Error(String(reason));
      this.#last = { atMs: this.#clock.monotonic(), error };
      this.#retry = undefined;
      throw error;
    }
    this.#last = { atMs: this.#clock.monotonic(), error: undefined };
    this.#retryReads();
  }

  #retryReads(): void {
    const nowMs = this.#clock.monotonic();
    const retry = this.#retry;
    if (retry !== undefined && nowMs < retry.atMs) return;
    if (!this.#hasFailedReads) {
      this.#retry = undefined;
      return;
    }
    const waitMs = Math.min((retry?.waitMs ?? retryMs.first / 2) * 2, retryMs.longest);
    this.#retry = { atMs: nowMs + waitMs, waitMs };
    this.#hasFailedReads = false;
    this.#onRecovered();
  }
}
