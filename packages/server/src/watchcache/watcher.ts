import { orderedMapValues, pacedBytesMin, type Slices, type Timer } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { EventEncoder, WatchEventType, WatchSpec } from './contract.ts';
import type { Entry } from './entry.ts';
import { scopeRange } from './reads.ts';
import { type ChangeWindow, deletedEntry, type Snapshot, type WindowChange } from './window.ts';

/**
 * The states of a watcher. Invariants:
 *
 * 1. A live watcher has received every change before the dispatcher's position: only `caughtUp`
 *    leads to `live`, and the dispatcher sends it only after flushing.
 * 2. A watcher that is not live has no queue: it holds a position in the shared window, and a
 *    snapshot while it sends initial events (WATCH-7).
 * 3. Nothing is written in `blocked` and `waiting`, which end with `drained` and `begin`.
 * 4. `ended` is final.
 */
export type WatcherState =
  /** The cache has not reached the version from which the watch starts. */
  | { readonly type: 'waiting' }
  | Initial
  | CatchingUp
  | { readonly type: 'live' }
  /** The reader is behind; `resume` is the state after it has caught up. */
  | { readonly type: 'blocked'; readonly resume: Initial | CatchingUp }
  | { readonly type: 'ended' };

/** Sends the snapshot's entries as ADDED; the first `sent` entries in scope are done. */
export interface Initial {
  readonly type: 'initial';
  readonly snapshot: Snapshot;
  readonly sent: number;
  /** The snapshot's position in the window. */
  readonly position: number;
}

/** Sends changes from the window, starting at `position`. */
export interface CatchingUp {
  readonly type: 'catchingUp';
  readonly position: number;
}

/** An event of a watcher; `full` means that its reader is behind. */
export type WatcherEvent =
  /** The cache has reached the version from which the watch starts. */
  | { readonly type: 'begin'; readonly state: Initial | CatchingUp }
  /** The first `sent` initial entries have been sent. */
  | { readonly type: 'sentInitial'; readonly sent: number; readonly full: boolean }
  /** All initial entries and the bookmark after them have been sent. */
  | { readonly type: 'initialDone'; readonly full: boolean }
  /** The changes before `position` have been sent. */
  | { readonly type: 'sentChanges'; readonly position: number; readonly full: boolean }
  /** The frame at `position` takes longer than a slice. */
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

const unchanged = {
  begin: stay,
  sentInitial: stay,
  initialDone: stay,
  sentChanges: stay,
  fellBehind: stay,
  caughtUp: stay,
  drained: stay,
};

const table: { readonly [S in WatcherState['type']]: Row<S> } = {
  waiting: { ...unchanged, begin: (_, { state }) => state, end },
  initial: {
    ...unchanged,
    sentInitial: (state, { sent, full }) => {
      const resume: Initial = { ...state, sent };
      return full ? { type: 'blocked', resume } : resume;
    },
    initialDone: (state, { full }) => catchUp(state.position, full),
    end,
  },
  catchingUp: {
    ...unchanged,
    sentChanges: (_, { position, full }) => catchUp(position, full),
    caughtUp: () => ({ type: 'live' }),
    end,
  },
  live: {
    ...unchanged,
    sentChanges: (state, { position, full }) => (full ? catchUp(position, true) : state),
    fellBehind: (_, { position }) => catchUp(position, false),
    end,
  },
  blocked: { ...unchanged, drained: (state) => state.resume, end },
  ended: { ...unchanged, end: stay },
};

/** The state after an event; an event that a state does not expect leaves it unchanged. */
export function nextWatcherState(state: WatcherState, event: WatcherEvent): WatcherState {
  const row = table[state.type] as Row<WatcherState['type']>;
  const step = row[event.type] as (state: WatcherState, event: WatcherEvent) => WatcherState;
  return step(state, event);
}

/** The window position that a watcher reads next; undefined if it needs none. */
export function nextPosition(state: WatcherState): number | undefined {
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

/** Approximate bytes of frames in one write. */
export const chunkBytes = 64 * 1024;
/** Entries after which a chunk ends, however few of them match. */
const chunkEntriesMax = 2000;
/** Entries and changes that are only filtered between clock readings. */
const checkedEntries = 64;

/** One watch: its specification and its state. Owned by the dispatcher. */
export interface Watcher {
  readonly spec: WatchSpec;
  readonly namespaced: boolean;
  /** Memo keys of its encoding: `ADDED json`, … */
  readonly frameKeys: Readonly<Record<WatchEventType, string>>;
  readonly timers: Set<Timer>;
  /** Slices of the work before it is live, and of the work on large frames. */
  readonly slices: Slices;
  /** Creates large frames; shared by all watchers of the resource. */
  readonly work: FrameWork;
  state: WatcherState;
  /** Called once when it ends. */
  whenEnded: (() => void) | undefined;
  /** The lag at its start, which does not count toward the limit. */
  handicap: { readonly changes: number; readonly bytes: number };
  /** Revision of the initial events, if a bookmark must mark their end (WATCH-5). */
  initialEnd: Revision | undefined;
}

/** Creates a watcher that waits for its start. */
export function createWatcher(
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

/** Applies an event to the watcher's state. */
export function moveWatcher(watcher: Watcher, event: WatcherEvent): void {
  watcher.state = nextWatcherState(watcher.state, event);
}

/**
 * The event type of a change for a watcher; undefined for none. With a filter, an object that
 * starts to match is ADDED, and one that stops matching is DELETED (WATCH-6).
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
 * Returns the frame of a change in a watcher's encoding; undefined for a large frame that is not
 * finished in this slice.
 *
 * @param options.memoize whether to keep the frame with the change, for other watchers
 * @param options.after number of frames before it in the same write; a large frame must be the
 *   first
 */
export function frameOf(
  change: WindowChange,
  options: {
    readonly watcher: Watcher;
    readonly type: WatchEventType;
    readonly memoize: boolean;
    readonly after: number;
  },
): Buffer | undefined {
  const { watcher, type, memoize, after } = options;
  const key = watcher.frameKeys[type];
  const cached = change.frames?.get(key);
  if (cached !== undefined) return cached;
  const entry = type === 'DELETED' ? deletedEntry(change) : change.current;
  if (entry === undefined) throw new Error(`nothing to send as ${type}`);
  const frame = createFrame(watcher, { type, entry, after });
  if (memoize && frame !== undefined) {
    change.frames ??= new Map();
    change.frames.set(key, frame);
  }
  return frame;
}

/** The frame of an entry; undefined for a large one that is not finished in this slice. */
function createFrame(
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

/** Whether a change's object has the watcher's namespace and name. */
function inScope(change: WindowChange, spec: WatchSpec): boolean {
  const entry = change.current ?? change.previous;
  if (entry === undefined) return false;
  const { index } = entry;
  if (spec.namespace !== '' && index.namespace !== spec.namespace) return false;
  return spec.name === undefined || index.name === spec.name;
}

/**
 * Writes the next chunk of initial events, at most one slice of work, and advances the watcher.
 * Returns the number of events.
 */
export function sendInitial(watcher: Watcher, state: Initial): number {
  const { spec } = watcher;
  const range = scopeRange(state.snapshot, { scope: spec, namespaced: watcher.namespaced });
  const from = range.from + state.sent;
  const frames: Buffer[] = [];
  let bytes = 0;
  let examined = 0;
  for (const entry of orderedMapValues(state.snapshot, { from, to: range.to })) {
    const isMatch = matchesWatch(entry, spec);
    const frame = isMatch
      ? createFrame(watcher, { type: 'ADDED', entry, after: frames.length })
      : undefined;
    if (isMatch && frame === undefined) break;
    examined += 1;
    if (frame !== undefined) {
      frames.push(frame);
      bytes += frame.length;
    }
    if (bytes >= chunkBytes || examined >= chunkEntriesMax) break;
    if ((isMatch || examined % checkedEntries === 0) && watcher.slices.over) break;
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

/** Writes the next chunk of changes, at most one slice of work, and advances the watcher. */
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
    const memoize = window.isHot(change.position);
    const frame = frameOf(change, { watcher, type, memoize, after: frames.length });
    if (frame === undefined) break;
    position += 1;
    frames.push(frame);
    bytes += frame.length;
    if (watcher.slices.over) break;
  }
  const full = !writeFrames(watcher, frames);
  moveWatcher(watcher, { type: 'sentChanges', position, full });
}

/** Writes frames to the sink in one buffer; false if the reader is behind. */
export function writeFrames(watcher: Watcher, frames: readonly Buffer[]): boolean {
  const [first] = frames;
  if (first === undefined) return true;
  const { encoder } = watcher.spec;
  if (encoder.countSent !== undefined)
    for (const { length } of frames) encoder.countSent(length, 1);
  return watcher.spec.sink.write(frames.length === 1 ? first : Buffer.concat(frames));
}

function matchesWatch(entry: Entry, spec: WatchSpec): boolean {
  if (spec.name !== undefined && entry.index.name !== spec.name) return false;
  return spec.filter === undefined || spec.filter(entry.index);
}

/** A watcher that needs a frame and contributes its slices to it. */
interface Reader {
  readonly slices: Slices;
}

/** A frame in progress. */
interface Work {
  readonly key: string;
  readonly entry: Entry;
  readonly steps: Iterator<void, Buffer>;
  /** The watchers that will return for it. */
  readonly readers: Set<Reader>;
  outcome: { readonly frame: Buffer } | { readonly error: unknown } | undefined;
}

/**
 * Creates frames of large objects in steps, one at a time (TRUST-2). A watcher that needs another
 * frame works on the current one first, so that only one object is decoded at a time for any number
 * of watchers. A frame that no watcher needs any more is abandoned.
 */
export class FrameWork {
  #current: Work | undefined;

  /**
   * Returns the frame of an entry; undefined if the slice ends before it is finished, and the
   * reader must call this again in a later slice, or call `release`. Throws what the encoder
   * throws.
   *
   * @param event.key identifies the encoding and type: equal keys give equal frames of one entry
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

  /** Withdraws a reader that has ended or is blocked. */
  release(reader: Reader): void {
    const work = this.#current;
    if (work?.readers.delete(reader) === true && work.readers.size === 0) this.#current = undefined;
  }
}

/** Continues a frame until it is finished or the slice ends. */
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
