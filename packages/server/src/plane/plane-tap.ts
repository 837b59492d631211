import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import {
  type Clock,
  type Exchange,
  type MaybePromise,
  randomBelow,
  type StatusError,
  type Timer,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { RequestTap, TappedRequest, WatchFate } from '../endpoints/call.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import { checkMembers } from './checks.ts';
import { ArmedFault, delayed, errorOfFault, resourcesFor } from './faults.ts';
import type {
  FaultRule,
  PlaneFaults,
  RecordedFilter,
  RecordedRequest,
  WatchFilter,
} from './types.ts';

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

function apiVersionOf({ group, version }: RequestInfo): string {
  return group === '' ? version : `${group}/${version}`;
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

  /** The kinds that the plane serves now; undefined while it starts. */
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
    const dot = kindName.indexOf('.');
    const kind = dot < 0 ? kindName : kindName.slice(0, dot);
    const defs = this.#snapshot?.().defs ?? [];
    return defs.filter(
      (def) => def.kind === kind && (dot < 0 || def.group === kindName.slice(dot + 1)),
    );
  }
}
