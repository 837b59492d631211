import type { Clock, Dialect } from '@wheelhouse/machinery/browser';
import { type Attempt, canI, grants, type OwnRules, ownRules } from './access.ts';
import type { Api } from './api.ts';
import { type Kind, type ObjectName, resourceName } from './kinds.ts';

/** How long a decision of the server is reused. */
const cacheTtlMs = 15_000;

/**
 * Caches the server's decisions about what the user may do. The console offers an action unless the
 * server denies it; if the check fails, the action is offered.
 */
export class Permissions {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #refusals = new Map<
    string,
    { readonly atMs: number; readonly refusal: Promise<string> }
  >();

  constructor(options: { readonly api: Api; readonly clock: Clock }) {
    this.#api = options.api;
    this.#clock = options.clock;
  }

  /**
   * Resolves with an empty text if the user may perform at least one of several actions, and
   * otherwise with the message for the first one. Checks sequentially until one is allowed. Never
   * rejects.
   */
  async refusal(dialect: Dialect, attempts: readonly Attempt[]): Promise<string> {
    let first = '';
    for (const attempt of attempts) {
      const refusal = await this.#refusalOf(dialect, attempt);
      if (refusal === '') return '';
      first ||= refusal;
    }
    return first;
  }

  /** Resolves with a check for whether the user may create a kind; it allows all if unknown. */
  async creatable(
    dialect: Dialect,
    namespace: string,
  ): Promise<(kind: Pick<Kind, 'group' | 'resource'>) => boolean> {
    const rules = await ownRules(this.#api, { dialect, namespace: namespace || 'default' }).catch(
      () => undefined,
    );
    return (kind) => rules === undefined || rules.isIncomplete || mayCreate(rules, kind);
  }

  /** Discards all cached decisions. */
  clear(): void {
    this.#refusals.clear();
  }

  #refusalOf(dialect: Dialect, attempt: Attempt): Promise<string> {
    const key = JSON.stringify(attempt);
    const nowMs = this.#clock.monotonic();
    this.#dropExpired(nowMs);
    const cached = this.#refusals.get(key);
    if (cached !== undefined) return cached.refusal;
    const refusal = canI(this.#api, { dialect, attempt }).then(
      ({ isAllowed, reason }) => (isAllowed ? '' : refusalText(attempt, reason)),
      () => '',
    );
    this.#refusals.set(key, { atMs: nowMs, refusal });
    return refusal;
  }

  /** Drops decisions that have expired, which are the first ones of the map. */
  #dropExpired(nowMs: number): void {
    for (const [key, { atMs }] of this.#refusals) {
      if (nowMs - atMs < cacheTtlMs) return;
      this.#refusals.delete(key);
    }
  }
}

function mayCreate({ rules }: OwnRules, { group, resource }: Pick<Kind, 'group' | 'resource'>) {
  return rules.some((rule) => grants(rule, { verb: 'create', group, resource, subresource: '' }));
}

function refusalText(attempt: Attempt, reason: string): string {
  const { verb, subresource, namespace, name } = attempt;
  const full = resourceName(attempt);
  const what = `${subresource === '' ? '' : `the ${subresource} of `}${full}`;
  const which = name === '' ? '' : ` ${JSON.stringify(name)}`;
  const where = namespace === '' ? '' : ` in the namespace ${JSON.stringify(namespace)}`;
  return `You may not ${verb} ${what}${which}${where}${reason === '' ? '' : `: ${reason}`}.`;
}

/** The check for an action on an object, or on a subresource of it. */
export function attemptOn(target: ObjectName, verb: string, subresource = ''): Attempt {
  const { group, resource } = target.kind;
  return {
    verb,
    group,
    resource,
    subresource,
    namespace: target.namespace ?? '',
    name: target.name,
  };
}

/** The check for creating an object of a kind. */
export function attemptToCreate(kind: Kind, namespace: string | undefined): Attempt {
  return attemptOn({ kind, namespace, name: '' }, 'create');
}
