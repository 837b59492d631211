import type { Clock, Exchange, UserInfo } from '@wheelhouse/machinery';
import type { RequestInfo } from '../request/request-info.ts';
import type { FaultRule, RecordedFilter, RecordedRequest } from './types.ts';

/** Longer paths are cut: what is kept of a request has a bound. */
const pathLengthMax = 2048;

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

interface Entry {
  readonly shown: Writable<RecordedRequest>;
  /** While the request is under way: tells the status as soon as there is one. */
  exchange: Exchange | undefined;
}

/** Keeps the newest requests of a plane (PLANE-6). */
export class RequestRecorder {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #open = new WeakMap<Exchange, Entry>();
  #entries: Entry[] = [];
  #sequence = 0;

  /** @param options.max how many requests are kept */
  constructor(options: { readonly clock: Clock; readonly max: number }) {
    this.#clock = options.clock;
    this.#max = options.max;
  }

  /** How many requests there have been; the next one's `sequence` is greater. */
  get sequence(): number {
    return this.#sequence;
  }

  begin(request: {
    readonly exchange: Exchange;
    readonly info: RequestInfo | undefined;
    readonly user: UserInfo | undefined;
    readonly kind: string;
  }): void {
    const { exchange, info, user, kind } = request;
    this.#sequence += 1;
    const shown = {
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
    const entry = { shown, exchange };
    this.#open.set(exchange, entry);
    this.#entries.push(entry);
    // Cut now and then, so that a request costs no shifting.
    if (this.#entries.length >= 2 * this.#max) this.#entries = this.#entries.slice(-this.#max);
  }

  has(exchange: Exchange): boolean {
    return this.#open.has(exchange);
  }

  named(exchange: Exchange, name: string): void {
    const entry = this.#open.get(exchange);
    if (entry !== undefined) entry.shown.name = name;
  }

  faulted(exchange: Exchange, fault: FaultRule['effect']): void {
    const entry = this.#open.get(exchange);
    if (entry !== undefined) entry.shown.fault = fault;
  }

  over(exchange: Exchange): void {
    const entry = this.#open.get(exchange);
    if (entry === undefined) return;
    entry.shown.status = exchange.answeredStatus;
    entry.exchange = undefined;
    this.#open.delete(exchange);
  }

  /** Those that match, oldest first. */
  list(filter: RecordedFilter = {}): RecordedRequest[] {
    const { since = 0, verb, ...rest } = filter;
    const verbs = typeof verb === 'string' ? [verb] : verb;
    const wanted = Object.entries(rest) as [keyof RecordedRequest, unknown][];
    return this.#entries
      .slice(-this.#max)
      .map(({ shown, exchange }) => ({
        ...shown,
        status: shown.status ?? exchange?.answeredStatus,
      }))
      .filter(
        (one) =>
          one.sequence > since &&
          (verbs === undefined || verbs.includes(one.verb)) &&
          wanted.every(([name, value]) => value === undefined || one[name] === value),
      );
  }

  forget(): void {
    this.#entries = [];
  }
}

function apiVersionOf({ group, version }: RequestInfo): string {
  return group === '' ? version : `${group}/${version}`;
}
