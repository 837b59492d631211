import { largest } from '@wheelhouse/machinery';
/** What a level may have at least and at most, and what it would like. */
export interface SeatClaim {
  readonly lower: number;
  readonly upper: number;
  readonly target: number;
}

/** What each level gets, in the order of the claims; parts of seats are the caller's to round. */
export interface SeatAllocation {
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
 * An example: 10 seats, targets 2 and 18, bounds 0 to 10 and 0 to 6. At the part 0.5 they would have
 * 1 and 9; the second's bound holds it at 6, and the part rises to 2, where the first has 4.
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
