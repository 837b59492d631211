import { emptyOrderedMap } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import type { Entry } from './entry.ts';
import {
  type CatchingUp,
  type Initial,
  nextPosition,
  nextWatcherState,
  type WatcherEvent,
  type WatcherState,
} from './watcher.ts';

const initial: Initial = {
  type: 'initial',
  snapshot: emptyOrderedMap<Entry>(),
  sent: 0,
  position: 7,
};
const catchingUp: CatchingUp = { type: 'catchingUp', position: 7 };

const states: Record<string, WatcherState> = {
  waiting: { type: 'waiting' },
  initial,
  catchingUp,
  live: { type: 'live' },
  blockedInitial: { type: 'blocked', resume: initial },
  blocked: { type: 'blocked', resume: catchingUp },
  ended: { type: 'ended' },
};

const events: Record<string, WatcherEvent> = {
  begin: { type: 'begin', state: catchingUp },
  sentInitial: { type: 'sentInitial', sent: 3, full: false },
  sentInitialFull: { type: 'sentInitial', sent: 3, full: true },
  initialDone: { type: 'initialDone', full: false },
  initialDoneFull: { type: 'initialDone', full: true },
  sentChanges: { type: 'sentChanges', position: 9, full: false },
  sentChangesFull: { type: 'sentChanges', position: 9, full: true },
  fellBehind: { type: 'fellBehind', position: 9 },
  caughtUp: { type: 'caughtUp' },
  drained: { type: 'drained' },
  end: { type: 'end' },
};

const at9: CatchingUp = { type: 'catchingUp', position: 9 };

/** Every pair that changes the state; all others do not. */
const moves: Record<string, Record<string, WatcherState>> = {
  waiting: { begin: catchingUp },
  initial: {
    sentInitial: { ...initial, sent: 3 },
    sentInitialFull: { type: 'blocked', resume: { ...initial, sent: 3 } },
    initialDone: catchingUp,
    initialDoneFull: { type: 'blocked', resume: catchingUp },
  },
  catchingUp: {
    sentChanges: at9,
    sentChangesFull: { type: 'blocked', resume: at9 },
    caughtUp: { type: 'live' },
  },
  live: { sentChangesFull: { type: 'blocked', resume: at9 }, fellBehind: at9 },
  blockedInitial: { drained: initial },
  blocked: { drained: catchingUp },
};

test('the transition table is complete and has no other transitions', () => {
  for (const [stateName, state] of Object.entries(states)) {
    for (const [eventName, event] of Object.entries(events)) {
      const expected =
        eventName === 'end' ? { type: 'ended' } : (moves[stateName]?.[eventName] ?? state);
      const label = `${stateName} × ${eventName}`;
      expect([label, nextWatcherState(state, event)]).toEqual([label, expected]);
    }
  }
});

test('only watchers that are not live have a position in the window', () => {
  const positions = Object.entries(states).map(([name, state]) => [name, nextPosition(state)]);
  expect(Object.fromEntries(positions)).toEqual({
    waiting: undefined,
    initial: 7,
    catchingUp: 7,
    live: undefined,
    blockedInitial: 7,
    blocked: 7,
    ended: undefined,
  });
});
