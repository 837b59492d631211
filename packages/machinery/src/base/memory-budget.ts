import { defer } from './faults.ts';

/** What memory is used for; the label of its metric. */
type MemoryUse = 'connections' | 'requests' | 'bodies' | 'answers' | 'watches' | 'selectors';

/** All uses of memory. */
export const memoryUses: readonly MemoryUse[] = [
  'connections',
  'requests',
  'bodies',
  'answers',
  'watches',
  'selectors',
];

/** The budget has no room for a request, whose response must be a 429 (TRUST-4). */
export class MemoryShortage extends Error {
  constructor() {
    super('the server is short of memory');
    this.name = 'MemoryShortage';
  }
}

/** Fraction of the limit above which new work of owners above their fair share is rejected. */
const highFraction = 0.8;
/** Fraction of all charges that remains when the process is short of memory. */
const keptFraction = 0.75;
/** Number of accounts that are shed in one turn of the event loop. */
const shedPerTurn = 64;

/** The charges of one user, or of one address whose user is unknown. */
interface Owner {
  readonly name: string;
  bytes: number;
  readonly accounts: Set<MemoryAccount>;
}

/** The callbacks of an account's holder. */
interface MemoryHolder {
  /** Synchronously abandons work, most expensive first, until about `bytes` are released. */
  shed(bytes: number): void;
}

type UseBytes = Record<MemoryUse, number>;

/**
 * Accounts for the memory that the server holds for clients (TRUST-4). Holders charge and release
 * estimates; the sums decide when to refuse work and whose work to shed:
 *
 * - Below the high-water mark all work is admitted.
 * - Above it, new work of an owner that holds more than its fair share is rejected. Others are
 *   admitted.
 * - Above the limit, the heaviest accounts of the heaviest owner are shed until the sum is below
 *   the high-water mark again.
 *
 * Charging takes a few additions; only shedding scans all accounts.
 */
export class MemoryBudget {
  /** Bytes that may be charged at one time. */
  readonly limitBytes: number;
  readonly #highBytes: number;
  readonly #defer: (task: () => void) => void;
  readonly #onShed: (owner: string, bytes: number) => void;
  readonly #owners = new Map<string, Owner>();
  readonly #shared = new Map<object, SharedCharge>();
  readonly #byUse = noBytes();
  #used = 0;
  #refused = 0;
  #shedCount = 0;
  #isShedding = false;
  #isUnderPressure = false;

  /**
   * @param options.limitBytes maximum of all charges; if infinite, everything is admitted
   * @param options.defer runs a task in a later turn of the event loop
   * @param options.onShed called with the owner of a shed account and the bytes released
   */
  constructor(options: {
    limitBytes: number;
    defer?: (task: () => void) => void;
    onShed?: (owner: string, bytes: number) => void;
  }) {
    this.limitBytes = options.limitBytes;
    this.#highBytes = options.limitBytes * highFraction;
    this.#defer = options.defer ?? ((task) => defer({ where: 'memory' }, task));
    this.#onShed = options.onShed ?? (() => {});
  }

  /** Bytes that are currently charged. */
  get usedBytes(): number {
    return this.#used;
  }

  /** Bytes that are currently charged for one use. */
  usedFor(use: MemoryUse): number {
    return this.#byUse[use];
  }

  /** Number of refusals. */
  get refused(): number {
    return this.#refused;
  }

  /** Number of shed accounts. */
  get shedAccounts(): number {
    return this.#shedCount;
  }

  /** Opens an account. Its owner can change, for example after authentication. */
  open(options: { readonly owner: string; readonly holder: MemoryHolder }): MemoryAccount {
    return new MemoryAccount(this, this.join(options.owner), options.holder);
  }

  /**
   * Reports whether the process is short of memory regardless of the estimates. While it is, owners
   * above their fair share are rejected; each call with `short` sheds a quarter of all charges.
   */
  setPressure(state: 'short' | 'enough'): void {
    this.#isUnderPressure = state === 'short';
    if (this.#isUnderPressure) this.#defer(() => this.#shed(this.#used * keptFraction));
  }

  /** @internal for accounts */
  admits(owner: Owner, bytes: number): boolean {
    if (this.#used + bytes <= this.#highBytes && !this.#isUnderPressure) return true;
    const share = this.limitBytes / (2 * Math.max(1, this.#owners.size));
    if (owner.bytes + bytes <= share) return true;
    this.#refused += 1;
    return false;
  }

  /** @internal for accounts */
  add(use: MemoryUse, bytes: number): void {
    this.#byUse[use] += bytes;
    this.#used += bytes;
    if (this.#used > this.limitBytes && !this.#isShedding) {
      this.#isShedding = true;
      this.#defer(this.#shedToHigh);
    }
  }

  /** @internal for accounts */
  join(name: string): Owner {
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = { name, bytes: 0, accounts: new Set() };
      this.#owners.set(name, owner);
    }
    return owner;
  }

  /** @internal for accounts */
  leave(owner: Owner, account: MemoryAccount): void {
    owner.accounts.delete(account);
    if (owner.accounts.size === 0) this.#owners.delete(owner.name);
  }

  /** @internal for accounts */
  share(key: object, bytes: number): SharedCharge {
    let shared = this.#shared.get(key);
    if (shared === undefined) {
      shared = new SharedCharge(bytes, () => this.#shared.delete(key));
      this.#shared.set(key, shared);
    }
    return shared;
  }

  readonly #shedToHigh = (): void => {
    this.#isShedding = false;
    this.#shed(this.#highBytes);
  };

  /** Sheds the heaviest accounts until `toBytes` are left, over several turns of the event loop. */
  #shed(toBytes: number): void {
    const before = this.#used;
    let remaining = shedPerTurn;
    for (const owner of heaviestFirst(this.#owners.values())) {
      for (const account of heaviestFirst(owner.accounts)) {
        if (this.#used <= toBytes) return;
        if (remaining === 0) {
          // Holders that release nothing are not asked again and again.
          if (this.#used < before) this.#defer(() => this.#shed(toBytes));
          return;
        }
        remaining -= 1;
        this.#shedOne(owner, account, this.#used - toBytes);
      }
    }
  }

  #shedOne(owner: Owner, account: MemoryAccount, bytes: number): void {
    const before = this.#used;
    account.holder.shed(Math.min(bytes, account.bytes));
    this.#shedCount += 1;
    this.#onShed(owner.name, before - this.#used);
  }
}

function heaviestFirst<T extends { readonly bytes: number }>(holders: Iterable<T>): readonly T[] {
  return [...holders].sort((left, right) => right.bytes - left.bytes);
}

function noBytes(): UseBytes {
  return { connections: 0, requests: 0, bodies: 0, answers: 0, watches: 0, selectors: 0 };
}

/** The memory that the server holds for one connection. */
export class MemoryAccount {
  readonly holder: MemoryHolder;
  readonly #budget: MemoryBudget;
  readonly #byUse = noBytes();
  #owner: Owner;
  #bytes = 0;
  #isClosed = false;

  /** @internal created by `MemoryBudget.open` */
  constructor(budget: MemoryBudget, owner: Owner, holder: MemoryHolder) {
    this.#budget = budget;
    this.#owner = owner;
    this.holder = holder;
    owner.accounts.add(this);
  }

  /** Bytes that are currently charged. */
  get bytes(): number {
    return this.#bytes;
  }

  get owner(): string {
    return this.#owner.name;
  }

  /**
   * Whether the owner may hold `bytes` more. Called before new work starts, not for existing work.
   */
  admits(bytes: number): boolean {
    return this.#budget.admits(this.#owner, bytes);
  }

  /** Charges bytes, or releases them if negative. Does nothing on a closed account. */
  charge(use: MemoryUse, bytes: number): void {
    if (this.#isClosed) return;
    this.#byUse[use] += bytes;
    this.#bytes += bytes;
    this.#owner.bytes += bytes;
    this.#budget.add(use, bytes);
  }

  /**
   * Charges an object that several accounts share, once for all of them: to one holder, and to
   * another one when that releases it.
   * @param bytes size of the object, the same for every holder
   * @returns a function that releases the object, idempotent
   */
  chargeShared(key: object, bytes: number): () => void {
    const shared = this.#budget.share(key, bytes);
    shared.acquire(this);
    return () => shared.release(this);
  }

  /** Transfers the account's charges to the owner `name`. */
  transferTo(name: string): void {
    const before = this.#owner;
    if (before.name === name || this.#isClosed) return;
    const after = this.#budget.join(name);
    before.bytes -= this.#bytes;
    this.#budget.leave(before, this);
    after.bytes += this.#bytes;
    after.accounts.add(this);
    this.#owner = after;
  }

  /** Releases all charges. Holders release shared objects themselves. */
  close(): void {
    if (this.#isClosed) return;
    for (const use of memoryUses) this.charge(use, -this.#byUse[use]);
    this.#isClosed = true;
    this.#budget.leave(this.#owner, this);
  }
}

/** The charge of an object that several accounts share. */
class SharedCharge {
  readonly #bytes: number;
  readonly #onUnused: () => void;
  /** Number of references of each account. */
  readonly #holders = new Map<MemoryAccount, number>();
  #payer: MemoryAccount | undefined;

  constructor(bytes: number, onUnused: () => void) {
    this.#bytes = bytes;
    this.#onUnused = onUnused;
  }

  acquire(account: MemoryAccount): void {
    this.#holders.set(account, (this.#holders.get(account) ?? 0) + 1);
    if (this.#payer === undefined) this.#pay(account);
  }

  release(account: MemoryAccount): void {
    const times = this.#holders.get(account) ?? 0;
    if (times > 1) {
      this.#holders.set(account, times - 1);
      return;
    }
    this.#holders.delete(account);
    if (this.#payer === account) {
      account.charge('selectors', -this.#bytes);
      this.#payer = undefined;
      const [next] = this.#holders.keys();
      if (next !== undefined) this.#pay(next);
    }
    if (this.#holders.size === 0) this.#onUnused();
  }

  #pay(account: MemoryAccount): void {
    this.#payer = account;
    account.charge('selectors', this.#bytes);
  }
}
