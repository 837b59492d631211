import { appendAll, type Clock, type Timer } from '@wheelhouse/machinery';
import type { AuditEvent } from './event.ts';
import type { AuditSink, TellLoss } from './sink.ts';

/** How events are gathered; upstream's flags `--audit-*-batch-*`. */
export interface BatchSettings {
  /** Events that may wait; further ones are dropped. */
  readonly bufferSize: number;
  /** Events that go together. */
  readonly batchSizeMax: number;
  /** How long the first of a batch waits for others. */
  readonly waitMs: number;
  /** Batches a second and at once; undefined: no limit. */
  readonly throttle: { readonly perSecond: number; readonly burst: number } | undefined;
}

/** Batches that may be on their way: a service that does not answer holds no more than these. */
const underWayMax = 16;

/**
 * Gathers events and hands them on behind the requests' backs, in order (mode `batch`, OPS-2). What
 * waits is bounded; what does not fit is dropped, and told of. `close` hands on all that waits.
 */
export function batchingSink(
  sink: AuditSink,
  options: {
    readonly settings: BatchSettings;
    readonly clock: Clock;
    readonly tellLoss: TellLoss;
  },
): AuditSink {
  const batcher = new Batcher(sink, options);
  return { process: (events) => batcher.take(events), close: () => batcher.close() };
}

class Batcher {
  readonly #sink: AuditSink;
  readonly #settings: BatchSettings;
  readonly #clock: Clock;
  readonly #tellLoss: TellLoss;
  #waiting: AuditEvent[] = [];
  #timer: Timer | undefined;
  /** The timer stands for a batch that is full already: more events do not move it. */
  #isArmed = false;
  #tokens: number;
  #tokensAt: number;
  readonly #underWay = new Set<Promise<boolean>>();
  #isClosing = false;

  constructor(sink: AuditSink, options: Parameters<typeof batchingSink>[1]) {
    this.#sink = sink;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#tellLoss = options.tellLoss;
    this.#tokens = options.settings.throttle?.burst ?? 0;
    this.#tokensAt = options.clock.monotonic();
  }

  /** Always true: a request does not depend on what becomes of its events. */
  take(events: readonly AuditEvent[]): boolean {
    const room = this.#isClosing ? 0 : this.#settings.bufferSize - this.#waiting.length;
    const taken = events.slice(0, room);
    appendAll(this.#waiting, taken);
    const lost = events.slice(taken.length);
    if (lost.length > 0) {
      const why = this.#isClosing ? 'audit backend shut down' : 'audit buffer queue blocked';
      this.#tellLoss({ plugin: 'buffered', error: new Error(why), events: lost });
    }
    this.#schedule();
    return true;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#timer?.stop();
    this.#sink.hurry?.();
    while (this.#waiting.length > 0 || this.#underWay.size > 0) {
      while (this.#waiting.length > 0 && this.#underWay.size < underWayMax) this.#send();
      if (this.#underWay.size > 0) await Promise.race(this.#underWay);
    }
    await this.#sink.close();
  }

  /** Sends what is due now, and comes back for the rest. */
  #schedule(): void {
    if (this.#isClosing || this.#waiting.length === 0 || this.#isArmed) return;
    const { batchSizeMax, waitMs } = this.#settings;
    if (this.#waiting.length < batchSizeMax) {
      this.#timer ??= this.#clock.after(waitMs, () => this.#due());
      return;
    }
    this.#timer?.stop();
    // Never within the request itself: a burst of events is written when the burst is over.
    this.#timer = this.#clock.after(0, () => this.#due());
    this.#isArmed = true;
  }

  #due(): void {
    this.#timer = undefined;
    this.#isArmed = false;
    const { batchSizeMax } = this.#settings;
    do {
      if (this.#waiting.length === 0 || this.#underWay.size >= underWayMax) return;
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
      this.#underWay.delete(done);
      if (this.#underWay.size === underWayMax - 1) this.#schedule();
    });
    this.#underWay.add(done);
  }

  /** 0 when a batch may go; else how long until one may, milliseconds. */
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
