import { availableCondition, localAvailability } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  errorText,
  formatTime,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  type Logger,
  type UserInfo,
} from '@wheelhouse/machinery';
import { createWorkQueue, type QueueMeters, type WorkQueue } from '../controllers/work-queue.ts';
import {
  conditionOf,
  conditionsOf,
  discoveryPathOf,
  isRemote,
  type RemoteApi,
  registrationOf,
  type ServicePlace,
} from './api-service.ts';
import type { DocumentQuery } from './fetch-document.ts';
import { hostPort } from './transport.ts';

/** The objects of a Service that determine availability. */
export interface ServiceFacts {
  /** Undefined if it does not exist. */
  service(place: ServicePlace): Promise<ApiObject | undefined>;
  /** Endpoints and EndpointSlices of the Service. */
  endpoints(place: ServicePlace): Promise<readonly ApiObject[]>;
}

/** Resolves a Service to an address. Rejects if it has none. */
export type FindPlace = (
  service: ServicePlace,
) => Promise<{ readonly host: string; readonly port: number }>;

/** Probes a server; resolves to the status of its answer. */
type LookAtServer = (
  api: RemoteApi,
  query: Omit<DocumentQuery, 'bytesMax'> & { readonly place: Awaited<ReturnType<FindPlace>> },
) => Promise<number>;

export interface AvailabilityOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues?: QueueMeters | undefined;
  readonly facts: ServiceFacts;
  readonly find: FindPlace;
  readonly look: LookAtServer;
  /** The current APIService. */
  readonly read: (name: string) => ApiObject | undefined;
  /** Writes the status of an APIService that still exists. */
  readonly writeStatus: (name: string, edit: (current: ApiObject) => ApiObject) => Promise<void>;
  /** Counts a server that became unavailable. */
  readonly lost: (name: string, reason: string) => void;
}

type Verdict = {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
};

/** How long the result of a probe is valid, in milliseconds. */
const probeAgainMs = 30_000;
const firstRetryMs = 5;
const timeoutMs = 5_000;
/** Additional probes after a failed one, since a Service may have several endpoints. */
const furtherProbes = 4;

const aggregator: UserInfo = {
  name: 'system:kube-aggregator',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

/** Keeps the availability conditions of APIServices current. */
export class Availability {
  readonly #options: AvailabilityOptions;
  readonly #queue: WorkQueue;
  readonly #failures = new Map<string, number>();

  constructor(options: AvailabilityOptions) {
    this.#options = options;
    const { clock, logger } = options;
    const run = (name: string) => this.#settle(name);
    this.#queue = createWorkQueue({
      queues: options.queues,
      name: 'RemoteAvailabilityController',
      clock,
      logger,
      workers: 5,
      run,
    });
  }

  /** Called when something changed that the condition may depend on. */
  look(name: string): void {
    this.#queue.add(name);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #settle(name: string): Promise<void> {
    const object = this.#options.read(name);
    if (object === undefined) {
      this.#failures.delete(name);
      return;
    }
    const api = registrationOf(object);
    if (!isRemote(api)) {
      await this.#report(object, localAvailability);
      return;
    }
    const verdict = await this.#check(api);
    await this.#report(object, verdict);
    this.#queue.addAfter(name, this.#pauseMs(name, verdict));
  }

  /** The pause before the next probe of an unavailable server, which grows with each failure. */
  #pauseMs(name: string, { reason }: Verdict): number {
    if (reason !== discoveryFailed) {
      this.#failures.delete(name);
      return probeAgainMs;
    }
    const failures = this.#failures.get(name) ?? 0;
    this.#failures.set(name, failures + 1);
    return Math.min(probeAgainMs, firstRetryMs * 2 ** Math.min(failures, 20));
  }

  async #check(api: RemoteApi): Promise<Verdict> {
    const { facts } = this.#options;
    const { service: place } = api.remote;
    let service: ApiObject | undefined;
    try {
      service = await facts.service(place);
    } catch (error) {
      return unknown('ServiceAccessError', place, error);
    }
    if (service === undefined) {
      return refused('ServiceNotFound', `${shown(place)} is not present`);
    }
    const spec = isObject(service['spec']) ? service['spec'] : {};
    if ((spec['type'] ?? 'ClusterIP') === 'ClusterIP') {
      const refusal = await this.#checkEndpoints(place, spec);
      if (refusal !== undefined) return refusal;
    }
    const failure = await this.#probe(api);
    if (failure !== undefined) return refused(discoveryFailed, failure);
    return { status: 'True', reason: 'Passed', message: 'all checks passed' };
  }

  async #checkEndpoints(place: ServicePlace, spec: JsonObject): Promise<Verdict | undefined> {
    const port = objects(spec['ports']).find((one) => one['port'] === place.port);
    if (port === undefined) {
      return refused('ServicePortError', `${shown(place)} is not listening on port ${place.port}`);
    }
    const portName = typeof port['name'] === 'string' ? port['name'] : '';
    let lists: readonly ApiObject[];
    try {
      lists = await this.#options.facts.endpoints(place);
    } catch (error) {
      return unknown('EndpointsAccessError', place, error);
    }
    if (lists.length === 0) {
      return refused('EndpointsNotFound', `cannot find endpoints for ${shown(place)}`);
    }
    if (lists.some((one) => hasAddress(one, portName))) return undefined;
    const missing = `have no addresses with port name ${JSON.stringify(portName)}`;
    return refused('MissingEndpoints', `endpoints for ${shown(place)} ${missing}`);
  }

  /** Undefined if one of several probes succeeds; otherwise the error of the last one. */
  async #probe(api: RemoteApi): Promise<string | undefined> {
    const first = await this.#probeOnce(api);
    if (first === undefined) return undefined;
    const others = Array.from({ length: furtherProbes }, () => this.#probeOnce(api));
    const failures = await Promise.all(others);
    return failures.includes(undefined) ? undefined : (failures.at(-1) ?? first);
  }

  async #probeOnce(api: RemoteApi): Promise<string | undefined> {
    const { find, look } = this.#options;
    let place: Awaited<ReturnType<FindPlace>>;
    try {
      place = await find(api.remote.service);
    } catch (error) {
      return errorText(error);
    }
    const path = discoveryPathOf(api);
    const url = `https://${hostPort(place)}${path}`;
    const failing = `failing or missing response from ${url}`;
    try {
      const status = await look(api, { place, path, accept: '*/*', user: aggregator, timeoutMs });
      if (status >= 200 && status < 300) return undefined;
      return `${failing}: bad status from ${url}: ${status}`;
    } catch (error) {
      return `${failing}: Get "${url}": ${errorText(error)}`;
    }
  }

  async #report(object: ApiObject, verdict: Verdict): Promise<void> {
    const name = object.metadata.name ?? '';
    const before = conditionOf(object);
    const { status, reason, message } = verdict;
    const isSame =
      before?.['status'] === status && before['reason'] === reason && before['message'] === message;
    if (isSame) return;
    const now = formatTime(this.#options.clock.now());
    await this.#options.writeStatus(name, (current) => withCondition(current, verdict, now));
    if (before?.['status'] === 'True' && status !== 'True') this.#options.lost(name, reason);
  }
}

const discoveryFailed = 'FailedDiscoveryCheck';

const shown = ({ namespace, name }: ServicePlace) =>
  `service/${name} in ${JSON.stringify(namespace)}`;

const refused = (reason: string, message: string): Verdict => ({
  status: 'False',
  reason,
  message,
});

function unknown(reason: string, place: ServicePlace, error: unknown): Verdict {
  const message = `${shown(place)} cannot be checked due to: ${errorText(error)}`;
  return { status: 'Unknown', reason, message };
}

const objects = (value: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

const isNamed = (port: JsonObject, name: string) =>
  (port['name'] ?? '') === name && typeof port['port'] === 'number';

/** Whether Endpoints or an EndpointSlice have a ready address for the port. */
function hasAddress(list: ApiObject, portName: string): boolean {
  const inSubsets = objects(list['subsets']).some(
    ({ addresses, ports }) =>
      objects(addresses).length > 0 && objects(ports).some((port) => isNamed(port, portName)),
  );
  if (inSubsets) return true;
  const isReady = ({ conditions }: JsonObject) =>
    !isObject(conditions) || conditions['ready'] !== false;
  return (
    objects(list['endpoints']).some(isReady) &&
    objects(list['ports']).some((port) => isNamed(port, portName))
  );
}

function withCondition(current: ApiObject, verdict: Verdict, now: string): ApiObject {
  const before = conditionOf(current);
  const isSameStatus = before?.['status'] === verdict.status;
  const since = isSameStatus ? before['lastTransitionTime'] : undefined;
  const { status, reason, message } = verdict;
  const lastTransitionTime = since ?? now;
  const condition = { type: availableCondition, status, lastTransitionTime, reason, message };
  const conditions = conditionsOf(current);
  const others = conditions.filter((one) => one['type'] !== availableCondition);
  if (before !== undefined && jsonEqual(before, condition)) return current;
  return { ...current, status: { conditions: [...others, condition] } };
}
