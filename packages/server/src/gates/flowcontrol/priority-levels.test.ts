import { describe, expect, test } from 'vitest';
import { allocateSeats, type SeatClaim } from './priority-levels.ts';
import { randomOf } from './testing.ts';

const claim = (target: number, lower: number, upper: number): SeatClaim => ({
  target,
  lower,
  upper,
});

describe('OPS-3: division of seats among levels', () => {
  test.each<[string, number, SeatClaim[], number[]]>([
    ['by targets alone', 30, [claim(10, 0, 100), claim(20, 0, 100)], [10, 20]],
    ['more seats than the targets', 60, [claim(10, 0, 100), claim(20, 0, 100)], [20, 40]],
    ['an upper bound leaves the rest to others', 10, [claim(2, 0, 10), claim(18, 0, 6)], [4, 6]],
    ['a lower bound takes from others', 10, [claim(5, 5, 10), claim(50, 0, 100)], [5, 5]],
    ['targets of zero', 10, [claim(0, 0, 10), claim(0, 0, 10)], [5, 5]],
    ['a sum equal to the lower bounds', 7, [claim(4, 4, 9), claim(9, 3, 9)], [4, 3]],
    ['a sum equal to the upper bounds', 12, [claim(1, 0, 5), claim(1, 0, 7)], [5, 7]],
    ['no seats', 0, [claim(1, 0, 5)], [0]],
  ])('OPS-3: %s', (_, sum, claims, expected) => {
    const found = allocateSeats(sum, claims)?.seats ?? [];
    found.forEach((seats, index) => {
      expect(seats).toBeCloseTo(expected[index] ?? Number.NaN, 6);
    });
    expect(found).toHaveLength(expected.length);
  });

  test('OPS-3: bounds that do not allow the sum have no solution', () => {
    expect(allocateSeats(5, [claim(6, 6, 9)])).toBeUndefined();
    expect(allocateSeats(10, [claim(6, 6, 9)])).toBeUndefined();
  });

  test('OPS-3: all seats are distributed within the bounds and by equal shares', () => {
    const seed = Date.now() % 1_000_000;
    console.info(`seat allocation seed ${seed}`);
    const random = randomOf(seed);
    for (let round = 0; round < 300; round += 1) {
      const claims = Array.from({ length: 1 + random(8) }, () => {
        const lower = random(40);
        return claim(lower + random(60), lower, lower + random(200));
      });
      const low = claims.reduce((total, { lower }) => total + lower, 0);
      const high = claims.reduce((total, { upper }) => total + upper, 0);
      const sum = low + random(high - low + 1);
      const found = allocateSeats(sum, claims);
      expect(found, `seed ${seed} round ${round}`).toBeDefined();
      const { seats, fairFraction } = found as NonNullable<typeof found>;
      expect(seats.reduce((a, b) => a + b, 0)).toBeCloseTo(sum, 3);
      claims.forEach(({ lower, upper, target }, index) => {
        const fair = Math.max(target, 0.001) * fairFraction;
        expect(seats[index]).toBeCloseTo(Math.max(lower, Math.min(upper, fair)), 3);
      });
    }
  });
});
