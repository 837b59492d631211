import {
  badRequest,
  type Clock,
  deferMicrotask,
  invalid,
  invalidObject,
  type MaybePromise,
} from '@wheelhouse/machinery';
import {
  type ContinuePoint,
  decodeContinue,
  parseResourceVersion,
  type Revision,
  type StoreWatch,
} from '@wheelhouse/store';
import type { ListRequest } from './contract.ts';

interface Waiter {
  readonly revision: Revision;
  readonly settle: (reached: boolean) => void;
}

/**
 * Waits until the cache has followed the store up to a revision. However many requests wait for
 * however distant revisions, the store is asked for one thing only, the next revision, so that
 * versions from the future cannot fill its memory.
 */
export class Freshness {
  readonly #clock: Clock;
  readonly #progress: () => Revision;
  readonly #waiters = new Set<Waiter>();
  #watch: StoreWatch | undefined;
  #asked: StoreWatch | undefined;

  constructor(options: { clock: Clock; progress: () => Revision }) {
    this.#clock = options.clock;
    this.#progress = options.progress;
  }

  /** The store watch that is followed from now on; undefined while there is none. */
  follow(watch: StoreWatch | undefined): void {
    this.#watch = watch;
    this.check();
  }

  /**
   * True once `revision` is reached, at once and without a promise if it is; false after the time,
   * or when who waits has gone: `onCancel` is given the function to call then.
   */
  waitFor(
    revision: Revision,
    options: {
      readonly timeoutMs: number | undefined;
      readonly onCancel?: (cancel: () => void) => void;
    },
  ): MaybePromise<boolean> {
    if (this.#progress() >= revision) return true;
    return new Promise((resolve) => {
      const { timeoutMs } = options;
      const timer =
        timeoutMs === undefined
          ? undefined
          : this.#clock.after(timeoutMs, () => waiter.settle(this.#progress() >= revision));
      const waiter: Waiter = {
        revision,
        settle: (reached) => {
          timer?.stop();
          this.#waiters.delete(waiter);
          resolve(reached);
        },
      };
      this.#waiters.add(waiter);
      options.onCancel?.(() => waiter.settle(false));
      this.check();
    });
  }

  /** Wakes those whose revision has come. */
  check(): void {
    if (this.#waiters.size === 0) return;
    const progress = this.#progress();
    for (const waiter of this.#waiters) if (waiter.revision <= progress) waiter.settle(true);
    if (this.#waiters.size > 0) this.#ask(progress + 1);
  }

  /** Lets all who wait go with false. */
  giveUp(): void {
    for (const waiter of this.#waiters) waiter.settle(false);
  }

  #ask(revision: Revision): void {
    const watch = this.#watch;
    if (watch === undefined || this.#asked === watch) return;
    const answer = watch.reached(revision);
    if (!(answer instanceof Promise)) {
      deferMicrotask({ where: 'watch' }, () => this.check());
      return;
    }
    this.#asked = watch;
    const done = () => {
      if (this.#asked === watch) this.#asked = undefined;
    };
    answer.then(
      () => {
        done();
        this.check();
      },
      // The watch has ended: its follower asks anew.
      done,
    );
  }
}

/** How fresh the state that answers a read must be. */
export type ReadPoint =
  /** At least as new as the store when the request came: a consistent read. */
  | { readonly type: 'newest' }
  | { readonly type: 'any' }
  | { readonly type: 'notOlderThan'; readonly revision: Revision; readonly requested: string }
  | { readonly type: 'exact'; readonly revision: Revision; readonly requested: string };

export interface ListPlan {
  readonly point: ReadPoint;
  /** Where a continued list resumes. */
  readonly continued: ContinuePoint | undefined;
}

/** The get table (LIST-4): unset most recent, `0` any, else not older than. 400 when malformed. */
export function getPoint(resourceVersion: string | undefined): ReadPoint {
  if (resourceVersion === undefined || resourceVersion === '') return { type: 'newest' };
  const revision = soundRevision(resourceVersion);
  return revision === 0
    ? { type: 'any' }
    : { type: 'notOlderThan', revision, requested: resourceVersion };
}

/**
 * The list table (LIST-5), for requests that passed `validateListOptions`. Throws 400 for a
 * malformed version or token, and for a token together with a version other than `0`.
 * @param tokenVersion the `v` of continue tokens
 */
export function planList(request: ListRequest, tokenVersion: string): ListPlan {
  const { resourceVersion, resourceVersionMatch, limit } = request;
  if (request.continueToken !== undefined && request.continueToken !== '') {
    return planContinued({ token: request.continueToken, resourceVersion, tokenVersion });
  }
  const point = getPoint(resourceVersion);
  if (point.type !== 'notOlderThan') return { point, continued: undefined };
  const paged = limit !== undefined && limit > 0;
  const exact = resourceVersionMatch === 'Exact' || (resourceVersionMatch === undefined && paged);
  return { point: exact ? { ...point, type: 'exact' } : point, continued: undefined };
}

function planContinued(options: {
  token: string;
  resourceVersion: string | undefined;
  tokenVersion: string;
}): ListPlan {
  const { token, resourceVersion, tokenVersion } = options;
  const decoded = decodeContinue(token, tokenVersion);
  if (!decoded.ok) throw badRequest(`invalid continue token: ${decoded.why}`);
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
  const { revision } = decoded.point;
  const point: ReadPoint =
    revision < 0 ? { type: 'newest' } : { type: 'exact', revision, requested: String(revision) };
  return { point, continued: decoded.point };
}

/**
 * Reads a get's or list's version. Upstream answers a malformed one with 400 where the request goes
 * to its storage and, by accident, 500 where it is served from its cache; here it is always 400.
 */
function soundRevision(text: string): Revision {
  const parsed = parseResourceVersion(text);
  if (parsed.ok) return parsed.revision;
  const value = JSON.stringify(text.slice(0, 128));
  throw badRequest(
    `invalid resource version: resourceVersion: Invalid value: ${value}: ${parsed.why}`,
  );
}

/** Reads a watch's version; 422 when malformed, with the resource in the kind's place as upstream. */
export function watchRevision(
  text: string | undefined,
  resource: { readonly group: string; readonly resource: string },
): Revision {
  const parsed = parseResourceVersion(text);
  if (parsed.ok) return parsed.revision;
  const kind = { group: resource.group, kind: resource.resource };
  const shown = (text ?? '').slice(0, 128);
  throw invalidObject(kind, '', [invalid('resourceVersion', shown, parsed.why)]);
}
