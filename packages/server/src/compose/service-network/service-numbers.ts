import {
  type AddressRecords,
  addressRecorder,
  allocateService,
  defaultServiceRanges,
  type NumberClaims,
  type NumberMeter,
  type NumberRecorder,
  type Pool,
  readServiceRanges,
  recordingNumbers,
  releasingNumbers,
  ServiceLedger,
  type ServiceOptions,
} from '@wheelhouse/kinds';
import { type Dialect, type MetricRegistry, StatusError } from '@wheelhouse/machinery';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { mappedRanges, rangeRecorder } from '../../controllers/services/range-allocations.ts';
import {
  type AddressKinds,
  createAddressRecords,
} from '../../controllers/services/service-addresses.ts';
import { createObjectWriter, storedVersion } from '../../controllers/tools.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { FlagError } from '../../flags/flags.ts';
import { serverContext } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import type { ServerConfig } from '../config.ts';
import type { Around, ObjectApi } from '../context.ts';
import type { Metrics } from '../observability/metrics.ts';
import { Port } from '../parts.ts';

/**
 * Exposes how many addresses and ports are allocated, counted when metrics are rendered (OPS-1).
 */
function serviceNumbersUpdater(
  registry: MetricRegistry,
  services: Pick<ServiceNumbers, 'usage'>,
): () => Promise<void> {
  const gauge = (name: string, help: string, labels: readonly string[]) =>
    registry.gauge({ name: `kube_apiserver_${name}`, help, stability: 'ALPHA', labels });
  const addresses = {
    allocated: gauge(
      'clusterip_allocator_allocated_ips',
      'Number of addresses that are allocated to Services.',
      ['cidr'],
    ),
    free: gauge(
      'clusterip_allocator_available_ips',
      'Number of addresses that are not allocated.',
      ['cidr'],
    ),
  };
  const ports = {
    allocated: gauge(
      'nodeport_allocator_allocated_ports',
      'Number of node ports that are allocated to Services.',
      [],
    ),
    free: gauge(
      'nodeport_allocator_available_ports',
      'Number of node ports that are not allocated.',
      [],
    ),
  };
  return async () => {
    // The gauges keep their last values while Services cannot be read.
    const usage = await services.usage().catch(() => undefined);
    if (usage === undefined) return;
    for (const { text, allocated, free } of usage.addresses) {
      addresses.allocated.of(text).set(allocated);
      addresses.free.of(text).set(free);
    }
    ports.allocated.of().set(usage.nodePorts.allocated);
    ports.free.of().set(usage.nodePorts.free);
  };
}

/** Counts successful and failed allocations of addresses and ports (OPS-1). */
function createNumberMeter(registry: MetricRegistry): NumberMeter {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name: `kube_apiserver_${name}`, help, stability: 'ALPHA', labels });
  const families = (allocator: string, what: string, labels: readonly string[]) => ({
    taken: counter(
      `${allocator}_allocation_total`,
      `Number of ${what} allocated to Services.`,
      labels,
    ),
    failed: counter(
      `${allocator}_allocation_errors_total`,
      `Number of failed allocations of ${what} to Services.`,
      labels,
    ),
  });
  const addresses = families('clusterip_allocator', 'addresses', ['cidr', 'scope']);
  const ports = families('nodeport_allocator', 'node ports', ['scope']);
  return {
    address: (range, scope, result) => addresses[result].of(range, scope).add(1),
    port: (scope, result) => ports[result].of(scope).add(1),
  };
}

/** Allocates addresses and ports to Services, and cleans up after removed ones. */
export interface ServiceNumbers {
  readonly allocate: NonNullable<ServiceOptions['allocate']>;
  readonly afterRemoval: NonNullable<ServiceOptions['afterRemoval']>;
  /** Resolves to the usage of the ranges. Rejects if Services cannot be read. */
  usage(): Promise<{
    readonly addresses: readonly (PoolUsage & { readonly text: string })[];
    readonly nodePorts: PoolUsage;
  }>;
}

interface PoolUsage {
  readonly allocated: number;
  readonly free: number;
}

/**
 * The allocation options of the Service kind. They are connected later, because the allocator uses
 * the registry, which is built from the kinds. Throws FlagError for invalid ranges.
 */
export function serviceNumberPort(
  config: ServerConfig,
): Port<ServiceNumbers> & { readonly options: ServiceOptions } {
  const ranges = rangesOf(config);
  const port = new Port<ServiceNumbers>('the allocation of Services');
  const options: ServiceOptions = {
    primaryFamily: ranges.addresses[0].family,
    allocate: (...args) => port.get().allocate(...args),
    afterRemoval: (object) => port.get().afterRemoval(object),
  };
  return Object.assign(port, { options });
}

function rangesOf({ serviceRanges = defaultServiceRanges }: ServerConfig) {
  const ranges = readServiceRanges(serviceRanges);
  if ('error' in ranges) throw new FlagError(ranges.error);
  return ranges;
}

function recordsAddresses({ featureGates = defaultGates }: ServerConfig): boolean {
  return featureGates.enabled('MultiCIDRServiceAllocator');
}

/** Creates the allocator and its metrics. */
export function createServiceNumbers(
  options: Around & {
    readonly metrics: Metrics;
    /** Present when other servers allocate too. */
    readonly claims: NumberClaims | undefined;
  },
): ServiceNumbers {
  const { config, api, metrics } = options;
  const { clock, logger } = config;
  const ranges = rangesOf(config);
  const def = requiredKind(api.catalogue.snapshot(), '', 'services');
  const services = api.registry.caches.of(def);
  const ledger = new ServiceLedger({ cache: () => services, clock });
  const records = recordsAddresses(config) ? addressRecords(options) : undefined;
  const meter = createNumberMeter(metrics.registry);
  const allocate = allocateService({
    ranges,
    ledger,
    records,
    claims: () => options.claims,
    meter: () => meter,
  });
  const recorders: NumberRecorder[] = records === undefined ? [] : [addressRecorder(records)];
  if (config.store.type === 'etcd') {
    const mapped = mappedRanges(ranges, records === undefined ? 'everything' : 'ports');
    const { store } = api.registry;
    recorders.push(rangeRecorder({ store, ranges: mapped, clock, logger }));
  }
  const removeEndpoints = endpointsRemover(options);
  const release = releasingNumbers(recorders);
  const numbers: ServiceNumbers = {
    allocate: recorders.reduce(
      (inner, recorder) => recordingNumbers(inner, { recorder, ledger }),
      allocate,
    ),
    async afterRemoval(object) {
      await removeEndpoints(object);
      await release(object);
    },
    async usage() {
      await ledger.caughtUp();
      await records?.caughtUp();
      const keys = new Set(ledger.heldKeys());
      const { nodePorts } = ranges;
      const families = ranges.addresses.map(({ family }) => family);
      const addresses = records === undefined ? ranges.addresses : families.flatMap(records.pools);
      return {
        addresses: addresses.map((pool) => ({ text: pool.text, ...usageOf(pool, keys) })),
        nodePorts: usageOf(nodePorts, keys),
      };
    },
  };
  metrics.beforeRender(serviceNumbersUpdater(metrics.registry, numbers));
  return numbers;
}

/**
 * Deletes the Endpoints of a removed Service, so that a new Service of its name does not lead to
 * them. Like in kube-apiserver, no admission runs, and a failure is only logged.
 */
function endpointsRemover({ api, config }: Around): ServiceNumbers['afterRemoval'] {
  const def = requiredKind(api.catalogue.snapshot(), '', 'endpoints');
  const version = storedVersion(def);
  const options = {
    gracePeriodSeconds: undefined,
    propagationPolicy: undefined,
    preconditions: undefined,
  };
  return async ({ metadata: { namespace = '', name = '' } }) => {
    const target = { def, version, namespace, name, subresource: '' };
    const context = serverContext;
    try {
      const plan = { operation: 'delete', target, context, options, admission: 'done' } as const;
      await write(api.registry, plan);
    } catch (error) {
      if (error instanceof StatusError && error.reason === 'NotFound') return;
      const about = { namespace, name, error: String(error) };
      config.logger.warn('cannot delete the Endpoints of a removed Service', about);
    }
  };
}

/** Present if addresses are recorded as objects. */
function addressRecords({ config, dialect, api }: Around): AddressRecords {
  const { registry, catalogue } = api;
  return createAddressRecords({
    kinds: addressKinds(catalogue, dialect),
    caches: registry.caches,
    writer: createObjectWriter({ registry, controller: 'ipallocator', user: serverContext.user }),
    dialect,
    clock: config.clock,
    logger: config.logger,
  });
}

/** The kinds of ranges and addresses. Throws if they are not loaded. */
export function addressKinds(catalogue: ObjectApi['catalogue'], dialect: Dialect): AddressKinds {
  const group = dialect.group('networking');
  const snapshot = catalogue.snapshot();
  const ranges = requiredKind(snapshot, group, 'servicecidrs');
  const addresses = requiredKind(snapshot, group, 'ipaddresses');
  return { ranges, addresses };
}

function usageOf(pool: Pool, keys: ReadonlySet<string>): PoolUsage {
  let allocated = 0;
  for (const key of keys) if (pool.has(key)) allocated += 1;
  return { allocated, free: pool.size - allocated };
}
