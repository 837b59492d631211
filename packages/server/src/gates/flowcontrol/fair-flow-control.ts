import {
  type Clock,
  isLongRunning,
  isReadOnly,
  type MaybePromise,
  parseFieldSelector,
  type Timer,
} from '@wheelhouse/machinery';
import { parseGoDuration } from '@wheelhouse/schema';
import { Classifier } from './classifier.ts';
import {
  type ByKind,
  type FlowControl,
  type FlowInfo,
  type FlowRequest,
  type GrantedSeat,
  Overloaded,
  uncountedSeat,
} from './contract.ts';
import type { FlowSeries, KindUsage, LevelSeries, SeriesOf } from './flow-metrics.ts';
import { adjustmentPeriodMs, PriorityLevels } from './priority-levels.ts';
import { QueueSet } from './queue-set.ts';
import { Seat, type WorkEstimate } from './seat.ts';
import type { LevelSettings, SchemaSettings } from './settings.ts';

/**
 * Maximum Retry-After in seconds, and the age in seconds above which rejections no longer count.
 */
const retryAfterMax = 32;

/**
 * Computes the Retry-After of each priority level (OPS-3): one second at first, doubled while at
 * least three requests per second are rejected, and reduced by a second when fewer than one per
 * second is.
 */
export class RetryAfter {
  readonly #clock: Clock;
  readonly #levels = new Map<string, Rejections>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a rejected request and returns its Retry-After in seconds. */
  countRejection(level: string): number {
    const second = Math.floor(this.#clock.monotonic() / 1000);
    let rejections = this.#levels.get(level);
    if (rejections === undefined) {
      rejections = { current: second, count: 0, past: [], seconds: 1, raisedAt: 0 };
      this.#levels.set(level, rejections);
    }
    if (rejections.current !== second) startSecond(rejections, second);
    rejections.count += 1;
    return rejections.seconds;
  }

  /** Drops levels that no longer exist. */
  retain(levels: ReadonlySet<string>): void {
    for (const level of this.#levels.keys()) if (!levels.has(level)) this.#levels.delete(level);
  }
}

interface Rejections {
  /** The second that `count` refers to. */
  current: number;
  count: number;
  past: { readonly second: number; readonly count: number }[];
  seconds: number;
  raisedAt: number;
}

function startSecond(rejections: Rejections, second: number): void {
  const { seconds } = rejections;
  const kept = Math.min(retryAfterMax, 2 * seconds);
  rejections.past.push({ second: rejections.current, count: rejections.count });
  rejections.past = rejections.past.filter((earlier) => second - earlier.second <= kept);
  rejections.current = second;
  rejections.count = 0;
  const recent = rejections.past
    .filter((earlier) => second - earlier.second <= seconds)
    .reduce((sum, { count }) => sum + count, 0);
  if (second - rejections.raisedAt >= seconds && recent >= 3 * seconds) {
    rejections.seconds = Math.min(retryAfterMax, 2 * seconds);
    rejections.raisedAt = second;
  } else if (recent < seconds && seconds > 1) rejections.seconds -= 1;
}

/** The configuration of flow control. */
export interface FlowSettings {
  readonly levels: readonly LevelSettings[];
  readonly schemas: readonly SchemaSettings[];
}

const waitLimitMaxMs = 60_000;
/** A request may wait for its timeout divided by this number. */
const waitDivisor = 4;
const catchAll = 'catch-all';

/**
 * API priority and fairness (OPS-3): flow schemas classify requests, each priority level has its
 * own seats, and the flows of one level share them fairly. A default applies while its object is
 * not stored, or is stored with contradictory fields.
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
    /** Seats of the server: at least one. */
    readonly seatsTotal: number;
    readonly requestTimeoutMs: number;
    readonly defaults: FlowSettings;
    readonly countObjects: CountObjects;
    /** The open watches. */
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
      const rejection = ({ flowClass }: Seat) =>
        new Overloaded(this.#retryAfter.countRejection(level), flowClass);
      const series = options.levelSeriesOf?.(level);
      return new QueueSet({
        clock,
        rejection: rejection,
        waitLimitMs,
        series,
        kinds: options.kinds,
      });
    };
    this.levels = new PriorityLevels({ clock, seatsTotal: options.seatsTotal, newSet });
    this.#classifier = this.#configured({ levels: [], schemas: [] });
  }

  enter(request: FlowRequest): MaybePromise<GrantedSeat> {
    const { info, user } = request;
    // A watch holds its seats until it is established.
    if (isLongRunning(info) && info.verb !== 'watch') return uncountedSeat;
    const { level, flow } = this.#classifier.classify(user, info);
    const work = this.#estimate(info, flow.series, level.seatsMax);
    const seat = new Seat(request, flow, level.set, work);
    flow.series.observeEstimate(seat.maxSeats);
    if (this.#adjusting === undefined && !level.isExempt) this.#keepAdjusting();
    return level.set.enter(seat);
  }

  /** Applies the stored configuration. Waiting requests stay in their queues. */
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
    this.#retryAfter.retain(new Set(levels.map(({ name }) => name)));
    const allSchemas = withDefaults(stored.schemas, this.#defaults.schemas);
    const schemas = [...allSchemas].sort(byPrecedence).flatMap((settings) => {
      const level = this.levels.of(settings.level);
      return level === undefined || level.isQuiescing ? [] : [{ settings, level }];
    });
    return new Classifier({
      schemas,
      catchAll,
      series: (level, schema) => this.#seriesOf(level.name, schema),
    });
  }

  /** Adjusts limits periodically while there is demand, so that an idle server has no timer. */
  #keepAdjusting(): void {
    if (this.#clock.monotonic() - this.#adjustedMs > adjustmentPeriodMs) this.#adjust();
    this.#adjusting = this.#clock.after(adjustmentPeriodMs, () => {
      this.#adjusting = undefined;
      this.#adjust();
      if (this.levels.hasDemand) this.#keepAdjusting();
    });
  }

  #adjust(): void {
    this.#adjustedMs = this.#clock.monotonic();
    this.levels.adjust();
  }
}

/** The stored objects, and the defaults whose names are not among them. */
function withDefaults<T extends { readonly name: string }>(
  stored: readonly T[],
  defaults: readonly T[],
): readonly T[] {
  const names = new Set(stored.map(({ name }) => name));
  return [...stored, ...defaults.filter(({ name }) => !names.has(name))];
}

function byPrecedence(left: SchemaSettings, right: SchemaSettings): number {
  return left.precedence - right.precedence || (left.name < right.name ? -1 : 1);
}

function countKind(count: { readOnly: number; mutating: number }, { request }: Seat): void {
  if (isReadOnly(request.info.verb)) count.readOnly += 1;
  else count.mutating += 1;
}

/** A quarter of the request's timeout, which a client can shorten with `timeout`. */
function waitLimitOf({ verb, query }: FlowInfo, requestTimeoutMs: number): number {
  const timeoutText = verb === 'watch' ? null : query.get('timeout');
  const timeoutNs = timeoutText === null ? undefined : parseGoDuration(timeoutText);
  const timeoutMs =
    timeoutNs === undefined || timeoutNs <= 0n ? requestTimeoutMs : Number(timeoutNs) / 1e6;
  return Math.min(waitLimitMaxMs, Math.min(timeoutMs, requestTimeoutMs) / waitDivisor);
}

/** Counts the objects of a resource; undefined if the count is unknown. */
type CountObjects = (info: FlowInfo) => number | undefined;

/** Maximum number of seats of one request, if its level does not allow fewer. */
const seatsBound = 10;
const objectsPerSeat = 100;
const watchesPerSeat = 10;
/** Milliseconds for which one seat's share of watches is busy with one event. */
const eventMs = 5;

const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, lingerMs: 0 };

/** Estimates by number of seats, created once instead of for every request. */
const estimates = Array.from({ length: seatsBound + 1 }, (_, seats) => ({
  ...oneSeat,
  initialSeats: seats,
}));

/**
 * Estimates the work of requests (OPS-3): lists by the number of objects that they examine, writes
 * by the number of watches that receive their events, all others one seat.
 */
export function createWorkEstimator(options: {
  readonly watches: WatchCounts;
  readonly countObjects: CountObjects;
}): (info: FlowInfo, series: FlowSeries, seatsMax: number | undefined) => WorkEstimate {
  const { watches, countObjects } = options;
  return (info, series, seatsMax) => {
    if (!info.isResourceRequest) return oneSeat;
    switch (info.verb) {
      case 'list':
        return listEstimate(info, { countObjects, seatsMax });
      case 'watch':
        return sendsInitialObjects(info.query)
          ? listEstimate(info, { countObjects, seatsMax })
          : oneSeat;
      case 'create':
      case 'update':
      case 'patch':
      case 'delete':
        return writeEstimate(info, { watches, series, seatsMax });
      default:
        return oneSeat;
    }
  };
}

/** Whether a watch starts with the current objects, which costs as much as a list. */
function sendsInitialObjects(query: URLSearchParams): boolean {
  if (query.get('sendInitialEvents') === 'true') return true;
  const version = query.get('resourceVersion') ?? '';
  return version === '' || version === '0';
}

function boundOf(seatsMax: number | undefined): number {
  return seatsMax === undefined || seatsMax > seatsBound ? seatsBound : seatsMax;
}

function listEstimate(
  info: FlowInfo,
  options: { readonly countObjects: CountObjects; readonly seatsMax: number | undefined },
): WorkEstimate {
  if (info.name !== '') return oneSeat;
  const stored = options.countObjects(info);
  if (stored === undefined) return oneSeat;
  const seats = Math.ceil(examinedObjects(info, stored) / objectsPerSeat);
  return estimates[Math.max(1, Math.min(seats, boundOf(options.seatsMax)))] ?? oneSeat;
}

/**
 * The number of objects that a list examines, as kube-apiserver estimates it; its store returns a
 * page and counts the remainder.
 */
function examinedObjects({ verb, query }: FlowInfo, stored: number): number {
  if (verb === 'watch' || query.size === 0) return stored;
  const requestedLimit = Number(query.get('limit') ?? '');
  const limit = requestedLimit > 0 && requestedLimit < stored ? requestedLimit : stored;
  const match = query.get('resourceVersionMatch') ?? '';
  const isPage = requestedLimit > 0 && query.get('resourceVersion') !== '0';
  const isContinued = (query.get('continue') ?? '') !== '';
  if (!isPage && !isContinued && (match === '' || match === 'NotOlderThan')) return stored;
  const isSelecting = query.get('fieldSelector') || query.get('labelSelector');
  return isSelecting ? stored + limit : 2 * limit;
}

function writeEstimate(
  info: FlowInfo,
  of: {
    readonly watches: WatchCounts;
    readonly series: FlowSeries;
    readonly seatsMax: number | undefined;
  },
): WorkEstimate {
  // A token request changes nothing that a watch could see.
  if (info.resource === 'serviceaccounts' && info.subresource === 'token') return oneSeat;
  const watches = of.watches.countFor(info);
  of.series.observeWatches(watches);
  if (watches < watchesPerSeat) return oneSeat;
  const seats = Math.ceil(watches / watchesPerSeat);
  const finalSeats = Math.min(seats, boundOf(of.seatsMax));
  // The same amount of work, with fewer seats for a longer time.
  return { initialSeats: 1, finalSeats, lingerMs: (seats * eventMs) / finalSeats };
}

/** Numbers of watches of one resource, by scope. */
interface Counts {
  clusterWide: number;
  /** Keys are `namespace` and `namespace/name`. */
  readonly byScope: Map<string, number>;
}

/** Counts the watches that receive the events of a write, to estimate its cost (OPS-3). */
export class WatchCounts {
  /** Keys are resources, then groups. */
  readonly #resources = new Map<string, Map<string, Counts>>();
  #total = 0;

  /** Counts a watch that starts; the caller calls the result at its end. */
  add(info: FlowInfo): () => void {
    if (info.resource === 'pods' && selectsOneNode(info.query)) return () => {};
    const counts = this.#countsOf(info);
    const key = keyOf(info);
    const count = (by: 1 | -1) => {
      this.#total += by;
      if (key === '') {
        counts.clusterWide += by;
        return;
      }
      const now = (counts.byScope.get(key) ?? 0) + by;
      if (now === 0) counts.byScope.delete(key);
      else counts.byScope.set(key, now);
    };
    count(1);
    let isOver = false;
    return () => {
      if (!isOver) count(-1);
      isOver = true;
    };
  }

  /** The number of watches that may see what this request writes. */
  countFor({ group, resource, namespace, name }: FlowInfo): number {
    if (this.#total === 0) return 0;
    const counts = this.#resources.get(resource)?.get(group);
    if (counts === undefined) return 0;
    let found = counts.clusterWide;
    if (counts.byScope.size === 0) return found;
    if (namespace !== '') found += counts.byScope.get(namespace) ?? 0;
    if (name !== '') found += counts.byScope.get(`${namespace}/${name}`) ?? 0;
    return found;
  }

  #countsOf({ group, resource }: FlowInfo): Counts {
    let groups = this.#resources.get(resource);
    if (groups === undefined) {
      groups = new Map();
      this.#resources.set(resource, groups);
    }
    let counts = groups.get(group);
    if (counts === undefined) {
      counts = { clusterWide: 0, byScope: new Map() };
      groups.set(group, counts);
    }
    return counts;
  }
}

function keyOf({ namespace, name }: FlowInfo): string {
  return name === '' ? namespace : `${namespace}/${name}`;
}

/** Whether a watch of pods selects one node and so receives few events. */
function selectsOneNode(query: URLSearchParams): boolean {
  const selector = query.get('fieldSelector');
  if (selector === null || !selector.includes('spec.nodeName')) return false;
  try {
    return parseFieldSelector(selector).some(
      ({ label, operator, value }) => label === 'spec.nodeName' && operator === '=' && value !== '',
    );
  } catch {
    return false;
  }
}
