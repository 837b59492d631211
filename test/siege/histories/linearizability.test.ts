import { randomOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { checkRegister } from './linearizability.ts';
import type { Command, Operation } from './operation.ts';
import { emptyRegister, type RegisterState, step } from './register.ts';
import { done, operation } from './testing.ts';

const read: Command = { type: 'read' };
const create = (mark: string): Command => ({ type: 'create', data: { mark } });
const replace = (mark: string, expect?: number): Command => ({
  type: 'replace',
  data: { mark },
  ...(expect === undefined ? {} : { expect }),
});
const patch = (mark: string): Command => ({ type: 'patch', data: { mark, [mark]: mark } });
const verdict = (...operations: readonly Operation[]) => checkRegister(operations).type;

const created = operation([1, 2], create('a'), done(10, { mark: 'a' }));

test('accepts sequential commands and reads between them', () => {
  const found = verdict(
    created,
    operation([3, 4], replace('b', 10), done(11, { mark: 'b' })),
    operation([5, 6], read, done(11, { mark: 'b' })),
    operation([7, 8], patch('c'), done(12, { mark: 'c', c: 'c' })),
    operation([9, 10], replace('d', 11), { type: 'conflict' }),
    operation([11, 12], { type: 'delete' }, { type: 'removed', uid: 'u1' }),
    operation([13, 14], read, { type: 'absent' }),
    operation([15, 16], { type: 'apply', data: { mark: 'e' } }, done(15, { mark: 'e' }, 'u2')),
    operation([17, 18], create('f'), { type: 'exists' }),
  );
  expect(found).toBe('linearizable');
});

test('accepts answers in any order that overlapping commands permit', () => {
  const found = verdict(
    created,
    operation([3, 8], replace('b'), done(12, { mark: 'b' })),
    operation([4, 9], replace('c'), done(11, { mark: 'c' })),
    operation([5, 6], read, done(11, { mark: 'c' })),
    operation([10, 11], read, done(12, { mark: 'b' })),
  );
  expect(found).toBe('linearizable');
});

test('rejects a stale read', () => {
  const found = verdict(
    created,
    operation([3, 4], replace('b'), done(11, { mark: 'b' })),
    operation([5, 6], read, done(10, { mark: 'a' })),
  );
  expect(found).toBe('violated');
});

test('rejects reads that go back in time', () => {
  const found = verdict(
    created,
    operation([3, 20], replace('b'), done(11, { mark: 'b' })),
    operation([5, 6], read, done(11, { mark: 'b' })),
    operation([7, 8], read, done(10, { mark: 'a' })),
  );
  expect(found).toBe('violated');
});

test('rejects a lost update: two commands that replace the same version', () => {
  const found = verdict(
    created,
    operation([3, 6], replace('b', 10), done(11, { mark: 'b' })),
    operation([4, 7], replace('c', 10), done(12, { mark: 'c' })),
  );
  expect(found).toBe('violated');
});

test('rejects a lost update: a patch that drops the field of another', () => {
  const found = verdict(
    created,
    operation([3, 6], patch('b'), done(11, { mark: 'b', b: 'b' })),
    operation([4, 7], patch('c'), done(12, { mark: 'c', c: 'c' })),
  );
  expect(found).toBe('violated');
});

test('rejects a lost write: an acknowledged value is absent', () => {
  expect(verdict(created, operation([3, 4], read, { type: 'absent' }))).toBe('violated');
});

test('rejects an object that was never written, and a torn value', () => {
  expect(verdict(operation([1, 2], read, done(9, { mark: 'x' })))).toBe('violated');
  const half = verdict(
    created,
    operation([3, 4], patch('b'), done(11, { mark: 'b', b: 'b' })),
    operation([5, 6], read, done(11, { mark: 'b' })),
  );
  expect(half).toBe('violated');
});

test('rejects versions that do not grow with the commands', () => {
  const found = verdict(created, operation([3, 4], replace('b'), done(9, { mark: 'b' })));
  expect(found).toBe('violated');
});

test('rejects an unexplained conflict or absence', () => {
  expect(verdict(created, operation([3, 4], replace('b', 10), { type: 'conflict' }))).toBe(
    'violated',
  );
  expect(verdict(created, operation([3, 4], replace('b'), { type: 'absent' }))).toBe('violated');
  expect(verdict(operation([1, 2], create('a'), { type: 'exists' }))).toBe('violated');
});

test('rejects a deletion of another object than the current one', () => {
  const removal = operation([3, 4], { type: 'delete' }, { type: 'removed', uid: 'u2' });
  expect(verdict(created, removal)).toBe('violated');
});

test('lets an unanswered command happen at any time after its call, or never', () => {
  const unanswered = operation([3], replace('b'));
  const before = operation([5, 6], read, done(10, { mark: 'a' }));
  const after = operation([7, 8], read, done(11, { mark: 'b' }));
  expect(verdict(created, unanswered, before)).toBe('linearizable');
  expect(verdict(created, unanswered, before, after)).toBe('linearizable');
  const back = operation([9, 10], read, done(10, { mark: 'a' }));
  expect(verdict(created, unanswered, after, back)).toBe('violated');
  const early = operation([1, 2], read, done(11, { mark: 'b' }));
  expect(verdict(early, operation([3], create('b')))).toBe('violated');
});

test('lets an unanswered deletion explain an absence once', () => {
  const removal = operation([3], { type: 'delete' });
  const absent = operation([5, 6], read, { type: 'absent' });
  const again = operation([7, 8], create('b'), done(12, { mark: 'b' }, 'u2'));
  expect(verdict(created, removal, absent, again)).toBe('linearizable');
  const second = operation([9, 10], read, { type: 'absent' });
  expect(verdict(created, removal, absent, again, second)).toBe('violated');
});

/** A history of overlapping commands that a register executed in some order. */
function randomHistory(seed: number, length: number): Operation[] {
  const random = randomOf(seed);
  const operations: Operation[] = [];
  let state: RegisterState = emptyRegister;
  let version = 10;
  for (let i = 0; i < length; i += 1) {
    const at = i * 10;
    const spread = () => random.below(35);
    version += 1 + random.below(3);
    const mark = `m${i}`;
    const command = random.pick([read, create(mark), replace(mark), patch(mark)]);
    const isThere = state.data !== undefined;
    const uid = state.uid ?? `u${i}`;
    const data = { ...(command.type === 'patch' ? state.data : {}), mark };
    const written = command.type === 'patch' ? { ...data, [mark]: mark } : data;
    const outcome =
      command.type === 'read'
        ? isThere
          ? done(state.version ?? 0, state.data ?? {}, uid)
          : ({ type: 'absent' } as const)
        : command.type === 'create' && isThere
          ? ({ type: 'exists' } as const)
          : command.type !== 'create' && !isThere
            ? ({ type: 'absent' } as const)
            : done(version, written, uid);
    const made = operation([at - spread(), at + 1 + spread()], command, outcome);
    state = step(state, made, undefined) ?? state;
    const isLost = random.chance(0.03);
    operations.push(isLost ? { ...made, outcome: { type: 'unknown' } } : made);
  }
  return operations;
}

test('accepts random histories of a register, and none with one stale read', () => {
  const seed = Date.now() % 1_000_000;
  let spoiled = 0;
  for (let round = 0; round < 50; round += 1) {
    const history = randomHistory(seed + round, 60);
    expect(verdict(...history), `seed ${seed + round}`).toBe('linearizable');
    const reads = history.filter(
      ({ command, outcome }) => command.type === 'read' && outcome.type === 'done',
    );
    const [first, last] = [reads[0], reads.at(-1)];
    if (first?.outcome.type !== 'done' || last?.outcome.type !== 'done') continue;
    if (last.invoked < first.completed) continue;
    if (first.outcome.shown.version === last.outcome.shown.version) continue;
    spoiled += 1;
    const stale = { ...last, outcome: first.outcome };
    const spoilt = history.map((entry) => (entry === last ? stale : entry));
    expect(verdict(...spoilt), `seed ${seed + round}`).toBe('violated');
  }
  expect(spoiled).toBeGreaterThan(20);
});

test('gives up a search beyond its step limit', () => {
  const history = randomHistory(1, 100);
  expect(checkRegister(history, { maxSteps: 10 }).type).toBe('undecided');
});
