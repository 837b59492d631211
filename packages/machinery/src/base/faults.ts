import { deferTask } from './host.ts';

/**
 * Where a contained fault was caught. A closed list, because these are the values of a metric's
 * label.
 */
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

/** An exception thrown by a callback, or an unhandled rejection. */
export interface Fault {
  readonly where: FaultPlace;
  readonly error: unknown;
}

/** How a fault of a callback is handled. */
export interface Containment {
  readonly where: FaultPlace;
  /** Ends the connection or request of the callback. A failure of this function is contained. */
  readonly end?: (error: unknown) => void;
}

const observers = new Set<(fault: Fault) => void>();

/**
 * Calls `observer` with every contained fault of the process until the returned function is called.
 * Faults are contained only while there is an observer: in a program that is not a server they
 * propagate, so that it fails rather than hangs.
 */
export function observeFaults(observer: (fault: Fault) => void): () => void {
  observers.add(observer);
  return () => void observers.delete(observer);
}

/** Reports a fault to the observers. Throws the error if there are none. */
export function reportFault(where: FaultPlace, error: unknown): void {
  if (observers.size === 0) throw error;
  for (const observer of observers) {
    try {
      observer({ where, error });
    } catch {
      // A failing log must not turn a contained fault into an uncaught one.
    }
  }
}

function fail(containment: Containment, error: unknown): void {
  reportFault(containment.where, error);
  try {
    containment.end?.(error);
  } catch (endError) {
    reportFault(containment.where, endError);
  }
}

/**
 * Wraps `run` as a callback that never throws: an exception, or the rejection of a returned
 * promise, is reported and passed to `containment.end` (TRUST-1).
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
 * Like `contained`, for callbacks that serve several connections or requests: `end` finds the
 * affected one from the arguments of the call.
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

/** Wraps `check` as a function that returns errors instead of throwing them. */
export function returningErrors<Args extends readonly unknown[]>(
  check: (...args: Args) => Error | undefined,
): (...args: Args) => Error | undefined {
  return (...args) => {
    try {
      return check(...args);
    } catch (error) {
      return asError(error);
    }
  };
}

/** Whether a function returns instead of throwing. */
export function succeeds(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}

/** The error that was thrown, or an error with the text of another value. */
export const asError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

/** The part of an event emitter that `listen` uses. */
interface EventSource {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** An event source that a fault destroys by default. */
interface Destroyable {
  destroy?(): unknown;
}

type Listeners = Readonly<Record<string, (...args: never[]) => unknown>>;

/**
 * Registers listeners on a socket, stream, server, or child process. A fault of a listener is
 * reported and calls `containment.end`, or destroys the source by default. Returns a function that
 * removes the listeners.
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
 * Registers a listener on a source that serves many clients, such as a server: a fault ends the
 * object that `end` finds in the event instead of the source.
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
  const listener: (...args: never) => void = containedEach({ where, end }, run);
  source.on(event, listener as (...args: unknown[]) => void);
}

/**
 * Calls `run` when the signal aborts, or asynchronously if it already has. Returns a function that
 * removes the listener, since a long-lived signal retains its listeners.
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

/** Ignores errors of a source that also reports them with a `close` event. */
export function ignoreErrors(source: EventSource): void {
  source.on('error', ignoreEvent);
}

function ignoreEvent(): void {}

/** Runs a task in a later turn of the event loop. */
export function defer(containment: Containment, task: () => unknown): void {
  deferTask(contained(containment, task));
}

/** Runs a task as a microtask. */
export function deferMicrotask(containment: Containment, task: () => unknown): void {
  queueMicrotask(contained(containment, task));
}

/** Runs an asynchronous task in the background; its rejection is reported. */
export function background(containment: Containment, task: MaybePromise<unknown>): void {
  if (task instanceof Promise) task.catch((error) => fail(containment, error));
}

/**
 * Returns the message of a thrown value, or the value as text. Does not test for `instanceof
 * Error`, because programs such as Jest run code in another realm.
 */
export function errorText(thrown: unknown): string {
  const message =
    typeof thrown === 'object' && thrown !== null && 'message' in thrown
      ? thrown.message
      : undefined;
  return typeof message === 'string' ? message : String(thrown);
}

/** Returns the code of a system error, such as `ENOENT`; undefined for other thrown values. */
export function systemErrorCode(thrown: unknown): string | undefined {
  const code =
    typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/**
 * A value or a promise of it. Hot paths return the value itself if it is available, because an
 * `await` costs more than a read.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Passes on a value: at once if it is available, so that hot paths create no promise. */
export function andThen<T, R>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Returns a promise with the functions that settle it. */
export function pendingPromise<T = void>() {
  let resolve = (_value: T): void => {};
  let reject = (_error: unknown): void => {};
  const promise = new Promise<T>((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
}
