import { parseAhead, parseWrittenJson } from '@wheelhouse/codec';
import { type Clock, type MaybePromise, paceFor, runAtPace, Slices } from '@wheelhouse/machinery';
import type { AllocationOutcome } from '../../resource-def.ts';
import { addressKey, portKey } from './pools.ts';
import {
  isExternalName,
  needsHealthCheck,
  noAddress,
  nodePortsOf,
  type ServiceSpec,
} from './spec.ts';

const everything = {
  namespace: '',
  resourceVersion: undefined,
  resourceVersionMatch: undefined,
  limit: undefined,
  continueToken: undefined,
  filter: undefined,
};

/** A stored Service. */
interface StoredService {
  /** Namespace and name. */
  readonly key: string;
  readonly json: Buffer;
}

/** All Services at one revision. */
interface ServiceList {
  readonly revision: number;
  entries(): Iterable<StoredService>;
}

interface ServiceChange {
  readonly previous: StoredService | undefined;
  readonly current: StoredService | undefined;
  readonly revision: number;
}

/** The part of the watch cache of Services that the ledger uses. */
interface ServiceCache {
  /** Await the result: the cache then contains every write acknowledged before the call. */
  get(key: string, version: undefined): unknown;
  list(request: typeof everything): MaybePromise<ServiceList>;
  /** Calls back for each later change, in order. */
  subscribe(onChange: (change: ServiceChange) => void): { close(): void };
}

/** Time for which the numbers of a write with an unknown outcome stay reserved, milliseconds. */
export const unknownOutcomeMs = 60_000;

/**
 * Records which numbers are held. Its only sources are the stored Services in the cache and the
 * writes in progress, so a crash leaks nothing, and a restart rebuilds it from the stored Services.
 *
 * A number is checked and taken within one turn of the event loop, after the cache contains all
 * earlier writes; it stays taken until the cache contains the write, or until the write has
 * failed. Two writers of this process therefore never receive the same number.
 */
export class ServiceLedger {
  readonly #cache: () => ServiceCache;
  readonly #clock: Clock;
  /** The numbers of each object in the cache, by object key. */
  readonly #stored = new Map<string, readonly string[]>();
  /** The number of objects and writes that hold each number. */
  readonly #holders = new Map<string, number>();
  /** Successful writes that the cache does not contain yet. */
  #uncached: { readonly revision: number; readonly keys: readonly string[] }[] = [];
  /** Writes with an unknown outcome, and the monotonic time until which they hold numbers. */
  #unknown: { readonly untilMs: number; readonly keys: readonly string[] }[] = [];
  /** Revision of the newest change that the ledger contains. */
  #seen = 0;
  #loading: Promise<void> | undefined;
  /** Resolves when the changes that wait for a large Service are entered; absent: none waits. */
  #waiting: Promise<void> | undefined;

  /** `cache` is called at the first allocation. */
  constructor(options: { cache: () => ServiceCache; clock: Clock }) {
    this.#cache = options.cache;
    this.#clock = options.clock;
  }

  /** Resolves when the ledger contains all writes acknowledged before the call. */
  async caughtUp(): Promise<void> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    await this.#loading;
    await this.#cache().get('', undefined);
    while (this.#waiting !== undefined) await this.#waiting;
    const now = this.#clock.monotonic();
    this.#unknown = this.#unknown.filter(({ untilMs, keys }) => {
      if (untilMs > now) return true;
      this.#drop(keys);
      return false;
    });
  }

  /** All numbers that are held now. */
  heldKeys(): Iterable<string> {
    return this.#holders.keys();
  }

  /** Whether an object or a write in progress holds a number. */
  isHeld(key: string): boolean {
    return this.#holders.has(key);
  }

  /** Whether a number that a write has taken has other holders, too. */
  isContested(key: string): boolean {
    return (this.#holders.get(key) ?? 0) > 1;
  }

  /** Marks a number as taken; `settle` reports the outcome of the write. */
  take(key: string): void {
    this.#holders.set(key, (this.#holders.get(key) ?? 0) + 1);
  }

  /** Releases the numbers of a write, as soon as its outcome allows it. */
  settle(keys: readonly string[], outcome: AllocationOutcome): void {
    if (keys.length === 0) return;
    if (outcome.type === 'unknown') {
      this.#unknown.push({ untilMs: this.#clock.monotonic() + unknownOutcomeMs, keys });
    } else if (outcome.type === 'written' && outcome.revision > this.#seen) {
      this.#uncached.push({ revision: outcome.revision, keys });
    } else this.#drop(keys);
  }

  async #load(): Promise<void> {
    const cache = this.#cache();
    // Changes that arrive while the list is loading are newer than the list.
    let changed: Set<string> | undefined = new Set();
    const subscription = cache.subscribe((change) => {
      changed?.add(keyOf(change));
      this.#receive(change);
    });
    let all: ServiceList;
    try {
      all = await cache.list(everything);
    } catch (error) {
      // The next call starts again with an empty ledger.
      subscription.close();
      for (const key of [...this.#stored.keys()]) this.#enter(key, []);
      throw error;
    }
    const slices = new Slices(this.#clock);
    for (const entry of all.entries()) {
      if (slices.over) await slices.pause();
      const keys = await this.#read(entry);
      if (!changed.has(entry.key)) this.#enter(entry.key, keys);
    }
    changed = undefined;
    this.#reach(all.revision);
  }

  #reach(revision: number): void {
    this.#seen = Math.max(this.#seen, revision);
    this.#uncached = this.#uncached.filter((write) => {
      if (write.revision > this.#seen) return true;
      this.#drop(write.keys);
      return false;
    });
  }

  /**
   * Enters a change, in its order: a large Service is read in slices (TRUST-2), and later changes
   * wait for it. The numbers of the writes that they contain stay taken meanwhile.
   */
  #receive(change: ServiceChange): void {
    const enter = (keys: readonly string[]) => {
      this.#enter(keyOf(change), keys);
      this.#reach(change.revision);
    };
    const before = this.#waiting;
    const keys = before === undefined ? this.#read(change.current) : undefined;
    if (keys !== undefined && !(keys instanceof Promise)) {
      enter(keys);
      return;
    }
    const read = async () => {
      await before;
      enter(await (keys ?? this.#read(change.current)));
    };
    const waiting = read().finally(() => {
      if (this.#waiting === waiting) this.#waiting = undefined;
    });
    this.#waiting = waiting;
  }

  /** The numbers of a Service; a promise if it is large. */
  #read(entry: StoredService | undefined): MaybePromise<readonly string[]> {
    if (entry === undefined) return [];
    const pace = paceFor(this.#clock, entry.json.length);
    if (pace === undefined) return numbersOf(entry);
    return Promise.resolve(runAtPace(parseAhead(entry.json), pace)).then(() => numbersOf(entry));
  }

  #enter(key: string, keys: readonly string[]): void {
    for (const number of keys) this.take(number);
    this.#drop(this.#stored.get(key) ?? []);
    if (keys.length === 0) this.#stored.delete(key);
    else this.#stored.set(key, keys);
  }

  #drop(keys: readonly string[]): void {
    for (const key of keys) {
      const left = (this.#holders.get(key) ?? 0) - 1;
      if (left > 0) this.#holders.set(key, left);
      else this.#holders.delete(key);
    }
  }
}

const keyOf = ({ previous, current }: ServiceChange) => current?.key ?? previous?.key ?? '';

function numbersOf({ json }: StoredService): readonly string[] {
  const { spec = {} } = parseWrittenJson(json) as { spec?: ServiceSpec };
  return numbersIn(spec);
}

/** The numbers that a Service holds, each once, by the ledger's names. */
export function numbersIn(spec: ServiceSpec): readonly string[] {
  const listed = spec.clusterIPs ?? [];
  const single = spec.clusterIP ?? '';
  const ips = listed.length > 0 ? listed : single === '' ? [] : [single];
  const addresses = isExternalName(spec) ? [] : ips.filter((ip) => ip !== noAddress && ip !== '');
  const { healthCheckNodePort: health = 0 } = spec;
  const ports = [...nodePortsOf(spec), ...(health !== 0 && needsHealthCheck(spec) ? [health] : [])];
  return [...new Set([...addresses.map(addressKey), ...ports.map(portKey)])];
}
