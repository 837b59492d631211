import { randomUUID } from 'node:crypto';

/**
 * The sources of nondeterminism besides time (clock.ts), sockets, and files: randomness and the
 * order of tasks. No other code of the server calls `Math.random`, `randomUUID`, or `setImmediate`,
 * so a simulation that replaces the host is repeatable. Keys and other secrets come directly from
 * `node:crypto`, so that no replacement can weaken them.
 */
export interface Host {
  /** A number in [0, 1). */
  random(): number;
  /** A version 4 UUID. */
  randomUuid(): string;
  /** Runs a task in a later turn of the event loop, in order of the calls. */
  defer(task: () => void): void;
}

const systemHost: Host = {
  random: Math.random,
  randomUuid: () => randomUUID(),
  defer: (task) => void setImmediate(task),
};

let host = systemHost;

/** A random number in [0, 1), for spreading load and for names; not for secrets. */
export function random(): number {
  return host.random();
}

/** A random integer in [0, `limit`), for spreading load and for names; not for secrets. */
export function randomBelow(limit: number): number {
  return Math.floor(host.random() * limit);
}

/** A random version 4 UUID. */
export function randomUuid(): string {
  return host.randomUuid();
}

/**
 * Runs a task in a later turn of the event loop. The task must not throw: see `defer` in faults.ts.
 */
export function deferTask(task: () => void): void {
  host.defer(task);
}

/** Resolves in a later turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => host.defer(resolve));
}

/**
 * Replaces the host of the process until the returned function is called. Replacements nest and
 * must end in reverse order.
 */
export function replaceHost(replacement: Host): () => void {
  const before = host;
  host = replacement;
  return () => {
    host = before;
  };
}

/** Random choices that a seed repeats. The methods do not depend on `this`. */
export interface Random {
  /** A number from 0 to below 1. */
  fraction(): number;
  /** An integer from 0 to below `end`. */
  below(end: number): number;
  chance(probability: number): boolean;
  /** An item of a list that is not empty. */
  pick<T>(items: readonly T[]): T;
}

/** Creates a small pseudorandom generator (mulberry32): equal seeds make equal choices. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(fraction() * end);
  return {
    fraction,
    below,
    chance: (probability) => fraction() < probability,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
  };
}
