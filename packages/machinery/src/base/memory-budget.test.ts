import { describe, expect, test, vi } from 'vitest';
import { type MemoryAccount, MemoryBudget, memoryUses } from './memory-budget.ts';

/** A budget of 1000 bytes whose accounts release everything when they are shed. */
function budgetOf1000() {
  const tasks: (() => void)[] = [];
  const shed: string[] = [];
  const budget = new MemoryBudget({ limitBytes: 1000, defer: (task) => void tasks.push(task) });
  const open = (owner: string, name = owner): MemoryAccount => {
    const account = budget.open({
      owner,
      holder: {
        shed() {
          shed.push(name);
          account.close();
        },
      },
    });
    return account;
  };
  const turn = () => {
    for (const task of tasks.splice(0)) task();
  };
  return { budget, open, shed, turn };
}

describe('TRUST-4: a memory budget', () => {
  test('sheds the heaviest account of the heaviest owner, down to the low-water mark', () => {
    const { budget, open, shed, turn } = budgetOf1000();
    open('light').charge('answers', 150);
    open('heavy', 'heavy small').charge('watches', 100);
    open('heavy', 'heavy large').charge('answers', 400);
    turn();
    expect(shed).toEqual([]);
    open('heavy', 'heavy middle').charge('bodies', 360);
    turn();
    expect(shed).toEqual(['heavy large']);
    expect(budget.usedBytes).toBe(610);
    expect(budget.shedAccounts).toBe(1);
  });

  test('TRUST-2: sheds accounts of many owners in turns, each of which sorts them once', () => {
    const { budget, open, shed, turn } = budgetOf1000();
    for (let at = 0; at < 500; at += 1) open(`owner-${at}`).charge('watches', 3 + (at % 10));
    const sort = vi.spyOn(Array.prototype, 'sort');
    turn();
    const sorted = sort.mock.contexts.filter((list) => (list as unknown[]).length > 1);
    sort.mockRestore();
    expect(sorted).toHaveLength(1);
    expect(shed).toHaveLength(64);
    for (let turns = 0; turns < 10; turns += 1) turn();
    expect(budget.usedBytes).toBeLessThanOrEqual(800);
    expect(budget.usedBytes).toBeGreaterThan(780);
  });

  test('does not ask holders again that release nothing', () => {
    const tasks: (() => void)[] = [];
    const budget = new MemoryBudget({ limitBytes: 1000, defer: (task) => void tasks.push(task) });
    let asked = 0;
    const shed = () => {
      asked += 1;
    };
    for (let at = 0; at < 100; at += 1) {
      budget.open({ owner: 'one', holder: { shed } }).charge('watches', 20);
    }
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) task();
    expect(asked).toBe(64);
  });

  test('above the high-water mark, rejects exactly the owners above their share', () => {
    const { budget, open } = budgetOf1000();
    const heavy = open('heavy');
    const light = open('light');
    expect(heavy.admits(800)).toBe(true);
    heavy.charge('requests', 790);
    expect(heavy.admits(10)).toBe(true);
    expect(heavy.admits(11)).toBe(false);
    expect(light.admits(11)).toBe(true);
    expect(budget.refused).toBe(1);
    heavy.close();
    expect(light.admits(800)).toBe(true);
  });

  test('rejects and sheds while the process is short of memory, regardless of the charges', () => {
    const { budget, open, shed, turn } = budgetOf1000();
    const heavy = open('heavy');
    heavy.charge('answers', 600);
    const light = open('light');
    light.charge('answers', 50);
    budget.setPressure('short');
    expect(heavy.admits(1)).toBe(false);
    expect(light.admits(1)).toBe(true);
    turn();
    expect(shed).toEqual(['heavy']);
    budget.setPressure('enough');
    expect(light.admits(700)).toBe(true);
  });

  test('transfers an account to its authenticated user', () => {
    const { open } = budgetOf1000();
    const first = open('address');
    const second = open('address');
    first.charge('requests', 600);
    second.charge('requests', 190);
    first.transferTo('user');
    expect(second.admits(20)).toBe(true);
    expect(first.admits(20)).toBe(false);
  });

  test('charges a shared object once until its last holder releases it', () => {
    const { budget, open } = budgetOf1000();
    const one = open('one');
    const other = open('other');
    const key = {};
    const releases = [one.chargeShared(key, 100), one.chargeShared(key, 100)];
    const last = other.chargeShared(key, 100);
    expect(budget.usedFor('selectors')).toBe(100);
    expect(one.bytes).toBe(100);
    for (const release of releases) release();
    expect([one.bytes, other.bytes, budget.usedBytes]).toEqual([0, 100, 100]);
    last();
    expect(budget.usedBytes).toBe(0);
    other.chargeShared(key, 70);
    expect(budget.usedBytes).toBe(70);
  });

  test('keeps its sums if a holder closes before it releases a shared object', () => {
    const { budget, open } = budgetOf1000();
    const one = open('one');
    const other = open('other');
    const key = {};
    const release = one.chargeShared(key, 100);
    const last = other.chargeShared(key, 100);
    one.charge('answers', 5);
    one.close();
    release();
    expect(budget.usedBytes).toBe(100);
    last();
    one.charge('answers', 5);
    other.close();
    for (const use of memoryUses) expect(budget.usedFor(use)).toBe(0);
    expect(budget.usedBytes).toBe(0);
  });
});
