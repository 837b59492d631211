import {
  type Clock,
  conflict,
  expired,
  type Random,
  randomOf,
  StatusError,
} from '@wheelhouse/machinery';
import type { TappedRequest } from '../endpoints/call.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import { FaultRuleError, problemOf } from './checks.ts';
import type { Fault, FaultRule } from './types.ts';

/** Returns the resources of the kinds with a name. */
type FindKind = (kind: string) => readonly { group: string; resource: string }[];

const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** The verbs that an effect can apply to. */
const verbsOf: Readonly<Record<FaultRule['effect'], readonly string[]>> = {
  refuse: verbs,
  delay: verbs,
  throttle: verbs,
  conflict: ['update', 'patch', 'delete'],
  cut: ['watch'],
  expire: ['list', 'watch'],
};

/** An active rule. */
export class ArmedFault implements Fault {
  readonly rule: FaultRule;
  readonly #verbs: ReadonlySet<string>;
  readonly #resources: ReadonlySet<string> | undefined;
  readonly #random: Random;
  readonly #discard: (fault: ArmedFault) => void;
  hits = 0;

  /** Throws FaultRuleError for a rule that can never apply. */
  constructor(
    rule: FaultRule,
    options: { seed: number; find: FindKind; discard: (fault: ArmedFault) => void },
  ) {
    const problem = problemOf('members of a fault', rule);
    if (problem !== undefined) throw new FaultRuleError(problem);
    checkNumbers(rule);
    this.rule = rule;
    this.#verbs = verbsFor(rule);
    this.#resources = resourcesFor(rule, options.find);
    this.#random = randomOf(options.seed);
    this.#discard = options.discard;
  }

  /** Returns whether the rule applies to a request, and counts it if so. */
  applies({ info, user }: TappedRequest): boolean {
    const { user: name, namespace, subresource, probability = 1, times, effect } = this.rule;
    if (times !== undefined && this.hits >= times) return false;
    if (!this.#verbs.has(info.verb) || !info.isResourceRequest) return false;
    if (this.#resources?.has(`${info.resource}.${info.group}`) === false) return false;
    const matches =
      (name === undefined || name === user.name) &&
      (namespace === undefined || namespace === info.namespace) &&
      (this.rule.name === undefined || this.rule.name === info.name) &&
      (subresource === undefined || subresource === info.subresource);
    if (!matches || (effect === 'expire' && !continuesFromVersion(info))) return false;
    if (probability < 1 && !this.#random.chance(probability)) return false;
    this.hits += 1;
    return true;
  }

  remove(): void {
    this.#discard(this);
  }
}

/** Returns the error that a rule causes; undefined for effects that cause none. */
export function errorOfFault(rule: FaultRule, info: RequestInfo): StatusError | undefined {
  const { group, resource, name } = info;
  switch (rule.effect) {
    case 'refuse': {
      const { status: code = 503, message = 'rejected by a fault' } = rule;
      return new StatusError({ code, reason: reasons[code] ?? 'InternalError', message });
    }
    case 'throttle': {
      const { retryAfterSeconds = 1 } = rule;
      const message = 'Too many requests, please try again later.';
      const details = { retryAfterSeconds };
      return new StatusError({ code: 429, reason: 'TooManyRequests', message, details });
    }
    case 'conflict':
      return conflict({ group, resource }, name, 'a fault made the write conflict');
    case 'expire': {
      if (info.verb !== 'watch') return expired('The provided version is too old: a fault.');
      return expired(`too old resource version: ${info.query.get('resourceVersion')} (a fault)`);
    }
    default:
      return undefined;
  }
}

/** Resolves after a delay on the plane's clock, or when the client disconnects. */
export function delayed(clock: Clock, delayMs: number, { exchange }: TappedRequest): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(delayMs, resolve);
    exchange.onAbort(() => {
      timer.stop();
      resolve();
    });
  });
}

const reasons: Readonly<Record<number, ConstructorParameters<typeof StatusError>[0]['reason']>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** Whether a request continues from a version: only such a request can receive 410 Expired. */
function continuesFromVersion({ query }: RequestInfo): boolean {
  const version = query.get('resourceVersion') ?? '';
  return (version !== '' && version !== '0') || (query.get('continue') ?? '') !== '';
}

function verbsFor({ effect, verb }: FaultRule): ReadonlySet<string> {
  if (!Object.hasOwn(verbsOf, effect)) {
    const effects = Object.keys(verbsOf).join(', ');
    throw new FaultRuleError(
      `unknown effect ${JSON.stringify(effect)}; the effects are ${effects}`,
    );
  }
  const possible = verbsOf[effect];
  if (verb === undefined) return new Set(possible);
  const requestedVerbs = typeof verb === 'string' ? [verb] : verb;
  const impossible = requestedVerbs.find((requested) => !possible.includes(requested));
  if (impossible === undefined) return new Set(requestedVerbs);
  throw new FaultRuleError(
    `a fault with the effect ${effect} cannot apply to the verb ${JSON.stringify(impossible)}; ` +
      `it applies to ${possible.join(', ')}`,
  );
}

/**
 * Returns the resources of a rule's kind as `resource.group`; undefined for all. Throws
 * FaultRuleError for a kind that the plane does not serve.
 */
export function resourcesFor(
  { kind }: { readonly kind?: string },
  find: FindKind,
): ReadonlySet<string> | undefined {
  if (kind === undefined) return undefined;
  const resources = find(kind);
  if (resources.length > 0) {
    return new Set(resources.map(({ resource, group }) => `${resource}.${group}`));
  }
  throw new FaultRuleError(
    `a fault for kind ${JSON.stringify(kind)}, which the plane does not serve`,
  );
}

function checkNumbers(rule: FaultRule): void {
  const { probability = 1, times = 1 } = rule;
  const delay = rule.effect === 'delay' ? rule.delayMs : 0;
  const after = rule.effect === 'cut' ? (rule.afterMs ?? 0) : 0;
  const status = rule.effect === 'refuse' ? (rule.status ?? 503) : 503;
  const problem =
    (!(probability >= 0 && probability <= 1) && 'probability must be between 0 and 1') ||
    (!(Number.isInteger(times) && times > 0) && 'times must be a positive integer') ||
    (!(delay >= 0 && Number.isFinite(delay)) && 'delayMs must be a number of milliseconds') ||
    (!(after >= 0 && Number.isFinite(after)) && 'afterMs must be a number of milliseconds') ||
    (!(Number.isInteger(status) && status >= 400 && status <= 599) &&
      'status must be one of a failure, 400 to 599');
  if (problem !== false) throw new FaultRuleError(`a fault's ${problem}`);
}
