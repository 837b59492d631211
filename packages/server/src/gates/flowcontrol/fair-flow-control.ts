import { type Clock, isLongRunning, type MaybePromise, type Timer } from '@wheelhouse/machinery';
import { parseGoDuration } from '@wheelhouse/schema';
import { Classifier } from './classifier.ts';
import {
  type ByKind,
  type FlowControl,
  type FlowInfo,
  type FlowRequest,
  type GrantedSeat,
  isReadOnly,
  Overloaded,
  uncountedSeat,
} from './contract.ts';
import type { FlowSeries, LevelSeries } from './flow-series.ts';
import type { KindUsage } from './kind-usage.ts';
import { adjustmentPeriodMs, PriorityLevels } from './priority-levels.ts';
import { QueueSet } from './queue-set.ts';
import { RetryAfter } from './retry-after.ts';
import { Seat } from './seat.ts';
import type { LevelSettings, SchemaSettings } from './settings.ts';
import type { WatchCounts } from './watch-counts.ts';
import { type CountObjects, createWorkEstimator } from './work-estimate.ts';

/** What flow control goes by. */
export interface FlowSettings {
  readonly levels: readonly LevelSettings[];
  readonly schemas: readonly SchemaSettings[];
}

/** What is counted of a schema's requests at a level. */
export type SeriesOf = (level: string, schema: string) => FlowSeries;

const waitLimitMaxMs = 60_000;
/** What part of its time a request may spend waiting. */
const waitingPart = 4;
const catchAll = 'catch-all';

/**
 * Priority and fairness (OPS-3): requests are told apart by schemas, each level has seats of its
 * own, and flows of one level take turns. The defaults rule from the first moment; an object of
 * theirs that is not stored, or whose stored form is of no use, counts as it is here.
 */
export class FairFlowControl implements FlowControl {
  readonly #clock: Clock;
  readonly #defaults: FlowSettings;
  readonly #seriesOf: SeriesOf;
  readonly #retryAfter: RetryAfter;
  readonly #estimate: ReturnType<typeof createWorkEstimator>;
  readonly levels: PriorityLevels;
  #classifier: Classifier;
  #adjusting: Timer | undefined;
  #adjustedMs: number;

  constructor(options: {
    readonly clock: Clock;
    /** Seats of the server; one at least. */
    readonly seatsTotal: number;
    readonly requestTimeoutMs: number;
    readonly defaults: FlowSettings;
    readonly countObjects: CountObjects;
    /** The watches that stand. */
    readonly watches: WatchCounts;
    readonly seriesOf: SeriesOf;
    readonly levelSeriesOf?: ((level: string) => LevelSeries) | undefined;
    readonly kinds?: KindUsage | undefined;
  }) {
    const { clock, countObjects, watches } = options;
    this.#clock = clock;
    this.#defaults = options.defaults;
    this.#seriesOf = options.seriesOf;
    this.#retryAfter = new RetryAfter(clock);
    this.#estimate = createWorkEstimator({ watches, countObjects });
    this.#adjustedMs = clock.monotonic();
    const waitLimitMs = ({ info }: FlowRequest) => waitLimitOf(info, options.requestTimeoutMs);
    const newSet = (level: string) => {
      const refusal = ({ flowClass }: Seat) =>
        new Overloaded(this.#retryAfter.refused(level), flowClass);
      const series = options.levelSeriesOf?.(level);
      return new QueueSet({ clock, refusal, waitLimitMs, series, kinds: options.kinds });
    };
    this.levels = new PriorityLevels({ clock, seatsTotal: options.seatsTotal, newSet });
    this.#classifier = this.#configured({ levels: [], schemas: [] });
  }

  enter(request: FlowRequest): MaybePromise<GrantedSeat> {
    const { info, user } = request;
    // A watch is counted until it stands.
    if (isLongRunning(info) && info.verb !== 'watch') return uncountedSeat;
    const { level, flow } = this.#classifier.classify(user, info);
    const work = this.#estimate(info, flow.series, level.seatsMax);
    const seat = new Seat(request, flow, level.set, work);
    flow.series.estimated(seat.maxSeats);
    if (this.#adjusting === undefined && !level.isExempt) this.#keepAdjusting();
    return level.set.enter(seat);
  }

  /** Goes by what is stored from now on. What waits goes on waiting where it is. */
  configure(stored: FlowSettings): void {
    this.#classifier = this.#configured(stored);
  }

  get inFlight(): ByKind {
    const count = { readOnly: 0, mutating: 0 };
    for (const { set } of this.levels.all()) {
      for (const seat of set.executing) countKind(count, seat);
    }
    return count;
  }

  get inQueue(): ByKind {
    const count = { readOnly: 0, mutating: 0 };
    for (const { set } of this.levels.all()) {
      for (const { waiting } of set.queues()) for (const seat of waiting) countKind(count, seat);
    }
    return count;
  }

  close(): void {
    this.#adjusting?.stop();
    for (const { set } of this.levels.all()) set.close();
  }

  #configured(stored: FlowSettings): Classifier {
    const levels = withDefaults(stored.levels, this.#defaults.levels);
    this.levels.configure(levels);
    this.#retryAfter.keep(new Set(levels.map(({ name }) => name)));
    const known = withDefaults(stored.schemas, this.#defaults.schemas);
    const schemas = [...known].sort(byPrecedence).flatMap((settings) => {
      const level = this.levels.of(settings.level);
      return level === undefined || level.isQuiescing ? [] : [{ settings, level }];
    });
    return new Classifier({
      schemas,
      catchAll,
      series: (level, schema) => this.#seriesOf(level.name, schema),
    });
  }

  /** Limits follow demand for as long as there is some; an idle server has no timer. */
  #keepAdjusting(): void {
    if (this.#clock.monotonic() - this.#adjustedMs > adjustmentPeriodMs) this.#adjust();
    this.#adjusting = this.#clock.after(adjustmentPeriodMs, () => {
      this.#adjusting = undefined;
      this.#adjust();
      if (this.levels.isWanted) this.#keepAdjusting();
    });
  }

  #adjust(): void {
    this.#adjustedMs = this.#clock.monotonic();
    this.levels.adjust();
  }
}

/** Stored ones, and the defaults of names that are not among them. */
function withDefaults<T extends { readonly name: string }>(
  stored: readonly T[],
  defaults: readonly T[],
): readonly T[] {
  const names = new Set(stored.map(({ name }) => name));
  return [...stored, ...defaults.filter(({ name }) => !names.has(name))];
}

function byPrecedence(one: SchemaSettings, other: SchemaSettings): number {
  return one.precedence - other.precedence || (one.name < other.name ? -1 : 1);
}

function countKind(count: { readOnly: number; mutating: number }, { request }: Seat): void {
  if (isReadOnly(request.info.verb)) count.readOnly += 1;
  else count.mutating += 1;
}

/** A quarter of the time a request has, which it may have cut short itself. */
function waitLimitOf({ verb, query }: FlowInfo, requestTimeoutMs: number): number {
  const given = verb === 'watch' ? null : query.get('timeout');
  const asked = given === null ? undefined : parseGoDuration(given);
  const askedMs = asked === undefined || asked <= 0n ? requestTimeoutMs : Number(asked) / 1e6;
  return Math.min(waitLimitMaxMs, Math.min(askedMs, requestTimeoutMs) / waitingPart);
}
