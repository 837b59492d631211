/** How much was wanted over a time, weighted by how long it was. */
export interface DemandReport {
  readonly seconds: number;
  readonly average: number;
  readonly deviation: number;
  readonly max: number;
}

/** Follows how many seats a level could use, from one report to the next. */
export class SeatDemand {
  #lastMs: number;
  #seats = 0;
  #seconds = 0;
  #sum = 0;
  #squares = 0;
  #max = 0;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
  }

  /** From now on so many are wanted. */
  set(nowMs: number, seats: number): void {
    this.#reach(nowMs);
    this.#seats = seats;
    if (seats > this.#max) this.#max = seats;
  }

  /** What there was since the last report. */
  report(nowMs: number): DemandReport {
    this.#reach(nowMs);
    const seconds = this.#seconds;
    const average = seconds > 0 ? this.#sum / seconds : 0;
    const variance = seconds > 0 ? this.#squares / seconds - average * average : 0;
    const max = this.#max;
    this.#seconds = 0;
    this.#sum = 0;
    this.#squares = 0;
    this.#max = this.#seats;
    return { seconds, average, deviation: Math.sqrt(Math.max(0, variance)), max };
  }

  #reach(nowMs: number): void {
    const seconds = (nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    this.#seconds += seconds;
    this.#sum += seconds * this.#seats;
    this.#squares += seconds * this.#seats * this.#seats;
  }
}
