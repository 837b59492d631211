import type { QueueSet } from './queue-set.ts';
import type { DemandReport } from './seat-demand.ts';
import type { LevelSettings } from './settings.ts';

/** What a level's demand for seats was, made smooth over the adjustments. */
export interface DemandStatistics {
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
    const known = demand.smoothed * smoothing ** missed;
    demand.smoothed = Math.max(envelope, smoothing * known + (1 - smoothing) * envelope);
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
