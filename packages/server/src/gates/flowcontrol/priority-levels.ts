import { type Clock, largest } from '@wheelhouse/machinery';
import type { QueueSet } from './queue-set.ts';
import type { DemandReport } from './seat.ts';
import type { LevelSettings } from './settings.ts';

/** Bounds and target of a level's seats. */
export interface SeatClaim {
  readonly lower: number;
  readonly upper: number;
  readonly target: number;
}

/** The seats of each level, in the order of the claims; the caller rounds fractions. */
interface SeatAllocation {
  readonly seats: readonly number[];
  /** The fraction of its target that each level receives unless a bound limits it. */
  readonly fairFraction: number;
}

/** Lower bound of targets, because a fraction of zero would be zero. */
const targetMin = 0.001;
const tolerance = 1e-7;
/** Maximum number of bisection steps; each doubles the precision. */
const stepsMax = 200;

/**
 * Divides `sum` seats: each level receives the same fraction of its target, within its bounds.
 * Undefined if the bounds do not allow the seats to add up to `sum`.
 *
 * Example: 10 seats, targets 2 and 18, bounds 0 to 10 and 0 to 6. A fraction of 0.5 would give 1
 * and 9; the bound limits the second level to 6, and the fraction rises to 2, which gives the first
 * level 4.
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
  return { seats: claims.map((claim) => seatsAt(high, claim)), fairFraction: high };
}

function seatsAt(part: number, { lower, upper, target }: SeatClaim): number {
  return Math.max(lower, Math.min(upper, part * Math.max(target, targetMin)));
}

/** Milliseconds between adjustments of the levels' limits to demand. */
export const adjustmentPeriodMs = 10_000;

/**
 * Divides the server's seats among the priority levels by their shares, and periodically lets
 * levels with demand borrow the seats that others lend (OPS-3).
 */
export class PriorityLevels {
  readonly #clock: Clock;
  readonly #seatsTotal: number;
  readonly #newSet: (name: string) => QueueSet;
  #levels = new Map<string, PriorityLevel>();
  /** May slightly exceed the server's seats because shares are rounded up. */
  #nominalTotal = 0;
  #adjustedMs: number;
  fairFraction = 0;

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

  /** Whether a limited level has demand, or had some before the last adjustment. */
  get hasDemand(): boolean {
    for (const { isExempt, set, demand } of this.#levels.values()) {
      if (!isExempt && (!set.isIdle || demand.highWatermark > 0)) return true;
    }
    return false;
  }

  /**
   * Applies the configuration of levels; a removed level remains until its last request finishes.
   */
  configure(settings: readonly LevelSettings[]): void {
    const next = new Map<string, PriorityLevel>();
    for (const setting of settings) {
      const level =
        this.#levels.get(setting.name) ?? new PriorityLevel(setting, this.#newSet(setting.name));
      level.settings = setting;
      level.isQuiescing = false;
      next.set(setting.name, level);
    }
    for (const level of this.#levels.values()) {
      if (next.has(level.name) || level.set.isIdle) continue;
      level.isQuiescing = true;
      next.set(level.name, level);
    }
    this.#levels = next;
    this.#setNominalSeats();
    this.#allocate();
  }

  /**
   * Adjusts the levels' seats to the demand since the last adjustment. Each period without an
   * adjustment counts as one without demand.
   */
  adjust(): void {
    const nowMs = this.#clock.monotonic();
    const passedMs = nowMs - this.#adjustedMs;
    this.#adjustedMs = nowMs;
    const missed = Math.max(0, Math.round(passedMs / adjustmentPeriodMs) - 1);
    for (const level of this.#levels.values()) {
      level.set.refresh();
      level.recordDemand(level.set.demand.report(nowMs), missed);
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
    this.#setNominalSeats();
  }

  #setNominalSeats(): void {
    let shares = 0;
    for (const { settings } of this.#levels.values()) shares += settings.shares;
    this.#nominalTotal = 0;
    for (const level of this.#levels.values()) {
      level.setNominalSeats(this.#seatsTotal, shares);
      this.#nominalTotal += level.nominal;
    }
  }

  /**
   * Allocates seats to limited levels by demand, as far as the exempt levels leave enough for all
   * lower bounds. A level that may have a seat has at least one; otherwise its first request would
   * wait for the next adjustment.
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
      level.setLimit(currentLower);
    }
    const lower = sumOf((level) => level.lower);
    const currentLower = sumOf((level) => level.currentLower);
    this.fairFraction = 0;
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
    const allocation = allocateSeats(this.#nominalTotal, claims);
    this.fairFraction = allocation?.fairFraction ?? 0;
    limited.forEach((level, index) => {
      // If the bounds are not feasible, levels keep their seats; a new level starts with its
      // nominal ones.
      const kept = level.current === 0 ? level.nominal : level.current;
      limit(level, Math.round(allocation?.seats[index] ?? kept));
    });
  }
}

function limit(level: PriorityLevel, seats: number): void {
  level.setLimit(Math.max(seats, Math.min(1, level.upper)));
}

/** A level's demand for seats, smoothed over adjustments. */
interface DemandStatistics {
  highWatermark: number;
  average: number;
  deviation: number;
  smoothed: number;
  target: number;
}

/** Smoothing factor per adjustment: past demand halves in about five minutes. */
const smoothing = 0.977;

/** A priority level with its seats. */
export class PriorityLevel {
  settings: LevelSettings;
  /** The type of a level never changes: exactly the level `exempt` is exempt. */
  readonly isExempt: boolean;
  readonly set: QueueSet;
  /** Whether the level has been removed from the configuration but still has requests. */
  isQuiescing = false;
  nominal = 0;
  lower = 0;
  upper = 0;
  current = 0;
  /** Maximum number of seats of one request; undefined: the estimator's own bound. */
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
    this.isExempt = settings.response.type === 'Exempt';
    this.set = set;
  }

  get name(): string {
    return this.settings.name;
  }

  /** Sets the level's nominal seats, and the bounds for lending and borrowing. */
  setNominalSeats(seatsTotal: number, sharesTotal: number): void {
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
      const perQueue = Math.floor(nominal / response.handSize);
      this.seatsMax = Math.max(1, Math.min(Math.ceil(nominal * 0.15), perQueue));
    }
  }

  /** Records the demand since the last adjustment, and `missed` adjustments without demand. */
  recordDemand(report: DemandReport, missed: number): void {
    const { demand } = this;
    demand.highWatermark = Math.round(report.max);
    if (report.seconds <= 0) return;
    demand.average = report.average;
    demand.deviation = report.deviation;
    const envelope = report.average + report.deviation;
    const decayed = demand.smoothed * smoothing ** missed;
    demand.smoothed = Math.max(envelope, smoothing * decayed + (1 - smoothing) * envelope);
  }

  /** The current lower bound: the demand, up to the nominal seats unless the level is exempt. */
  get currentLower(): number {
    const { highWatermark } = this.demand;
    if (this.isExempt) return Math.max(this.lower, highWatermark);
    return Math.max(this.lower, Math.min(this.nominal, highWatermark));
  }

  /** Sets the level's number of seats. */
  setLimit(seats: number): void {
    this.current = seats;
    this.set.configure(this.settings.response, seats);
  }
}
