import { expect, test } from 'vitest';
import { FakeClock } from './clock.ts';
import { Slices, WorkBudget, WorkExceeded } from './work.ts';

test('a budget is spent to the last step, and names the work it was for', () => {
  const budget = new WorkBudget({ what: 'the JSON patch', steps: 10 });
  budget.spend(9);
  budget.spend();
  expect(() => budget.spend()).toThrow(WorkExceeded);
  expect(() => budget.spend()).toThrow(/^the JSON patch needs more work/);
});

test('a slice is over after its time, and a pause begins another', async () => {
  const clock = new FakeClock();
  const slices = new Slices(clock);
  expect(slices.over).toBe(false);
  clock.advance(8);
  expect(slices.over).toBe(true);
  await slices.pause();
  expect(slices.over).toBe(false);
});
