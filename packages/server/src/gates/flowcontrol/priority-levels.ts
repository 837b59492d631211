import { type Clock, largest } from '@wheelhouse/machinery';
import type { QueueSet } from './queue-set.ts';
import type { DemandReport } from './seat.ts';
import type { LevelSettings } from './settings.ts';

/** What a level may have at least and at most, and what it would like. */
export interface SeatClaim {
  readonly lower: number;
  readonly upper: number;
  readonly target: number;
}

/** What each level gets, in the order of the claims; parts of seats are the caller's to round. */
interface SeatAllocation {
  readonly seats: readonly number[];
  /** What part of its target each level gets that no bound holds. */
  readonly fairPart: number;
}

/** A target of nothing would have no part. */
const targetMin = 0.001;
const tolerance = 1e-7;
/** Halvings; each doubles the precision, and a double has no more than 53 bits and an exponent. */
const stepsMax = 200;

/**
 * Divides `sum` seats: each level gets the same part of its target, but not less than its lower
 * bound nor more than its upper. Undefined when the bounds do not let the seats add up to `sum`.
 *
 * An example: 10 seats, targets 2 and 18, bounds 0 to 10 and 0 to 6. At the part 0.5 they would
 * have 1 and 9; the second's bound holds it at 6, and the part rises to 2, where the first has 4.
 */
export function allocateSeats(
  sum: number,
  claims: readonly SeatClaim[],
): SeatAllocation | undefined {
  const lowest = claims.reduce((all, { lower }) => all + lower, 0);
  const highest = claims.reduce((all, { upper }) => all + upper, 0);
  if (lowest - sum > tolerance || sum - highest > tolerance) return undefined;
  let low = 0;
  let high = largest(
    0,
    claims.map(({ upper, target }) => upper / Math.max(target, targetMin)),
  );
  for (let step = 0; step < stepsMax && low < high; step += 1) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    let total = 0;
    for (const claim of claims) total += seatsAt(middle, claim);
    if (total < sum) low = middle;
    else high = middle;
  }
  return { seats: claims.map((claim) => seatsAt(high, claim)), fairPart: high };
}

function seatsAt(part: number, { lower, upper, target }: SeatClaim): number {
  return Math.max(lower, Math.min(upper, part * Math.max(target, targetMin)));
}

/** How often levels' limits follow what they want, ms. */
export const adjustmentPeriodMs = 10_000;

/**
 * Divides the server's seats among the levels: by their shares, and then, from time to time, by
 * what they could use, as far as they lend and borrow (OPS-3).
 */
export class PriorityLevels {
  readonly #clock: Clock;
  readonly #seatsTotal: number;
  readonly #newSet: (name: string) => QueueSet;
  #levels = new Map<string, PriorityLevel>();
  /** Rounding up lets it exceed the server's seats by a few. */
  #nominalTotal = 0;
  #adjustedMs: number;
  fairPart = 0;

  constructor(options: {
    readonly clock: Clock;
    /** Seats of the server. */
    readonly seatsTotal: number;
    readonly newSet: (name: string) => QueueSet;
  }) {
    this.#clock = options.clock;
    this.#seatsTotal = options.seatsTotal;
    this.#newSet = options.newSet;
    this.#adjustedMs = options.clock.monotonic();
  }

  of(name: string): PriorityLevel | undefined {
    return this.#levels.get(name);
  }

  all(): IterableIterator<PriorityLevel> {
    return this.#levels.values();
  }

  /** Somebody at a level that limits wants seats, or did so before the last adjustment. */
  get isWanted(): boolean {
    for (const { isExempt, set, demand } of this.#levels.values()) {
      if (!isExempt && (!set.isIdle || demand.highWatermark > 0)) return true;
    }
    return false;
  }

  /** Goes by these levels; one that is no longer among them stays until it has served its last. */
  configure(settings: readonly LevelSettings[]): void {
    const next = new Map<string, PriorityLevel>();
    for (const one of settings) {
      const level = this.#levels.get(one.name) ?? new PriorityLevel(one, this.#newSet(one.name));
      level.settings = one;
      level.isQuiescing = false;
      next.set(one.name, level);
    }
    for (const level of this.#levels.values()) {
      if (next.has(level.name) || level.set.isIdle) continue;
      level.isQuiescing = true;
      next.set(level.name, level);
    }
    this.#levels = next;
    this.#nominate();
    this.#allocate();
  }

  /**
   * Gives the levels what they could use since the last time. When that is long ago because nothing
   * was wanted, old demand counts as forgotten for as long.
   */
  adjust(): void {
    const nowMs = this.#clock.monotonic();
    const passedMs = nowMs - this.#adjustedMs;
    this.#adjustedMs = nowMs;
    const missed = Math.max(0, Math.round(passedMs / adjustmentPeriodMs) - 1);
    for (const level of this.#levels.values()) {
      level.set.look();
      level.noteDemand(level.set.demand.report(nowMs), missed);
    }
    this.#dropDrained();
    this.#allocate();
  }

  #dropDrained(): void {
    const drained = [...this.#levels.values()].filter(
      ({ isQuiescing, set }) => isQuiescing && set.isIdle,
    );
    if (drained.length === 0) return;
    for (const { name } of drained) this.#levels.delete(name);
    this.#nominate();
  }

  #nominate(): void {
    let shares = 0;
    for (const { settings } of this.#levels.values()) shares += settings.shares;
    this.#nominalTotal = 0;
    for (const level of this.#levels.values()) {
      level.nominate(this.#seatsTotal, shares);
      this.#nominalTotal += level.nominal;
    }
  }

  /**
   * Levels that limit get what they could use, as long as exempt ones have left enough for all to
   * have the least they should. One that may have a seat has one at least: with none, its first
   * request would have to wait for the next adjustment.
   */
  #allocate(): void {
    const levels = [...this.#levels.values()];
    const limited = levels.filter(({ isExempt }) => !isExempt);
    const sumOf = (number: (level: PriorityLevel) => number) =>
      limited.reduce((sum, level) => sum + number(level), 0);
    let remaining = this.#nominalTotal;
    for (const level of levels) {
      const { demand, currentLower } = level;
      demand.target = Math.max(currentLower, demand.smoothed);
      if (!level.isExempt) continue;
      remaining -= currentLower;
      level.limitTo(currentLower);
    }
    const lower = sumOf((level) => level.lower);
    const currentLower = sumOf((level) => level.currentLower);
    this.fairPart = 0;
    if (remaining <= lower) {
      for (const level of limited) limit(level, level.lower);
    } else if (remaining <= currentLower) {
      const part = (remaining - lower) / (currentLower - lower);
      for (const level of limited) {
        limit(level, level.lower + Math.round((level.currentLower - level.lower) * part));
      }
    } else this.#allocateFairly(limited);
  }

  #allocateFairly(limited: readonly PriorityLevel[]): void {
    const claims = limited.map(({ currentLower, upper, demand }) => ({
      lower: currentLower,
      upper,
      target: demand.target,
    }));
    const found = allocateSeats(this.#nominalTotal, claims);
    this.fairPart = found?.fairPart ?? 0;
    limited.forEach((level, index) => {
      // Bounds that do not add up leave things as they are; a new level begins with what it has.
      const kept = level.current === 0 ? level.nominal : level.current;
      limit(level, Math.round(found?.seats[index] ?? kept));
    });
  }
}

function limit(level: PriorityLevel, seats: number): void {
  level.limitTo(Math.max(seats, Math.min(1, level.upper)));
}

/** What a level's demand for seats was, made smooth over the adjustments. */
interface DemandStatistics {
  highWatermark: number;
  average: number;
  deviation: number;
  smoothed: number;
  target: number;
}

/** How slowly demand that has gone is forgotten: by half in five minutes of adjustments. */
const smoothing = 0.977;

/** A level with its seats. */
export class PriorityLevel {
  settings: LevelSettings;
  readonly set: QueueSet;
  /** Taken out of the configuration, and still busy. */
  isQuiescing = false;
  nominal = 0;
  lower = 0;
  upper = 0;
  current = 0;
  /** The most seats one request may be given; undefined where the estimator's own bound holds. */
  seatsMax: number | undefined = undefined;
  readonly demand: DemandStatistics = {
    highWatermark: 0,
    average: 0,
    deviation: 0,
    smoothed: 0,
    target: 0,
  };

  constructor(settings: LevelSettings, set: QueueSet) {
    this.settings = settings;
    this.set = set;
  }

  get name(): string {
    return this.settings.name;
  }

  get isExempt(): boolean {
    return this.settings.response.type === 'Exempt';
  }

  /** The seats it has of itself, of which it may lend some and to which it may borrow. */
  nominate(seatsTotal: number, sharesTotal: number): void {
    const { shares, lendablePercent, borrowingLimitPercent, response } = this.settings;
    const nominal = sharesTotal > 0 ? Math.ceil((seatsTotal * shares) / sharesTotal) : 0;
    const borrowed =
      borrowingLimitPercent === undefined
        ? seatsTotal
        : Math.round((nominal * borrowingLimitPercent) / 100);
    const lendable = Math.round((nominal * lendablePercent) / 100);
    this.nominal = nominal;
    this.set.nominal = nominal;
    this.lower = nominal - lendable;
    this.upper = nominal + borrowed;
    if (response.type !== 'Queue') this.seatsMax = undefined;
    else {
      const ofHand = Math.floor(nominal / response.handSize);
      this.seatsMax = Math.max(1, Math.min(Math.ceil(nominal * 0.15), ofHand));
    }
  }

  /** Takes in what was wanted since the last adjustment, and `missed` adjustments of nothing. */
  noteDemand(report: DemandReport, missed: number): void {
    const { demand } = this;
    demand.highWatermark = Math.round(report.max);
    if (report.seconds <= 0) return;
    demand.average = report.average;
    demand.deviation = report.deviation;
    const envelope = report.average + report.deviation;
    const decayed = demand.smoothed * smoothing ** missed;
    demand.smoothed = Math.max(envelope, smoothing * decayed + (1 - smoothing) * envelope);
  }

  /** The least it may have now: what it wanted, within what it has of itself. */
  get currentLower(): number {
    const { highWatermark } = this.demand;
    if (this.isExempt) return Math.max(this.lower, highWatermark);
    return Math.max(this.lower, Math.min(this.nominal, highWatermark));
  }

  /** From now on so many seats. */
  limitTo(seats: number): void {
    this.current = seats;
    this.set.configure(this.settings.response, seats);
  }
}
