import {
  background,
  type Clock,
  type Logger,
  pacedBytesMin,
  pendingPromise,
  runAtPace,
  runInOnePiece,
  Slices,
} from '@wheelhouse/machinery';
import { decodedAt, decodeEntry } from '../../../registry/object-codec.ts';
import type { Entry } from '../../../watchcache/entry.ts';
import { type Grant, placeOf, RbacIndex, type RbacKind, type RbacPlace } from './rbac-index.ts';

/** A change that is not in the index yet. */
interface WaitingChange {
  readonly place: RbacPlace;
  /** The object; undefined if it was removed. A later change replaces it until the work begins. */
  entry: Entry | undefined;
  isStarted: boolean;
  /** Settles when the change is in the index; created by the first who waits. */
  applied: ReturnType<typeof pendingPromise<void>> | undefined;
}

/** Number of grants from which a binding is removed in steps. */
const grantsMin = 256;

/**
 * Applies changes of roles and bindings to their index: those of small objects at once, and those of
 * large ones in slices (TRUST-2), one after the other. Decisions that a waiting change may affect
 * wait for it, so that they take all reported changes into account.
 */
export class RbacChanges {
  readonly index = new RbacIndex();
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #logger: Pick<Logger, 'error'>;
  /** In order. Contains the change that is being applied. */
  readonly #waiting = new Set<WaitingChange>();
  /** The last waiting change of each object, by the `key` of its place. */
  readonly #latest = new Map<string, WaitingChange>();
  #last: WaitingChange | undefined;
  #isRunning = false;
  #isLoading = false;

  constructor(options: {
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly logger: Pick<Logger, 'error'>;
  }) {
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** Whether no change is waiting. */
  get isSettled(): boolean {
    return this.#last === undefined;
  }

  /** Resolves when all changes reported so far are in the index; undefined if they are. */
  settled(): Promise<void> | undefined {
    const last = this.#last;
    if (last === undefined) return undefined;
    last.applied ??= pendingPromise();
    return last.applied.promise;
  }

  /**
   * Reports a change.
   * @param key the object's key in the watch cache of its kind
   * @param entry the new entry; undefined if the object was removed
   */
  report(kind: RbacKind, key: string, entry: Entry | undefined): void {
    const place = placeOf(kind, key);
    const before = this.#latest.get(place.key);
    if (before !== undefined && !before.isStarted) {
      before.entry = entry;
    } else if (before !== undefined || this.#isLoading || this.#isLarge(place, entry)) {
      this.#enqueue({ place, entry, isStarted: false, applied: undefined });
    } else {
      const object = entry === undefined ? undefined : decodeEntry(entry);
      runInOnePiece(this.index.setSteps(place, object));
    }
  }

  /** Whether a waiting change may affect a grant. */
  mayChange({ binding }: Grant): boolean {
    return this.#latest.has(binding.key) || this.#latest.has(binding.role.key);
  }

  /** Whether a binding that may grant something in a namespace is waiting. */
  mayGrantIn(namespace: string): boolean {
    for (const { place } of this.#latest.values()) {
      const isBinding = place.kind === 'RoleBinding' || place.kind === 'ClusterRoleBinding';
      if (isBinding && (place.namespace === '' || place.namespace === namespace)) return true;
    }
    return false;
  }

  /** Applies the changes that are reported during `follow` in slices, however many there are. */
  async load<T>(follow: () => Promise<T>): Promise<T> {
    this.#isLoading = true;
    try {
      const result = await follow();
      await this.settled();
      return result;
    } finally {
      this.#isLoading = false;
    }
  }

  #isLarge(place: RbacPlace, entry: Entry | undefined): boolean {
    const bytes = entry?.json.length ?? 0;
    return bytes >= pacedBytesMin || this.index.grantsOf(place) >= grantsMin;
  }

  #enqueue(change: WaitingChange): void {
    this.#waiting.add(change);
    this.#latest.set(change.place.key, change);
    this.#last = change;
    if (this.#isRunning) return;
    this.#isRunning = true;
    background({ where: 'authz' }, this.#applyWaiting());
  }

  async #applyWaiting(): Promise<void> {
    const slices = new Slices(this.#clock);
    // The turn that reports a change has done much work already.
    await slices.pause();
    for (const change of this.#waiting) {
      await this.#apply(change, slices);
      this.#waiting.delete(change);
      const { key } = change.place;
      if (this.#latest.get(key) === change) this.#latest.delete(key);
      if (this.#last === change) this.#last = undefined;
      change.applied?.resolve();
    }
    this.#isRunning = false;
  }

  /** Applies a change. A failure leaves the previous object in the index, as in the watch cache. */
  async #apply(change: WaitingChange, slices: Slices): Promise<void> {
    try {
      change.isStarted = true;
      const { entry, place } = change;
      const pace = (entry?.json.length ?? 0) < pacedBytesMin ? undefined : slices;
      const object = entry === undefined ? undefined : await decodedAt(pace, entry);
      await runAtPace(this.index.setSteps(place, object), slices);
    } catch (error) {
      const { kind, namespace, name } = change.place;
      this.#logger.error('cannot apply a changed role or binding', {
        kind,
        namespace,
        name,
        error: String(error),
      });
    }
  }
}
