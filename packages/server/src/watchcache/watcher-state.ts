import type { Snapshot } from './window.ts';

/**
 * The modes of a watcher, as values. Invariants, and what holds them:
 *
 * 1. A live watcher has been sent every change before the dispatcher's position: only `caughtUp`
 *    leads to `live`, and the dispatcher says it only after flushing (`Dispatcher.enter`).
 * 2. A watcher that is not live owns no queue: it holds one position in the shared window, and
 *    while it is sending initial events one snapshot (WATCH-7).
 * 3. Nothing is written in `blocked` and `waiting`: `drained` and `begin` lead out.
 * 4. `ended` is final: every event leaves it as it is.
 */
export type WatcherState =
  /** The version it starts from is still to come. */
  | { readonly type: 'waiting' }
  | Initial
  | CatchingUp
  | { readonly type: 'live' }
  /** The reader is behind; `resume` is what goes on when it has caught up. */
  | { readonly type: 'blocked'; readonly resume: Initial | CatchingUp }
  | { readonly type: 'ended' };

/** Sending the snapshot's entries as ADDED; the first `sent` of those in scope are done with. */
export interface Initial {
  readonly type: 'initial';
  readonly snapshot: Snapshot;
  readonly sent: number;
  /** Where in the window the snapshot stands. */
  readonly position: number;
}

/** Sending changes out of the window from `position` on. */
export interface CatchingUp {
  readonly type: 'catchingUp';
  readonly position: number;
}

export type WatcherEvent =
  /** The version it starts from is here. */
  | { readonly type: 'begin'; readonly state: Initial | CatchingUp }
  /** The first `sent` initial entries went out. */
  | { readonly type: 'sentInitial'; readonly sent: number; readonly full: boolean }
  /** All initial entries, and the bookmark behind them, went out. */
  | { readonly type: 'initialDone'; readonly full: boolean }
  /** Changes before `position` went out. */
  | { readonly type: 'sentChanges'; readonly position: number; readonly full: boolean }
  /** What comes next, at `position`, takes longer to make than the others wait for. */
  | { readonly type: 'fellBehind'; readonly position: number }
  /** Nothing is left to send. */
  | { readonly type: 'caughtUp' }
  | { readonly type: 'drained' }
  | { readonly type: 'end' };

type EventOf<T extends WatcherEvent['type']> = Extract<WatcherEvent, { type: T }>;
type StateOf<T extends WatcherState['type']> = Extract<WatcherState, { type: T }>;
type Row<S extends WatcherState['type']> = {
  readonly [E in WatcherEvent['type']]: (state: StateOf<S>, event: EventOf<E>) => WatcherState;
};

const stay = (state: WatcherState): WatcherState => state;
const end = (): WatcherState => ({ type: 'ended' });
const catchUp = (position: number, full: boolean): WatcherState => {
  const resume: CatchingUp = { type: 'catchingUp', position };
  return full ? { type: 'blocked', resume } : resume;
};

const nothing = {
  begin: stay,
  sentInitial: stay,
  initialDone: stay,
  sentChanges: stay,
  fellBehind: stay,
  caughtUp: stay,
  drained: stay,
};

const table: { readonly [S in WatcherState['type']]: Row<S> } = {
  waiting: { ...nothing, begin: (_, { state }) => state, end },
  initial: {
    ...nothing,
    sentInitial: (state, { sent, full }) => {
      const resume: Initial = { ...state, sent };
      return full ? { type: 'blocked', resume } : resume;
    },
    initialDone: (state, { full }) => catchUp(state.position, full),
    end,
  },
  catchingUp: {
    ...nothing,
    sentChanges: (_, { position, full }) => catchUp(position, full),
    caughtUp: () => ({ type: 'live' }),
    end,
  },
  live: {
    ...nothing,
    sentChanges: (state, { position, full }) => (full ? catchUp(position, true) : state),
    fellBehind: (_, { position }) => catchUp(position, false),
    end,
  },
  blocked: { ...nothing, drained: (state) => state.resume, end },
  ended: { ...nothing, end: stay },
};

/** The state after an event; total: an event that means nothing in a state leaves it as it is. */
export function nextWatcherState(state: WatcherState, event: WatcherEvent): WatcherState {
  const row = table[state.type] as Row<WatcherState['type']>;
  const step = row[event.type] as (state: WatcherState, event: WatcherEvent) => WatcherState;
  return step(state, event);
}

/** The window position a watcher has yet to read; undefined when it needs none. */
export function heldPosition(state: WatcherState): number | undefined {
  switch (state.type) {
    case 'initial':
    case 'catchingUp':
      return state.position;
    case 'blocked':
      return state.resume.position;
    case 'waiting':
    case 'live':
    case 'ended':
      return undefined;
  }
}
