import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import {
  apiVersionOf,
  type Clock,
  conflict,
  cut,
  type Exchange,
  expired,
  type MaybePromise,
  type Random,
  randomBelow,
  randomOf,
  StatusError,
  type Timer,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { RequestTap, TappedRequest, WatchFate } from '../endpoints/call.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import { checkMembers, FaultRuleError, problemOf } from './checks.ts';
import type {
  Fault,
  FaultRule,
  PlaneFaults,
  RecordedFilter,
  RecordedRequest,
  WatchFilter,
} from './types.ts';

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
class ArmedFault implements Fault {
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
function errorOfFault(rule: FaultRule, info: RequestInfo): StatusError | undefined {
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
function delayed(clock: Clock, delayMs: number, { exchange }: TappedRequest): Promise<void> {
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
function resourcesFor(
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

/** Longer paths are truncated, to bound the memory of a recorded request. */
const pathLengthMax = 2048;

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

interface Entry {
  readonly recorded: Writable<RecordedRequest>;
  /** Present while the request is in flight; provides the status of the answer. */
  exchange: Exchange | undefined;
}

/** Keeps the most recent requests of a plane (PLANE-6). */
class RequestRecorder {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #open = new WeakMap<Exchange, Entry>();
  #entries: Entry[] = [];
  #sequence = 0;

  /** @param options.max number of requests to keep */
  constructor(options: { readonly clock: Clock; readonly max: number }) {
    this.#clock = options.clock;
    this.#max = options.max;
  }

  begin(request: {
    readonly exchange: Exchange;
    readonly info: RequestInfo | undefined;
    readonly user: UserInfo | undefined;
    readonly kind: string;
  }): void {
    const { exchange, info, user, kind } = request;
    this.#sequence += 1;
    const recorded = {
      sequence: this.#sequence,
      timeMs: this.#clock.now(),
      user: user?.name ?? '',
      verb: info?.verb ?? exchange.method.toLowerCase(),
      apiVersion: info === undefined ? '' : apiVersionOf(info),
      kind,
      resource: info?.resource ?? '',
      subresource: info?.subresource ?? '',
      namespace: info?.namespace ?? '',
      name: info?.name ?? '',
      path: exchange.url.slice(0, pathLengthMax),
      status: undefined,
      fault: undefined,
    };
    const entry = { recorded, exchange };
    this.#open.set(exchange, entry);
    this.#entries.push(entry);
    // Trimmed occasionally, so that requests do not shift the array each time.
    if (this.#entries.length >= 2 * this.#max) this.#entries = this.#entries.slice(-this.#max);
  }

  has(exchange: Exchange): boolean {
    return this.#open.has(exchange);
  }

  setName(exchange: Exchange, name: string): void {
    const entry = this.#open.get(exchange);
    if (entry !== undefined) entry.recorded.name = name;
  }

  setFault(exchange: Exchange, fault: FaultRule['effect']): void {
    const entry = this.#open.get(exchange);
    if (entry !== undefined) entry.recorded.fault = fault;
  }

  end(exchange: Exchange): void {
    const entry = this.#open.get(exchange);
    if (entry === undefined) return;
    entry.recorded.status = exchange.responseCode;
    entry.exchange = undefined;
    this.#open.delete(exchange);
  }

  /** The matching requests, oldest first. */
  list(filter: RecordedFilter = {}): RecordedRequest[] {
    checkMembers('filters of requests', filter);
    const { since = 0, verb, ...rest } = filter;
    const verbs = typeof verb === 'string' ? [verb] : verb;
    const conditions = Object.entries(rest) as [keyof RecordedRequest, unknown][];
    return this.#entries
      .slice(-this.#max)
      .map(({ recorded, exchange }) => ({
        ...recorded,
        status: recorded.status ?? exchange?.responseCode,
      }))
      .filter(
        (request) =>
          request.sequence > since &&
          (verbs === undefined || verbs.includes(request.verb)) &&
          conditions.every(([name, value]) => value === undefined || request[name] === value),
      );
  }

  clear(): void {
    this.#entries = [];
  }
}

/** The user of the plane's own requests, which are neither recorded nor affected by faults. */
export const planeUser = 'system:wheelhouse-plane';

interface OpenWatch {
  readonly request: TappedRequest;
  readonly cut: () => void;
}

/** Records a plane's requests and applies its faults to them (PLANE-5, PLANE-6). */
export class PlaneTap implements RequestTap {
  readonly recorder: RequestRecorder;
  readonly #clock: Clock;
  readonly #outcomes = new WeakMap<Exchange, { error?: StatusError; cutAfterMs?: number }>();
  readonly #requests = new WeakMap<Exchange, TappedRequest>();
  readonly #watches = new Map<Exchange, OpenWatch>();
  readonly #seed: number;
  #faults: readonly ArmedFault[] = [];
  #added = 0;
  #snapshot: (() => CatalogueSnapshot) | undefined;

  constructor(options: { clock: Clock; recordedMax: number; seed?: number | undefined }) {
    this.#clock = options.clock;
    this.#seed = options.seed ?? randomBelow(2 ** 32);
    this.recorder = new RequestRecorder({ clock: options.clock, max: options.recordedMax });
  }

  /** Receives the kinds that the plane serves. */
  readonly openedCatalogue = (catalogue: { snapshot(): CatalogueSnapshot }): void => {
    this.#snapshot = () => catalogue.snapshot();
  };

  /** Releases the kinds, once the plane has stopped. */
  close(): void {
    this.#snapshot = undefined;
  }

  /** The kinds that the plane serves now; undefined while it starts and once it has stopped. */
  readonly catalogue = (): CatalogueSnapshot | undefined => this.#snapshot?.();

  /** Returns the interface through which tests control faults. */
  faults(): PlaneFaults {
    return {
      seed: this.#seed,
      add: (rule) => this.#add(rule),
      clear: () => {
        this.#faults = [];
      },
      cutWatches: (filter) => this.#cutWatches(filter),
    };
  }

  admit(request: TappedRequest): MaybePromise<void> {
    const { exchange, info, user } = request;
    if (user.name === planeUser) return undefined;
    const kind = this.#kindOf(info);
    this.recorder.begin({ exchange, info, user, kind });
    if (info.verb === 'watch') this.#requests.set(exchange, request);
    return this.#faults.length === 0 ? undefined : this.#applyFaults(request, this.#faults);
  }

  named(exchange: Exchange, name: string): void {
    this.recorder.setName(exchange, name);
  }

  watch(exchange: Exchange): WatchFate | undefined {
    const request = this.#requests.get(exchange);
    if (request === undefined) return undefined;
    const { error, cutAfterMs } = this.#outcomes.get(exchange) ?? {};
    let timer: Timer | undefined;
    return {
      error,
      opened: (cut) => {
        this.#watches.set(exchange, { request, cut });
        if (cutAfterMs !== undefined) timer = this.#clock.after(cutAfterMs, cut);
      },
      closed: () => {
        timer?.stop();
        this.#watches.delete(exchange);
      },
    };
  }

  over(exchange: Exchange, info: RequestInfo | undefined): void {
    if (exchange.userName === planeUser) return;
    if (!this.recorder.has(exchange)) {
      this.recorder.begin({ exchange, info, user: undefined, kind: this.#kindOf(info) });
    }
    this.recorder.end(exchange);
  }

  #add(rule: FaultRule): ArmedFault {
    // Each rule has its own generator, so that rules do not affect each other's outcomes.
    const seed = this.#seed + this.#added;
    const discard = (fault: ArmedFault) => {
      this.#faults = this.#faults.filter((active) => active !== fault);
    };
    const fault = new ArmedFault(rule, { seed, find: (kind) => this.#find(kind), discard });
    this.#added += 1;
    this.#faults = [...this.#faults, fault];
    return fault;
  }

  /** Applies the faults in the order in which they were added; delays add up. */
  #applyFaults(request: TappedRequest, faults: readonly ArmedFault[]): MaybePromise<void> {
    const { exchange, info } = request;
    for (const [at, fault] of faults.entries()) {
      if (!fault.applies(request)) continue;
      const { rule } = fault;
      this.recorder.setFault(exchange, rule.effect);
      if (rule.effect === 'delay') {
        const rest = faults.slice(at + 1);
        const delay = delayed(this.#clock, rule.delayMs, request);
        return delay.then(() => this.#applyFaults(request, rest));
      }
      const error = errorOfFault(rule, info);
      const outcome = this.#outcomes.get(exchange);
      if (rule.effect === 'cut') {
        this.#outcomes.set(exchange, { ...outcome, cutAfterMs: rule.afterMs ?? 0 });
      } else if (error !== undefined && rule.effect === 'expire' && info.verb === 'watch') {
        this.#outcomes.set(exchange, { ...outcome, error });
      } else if (error !== undefined) throw error;
    }
    return undefined;
  }

  #cutWatches(filter: WatchFilter = {}): number {
    checkMembers('filters of watches', filter);
    const { user, namespace } = filter;
    const resources = resourcesFor(filter, (kind) => this.#find(kind));
    const chosen = [...this.#watches.values()].filter(
      ({ request: { user: watcher, info } }) =>
        (user === undefined || user === watcher.name) &&
        resources?.has(`${info.resource}.${info.group}`) !== false &&
        (namespace === undefined || namespace === info.namespace),
    );
    for (const { cut } of chosen) cut();
    return chosen.length;
  }

  #kindOf(info: RequestInfo | undefined): string {
    if (info === undefined || !info.isResourceRequest) return '';
    const { group, version, resource } = info;
    return this.#snapshot?.().find(group, version, resource)?.def.kind ?? '';
  }

  /** Finds the resources of `Widget` in any group, or of `Widget.example.com`. */
  #find(kindName: string): readonly { group: string; resource: string }[] {
    const [kind, group] = cut(kindName, '.');
    const defs = this.#snapshot?.().defs ?? [];
    return defs.filter((def) => def.kind === kind && (group === undefined || def.group === group));
  }
}
