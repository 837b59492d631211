import type { Clock, MaybePromise } from '@wheelhouse/machinery';
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

/** A Service as it is stored. */
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

/** What the ledger reads of the watch cache of Services. */
export interface ServiceCache {
  /** The result, awaited, comes when the cache shows every write acknowledged before the call. */
  get(key: string, version: undefined): unknown;
  list(request: typeof everything): MaybePromise<ServiceList>;
  /** Calls back for each change from now on, in order. */
  subscribe(onChange: (change: ServiceChange) => void): { close(): void };
}

/** How long numbers of a write that may or may not have happened are kept back. */
export const doubtMs = 60_000;

/**
 * Who holds which number. What is stored is the only record: the numbers of all Services in the
 * cache, and those of writes on their way. So nothing leaks in a crash, and after a restart the
 * ledger is what the Services say.
 *
 * A number is taken and noted in one turn of the event loop, once the cache has seen all that was
 * written before; it stays noted until the cache shows the write, or the write has failed. Two
 * writers of this process can therefore never be given the same.
 */
export class ServiceLedger {
  readonly #cache: () => ServiceCache;
  readonly #clock: Clock;
  /** Object's key -> its numbers, as the cache has it. */
  readonly #stored = new Map<string, readonly string[]>();
  /** Number -> how many objects and writes hold it. */
  readonly #holders = new Map<string, number>();
  /** Writes that succeeded, of which the cache has yet to tell. */
  #landing: { readonly revision: number; readonly keys: readonly string[] }[] = [];
  #doubtful: { readonly untilMs: number; readonly keys: readonly string[] }[] = [];
  /** The newest change that the books have. */
  #seen = 0;
  #loading: Promise<void> | undefined;

  /** The cache is asked for at the first allocation. */
  constructor(options: { cache: () => ServiceCache; clock: Clock }) {
    this.#cache = options.cache;
    this.#clock = options.clock;
  }

  /** Resolves when all writes acknowledged until now are in the books. */
  async caughtUp(): Promise<void> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    await this.#loading;
    await this.#cache().get('', undefined);
    const now = this.#clock.monotonic();
    this.#doubtful = this.#doubtful.filter(({ untilMs, keys }) => {
      if (untilMs > now) return true;
      this.#drop(keys);
      return false;
    });
  }

  /** Keys of all numbers that have a holder at present. */
  heldKeys(): Iterable<string> {
    return this.#holders.keys();
  }

  isHeld(key: string): boolean {
    return this.#holders.has(key);
  }

  /** Whether others hold it besides one write that has taken it. */
  isContested(key: string): boolean {
    return (this.#holders.get(key) ?? 0) > 1;
  }

  /** Notes a number as taken; `settle` says what became of the write. */
  take(key: string): void {
    this.#holders.set(key, (this.#holders.get(key) ?? 0) + 1);
  }

  settle(keys: readonly string[], outcome: AllocationOutcome): void {
    if (keys.length === 0) return;
    if (outcome.type === 'unknown') {
      this.#doubtful.push({ untilMs: this.#clock.monotonic() + doubtMs, keys });
    } else if (outcome.type === 'written' && outcome.revision > this.#seen) {
      this.#landing.push({ revision: outcome.revision, keys });
    } else this.#drop(keys);
  }

  async #load(): Promise<void> {
    const cache = this.#cache();
    // Changes that come while the list is on its way are newer than what it says.
    const changed = new Set<string>();
    const subscription = cache.subscribe(({ previous, current, revision }) => {
      const key = current?.key ?? previous?.key ?? '';
      changed.add(key);
      this.#enter(key, current);
      this.#reach(revision);
    });
    let all: ServiceList;
    try {
      all = await cache.list(everything);
    } catch (error) {
      // Whoever comes next begins anew, with empty books.
      subscription.close();
      for (const key of [...this.#stored.keys()]) this.#enter(key, undefined);
      throw error;
    }
    for (const entry of all.entries()) if (!changed.has(entry.key)) this.#enter(entry.key, entry);
    this.#reach(all.revision);
  }

  #reach(revision: number): void {
    this.#seen = Math.max(this.#seen, revision);
    this.#landing = this.#landing.filter((one) => {
      if (one.revision > this.#seen) return true;
      this.#drop(one.keys);
      return false;
    });
  }

  #enter(key: string, entry: StoredService | undefined): void {
    const keys = entry === undefined ? [] : numbersOf(entry);
    for (const one of keys) this.take(one);
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

function numbersOf(entry: StoredService): readonly string[] {
  const { spec = {} } = JSON.parse(entry.json.toString('utf8')) as { spec?: ServiceSpec };
  return numbersIn(spec);
}

/** The numbers a Service holds, each once, as the ledger names them. */
export function numbersIn(spec: ServiceSpec): readonly string[] {
  const listed = spec.clusterIPs ?? [];
  const single = spec.clusterIP ?? '';
  const ips = listed.length > 0 ? listed : single === '' ? [] : [single];
  const addresses = isExternalName(spec) ? [] : ips.filter((ip) => ip !== noAddress && ip !== '');
  const { healthCheckNodePort: health = 0 } = spec;
  const ports = [...nodePortsOf(spec), ...(health !== 0 && needsHealthCheck(spec) ? [health] : [])];
  return [...new Set([...addresses.map(addressKey), ...ports.map(portKey)])];
}
