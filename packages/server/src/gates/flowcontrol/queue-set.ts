import type { Clock, MaybePromise, Timer } from '@wheelhouse/machinery';
import type { FlowRequest } from './contract.ts';
import type { KindUsage, LevelSeries, LevelUsage, RejectionReason } from './flow-metrics.ts';
import { type FlowQueue, type Seat, SeatDemand, SeatList, type SeatOwner } from './seat.ts';
import type { LimitResponse } from './settings.ts';

/** Expected duration of a request in seconds, until it has finished. */
const serviceSeconds = 0.003;

/** Totals of a priority level's requests. */
interface QueueSetTotals {
  readonly dispatched: number;
  readonly rejected: number;
  readonly timedOut: number;
  readonly cancelled: number;
}

/** Dependencies of a set of queues. */
interface QueueSetOptions {
  readonly clock: Clock;
  /** Creates the error of a rejected request. */
  readonly rejection: (seat: Seat) => Error;
  /** Maximum wait of a request in milliseconds. */
  readonly waitLimitMs: (request: FlowRequest) => number;
  readonly series?: LevelSeries | undefined;
  /** Shared by all sets of a server. */
  readonly kinds?: KindUsage | undefined;
}

/**
 * The seats of one priority level and its queues (OPS-3). A request is enqueued in one of the
 * queues of its flow's hand; a free seat goes to the queue that fair queuing serves next.
 *
 * Fair queuing: imagine that all non-empty queues are served at once, each with an equal part of
 * the seats. R is the number of seat-seconds that each queue would have received since the start;
 * it grows faster with fewer queues. A queue's `nextR` is the R at which its oldest request would
 * begin; adding the request's work gives the R at which it would finish. The queue whose oldest
 * request would finish first is served next.
 *
 * Example with one seat and requests of 3 ms: flow a sends three requests, then flow b sends one,
 * all at R = 0. The first of a runs, so a.nextR = 3. Of the waiting requests, a's would finish at 6
 * and b's at 3, so b is next although it arrived last.
 *
 * A request that finds a free seat allocates nothing but the seat and awaits nothing.
 */
export class QueueSet implements SeatOwner, LevelUsage {
  readonly #clock: Clock;
  readonly #rejection: QueueSetOptions['rejection'];
  readonly #waitLimitMs: QueueSetOptions['waitLimitMs'];
  readonly #series: LevelSeries | undefined;
  readonly #kinds: KindUsage | undefined;
  readonly demand: SeatDemand;
  readonly executing = new SeatList();
  readonly #queues: (FlowQueue | undefined)[] = [];
  /** Queues with waiting requests, unordered. */
  readonly #waitingQueues: FlowQueue[] = [];
  readonly #lingering = new LingeringSeats();
  #response: LimitResponse = { type: 'Reject' };
  #limit = 0;
  /** Number of seats before lending and borrowing. */
  nominal = 0;
  seatsInUse = 0;
  seatsWaiting = 0;
  waiting = 0;
  /** Number of queues with waiting or running requests. */
  #activeQueues = 0;
  #enqueues = 0;
  #lastServed = 0;
  #progress = 0;
  #lastMs: number;
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;
  /** A lower bound of the waiting requests' deadlines. */
  #deadlineMs = Number.POSITIVE_INFINITY;
  readonly #totals = { dispatched: 0, rejected: 0, timedOut: 0, cancelled: 0 };

  constructor(options: QueueSetOptions) {
    this.#clock = options.clock;
    this.#rejection = options.rejection;
    this.#waitLimitMs = options.waitLimitMs;
    this.#series = options.series;
    this.#kinds = options.kinds;
    this.#lastMs = options.clock.monotonic();
    this.demand = new SeatDemand(this.#lastMs);
  }

  get totals(): QueueSetTotals {
    return this.#totals;
  }

  get limit(): number {
    return this.#limit;
  }

  get room(): number {
    const response = this.#response;
    return response.type === 'Queue' ? response.queues * response.queueLengthLimit : 1;
  }

  /** R, in seat-seconds. */
  get progress(): number {
    return this.#progress;
  }

  get isIdle(): boolean {
    return this.waiting === 0 && this.executing.length === 0;
  }

  /** The queues that have been used. */
  queues(): readonly FlowQueue[] {
    return this.#queues.filter((queue) => queue !== undefined);
  }

  /** Changes the limits; running requests continue. */
  configure(response: LimitResponse, limit: number): void {
    const nowMs = this.#clock.monotonic();
    this.#advanceTo(nowMs);
    this.#response = response;
    this.#limit = limit;
    this.#dispatch(nowMs);
    this.#arm();
  }

  /**
   * Takes the request's seats now or when it is dispatched. Throws or rejects if the request is
   * rejected.
   */
  enter(seat: Seat): MaybePromise<Seat> {
    const nowMs = this.#clock.monotonic();
    this.#advanceTo(nowMs);
    seat.arrivalMs = nowMs;
    seat.arrivalR = this.#progress;
    const response = this.#response;
    if (response.type !== 'Queue') {
      if (!this.#fits(seat)) throw this.#reject(seat, 'concurrency-limit', 0);
      this.#begin(seat, nowMs);
      return seat;
    }
    const queue = this.#queueFor(seat);
    if (this.seatsInUse >= this.#limit && queue.waiting.length >= response.queueLengthLimit) {
      throw this.#reject(seat, 'queue-full', 0);
    }
    seat.queue = queue;
    const isActive = queue.waiting.length + queue.executing > 0;
    if (!isActive) this.#activeQueues += 1;
    if (queue.waiting.length === 0 && (!isActive || queue.nextR < this.#progress)) {
      queue.nextR = this.#progress;
    }
    seat.flow.series.enqueue(queue.waiting.length + 1);
    if (this.waiting === 0 && this.seatsInUse < this.#limit && this.#fits(seat)) {
      this.#lastServed = queue.index;
      this.#begin(seat, nowMs);
      return seat;
    }
    return this.#wait(seat, queue, nowMs);
  }

  /** Removes a waiting request whose client has disconnected. */
  cancel(seat: Seat): void {
    if (!isWaiting(seat)) return;
    this.#advanceTo(this.#clock.monotonic());
    // A lingering seat that was due may have been given to this request.
    if (isWaiting(seat)) this.#eject(seat, 'cancelled');
  }

  /** Ends a request; its seats are released now or after lingering. */
  finish(seat: Seat): void {
    const nowMs = this.#clock.monotonic();
    this.#advanceTo(nowMs);
    const { queue } = seat;
    const seconds = (nowMs - (seat.startMs ?? nowMs)) / 1000;
    seat.state = 'finished';
    this.executing.remove(seat);
    if (queue !== undefined) {
      queue.executing -= 1;
      // The expected duration was charged to the queue; correct it by the difference.
      queue.nextR -= seat.initialSeats * (serviceSeconds - seconds);
      this.#boundNext(queue);
      if (queue.waiting.length + queue.executing === 0) this.#activeQueues -= 1;
    }
    const { verb } = seat.request.info;
    this.#kinds?.executing(verb, -1, nowMs);
    const type = verb === 'watch' ? 'watch' : 'regular';
    seat.flow.series.end(seconds, type);
    if (seat.lingerMs > 0) this.#lingering.add(seat, nowMs + seat.lingerMs);
    else this.#release(seat, nowMs);
    if (this.waiting === 0) return;
    this.#dispatch(nowMs);
    this.#arm();
  }

  /** Advances the measurements to the current time. */
  refresh(): void {
    this.#advanceTo(this.#clock.monotonic());
  }

  /** Rejects waiting requests and stops the timer. */
  close(): void {
    this.#timer?.stop();
    this.#timer = undefined;
    for (const queue of [...this.#waitingQueues]) {
      for (const seat of [...queue.waiting]) this.#eject(seat, 'cancelled');
    }
  }

  /** Advances R to the current time and releases the lingering seats that are due. */
  #advanceTo(nowMs: number): void {
    if (this.#lingering.firstDueMs > nowMs) {
      this.#advance(nowMs);
      return;
    }
    let due = this.#lingering.dueBy(nowMs);
    for (; due !== undefined; due = this.#lingering.dueBy(nowMs)) {
      this.#advance(due.dueMs);
      this.#release(due.seat, due.dueMs);
    }
    this.#advance(nowMs);
    this.#dispatch(nowMs);
  }

  #advance(nowMs: number): void {
    const seconds = (nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    if (seconds > 0) this.#series?.observe(seconds * 1e9, this);
    if (this.#activeQueues === 0) return;
    const seats = Math.min(this.seatsInUse + this.seatsWaiting, this.#limit);
    this.#progress += (seconds * seats) / this.#activeQueues;
  }

  /** The queue of the hand with the least waiting work; each call starts with the next card. */
  #queueFor(seat: Seat): FlowQueue {
    const { hand } = seat.flow;
    const offset = this.#enqueues % hand.length;
    this.#enqueues += 1;
    let best = this.#queueAt(hand[offset] ?? 0);
    for (let dealt = 1; dealt < hand.length && best.workWaiting > 0; dealt += 1) {
      const queue = this.#queueAt(hand[(offset + dealt) % hand.length] ?? 0);
      if (queue.workWaiting < best.workWaiting) best = queue;
    }
    return best;
  }

  #queueAt(index: number): FlowQueue {
    const existing = this.#queues[index];
    if (existing !== undefined) return existing;
    const queue: FlowQueue = {
      index,
      nextR: 0,
      waiting: new SeatList(),
      executing: 0,
      seatsInUse: 0,
      initialSeatsWaiting: 0,
      maxSeatsWaiting: 0,
      workWaiting: 0,
      position: -1,
    };
    this.#queues[index] = queue;
    return queue;
  }

  /** Whether a request can run now; one with more seats than the limit runs alone. */
  #fits(seat: Seat): boolean {
    if (this.#response.type === 'Exempt') return true;
    const { maxSeats } = seat;
    if (maxSeats > this.#limit) return this.executing.length === 0;
    return this.seatsInUse + maxSeats <= this.#limit;
  }

  #wait(seat: Seat, queue: FlowQueue, nowMs: number): MaybePromise<Seat> {
    if (queue.waiting.length === 0) queue.position = this.#waitingQueues.push(queue) - 1;
    queue.waiting.add(seat);
    this.#countWaiting(seat, queue, 1);
    this.#dispatch(nowMs);
    // The new request may have been dispatched immediately.
    if (seat.state !== 'waiting') return seat;
    this.demand.set(nowMs, this.seatsInUse + this.seatsWaiting);
    seat.deadlineMs = nowMs + this.#waitLimitMs(seat.request);
    if (seat.deadlineMs < this.#deadlineMs) this.#deadlineMs = seat.deadlineMs;
    this.#arm();
    const turn = new Promise<Seat>((resolve, reject) => {
      seat.grant = resolve;
      seat.reject = reject;
    });
    const { exchange } = seat.request;
    exchange.onAbort(() => this.cancel(seat));
    if (exchange.aborted) this.cancel(seat);
    return turn;
  }

  #countWaiting(seat: Seat, queue: FlowQueue, by: 1 | -1): void {
    const seats = by * seat.maxSeats;
    this.waiting += by;
    this.seatsWaiting += seats;
    queue.maxSeatsWaiting += seats;
    queue.initialSeatsWaiting += by * seat.initialSeats;
    // Resets rounding errors when the queue is empty.
    queue.workWaiting = queue.waiting.length === 0 ? 0 : queue.workWaiting + by * workOf(seat);
    seat.flow.series.changeWaiting(by, seats);
    this.#kinds?.waiting(seat.request.info.verb, by, this.#lastMs);
  }

  #takeFromQueue(seat: Seat, queue: FlowQueue): void {
    queue.waiting.remove(seat);
    this.#countWaiting(seat, queue, -1);
    if (queue.waiting.length > 0) return;
    const last = this.#waitingQueues.pop();
    if (last !== undefined && last !== queue) {
      this.#waitingQueues[queue.position] = last;
      last.position = queue.position;
    }
    queue.position = -1;
  }

  #dispatch(nowMs: number): void {
    while (this.waiting > 0 && this.seatsInUse < this.#limit) {
      const queue = this.#nextQueue();
      const seat = queue?.waiting.first;
      if (queue === undefined || seat === undefined) return;
      if (!this.#fits(seat)) {
        seat.flow.series.countNoAccommodation();
        return;
      }
      this.#takeFromQueue(seat, queue);
      this.#lastServed = queue.index;
      this.#begin(seat, nowMs);
      this.#boundNext(queue);
      seat.grant?.(seat);
    }
  }

  /** The queue to serve next; ties go to the next one after the last served queue. */
  #nextQueue(): FlowQueue | undefined {
    const deck = this.#queues.length;
    const turnOf = (queue: FlowQueue) => (queue.index - this.#lastServed - 1 + deck) % deck;
    let best: FlowQueue | undefined;
    let bestDone = Number.POSITIVE_INFINITY;
    for (const queue of this.#waitingQueues) {
      const { first } = queue.waiting;
      if (first === undefined) continue;
      const done = queue.nextR + workOf(first);
      const isTied = best !== undefined && done === bestDone && turnOf(queue) < turnOf(best);
      if (done < bestDone || isTied) {
        best = queue;
        bestDone = done;
      }
    }
    return best;
  }

  #begin(seat: Seat, nowMs: number): void {
    const { queue } = seat;
    const work = workOf(seat);
    if (seat.finalSeats > this.#limit && queue !== undefined) {
      // The same amount of work, with fewer seats for a longer time.
      seat.lingerMs = (seat.lingerMs * seat.finalSeats) / this.#limit;
      seat.finalSeats = this.#limit;
    }
    const { maxSeats } = seat;
    seat.state = 'executing';
    seat.startMs = nowMs;
    this.executing.add(seat);
    this.#kinds?.executing(seat.request.info.verb, 1, nowMs);
    this.seatsInUse += maxSeats;
    if (queue !== undefined) {
      queue.executing += 1;
      queue.seatsInUse += maxSeats;
      queue.nextR += work;
    }
    this.demand.set(nowMs, this.seatsInUse + this.seatsWaiting);
    this.#totals.dispatched += 1;
    const isExempt = this.#response.type === 'Exempt';
    seat.flow.series.begin(maxSeats, isExempt ? undefined : (nowMs - seat.arrivalMs) / 1000);
  }

  /** Ensures that a queue's next request begins, in terms of R, no earlier than its arrival. */
  #boundNext(queue: FlowQueue): void {
    const oldest = queue.waiting.first;
    if (oldest !== undefined && queue.nextR < oldest.arrivalR) queue.nextR = oldest.arrivalR;
  }

  #release(seat: Seat, nowMs: number): void {
    const { maxSeats } = seat;
    this.seatsInUse -= maxSeats;
    if (seat.queue !== undefined) seat.queue.seatsInUse -= maxSeats;
    this.demand.set(nowMs, this.seatsInUse + this.seatsWaiting);
    seat.flow.series.release(maxSeats);
  }

  #reject(seat: Seat, reason: RejectionReason, waited: number): Error {
    seat.state = 'finished';
    this.#totals.rejected += 1;
    seat.flow.series.reject(reason, waited);
    return this.#rejection(seat);
  }

  #eject(seat: Seat, reason: 'time-out' | 'cancelled'): void {
    const { queue } = seat;
    if (queue === undefined) return;
    this.#takeFromQueue(seat, queue);
    this.#boundNext(queue);
    if (queue.waiting.length + queue.executing === 0) this.#activeQueues -= 1;
    const nowMs = this.#lastMs;
    this.demand.set(nowMs, this.seatsInUse + this.seatsWaiting);
    if (reason === 'time-out') this.#totals.timedOut += 1;
    else this.#totals.cancelled += 1;
    seat.reject?.(this.#reject(seat, reason, (nowMs - seat.arrivalMs) / 1000));
  }

  /** Sets the single timer for the earliest deadline of a waiting request or a lingering seat. */
  #arm(): void {
    if (this.waiting === 0) return;
    const dueMs = Math.min(this.#deadlineMs, this.#lingering.firstDueMs);
    if (dueMs >= this.#timerDueMs) return;
    this.#timer?.stop();
    this.#timerDueMs = dueMs;
    this.#timer = this.#clock.after(Math.max(1, dueMs - this.#lastMs), () => this.#onTimer());
  }

  #onTimer(): void {
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.monotonic();
    this.#advanceTo(nowMs);
    if (this.#deadlineMs <= nowMs) this.#ejectExpired(nowMs);
    this.#dispatch(nowMs);
    this.#arm();
  }

  #ejectExpired(nowMs: number): void {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const queue of [...this.#waitingQueues]) {
      for (const seat of [...queue.waiting]) {
        if (seat.deadlineMs <= nowMs) this.#eject(seat, 'time-out');
        else if (seat.deadlineMs < nextMs) nextMs = seat.deadlineMs;
      }
    }
    this.#deadlineMs = nextMs;
  }
}

/** Estimated work of a request in seat-seconds. */
function workOf(seat: Seat): number {
  const lingering = seat.lingerMs > 0 ? (seat.finalSeats * seat.lingerMs) / 1000 : 0;
  return seat.initialSeats * serviceSeconds + lingering;
}

/** Seats that are held after their request's end, while its watch events are sent. */
class LingeringSeats {
  /** Sorted by due time. */
  readonly #seats: { readonly dueMs: number; readonly seat: Seat }[] = [];

  get firstDueMs(): number {
    return this.#seats[0]?.dueMs ?? Number.POSITIVE_INFINITY;
  }

  add(seat: Seat, dueMs: number): void {
    let at = this.#seats.length;
    // Most seats linger equally long, so the insertion point is usually the end.
    while (at > 0 && (this.#seats[at - 1]?.dueMs ?? 0) > dueMs) at -= 1;
    this.#seats.splice(at, 0, { dueMs, seat });
  }

  /** Removes the first seat that is due. */
  dueBy(nowMs: number): { readonly dueMs: number; readonly seat: Seat } | undefined {
    const first = this.#seats[0];
    return first !== undefined && first.dueMs <= nowMs ? this.#seats.shift() : undefined;
  }
}

const isWaiting = (seat: Seat): boolean => seat.state === 'waiting';
