import type { Seat } from './seat.ts';

/** Seats that are kept for a while after their request's end, while its events are sent. */
export class LingeringSeats {
  /** By when they are due. */
  readonly #seats: { readonly dueMs: number; readonly seat: Seat }[] = [];

  get firstDueMs(): number {
    return this.#seats[0]?.dueMs ?? Number.POSITIVE_INFINITY;
  }

  add(seat: Seat, dueMs: number): void {
    let at = this.#seats.length;
    // Most linger equally long, so that the place is nearly always the last.
    while (at > 0 && (this.#seats[at - 1]?.dueMs ?? 0) > dueMs) at -= 1;
    this.#seats.splice(at, 0, { dueMs, seat });
  }

  /** Takes out the first that is due by now. */
  dueBy(nowMs: number): { readonly dueMs: number; readonly seat: Seat } | undefined {
    const first = this.#seats[0];
    return first !== undefined && first.dueMs <= nowMs ? this.#seats.shift() : undefined;
  }
}
