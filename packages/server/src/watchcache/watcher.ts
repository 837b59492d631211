import { orderedMapValues, pacedBytesMin, type Slices, type Timer } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { Entry, WatchEventType, WatchSpec } from './contract.ts';
import type { FrameWork } from './frame-work.ts';
import { scopeRange } from './list.ts';
import {
  type CatchingUp,
  type Initial,
  nextWatcherState,
  type WatcherEvent,
  type WatcherState,
} from './watcher-state.ts';
import { type ChangeWindow, leavingEntry, type WindowChange } from './window.ts';

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
