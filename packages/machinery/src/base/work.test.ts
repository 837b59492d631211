import { expect, test } from 'vitest';
import { FakeClock } from '../testing.ts';
import { Slices, WorkBudget, WorkExceeded } from './work.ts';

test('a budget can be spent to the last step, and its error names the work', () => {
  const budget = new WorkBudget({ what: 'the JSON patch', steps: 10 });
  budget.spend(9);
  budget.spend();
  expect(() => budget.spend()).toThrow(WorkExceeded);
  expect(() => budget.spend()).toThrow(/^the JSON patch needs more work/);
});

test('a slice ends after its time, and a pause starts another', async () => {
  const clock = new FakeClock();
  const slices = new Slices(clock);
  expect(slices.over).toBe(false);
  clock.advance(8);
  expect(slices.over).toBe(true);
  await slices.pause();
  expect(slices.over).toBe(false);
});

test('TRUST-2: a turn of the event loop runs one slice of all waiting work', async () => {
  const clock = new FakeClock();
  const perTurn: number[] = [0];
  let isOver = false;
  const countTurns = () => {
    perTurn.push(0);
    if (!isOver) setImmediate(countTurns);
  };
  const work = async () => {
    const slices = new Slices(clock);
    for (let step = 0; step < 10; step += 1) {
      while (slices.over) await slices.pause();
      clock.advance(1);
      perTurn[perTurn.length - 1] = (perTurn.at(-1) ?? 0) + 1;
    }
  };
  setImmediate(countTurns);
  await Promise.all(Array.from({ length: 40 }, work));
  isOver = true;
  expect(perTurn.reduce((sum, steps) => sum + steps, 0)).toBe(400);
  // A turn is counted from one check phase to the next, which may contain two slices.
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(10);
});

test('short work does not wait for a slice of each long task', async () => {
  const clock = new FakeClock();
  const ended: string[] = [];
  const work = async (name: string, steps: number) => {
    const slices = new Slices(clock);
    for (let step = 0; step < steps; step += 1) {
      while (slices.over) await slices.pause();
      clock.advance(5);
    }
    ended.push(name);
  };
  const long = Array.from({ length: 20 }, (_, n) => work(`long ${n}`, 50));
  for (let turn = 0; turn < 30; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await work('short', 2);
  expect(ended).toEqual(['short']);
  await Promise.all(long);
});
