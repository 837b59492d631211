import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { WriteBudget } from './flow-control.ts';

test('OPS-3: an object is written at most six times a minute, independently of others', () => {
  const clock = new FakeClock();
  const budget = new WriteBudget(clock);
  for (let write = 0; write < 6; write += 1) {
    expect(budget.take('a')).toBeUndefined();
    clock.advance(1000);
  }
  expect(budget.take('a')).toBe(54_000);
  expect(budget.take('b')).toBeUndefined();
  clock.advance(54_000);
  expect(budget.take('a')).toBeUndefined();
  expect(budget.take('a')).toBe(1000);
  budget.forget('a');
  expect(budget.take('a')).toBeUndefined();
});
