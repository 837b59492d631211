import { orderedMapValues, pacedBytesMin, type Slices, type Timer } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { EventEncoder, WatchEventType, WatchSpec } from './contract.ts';
import type { Entry } from './entry.ts';
import { scopeRange } from './reads.ts';
import { type ChangeWindow, leavingEntry, type Snapshot, type WindowChange } from './window.ts';

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

/** Frames are gathered up to about this many bytes for one write. */
export const chunkBytes = 64 * 1024;
/** A chunk ends after looking at so many entries, however few of them passed the filter. */
const chunkEntriesMax = 2000;
/** Entries and changes that only the filter looks at, before the clock is read again. */
const checkedEntries = 64;

/** One watch: what it asked for and where it stands. Owned by the dispatcher. */
export interface Watcher {
  readonly spec: WatchSpec;
  readonly namespaced: boolean;
  /** Memo keys of its encoding, made once: `ADDED json`, … */
  readonly frameKeys: Readonly<Record<WatchEventType, string>>;
  readonly timers: Set<Timer>;
  /** Divide what it is sent before it is live, and the work on large frames. */
  readonly slices: Slices;
  /** Makes large frames; shared with the other watchers of the resource. */
  readonly work: FrameWork;
  state: WatcherState;
  /** Called once when it ends, whoever ends it. */
  whenEnded: (() => void) | undefined;
  /** How far behind it was when it began, which is not held against it. */
  handicap: { readonly changes: number; readonly bytes: number };
  /** Revision of the initial events, when a bookmark must mark their end (WATCH-5). */
  initialEnd: Revision | undefined;
}

/** A new watcher, waiting for its start. */
export function makeWatcher(
  spec: WatchSpec,
  options: Pick<Watcher, 'namespaced' | 'slices' | 'work'>,
): Watcher {
  const { key } = spec.encoder;
  return {
    ...options,
    spec,
    frameKeys: { ADDED: `ADDED ${key}`, MODIFIED: `MODIFIED ${key}`, DELETED: `DELETED ${key}` },
    timers: new Set(),
    state: { type: 'waiting' },
    whenEnded: undefined,
    handicap: { changes: 0, bytes: 0 },
    initialEnd: undefined,
  };
}

/** Moves the watcher by its table. */
export function moveWatcher(watcher: Watcher, event: WatcherEvent): void {
  watcher.state = nextWatcherState(watcher.state, event);
}

/**
 * What a change is to a watcher: nothing, or an event. With a filter, an object that starts to
 * match is ADDED and one that ceases to is DELETED (WATCH-6).
 */
export function eventTypeFor(change: WindowChange, spec: WatchSpec): WatchEventType | undefined {
  const { previous, current } = change;
  const { filter } = spec;
  const before = previous !== undefined && (filter === undefined || filter(previous.index));
  const after = current !== undefined && (filter === undefined || filter(current.index));
  if (after) return before ? 'MODIFIED' : 'ADDED';
  return before ? 'DELETED' : undefined;
}

/**
 * The frame of a change for a watcher's encoding; made once per type and encoding while hot.
 * Undefined for a large one that the slice is too short for, and that others wait behind.
 *
 * @param options.after how many frames go out before it in one write: a large frame is begun alone
 */
export function frameOf(
  change: WindowChange,
  options: {
    readonly watcher: Watcher;
    readonly type: WatchEventType;
    readonly memoise: boolean;
    readonly after: number;
  },
): Buffer | undefined {
  const { watcher, type, memoise, after } = options;
  const key = watcher.frameKeys[type];
  const cached = change.frames?.get(key);
  if (cached !== undefined) return cached;
  const entry = type === 'DELETED' ? leavingEntry(change) : change.current;
  if (entry === undefined) throw new Error(`nothing to send as ${type}`);
  const frame = madeFrame(watcher, { type, entry, after });
  if (memoise && frame !== undefined) {
    change.frames ??= new Map();
    change.frames.set(key, frame);
  }
  return frame;
}

/** The frame of an entry; undefined for a large one that is not made in this slice. */
function madeFrame(
  watcher: Watcher,
  event: { readonly type: WatchEventType; readonly entry: Entry; readonly after: number },
): Buffer | undefined {
  const { type, entry } = event;
  const { encoder } = watcher.spec;
  const { frameSteps } = encoder;
  if (frameSteps === undefined || entry.json.length < pacedBytesMin) {
    return encoder.frame(type, entry);
  }
  if (event.after > 0) return undefined;
  return watcher.work.make(watcher, { key: watcher.frameKeys[type], type, entry, frameSteps });
}

/** Whether a change's object lies in the watcher's namespace and has its name. */
export function inScope(change: WindowChange, spec: WatchSpec): boolean {
  const entry = change.current ?? change.previous;
  if (entry === undefined) return false;
  const { index } = entry;
  if (spec.namespace !== '' && index.namespace !== spec.namespace) return false;
  return spec.name === undefined || index.name === spec.name;
}

/**
 * Writes the next chunk of initial events, which ends with the slice, and moves the watcher on.
 * Returns how many it wrote.
 */
export function sendInitial(watcher: Watcher, state: Initial): number {
  const { spec } = watcher;
  const range = scopeRange(state.snapshot, { scope: spec, namespaced: watcher.namespaced });
  const from = range.from + state.sent;
  const frames: Buffer[] = [];
  let bytes = 0;
  let examined = 0;
  for (const entry of orderedMapValues(state.snapshot, { from, to: range.to })) {
    const wanted = isWanted(entry, spec);
    const frame = wanted
      ? madeFrame(watcher, { type: 'ADDED', entry, after: frames.length })
      : undefined;
    if (wanted && frame === undefined) break;
    examined += 1;
    if (frame !== undefined) {
      frames.push(frame);
      bytes += frame.length;
    }
    if (bytes >= chunkBytes || examined >= chunkEntriesMax) break;
    if ((wanted || examined % checkedEntries === 0) && watcher.slices.over) break;
  }
  const sent = frames.length;
  const done = from + examined >= range.to;
  if (done && watcher.initialEnd !== undefined) {
    frames.push(spec.encoder.bookmark(watcher.initialEnd, { initialEventsEnd: true }));
  }
  const full = !writeFrames(watcher, frames);
  if (done) moveWatcher(watcher, { type: 'initialDone', full });
  else moveWatcher(watcher, { type: 'sentInitial', sent: state.sent + examined, full });
  return sent;
}

/** Writes the next chunk of unseen changes, which ends with the slice, and moves the watcher on. */
export function sendChanges(watcher: Watcher, state: CatchingUp, window: ChangeWindow): void {
  const frames: Buffer[] = [];
  let bytes = 0;
  let { position } = state;
  const end = Math.min(window.end, position + chunkEntriesMax);
  while (position < end && bytes < chunkBytes) {
    const change = window.at(position);
    const type = inScope(change, watcher.spec) ? eventTypeFor(change, watcher.spec) : undefined;
    if (type === undefined) {
      position += 1;
      if (position % checkedEntries === 0 && watcher.slices.over) break;
      continue;
    }
    const memoise = window.isHot(change.position);
    const frame = frameOf(change, { watcher, type, memoise, after: frames.length });
    if (frame === undefined) break;
    position += 1;
    frames.push(frame);
    bytes += frame.length;
    if (watcher.slices.over) break;
  }
  const full = !writeFrames(watcher, frames);
  moveWatcher(watcher, { type: 'sentChanges', position, full });
}

/** Hands frames to the sink in one buffer; false when the reader is behind. */
export function writeFrames(watcher: Watcher, frames: readonly Buffer[]): boolean {
  const [first] = frames;
  if (first === undefined) return true;
  const { encoder } = watcher.spec;
  if (encoder.sent !== undefined) for (const { length } of frames) encoder.sent(length, 1);
  return watcher.spec.sink.write(frames.length === 1 ? first : Buffer.concat(frames));
}

function isWanted(entry: Entry, spec: WatchSpec): boolean {
  if (spec.name !== undefined && entry.index.name !== spec.name) return false;
  return spec.filter === undefined || spec.filter(entry.index);
}

/** Who wants a frame: a watcher, whose slices it is made in. */
interface Reader {
  readonly slices: Slices;
}

/** A frame as far as it is made. */
interface Work {
  readonly key: string;
  readonly entry: Entry;
  readonly steps: Iterator<void, Buffer>;
  /** Those who come back for it. */
  readonly readers: Set<Reader>;
  outcome: { readonly frame: Buffer } | { readonly error: unknown } | undefined;
}

/**
 * Makes frames of large objects in steps, one at a time (TRUST-2): whoever wants another frame
 * works on this one first, so that however many watchers wait, one object is decoded for them. A
 * frame that nobody comes back for is given up.
 */
export class FrameWork {
  #current: Work | undefined;

  /**
   * The frame of an entry, or undefined where the slice ends before it is made: the reader asks
   * again in a later slice, or calls `release`. Throws what the encoder throws.
   *
   * @param event.key names the encoding and type: equal keys make equal frames of one entry
   */
  make(
    reader: Reader,
    event: {
      readonly key: string;
      readonly type: WatchEventType;
      readonly entry: Entry;
      readonly frameSteps: NonNullable<EventEncoder['frameSteps']>;
    },
  ): Buffer | undefined {
    const { key, type, entry } = event;
    this.#current ??= {
      key,
      entry,
      steps: event.frameSteps(type, entry),
      readers: new Set(),
      outcome: undefined,
    };
    const work = this.#current;
    const isOwn = work.entry === entry && work.key === key;
    if (isOwn) work.readers.add(reader);
    const outcome = outcomeOf(work, reader.slices);
    if (!isOwn || outcome === undefined) return undefined;
    this.#current = undefined;
    if ('error' in outcome) throw outcome.error;
    return outcome.frame;
  }

  /** The reader does not come back soon: it has gone, or has to be waited for. */
  release(reader: Reader): void {
    const work = this.#current;
    if (work?.readers.delete(reader) === true && work.readers.size === 0) this.#current = undefined;
  }
}

/** Goes on with a frame until it is made or the slice is over. */
function outcomeOf(work: Work, slices: Slices): Work['outcome'] {
  try {
    while (work.outcome === undefined && !slices.over) {
      const step = work.steps.next();
      if (step.done === true) work.outcome = { frame: step.value };
    }
  } catch (error) {
    work.outcome = { error };
  }
  return work.outcome;
}
