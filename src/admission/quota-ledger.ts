import type { Clock } from '../base/clock.ts';
import type { ApiObject } from '../meta/types.ts';

/** How long a charge counts without its object being seen: its write follows at once, or never. */
export const reservationMs = 10_000;

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

  constructor(clock: Clock) {
    this.#clock = clock;
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

  /** Notes that an object of a resource will be stored as it is here. */
  reserve(namespace: string, resource: string, object: ApiObject): void {
    const untilMs = this.#clock.monotonic() + reservationMs;
    const { uid = '' } = object.metadata;
    const others = this.#young(namespace).filter((one) => one.uid !== uid);
    this.#reservations.set(namespace, [...others, { resource, uid, object, untilMs }]);
  }

  /** The objects of a resource that may not be stored yet, by their uid. */
  reserved(namespace: string, resource: string): ReadonlyMap<string, ApiObject> {
    const young = this.#young(namespace).filter((one) => one.resource === resource);
    return new Map(young.map(({ uid, object }) => [uid, object]));
  }

  /** Told by whoever follows the objects: this one is stored, or gone again, as can be counted. */
  seen(namespace: string, uid: string): void {
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
    return this.#lost.delete(namespace);
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
