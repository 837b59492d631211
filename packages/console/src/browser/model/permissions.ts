import type { Clock, Dialect } from '@wheelhouse/machinery/browser';
import { type Attempt, canI, type OwnRules, ownRules } from './access.ts';
import type { Api } from './api.ts';
import { type Kind, type ObjectName, resourceName } from './kinds.ts';

/** How long a decision of the server is reused; roles may change meanwhile. */
const keptMs = 15_000;

/**
 * What the user may do, as the server decides it. The console offers an action unless the server
 * says that the user may not perform it; if the server cannot be asked, the action is offered.
 */
export class Permissions {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #answers = new Map<
    string,
    { readonly atMs: number; readonly answer: Promise<string> }
  >();

  constructor(options: { readonly api: Api; readonly clock: Clock }) {
    this.#api = options.api;
    this.#clock = options.clock;
  }

  /**
   * Why the user may perform none of several actions: the reason for the first one. Empty if one of
   * them is allowed. Asks one after the other, up to the first allowed one. Never rejects.
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

  /** Whether the user may create objects of a kind; true if the server does not say. */
  async creatable(
    dialect: Dialect,
    namespace: string,
  ): Promise<(kind: Pick<Kind, 'group' | 'resource'>) => boolean> {
    const rules = await ownRules(this.#api, { dialect, namespace: namespace || 'default' }).catch(
      () => undefined,
    );
    return (kind) => rules === undefined || rules.isIncomplete || mayCreate(rules, kind);
  }

  /** Asks anew from now on, as another user or after a change of roles. */
  forget(): void {
    this.#answers.clear();
  }

  #refusalOf(dialect: Dialect, attempt: Attempt): Promise<string> {
    const key = JSON.stringify(attempt);
    const nowMs = this.#clock.monotonic();
    this.#dropExpired(nowMs);
    const kept = this.#answers.get(key);
    if (kept !== undefined) return kept.answer;
    const answer = canI(this.#api, { dialect, attempt }).then(
      ({ isAllowed, reason }) => (isAllowed ? '' : refusalText(attempt, reason)),
      () => '',
    );
    this.#answers.set(key, { atMs: nowMs, answer });
    return answer;
  }

  /** Drops decisions that have expired, which are the first ones of the map. */
  #dropExpired(nowMs: number): void {
    for (const [key, { atMs }] of this.#answers) {
      if (nowMs - atMs < keptMs) return;
      this.#answers.delete(key);
    }
  }
}

function mayCreate({ rules }: OwnRules, kind: Pick<Kind, 'group' | 'resource'>): boolean {
  const has = (members: readonly string[], wanted: string): boolean =>
    members.includes('*') || members.includes(wanted);
  return rules.some(
    ({ verbs, groups, resources }) =>
      has(verbs, 'create') && has(groups, kind.group) && has(resources, kind.resource),
  );
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
