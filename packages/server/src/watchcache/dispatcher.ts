import { type Clock, internalError, type Logger, Slices, StatusError } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { CacheMeter } from './cache-meter.ts';
import type { WatchEnd, WatchSpec } from './contract.ts';
import {
  type CatchingUp,
  chunkBytes,
  createWatcher,
  eventTypeFor,
  FrameWork,
  frameOf,
  type Initial,
  moveWatcher,
  nextPosition,
  sendChanges,
  sendInitial,
  type Watcher,
  writeFrames,
} from './watcher.ts';
import type { ChangeWindow, WindowChange } from './window.ts';

/** The live watchers of one namespace, one object, one name, or everything. */
interface Scope {
  /** Watchers without a filter, by encoding; each group receives the same buffer. */
  readonly groups: Map<string, Set<Watcher>>;
  readonly filtered: Set<Watcher>;
  /** The changes in this scope that the current flush sends. */
  batch: WindowChange[];
}

/**
 * Finds the live watchers of a change with a few lookups, so that ten thousand watchers of single
 * objects cost nothing when another object changes.
 *
 * Example: a change of `default/web` looks up everyone, byNamespace `default`, byKey `default/web`,
 * and byName `web` (a watch of that name in all namespaces).
 */
class Audience {
  readonly #everyone: Scope = newScope();
  readonly #byNamespace = new Map<string, Scope>();
  readonly #byKey = new Map<string, Scope>();
  readonly #byName = new Map<string, Scope>();

  add(watcher: Watcher): void {
    const { map, key } = this.#place(watcher);
    let scope = map?.get(key) ?? (map === undefined ? this.#everyone : undefined);
    if (scope === undefined) {
      scope = newScope();
      map?.set(key, scope);
    }
    const { encoder, filter } = watcher.spec;
    if (filter !== undefined) {
      scope.filtered.add(watcher);
      return;
    }
    const group = scope.groups.get(encoder.key);
    if (group === undefined) scope.groups.set(encoder.key, new Set([watcher]));
    else group.add(watcher);
  }

  /** Removes a watcher, if present. */
  remove(watcher: Watcher): void {
    const { map, key } = this.#place(watcher);
    const scope = map === undefined ? this.#everyone : map.get(key);
    if (scope === undefined) return;
    scope.filtered.delete(watcher);
    const group = scope.groups.get(watcher.spec.encoder.key);
    group?.delete(watcher);
    if (group?.size === 0) scope.groups.delete(watcher.spec.encoder.key);
    if (scope.groups.size === 0 && scope.filtered.size === 0) map?.delete(key);
  }

  /** Adds changes to the batches of their scopes, and returns these scopes. */
  distribute(changes: readonly WindowChange[]): readonly Scope[] {
    const touched: Scope[] = [];
    const addTo = (scope: Scope | undefined, change: WindowChange) => {
      if (scope === undefined) return;
      if (scope.batch.length === 0) touched.push(scope);
      scope.batch.push(change);
    };
    for (const change of changes) {
      const entry = change.current ?? change.previous;
      if (entry === undefined) continue;
      const { index } = entry;
      addTo(this.#everyone, change);
      if (this.#byNamespace.size > 0) addTo(this.#byNamespace.get(index.namespace), change);
      if (this.#byKey.size > 0) addTo(this.#byKey.get(change.key), change);
      if (this.#byName.size > 0) addTo(this.#byName.get(index.name), change);
    }
    return touched;
  }

  #place({ spec }: Watcher): { map: Map<string, Scope> | undefined; key: string } {
    const { namespace, name } = spec;
    if (name === undefined) {
      return { map: namespace === '' ? undefined : this.#byNamespace, key: namespace };
    }
    if (namespace === '') return { map: this.#byName, key: name };
    return { map: this.#byKey, key: `${namespace}/${name}` };
  }
}

function newScope(): Scope {
  return { groups: new Map(), filtered: new Set(), batch: [] };
}

/** The dependencies and limits of a dispatcher. */
interface DispatcherOptions {
  readonly window: ChangeWindow;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly namespaced: boolean;
  readonly meter?: CacheMeter | undefined;
  /** The newest revision up to which the window is complete. */
  readonly progress: () => Revision;
  /** Runs a task after the current events, so that simultaneous changes are sent together. */
  readonly defer: (task: () => void) => void;
  readonly bookmarkMs: number;
  /** A watcher that falls further behind is disconnected (WATCH-7). */
  readonly lagChangesMax: number;
  readonly lagBytesMax: number;
  /** Returns a number in [0, 1), which spreads bookmarks over time. */
  readonly random: () => number;
}

/** Number of chunks that a watcher receives per turn before other watchers get theirs. */
const chunksPerStep = 8;
const timeoutMaxMs = 2 ** 31 - 1;

/**
 * Sends changes to watchers. Live watchers of one scope and encoding share one buffer per batch. A
 * watcher whose reader is behind stops being live, and later catches up from the window on its own,
 * so that it needs no queue and delays no other watcher. The same applies to the watchers of an
 * encoding in which the next object takes longer than a slice.
 *
 * Every enqueued change is delivered exactly once, in order; live watchers have received all
 * changes before `#pending`.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #audience = new Audience();
  readonly #watchers = new Set<Watcher>();
  /** Watchers that send initial events, catch up, or are blocked. */
  readonly #behind = new Set<Watcher>();
  #pending: WindowChange[] = [];
  #scheduled = false;
  #flushing = false;
  #afterFlush: Watcher[] = [];
  readonly #work = new FrameWork();

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** Number of open watches. */
  get size(): number {
    return this.#watchers.size;
  }

  /** Opens a watch that waits for `start`; its timeout begins now. */
  open(spec: WatchSpec): Watcher {
    const { namespaced, clock } = this.#options;
    const slices = new Slices(clock);
    const watcher = createWatcher(spec, { namespaced, slices, work: this.#work });
    this.#watchers.add(watcher);
    const timeoutMs = Math.min(spec.timeoutMs, timeoutMaxMs);
    watcher.timers.add(this.#options.clock.after(timeoutMs, () => this.#timeOut(watcher)));
    if (spec.allowBookmarks) this.#scheduleBookmark(watcher);
    return watcher;
  }

  /** Starts an open watch. */
  start(watcher: Watcher, state: Initial | CatchingUp): void {
    moveWatcher(watcher, { type: 'begin', state });
    if (watcher.state.type === 'ended') return;
    watcher.handicap = this.#lag(state.position);
    this.#behind.add(watcher);
    this.#step(watcher);
  }

  /** Ends a watch and reports the reason to its sink. */
  end(watcher: Watcher, reason: WatchEnd): void {
    if (!this.close(watcher)) return;
    if (reason.type === 'slow') this.#options.meter?.countTerminated();
    try {
      watcher.spec.sink.end(reason);
    } catch (error) {
      this.#options.logger.error('ending a watch failed', { error: String(error) });
    }
  }

  /** Ends a watch without notifying its sink; returns false if it had already ended. */
  close(watcher: Watcher): boolean {
    if (watcher.state.type === 'ended') return false;
    moveWatcher(watcher, { type: 'end' });
    this.#audience.remove(watcher);
    this.#behind.delete(watcher);
    this.#work.release(watcher);
    this.#watchers.delete(watcher);
    for (const timer of watcher.timers) timer.stop();
    watcher.timers.clear();
    watcher.whenEnded?.();
    return true;
  }

  /** Ends all watches, after sending pending changes, except large frames, to the live ones. */
  endAll(reason: WatchEnd): void {
    this.flush();
    for (const watcher of [...this.#watchers]) this.end(watcher, reason);
  }

  /** Schedules the delivery of a change that was just appended to the window. */
  enqueue(change: WindowChange): void {
    this.#pending.push(change);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  /** Sends all pending changes to the live watchers, and disconnects watchers too far behind. */
  flush(): void {
    if (this.#flushing || this.#pending.length === 0) return;
    this.#flushing = true;
    const changes = this.#pending;
    this.#pending = [];
    this.#options.meter?.countDispatched(changes.length);
    try {
      for (const scope of this.#audience.distribute(changes)) this.#deliver(scope);
    } finally {
      this.#flushing = false;
    }
    this.#disconnectLagging();
    const waiting = this.#afterFlush;
    this.#afterFlush = [];
    for (const watcher of waiting) this.#step(watcher);
  }

  #deliver(scope: Scope): void {
    const changes = scope.batch;
    scope.batch = [];
    for (const members of scope.groups.values()) {
      // An error must not keep the batch from other groups and scopes.
      this.#guarded(members, () => this.#deliverShared(members, changes));
    }
    for (const watcher of scope.filtered) {
      this.#guarded([watcher], () => this.#deliverFiltered(watcher, changes));
    }
  }

  /** Sends one buffer per run of changes to any number of watchers. */
  #deliverShared(members: ReadonlySet<Watcher>, changes: readonly WindowChange[]): void {
    for (let from = 0; from < changes.length; ) {
      const [watcher] = members;
      if (watcher === undefined) return;
      const frames: Buffer[] = [];
      let bytes = 0;
      let to = from;
      const framed = this.#guarded(members, () => {
        for (
          let change = changes[to];
          change !== undefined && bytes < chunkBytes;
          change = changes[to]
        ) {
          const type = eventTypeFor(change, watcher.spec);
          if (type !== undefined) {
            const after = frames.length;
            const frame = frameOf(change, { watcher, type, memoize: true, after });
            if (frame === undefined) break;
            frames.push(frame);
            bytes += frame.length;
          }
          to += 1;
        }
      });
      if (!framed) return;
      const next = changes[to];
      if (to === from && next !== undefined) {
        for (const member of [...members]) this.#fallBehind(member, next.position);
        return;
      }
      const position = (changes[to - 1]?.position ?? 0) + 1;
      this.#writeAll(members, { frames, position });
      from = to;
    }
  }

  #writeAll(
    members: ReadonlySet<Watcher>,
    { frames, position }: { frames: readonly Buffer[]; position: number },
  ): void {
    const [first] = frames;
    if (first === undefined) return;
    const shared = frames.length === 1 ? first : Buffer.concat(frames);
    countSent(members, frames);
    for (const watcher of members) {
      if (!this.#write(watcher, shared)) this.#block(watcher, position);
    }
  }

  #write(watcher: Watcher, buffer: Buffer): boolean {
    try {
      return watcher.spec.sink.write(buffer);
    } catch (error) {
      this.#fail(watcher, error);
      return true;
    }
  }

  #deliverFiltered(watcher: Watcher, changes: readonly WindowChange[]): void {
    let frames: Buffer[] = [];
    let bytes = 0;
    for (const change of changes) {
      const type = eventTypeFor(change, watcher.spec);
      if (type === undefined) continue;
      const frame = frameOf(change, { watcher, type, memoize: true, after: frames.length });
      if (frame === undefined) {
        if (writeFrames(watcher, frames)) this.#fallBehind(watcher, change.position);
        else this.#block(watcher, change.position);
        return;
      }
      frames.push(frame);
      bytes += frame.length;
      if (bytes < chunkBytes) continue;
      if (!writeFrames(watcher, frames)) {
        this.#block(watcher, change.position + 1);
        return;
      }
      frames = [];
      bytes = 0;
    }
    const last = changes.at(-1);
    if (last === undefined || writeFrames(watcher, frames)) return;
    this.#block(watcher, last.position + 1);
  }

  /**
   * Blocks a live watcher whose reader is behind; it has received all changes before `position`.
   */
  #block(watcher: Watcher, position: number): void {
    moveWatcher(watcher, { type: 'sentChanges', position, full: true });
    if (watcher.state.type !== 'blocked') return;
    this.#audience.remove(watcher);
    this.#behind.add(watcher);
    this.#awaitDrain(watcher);
  }

  /** Makes a live watcher catch up from `position`, because the next frame takes time. */
  #fallBehind(watcher: Watcher, position: number): void {
    moveWatcher(watcher, { type: 'fellBehind', position });
    if (watcher.state.type !== 'catchingUp') return;
    // Its reader keeps up, so the current lag does not count against it.
    watcher.handicap = this.#lag(position);
    this.#audience.remove(watcher);
    this.#behind.add(watcher);
    this.#step(watcher);
  }

  #awaitDrain(watcher: Watcher): void {
    this.#work.release(watcher);
    watcher.spec.sink.onDrain(() => {
      if (watcher.state.type !== 'blocked') return;
      moveWatcher(watcher, { type: 'drained' });
      this.#step(watcher);
    });
  }

  /**
   * Sends missing changes to a watcher until it is live or blocked, or its slice ends. All watchers
   * share one slice of each turn of the event loop (TRUST-2).
   */
  #step(watcher: Watcher): void {
    if (this.#flushing) {
      this.#afterFlush.push(watcher);
      return;
    }
    this.#guarded([watcher], () => {
      for (let chunk = 0; chunk < chunksPerStep; chunk++) {
        if (this.#mustPause(watcher)) {
          watcher.slices.afterPause(() => this.#step(watcher));
          return;
        }
        if (!this.#advance(watcher)) return;
      }
      this.#options.defer(() => this.#step(watcher));
    });
  }

  #mustPause({ state, slices }: Watcher): boolean {
    if (state.type === 'catchingUp' && state.position === this.#options.window.end) return false;
    return (state.type === 'catchingUp' || state.type === 'initial') && slices.over;
  }

  /** Sends one chunk; returns false if there is nothing more to do for now. */
  #advance(watcher: Watcher): boolean {
    const { window } = this.#options;
    const { state } = watcher;
    if (state.type === 'initial') {
      const sent = sendInitial(watcher, state);
      if (sent > 0) this.#options.meter?.countInitial(sent);
    } else if (state.type === 'catchingUp') {
      if (state.position < window.start) {
        this.end(watcher, { type: 'slow' });
        return false;
      }
      if (state.position === window.end) {
        this.#enter(watcher);
        return false;
      }
      sendChanges(watcher, state, window);
    } else return false;
    if (watcher.state.type !== 'blocked') return true;
    this.#awaitDrain(watcher);
    return false;
  }

  /** Makes a watcher live, after sending the pending changes, which it has, to the others. */
  #enter(watcher: Watcher): void {
    this.flush();
    if (watcher.state.type !== 'catchingUp') return;
    moveWatcher(watcher, { type: 'caughtUp' });
    watcher.handicap = { changes: 0, bytes: 0 };
    this.#behind.delete(watcher);
    this.#audience.add(watcher);
  }

  #disconnectLagging(): void {
    const { window, lagChangesMax, lagBytesMax } = this.#options;
    for (const watcher of this.#behind) {
      const position = nextPosition(watcher.state);
      if (position === undefined) continue;
      const lag = this.#lag(position);
      const { changes, bytes } = watcher.handicap;
      const isTooFarBehind =
        lag.changes - changes > lagChangesMax || lag.bytes - bytes > lagBytesMax;
      if (isTooFarBehind || position < window.start) this.end(watcher, { type: 'slow' });
    }
  }

  #lag(position: number): { changes: number; bytes: number } {
    const { window } = this.#options;
    const oldest = Math.max(position, window.start);
    const bytes = window.bytesAt(window.end) - window.bytesAt(oldest);
    return { changes: window.end - position, bytes };
  }

  #timeOut(watcher: Watcher): void {
    if (watcher.spec.allowBookmarks) this.#bookmark(watcher);
    this.end(watcher, { type: 'timeout' });
  }

  #scheduleBookmark(watcher: Watcher): void {
    const { clock, bookmarkMs, random } = this.#options;
    // kube-apiserver checks for due bookmarks every 1 to 1.25 s, so its bookmarks are late by as
    // much.
    const delayMs = bookmarkMs + Math.round(1000 * (1 + 0.25 * random()));
    const timer = clock.after(delayMs, () => {
      watcher.timers.delete(timer);
      this.#bookmark(watcher);
      if (watcher.state.type !== 'ended') this.#scheduleBookmark(watcher);
    });
    watcher.timers.add(timer);
  }

  /** Sends a bookmark to a live watcher; other watchers have not received all earlier changes. */
  #bookmark(watcher: Watcher): void {
    this.flush();
    if (watcher.state.type !== 'live') return;
    this.#guarded([watcher], () => {
      const revision = this.#options.progress();
      const frame = watcher.spec.encoder.bookmark(revision, { initialEventsEnd: false });
      if (!writeFrames(watcher, [frame])) this.#block(watcher, this.#options.window.end);
    });
  }

  /** Runs `work` for some watchers; an error, such as of the encoder, ends only these watchers. */
  #guarded(watchers: Iterable<Watcher>, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      for (const watcher of [...watchers]) this.#fail(watcher, error);
      return false;
    }
  }

  #fail(watcher: Watcher, error: unknown): void {
    const isStatusError = error instanceof StatusError;
    if (!isStatusError) this.#options.logger.error('a watch failed', { error: String(error) });
    const status = isStatusError ? error : internalError('the watch could not be continued', error);
    this.end(watcher, { type: 'error', error: status });
  }
}

/** Counts frames sent to watchers, which share one encoder. */
function countSent(members: ReadonlySet<Watcher>, frames: readonly Buffer[]): void {
  const [first] = members;
  if (first?.spec.encoder.countSent === undefined) return;
  for (const { length } of frames) first.spec.encoder.countSent(length, members.size);
}
