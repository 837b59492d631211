import { availableCondition, localAvailability } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  errorText,
  formatTime,
  isObject,
  type JsonObject,
  jsonEqual,
  type Logger,
  objectsOf,
} from '@wheelhouse/machinery';
import { createWorkQueue, type QueueMeters, type WorkQueue } from '../controllers/work-queue.ts';
import type {
  ResolveService,
  ServiceEndpoint,
  ServiceReference,
} from '../webhooks/service-address.ts';
import {
  aggregator,
  conditionOf,
  conditionsOf,
  discoveryPathOf,
  isRemote,
  type RemoteApi,
  registrationOf,
} from './api-service.ts';
import type { DocumentQuery } from './fetch-document.ts';
import { hostPort } from './transport.ts';

/** Reads the objects of a Service that determine its availability. */
export interface ServiceFacts {
  /** Resolves to the Service; undefined if it does not exist. */
  service(place: ServiceReference): Promise<ApiObject | undefined>;
  /** Resolves to the Endpoints and EndpointSlices of the Service. */
  endpoints(place: ServiceReference): Promise<readonly ApiObject[]>;
}

/** Probes a server. Resolves to the HTTP status of its answer. */
type ProbeServer = (
  api: RemoteApi,
  query: Omit<DocumentQuery, 'bytesMax'> & { readonly place: ServiceEndpoint },
) => Promise<number>;

/** What the availability controller reads, probes, and writes (ADM-4). */
export interface AvailabilityOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues?: QueueMeters | undefined;
  readonly facts: ServiceFacts;
  readonly resolve: ResolveService;
  readonly probe: ProbeServer;
  /** Returns the current APIService of a name; undefined if it does not exist. */
  readonly read: (name: string) => ApiObject | undefined;
  /** Writes the status of an APIService that still exists. */
  readonly writeStatus: (name: string, edit: (current: ApiObject) => ApiObject) => Promise<void>;
  /** Called when a server that was available becomes unavailable. */
  readonly onUnavailable: (name: string, reason: string) => void;
}

/** The content of an availability condition. */
type Verdict = {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
};

/** Interval of probes, milliseconds. */
const probeIntervalMs = 30_000;
/** Delay of the first retry of a failed probe, milliseconds; each further one doubles it. */
const firstRetryMs = 5;
/** Timeout of a probe, milliseconds. */
const timeoutMs = 5_000;
/** Additional probes after a failed one, since a Service may have several endpoints. */
const additionalProbes = 4;

/** Keeps the availability conditions of APIServices current. */
export class Availability {
  readonly #options: AvailabilityOptions;
  readonly #queue: WorkQueue;
  readonly #failures = new Map<string, number>();

  constructor(options: AvailabilityOptions) {
    this.#options = options;
    const { clock, logger } = options;
    const run = (name: string) => this.#reconcile(name);
    this.#queue = createWorkQueue({
      queues: options.queues,
      name: 'RemoteAvailabilityController',
      clock,
      logger,
      workers: 5,
      run,
    });
  }

  /** Schedules a check of an APIService. Call it when a change may affect its availability. */
  enqueue(name: string): void {
    this.#queue.add(name);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #reconcile(name: string): Promise<void> {
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

  /** Delay of the next check, milliseconds; it grows with each failed probe. */
  #pauseMs(name: string, { reason }: Verdict): number {
    if (reason !== discoveryFailed) {
      this.#failures.delete(name);
      return probeIntervalMs;
    }
    const failures = this.#failures.get(name) ?? 0;
    this.#failures.set(name, failures + 1);
    return Math.min(probeIntervalMs, firstRetryMs * 2 ** Math.min(failures, 20));
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
      return unavailable('ServiceNotFound', `${serviceText(place)} is not present`);
    }
    const spec = isObject(service['spec']) ? service['spec'] : {};
    if ((spec['type'] ?? 'ClusterIP') === 'ClusterIP') {
      const unavailability = await this.#checkEndpoints(place, spec);
      if (unavailability !== undefined) return unavailability;
    }
    const failure = await this.#probe(api);
    if (failure !== undefined) return unavailable(discoveryFailed, failure);
    return { status: 'True', reason: 'Passed', message: 'all checks passed' };
  }

  async #checkEndpoints(place: ServiceReference, spec: JsonObject): Promise<Verdict | undefined> {
    const port = objectsOf(spec['ports']).find((servicePort) => servicePort['port'] === place.port);
    if (port === undefined) {
      return unavailable(
        'ServicePortError',
        `${serviceText(place)} is not listening on port ${place.port}`,
      );
    }
    const portName = typeof port['name'] === 'string' ? port['name'] : '';
    let lists: readonly ApiObject[];
    try {
      lists = await this.#options.facts.endpoints(place);
    } catch (error) {
      return unknown('EndpointsAccessError', place, error);
    }
    if (lists.length === 0) {
      return unavailable('EndpointsNotFound', `cannot find endpoints for ${serviceText(place)}`);
    }
    if (lists.some((list) => hasAddress(list, portName))) return undefined;
    const missing = `have no addresses with port name ${JSON.stringify(portName)}`;
    return unavailable('MissingEndpoints', `endpoints for ${serviceText(place)} ${missing}`);
  }

  /** Probes a server. Resolves to undefined if any probe succeeds, else to the last error. */
  async #probe(api: RemoteApi): Promise<string | undefined> {
    const first = await this.#probeOnce(api);
    if (first === undefined) return undefined;
    const others = Array.from({ length: additionalProbes }, () => this.#probeOnce(api));
    const failures = await Promise.all(others);
    return failures.includes(undefined) ? undefined : (failures.at(-1) ?? first);
  }

  async #probeOnce(api: RemoteApi): Promise<string | undefined> {
    const { resolve, probe } = this.#options;
    let place: ServiceEndpoint;
    try {
      place = await resolve(api.remote.service);
    } catch (error) {
      return errorText(error);
    }
    const path = discoveryPathOf(api);
    const url = `https://${hostPort(place)}${path}`;
    const failing = `failing or missing response from ${url}`;
    try {
      const status = await probe(api, { place, path, accept: '*/*', user: aggregator, timeoutMs });
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
    if (before?.['status'] === 'True' && status !== 'True')
      this.#options.onUnavailable(name, reason);
  }
}

const discoveryFailed = 'FailedDiscoveryCheck';

const serviceText = ({ namespace, name }: ServiceReference) =>
  `service/${name} in ${JSON.stringify(namespace)}`;

const unavailable = (reason: string, message: string): Verdict => ({
  status: 'False',
  reason,
  message,
});

function unknown(reason: string, place: ServiceReference, error: unknown): Verdict {
  const message = `${serviceText(place)} cannot be checked due to: ${errorText(error)}`;
  return { status: 'Unknown', reason, message };
}

const isNamed = (port: JsonObject, name: string) =>
  (port['name'] ?? '') === name && typeof port['port'] === 'number';

/** Whether Endpoints or an EndpointSlice has a ready address for the port. */
function hasAddress(list: ApiObject, portName: string): boolean {
  const inSubsets = objectsOf(list['subsets']).some(
    ({ addresses, ports }) =>
      objectsOf(addresses).length > 0 && objectsOf(ports).some((port) => isNamed(port, portName)),
  );
  if (inSubsets) return true;
  const isReady = ({ conditions }: JsonObject) =>
    !isObject(conditions) || conditions['ready'] !== false;
  return (
    objectsOf(list['endpoints']).some(isReady) &&
    objectsOf(list['ports']).some((port) => isNamed(port, portName))
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
  if (before === undefined)
    return { ...current, status: { conditions: [...conditions, condition] } };
  if (jsonEqual(before, condition)) return current;
  const changed = conditions.map((existing) => (existing === before ? condition : existing));
  return { ...current, status: { conditions: changed } };
}
