import { randomUUID } from 'node:crypto';

/**
 * What a process takes from its host besides time (clock.ts), sockets, and files: chance, and the
 * order of tasks. Nothing else in the server calls `Math.random`, `randomUUID`, or `setImmediate`,
 * so that a simulation that replaces the host repeats a run exactly. Keys and other secrets come
 * from `node:crypto` directly: no replacement may weaken them.
 */
export interface Host {
  /** A number in [0, 1). */
  random(): number;
  /** A version 4 UUID. */
  randomUuid(): string;
  /** Runs a task in a later turn of the event loop, after the tasks that were passed before it. */
  defer(task: () => void): void;
}

const systemHost: Host = {
  random: Math.random,
  randomUuid: () => randomUUID(),
  defer: (task) => void setImmediate(task),
};

let host = systemHost;

/** A number in [0, 1), for spreading load and for names: not for secrets. */
export function random(): number {
  return host.random();
}

/** A whole number in [0, `limit`), for spreading load and for names: not for secrets. */
export function randomBelow(limit: number): number {
  return Math.floor(host.random() * limit);
}

export function randomUuid(): string {
  return host.randomUuid();
}

/** Runs a task in a later turn of the event loop. The task must not throw: see `defer` in faults.ts. */
export function deferTask(task: () => void): void {
  host.defer(task);
}

/** Resolves in a later turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => host.defer(resolve));
}

/**
 * Replaces the host of the whole process until the returned function is called. Replacements nest:
 * they must end in the reverse of the order in which they began.
 */
export function replaceHost(replacement: Host): () => void {
  const before = host;
  host = replacement;
  return () => {
    host = before;
  };
}
