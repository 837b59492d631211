import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { Turns } from './registry.ts';

/** A task that runs until `end` is called. */
function heldTask(log: string[], name: string) {
  let end = () => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  const run = async (hasWaited: boolean) => {
    log.push(`${name} ${hasWaited ? 'after others' : 'at once'}`);
    await done;
  };
  return { run, end: () => end() };
}

const soon = () => new Promise<void>((resolve) => setImmediate(resolve));

test('tasks of one key run in sequence, in their order', async () => {
  const turns = new Turns(new FakeClock());
  const log: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => heldTask(log, name)) as [
    ReturnType<typeof heldTask>,
    ReturnType<typeof heldTask>,
    ReturnType<typeof heldTask>,
  ];
  const all = [turns.take('k', a.run), turns.take('k', b.run), turns.take('k', c.run)];
  await soon();
  expect(log).toEqual(['a at once']);
  a.end();
  await soon();
  expect(log).toEqual(['a at once', 'b after others']);
  b.end();
  c.end();
  await Promise.all(all);
  expect(log).toEqual(['a at once', 'b after others', 'c after others']);
});

test('other keys do not wait, and an idle key starts over', async () => {
  const turns = new Turns(new FakeClock());
  const log: string[] = [];
  const a = heldTask(log, 'a');
  const held = turns.take('k', a.run);
  await turns.take('other', async (hasWaited) => log.push(`other ${hasWaited}`));
  a.end();
  await held;
  await turns.take('k', async (hasWaited) => log.push(`again ${hasWaited}`));
  expect(log).toEqual(['a at once', 'other false', 'again false']);
});

test('a failing task passes its turn on', async () => {
  const turns = new Turns(new FakeClock());
  const failing = turns.take('k', async () => {
    throw new Error('no');
  });
  const next = turns.take('k', async (hasWaited) => hasWaited);
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe(true);
});

test('waits are bounded', async () => {
  const clock = new FakeClock();
  const turns = new Turns(clock);
  const log: string[] = [];
  const slow = heldTask(log, 'slow');
  const held = turns.take('k', slow.run);
  const impatient = turns.take('k', async () => log.push('went on'));
  await soon();
  expect(log).toEqual(['slow at once']);
  clock.advance(1000);
  await impatient;
  expect(log).toEqual(['slow at once', 'went on']);
  slow.end();
  await held;
});
