import type { ApiObject, Clock } from '@wheelhouse/machinery';

/** How long a charge counts without its object being seen: its write follows at once, or never. */
export const reservationMs = 10_000;

/** A charge by another server, and the revision at which that server told of it. */
export interface SharedReservation {
  readonly uid: string;
  readonly object: ApiObject;
  readonly revision: number;
}

/** Where servers on one store tell each other what they charge for; entries go by themselves. */
export interface SharedReservations {
  put(namespace: string, resource: string, object: ApiObject): Promise<void>;
  remove(namespace: string, resource: string, object: ApiObject): Promise<void>;
  /** Those of other servers. */
  list(namespace: string, resource: string): Promise<readonly SharedReservation[]>;
}

interface Reservation {
  readonly resource: string;
  readonly uid: string;
  readonly object: ApiObject;
  readonly untilMs: number;
}

/**
 * What quotas were charged for and may not be stored yet, so that whoever counts a namespace anew
 * does not give it away twice; and the turn in which charges and counts of a namespace are made.
 */
export class QuotaLedger {
  readonly #clock: Clock;
  readonly #reservations = new Map<string, Reservation[]>();
  /** Namespaces with charges for objects that were not seen in time. */
  readonly #lost = new Set<string>();
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #shared: SharedReservations | undefined;
  /** Where others charge too: the last change seen of an object, of this period and the one before. */
  #changes = { recent: new Map<string, number>(), older: new Map<string, number>(), untilMs: 0 };

  /** @param shared where other servers charge the same quotas */
  constructor(clock: Clock, shared?: SharedReservations) {
    this.#clock = clock;
    this.#shared = shared;
  }

  /** How long after a charge it shows that its object never came; ms. */
  get lateMs(): number {
    // Others' reservations go by a clock of their own, which is given time.
    return this.#shared === undefined ? reservationMs : reservationMs * 1.5;
  }

  /** Runs the work when all earlier work of the namespace is done. */
  async inTurn<T>(namespace: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(namespace) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.then(
      () => {},
      () => {},
    );
    this.#turns.set(namespace, settled);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(namespace) === settled) this.#turns.delete(namespace);
    }
  }

  /**
   * Tells other servers, before a charge, what it is for. What is given back takes that back, for
   * when there is no charge after all.
   */
  async announce(
    namespace: string,
    resource: string,
    object: ApiObject,
  ): Promise<(() => Promise<void>) | undefined> {
    const shared = this.#shared;
    if (shared === undefined) return undefined;
    await shared.put(namespace, resource, object);
    return () => shared.remove(namespace, resource, object);
  }

  /** Notes that an object of a resource will be stored as it is here. */
  reserve(namespace: string, resource: string, object: ApiObject): void {
    const untilMs = this.#clock.monotonic() + reservationMs;
    const { uid = '' } = object.metadata;
    const others = this.#young(namespace).filter((one) => one.uid !== uid);
    this.#reservations.set(namespace, [...others, { resource, uid, object, untilMs }]);
  }

  /** The objects of a resource that may not be stored yet, by their uid. */
  async reserved(namespace: string, resource: string): Promise<ReadonlyMap<string, ApiObject>> {
    const others = (await this.#shared?.list(namespace, resource)) ?? [];
    const unseen = others.filter(({ uid, revision }) => this.#lastChange(uid) < revision);
    const young = this.#young(namespace).filter((one) => one.resource === resource);
    return new Map([...unseen, ...young].map(({ uid, object }) => [uid, object]));
  }

  /**
   * Told by whoever follows the objects: as of a revision this one is stored, or gone again, as can
   * be counted.
   */
  seen(namespace: string, uid: string, revision: number): void {
    if (this.#shared !== undefined) this.#noteChange(uid, revision);
    const all = this.#reservations.get(namespace);
    if (all === undefined) return;
    this.#keep(
      namespace,
      all.filter((one) => one.uid !== uid),
    );
  }

  /**
   * Whether charges were made, since this was last asked, whose objects never came: the namespace
   * is then to be counted anew.
   */
  takeLost(namespace: string): boolean {
    this.#young(namespace);
    // What others charged for in vain they cannot tell.
    return this.#lost.delete(namespace) || this.#shared !== undefined;
  }

  #lastChange(uid: string): number {
    return this.#changes.recent.get(uid) ?? this.#changes.older.get(uid) ?? 0;
  }

  #noteChange(uid: string, revision: number): void {
    const nowMs = this.#clock.monotonic();
    if (nowMs >= this.#changes.untilMs) {
      const { recent: older } = this.#changes;
      this.#changes = { recent: new Map(), older, untilMs: nowMs + this.lateMs };
    }
    this.#changes.recent.set(uid, revision);
  }

  #young(namespace: string): Reservation[] {
    const nowMs = this.#clock.monotonic();
    const all = this.#reservations.get(namespace) ?? [];
    const young = all.filter(({ untilMs }) => untilMs > nowMs);
    if (young.length < all.length) {
      this.#lost.add(namespace);
      this.#keep(namespace, young);
    }
    return young;
  }

  #keep(namespace: string, left: Reservation[]): void {
    if (left.length === 0) this.#reservations.delete(namespace);
    else this.#reservations.set(namespace, left);
  }
}
