import { deferTask } from './host.ts';

/** Where a contained fault was caught: the values of the metric's label, so the list is closed. */
export type FaultPlace =
  | 'aggregation'
  | 'audit'
  | 'authn'
  | 'authz'
  | 'client'
  | 'controller'
  | 'endpoint'
  | 'http1'
  | 'http2'
  | 'memory'
  | 'process'
  | 'store'
  | 'timer'
  | 'tls'
  | 'watch'
  | 'webhook'
  | 'websocket';

/** An exception that a callback threw, or a promise that nobody handled. */
export interface Fault {
  readonly where: FaultPlace;
  readonly error: unknown;
}

export interface Containment {
  readonly where: FaultPlace;
  /** Ends the connection or request that the callback belongs to. Its own failure is contained. */
  readonly end?: (error: unknown) => void;
}

const observers = new Set<(fault: Fault) => void>();

/**
 * Calls `observer` with every contained fault of the process until the returned function is called.
 * Faults are contained only while somebody observes them: in a program that serves nobody they
 * propagate, so that it ends with an error rather than hangs.
 */
export function observeFaults(observer: (fault: Fault) => void): () => void {
  observers.add(observer);
  return () => void observers.delete(observer);
}

/** Reports a fault to the observers. Throws the error where nobody observes faults. */
export function reportFault(where: FaultPlace, error: unknown): void {
  if (observers.size === 0) throw error;
  for (const observer of observers) {
    try {
      observer({ where, error });
    } catch {
      // A log that cannot be written must not turn a contained fault into an uncaught one.
    }
  }
}

function fail(containment: Containment, error: unknown): void {
  reportFault(containment.where, error);
  try {
    containment.end?.(error);
  } catch (second) {
    reportFault(containment.where, second);
  }
}

/**
 * Returns `run` as a callback that never throws: an exception, or the rejection of a promise it
 * returns, is reported and ends what `containment.end` names (TRUST-1).
 */
export function contained<Args extends readonly unknown[]>(
  containment: Containment,
  run: (...args: Args) => unknown,
): (...args: Args) => void {
  return (...args) => {
    try {
      const outcome = run(...args);
      if (outcome instanceof Promise) outcome.catch((error) => fail(containment, error));
    } catch (error) {
      fail(containment, error);
    }
  };
}

/**
 * As `contained`, for callbacks that serve many: a fault ends what `end` finds among the arguments of
 * the call.
 */
export function containedEach<Args extends readonly unknown[]>(
  containment: {
    readonly where: FaultPlace;
    readonly end: (error: unknown, ...args: Args) => void;
  },
  run: (...args: Args) => unknown,
): (...args: Args) => void {
  const { where, end } = containment;
  return (...args) => {
    try {
      run(...args);
    } catch (error) {
      fail({ where, end: () => end(error, ...args) }, error);
    }
  };
}

/** Returns `check` as a function that returns the errors it throws as well as those it returns. */
export function verdict<Args extends readonly unknown[]>(
  check: (...args: Args) => Error | undefined,
): (...args: Args) => Error | undefined {
  return (...args) => {
    try {
      return check(...args);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };
}

/** What `listen` needs of an event emitter. */
interface EventSource {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** Sources of events that can be cut off, which is what a fault does to them by default. */
interface Destroyable {
  destroy?(): unknown;
}

type Listeners = Readonly<Record<string, (...args: never[]) => unknown>>;

/**
 * Registers listeners on a socket, stream, server or child process. A listener that throws is
 * reported and ends its source (`destroy`), or what `containment.end` names. Returns a function that
 * removes them.
 */
export function listen(
  source: EventSource & Destroyable,
  containment: Containment,
  listeners: Listeners,
): () => void {
  const { where, end = () => source.destroy?.() } = containment;
  const registered = Object.entries(listeners).map(([event, run]) => {
    const listener = contained({ where, end }, run as (...args: unknown[]) => unknown);
    source.on(event, listener);
    return [event, listener] as const;
  });
  return () => {
    for (const [event, listener] of registered) source.off(event, listener);
  };
}

/**
 * Registers a listener on a source that serves many, a server: a fault ends not the source but what
 * `end` finds in the event.
 */
export function listenEach<Args extends readonly unknown[]>(
  source: EventSource,
  event: string,
  options: {
    readonly where: FaultPlace;
    readonly run: (...args: Args) => unknown;
    readonly end: (...args: Args) => void;
  },
): void {
  const { where, run } = options;
  const end = (_error: unknown, ...args: Args) => options.end(...args);
  const each: (...args: never) => void = containedEach({ where, end }, run);
  source.on(event, each as (...args: unknown[]) => void);
}

/**
 * Calls `run` when the signal aborts, after the code at hand where it has. Returns a function that
 * removes the listener: a signal that lasts keeps its listeners.
 */
export function whenAborted(
  signal: AbortSignal,
  containment: Containment,
  run: () => unknown,
): () => void {
  let isReleased = false;
  const listener = contained(containment, () => (isReleased ? undefined : run()));
  if (signal.aborted) queueMicrotask(listener);
  else signal.addEventListener('abort', listener, { once: true });
  return () => {
    isReleased = true;
    signal.removeEventListener('abort', listener);
  };
}

/** For sources whose `close` event tells all that can be acted on: an error ends nothing else. */
export function ignoreErrors(source: EventSource): void {
  source.on('error', ignoreEvent);
}

function ignoreEvent(): void {}

/** Runs a task after the events at hand (`setImmediate`). */
export function defer(containment: Containment, task: () => unknown): void {
  deferTask(contained(containment, task));
}

/** Runs a task after the code at hand, before other events. */
export function deferMicrotask(containment: Containment, task: () => unknown): void {
  queueMicrotask(contained(containment, task));
}

/** Lets an asynchronous task run on by itself; its rejection is reported. */
export function background(containment: Containment, task: MaybePromise<unknown>): void {
  if (task instanceof Promise) task.catch((error) => fail(containment, error));
}

/**
 * What a person reads of something that was thrown: its message, or the value as text. It does not
 * ask for an `Error` of this realm, since programs such as jest run code in another.
 */
export function errorText(thrown: unknown): string {
  const message =
    typeof thrown === 'object' && thrown !== null && 'message' in thrown
      ? thrown.message
      : undefined;
  return typeof message === 'string' ? message : String(thrown);
}

/** The code of a system error, such as `ENOENT`; undefined for anything else that was thrown. */
export function systemErrorCode(thrown: unknown): string | undefined {
  const code =
    typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/**
 * A value now, or a promise of it. Hot paths return the value itself when they have it, since an
 * `await` on every read costs more than the read.
 */
export type MaybePromise<T> = T | Promise<T>;
