import type { FlowClass, FlowRequest, GrantedSeat } from './contract.ts';
import type { FlowSeries } from './flow-metrics.ts';

/** Requests of one schema and one distinguisher, which share seats fairly with other flows. */
export interface Flow {
  readonly distinguisher: string;
  /** The indexes of the queues that it may use; at least one if its level has queues. */
  readonly hand: readonly number[];
  readonly series: FlowSeries;
  readonly flowClass: FlowClass;
}

/** The estimated work of a request. */
export interface WorkEstimate {
  /** Seats while it runs. */
  readonly initialSeats: number;
  /** Seats that it keeps for `lingerMs` after its end. */
  readonly finalSeats: number;
  readonly lingerMs: number;
}

/** The owner to which a seat is returned. */
export interface SeatOwner {
  finish(seat: Seat): void;
}

/** Requests of some flows, oldest first. */
export interface FlowQueue {
  readonly index: number;
  /** The R at which its next request begins; see `QueueSet`. */
  nextR: number;
  readonly waiting: SeatList;
  executing: number;
  seatsInUse: number;
  /** Sums over the waiting requests. */
  initialSeatsWaiting: number;
  maxSeatsWaiting: number;
  workWaiting: number;
  /** Its index among the queues with waiting requests; -1 if it has none. */
  position: number;
}

/**
 * A request's seats at its priority level. It is in exactly one state, and in exactly one list
 * while it waits or runs:
 * | state     | dispatched | canceled or timed out | released |
 * |-----------|------------|-----------------------|----------|
 * | waiting   | executing  | finished              |          |
 * | executing |            |                       | finished |
 */
export class Seat implements GrantedSeat {
  readonly request: FlowRequest;
  readonly flow: Flow;
  readonly initialSeats: number;
  finalSeats: number;
  lingerMs: number;
  readonly owner: SeatOwner;
  state: 'waiting' | 'executing' | 'finished' = 'waiting';
  queue: FlowQueue | undefined = undefined;
  arrivalMs = 0;
  arrivalR = 0;
  /** Undefined while waiting. */
  startMs: number | undefined = undefined;
  /** The latest time at which it may start. */
  deadlineMs = 0;
  previous: Seat | undefined = undefined;
  next: Seat | undefined = undefined;
  grant: ((seat: Seat) => void) | undefined = undefined;
  reject: ((error: Error) => void) | undefined = undefined;

  constructor(request: FlowRequest, flow: Flow, owner: SeatOwner, work: WorkEstimate) {
    this.request = request;
    this.flow = flow;
    this.owner = owner;
    this.initialSeats = work.initialSeats;
    this.finalSeats = work.finalSeats;
    this.lingerMs = work.lingerMs;
  }

  get maxSeats(): number {
    return Math.max(this.initialSeats, this.finalSeats);
  }

  get flowClass(): FlowClass {
    return this.flow.flowClass;
  }

  release(): void {
    if (this.state === 'executing') this.owner.finish(this);
  }
}

/** A doubly linked list of seats, with removal in constant time. */
export class SeatList {
  first: Seat | undefined = undefined;
  last: Seat | undefined = undefined;
  length = 0;

  add(seat: Seat): void {
    seat.previous = this.last;
    seat.next = undefined;
    if (this.last === undefined) this.first = seat;
    else this.last.next = seat;
    this.last = seat;
    this.length += 1;
  }

  remove(seat: Seat): void {
    if (seat.previous === undefined) this.first = seat.next;
    else seat.previous.next = seat.next;
    if (seat.next === undefined) this.last = seat.previous;
    else seat.next.previous = seat.previous;
    seat.previous = undefined;
    seat.next = undefined;
    this.length -= 1;
  }

  *[Symbol.iterator](): IterableIterator<Seat> {
    for (let seat = this.first; seat !== undefined; seat = seat.next) yield seat;
  }
}

/** Demand over a period, weighted by time. */
export interface DemandReport {
  readonly seconds: number;
  readonly average: number;
  readonly deviation: number;
  readonly max: number;
}

/** Tracks a level's demand for seats between reports. */
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

  /** Sets the current demand. */
  set(nowMs: number, seats: number): void {
    this.#advanceTo(nowMs);
    this.#seats = seats;
    if (seats > this.#max) this.#max = seats;
  }

  /** The demand since the last report. */
  report(nowMs: number): DemandReport {
    this.#advanceTo(nowMs);
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

  #advanceTo(nowMs: number): void {
    const seconds = (nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    this.#seconds += seconds;
    this.#sum += seconds * this.#seats;
    this.#squares += seconds * this.#seats * this.#seats;
  }
}
