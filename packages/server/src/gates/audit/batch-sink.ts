import { appendAll, type Clock, type Timer } from '@wheelhouse/machinery';
import type { AuditEvent } from './event.ts';
import type { AuditSink, ReportLoss } from './sink.ts';

/** How events are batched: the flags `--audit-*-batch-*`. */
export interface BatchSettings {
  /** Maximum number of waiting events; later ones are dropped. */
  readonly bufferSize: number;
  /** Maximum number of events in a batch. */
  readonly batchSizeMax: number;
  /** Milliseconds that the first event of a batch waits for others. */
  readonly waitMs: number;
  /** Maximum rate of batches per second, after a burst; undefined: no limit. */
  readonly throttle: { readonly perSecond: number; readonly burst: number } | undefined;
}

/**
 * Maximum number of batches in flight; bounds the memory used while the service does not answer.
 */
const inFlightMax = 16;

/**
 * Queues events and forwards them in the background, in order (mode `batch`, OPS-2). The queue is
 * bounded; events that do not fit are dropped and reported. `close` forwards all queued events.
 */
export function batchingSink(
  sink: AuditSink,
  options: {
    readonly settings: BatchSettings;
    readonly clock: Clock;
    readonly reportLoss: ReportLoss;
  },
): AuditSink {
  const batcher = new Batcher(sink, options);
  return { process: (events) => batcher.enqueue(events), close: () => batcher.close() };
}

class Batcher {
  readonly #sink: AuditSink;
  readonly #settings: BatchSettings;
  readonly #clock: Clock;
  readonly #reportLoss: ReportLoss;
  #waiting: AuditEvent[] = [];
  #timer: Timer | undefined;
  /** Whether the timer is for a batch that is already full, so more events do not reset it. */
  #isArmed = false;
  #tokens: number;
  #tokensAt: number;
  readonly #inFlight = new Set<Promise<boolean>>();
  #isClosing = false;

  constructor(sink: AuditSink, options: Parameters<typeof batchingSink>[1]) {
    this.#sink = sink;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#reportLoss = options.reportLoss;
    this.#tokens = options.settings.throttle?.burst ?? 0;
    this.#tokensAt = options.clock.monotonic();
  }

  /** Returns true even if events are dropped: a request does not depend on their delivery. */
  enqueue(events: readonly AuditEvent[]): boolean {
    const room = this.#isClosing ? 0 : this.#settings.bufferSize - this.#waiting.length;
    const taken = events.slice(0, room);
    appendAll(this.#waiting, taken);
    const lost = events.slice(taken.length);
    if (lost.length > 0) {
      const why = this.#isClosing ? 'audit backend shut down' : 'audit buffer queue blocked';
      this.#reportLoss({ plugin: 'buffered', error: new Error(why), events: lost });
    }
    this.#schedule();
    return true;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#timer?.stop();
    this.#sink.stopRetrying?.();
    while (this.#waiting.length > 0 || this.#inFlight.size > 0) {
      while (this.#waiting.length > 0 && this.#inFlight.size < inFlightMax) this.#send();
      if (this.#inFlight.size > 0) await Promise.race(this.#inFlight);
    }
    await this.#sink.close();
  }

  /** Sends the batches that are due, and schedules the rest. */
  #schedule(): void {
    if (this.#isClosing || this.#waiting.length === 0 || this.#isArmed) return;
    const { batchSizeMax, waitMs } = this.#settings;
    if (this.#waiting.length < batchSizeMax) {
      this.#timer ??= this.#clock.after(waitMs, () => this.#due());
      return;
    }
    this.#timer?.stop();
    // Deferred, so that a burst of events is written after the burst and not within its requests.
    this.#timer = this.#clock.after(0, () => this.#due());
    this.#isArmed = true;
  }

  #due(): void {
    this.#timer = undefined;
    this.#isArmed = false;
    const { batchSizeMax } = this.#settings;
    do {
      if (this.#waiting.length === 0 || this.#inFlight.size >= inFlightMax) return;
      const delayMs = this.#takeToken();
      if (delayMs > 0) {
        this.#isArmed = true;
        this.#timer = this.#clock.after(delayMs, () => this.#due());
        return;
      }
      this.#send();
    } while (this.#waiting.length >= batchSizeMax);
    this.#schedule();
  }

  #send(): void {
    const batch = this.#waiting.splice(0, this.#settings.batchSizeMax);
    const taken = this.#sink.process(batch);
    if (!(taken instanceof Promise)) return;
    const done = taken.finally(() => {
      this.#inFlight.delete(done);
      if (this.#inFlight.size === inFlightMax - 1) this.#schedule();
    });
    this.#inFlight.add(done);
  }

  /** Takes a token and returns 0, or returns the milliseconds until one is available. */
  #takeToken(): number {
    const { throttle } = this.#settings;
    if (throttle === undefined) return 0;
    const now = this.#clock.monotonic();
    const gained = ((now - this.#tokensAt) / 1000) * throttle.perSecond;
    this.#tokens = Math.min(throttle.burst, this.#tokens + gained);
    this.#tokensAt = now;
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) / throttle.perSecond) * 1000);
    this.#tokens -= 1;
    return 0;
  }
}
