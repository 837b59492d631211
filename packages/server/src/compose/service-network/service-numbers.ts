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
import { type Dialect, dialectOf, type MetricRegistry } from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import { createInside } from '../../controllers/inside.ts';
import {
  type AddressKinds,
  createAddressRecords,
} from '../../controllers/services/address-records.ts';
import { serverContext } from '../../registry/server-context.ts';
import type { ResourceCache } from '../../watchcache/contract.ts';
import type { Api } from '../api.ts';
import { defaultGates } from '../apis/feature-gates.ts';
import type { ServerConfig } from '../config.ts';
import { FlagError } from '../flags/flags.ts';
import { mappedRanges, rangeRecorder } from './range-allocations.ts';

/** Shows how many addresses and ports Services have, counted when somebody asks (OPS-1). */
export function serviceNumbersLook(
  registry: MetricRegistry,
  services: Pick<ServiceNumbers, 'usage'>,
): () => Promise<void> {
  const gauge = (name: string, help: string, labels: readonly string[]) =>
    registry.gauge({ name: `kube_apiserver_${name}`, help, stability: 'ALPHA', labels });
  const addresses = {
    allocated: gauge('clusterip_allocator_allocated_ips', 'Addresses that Services have.', [
      'cidr',
    ]),
    free: gauge('clusterip_allocator_available_ips', 'Addresses that nobody has.', ['cidr']),
  };
  const ports = {
    allocated: gauge(
      'nodeport_allocator_allocated_ports',
      'Ports of nodes that Services have.',
      [],
    ),
    free: gauge('nodeport_allocator_available_ports', 'Ports of nodes that nobody has.', []),
  };
  return async () => {
    // While Services cannot be read, the gauges keep their last values.
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

/** Counts allocations of addresses and ports to Services, and failed ones (OPS-1). */
export function createNumberMeter(registry: MetricRegistry): NumberMeter {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name: `kube_apiserver_${name}`, help, stability: 'ALPHA', labels });
  const families = (allocator: string, what: string, labels: readonly string[]) => ({
    taken: counter(`${allocator}_allocation_total`, `${what} taken for Services.`, labels),
    failed: counter(
      `${allocator}_allocation_errors_total`,
      `${what} that could not be taken for Services.`,
      labels,
    ),
  });
  const addresses = families('clusterip_allocator', 'Addresses', ['cidr', 'scope']);
  const ports = families('nodeport_allocator', 'Ports of nodes', ['scope']);
  return {
    address: (range, scope, result) => addresses[result].of(range, scope).add(1),
    port: (scope, result) => ports[result].of(scope).add(1),
  };
}

/** Gives Services their addresses and ports, once it has been told where they are kept. */
export interface ServiceNumbers extends ServiceOptions {
  /** Must be called before the first request. */
  readFrom(
    api: Pick<Api, 'catalogue' | 'registry'>,
    shared?: {
      /** Where other servers give numbers too. */
      readonly claims?: NumberClaims | undefined;
      readonly meter?: NumberMeter | undefined;
    },
  ): void;
  /** How much of the ranges is given. Rejects when Services cannot be read. */
  usage(): Promise<{
    readonly addresses: readonly (PoolUsage & { readonly text: string })[];
    readonly nodePorts: PoolUsage;
  }>;
}

interface PoolUsage {
  readonly allocated: number;
  readonly free: number;
}

/** Throws FlagError for ranges that cannot be. */
export function createServiceNumbers(config: ServerConfig): ServiceNumbers {
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if ('error' in ranges) throw new FlagError(ranges.error);
  let services = (): ResourceCache => {
    throw new Error('nobody said where Services are kept');
  };
  let claims: NumberClaims | undefined;
  let meter: NumberMeter | undefined;
  let store: Store | undefined;
  const ledger = new ServiceLedger({ cache: () => services(), clock: config.clock });
  const slot = recordsSlot(config);
  const { records } = slot;
  const late = { claims: () => claims, meter: () => meter };
  const allocate = allocateService({ ranges, ledger, records, ...late });
  const recorders: NumberRecorder[] = records === undefined ? [] : [addressRecorder(records)];
  if (config.store.type === 'etcd') {
    const covers = records === undefined ? 'everything' : 'ports';
    const { clock, logger } = config;
    const storeOf = () => stored(store);
    const mapped = mappedRanges(ranges, covers);
    recorders.push(rangeRecorder({ store: storeOf, ranges: mapped, clock, logger }));
  }
  const primaryFamily = ranges.addresses[0]?.family;
  return {
    ...(primaryFamily === undefined ? {} : { primaryFamily }),
    allocate: recorders.reduce(recordingNumbers, allocate),
    ...(recorders.length === 0 ? {} : { afterRemoval: releasingNumbers(recorders) }),
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
    readFrom: (api, shared = {}) => {
      const { catalogue, registry } = api;
      ({ claims, meter } = shared);
      store = registry.store;
      slot.fill(api);
      const def = catalogue.snapshot().builtin('', 'services');
      if (def === undefined) throw new Error('the catalogue has no services');
      services = () => registry.caches.of(def);
    },
  };
}

function stored(store: Store | undefined): Store {
  if (store === undefined) throw new Error('nobody said where ranges are kept');
  return store;
}

/** Where addresses are recorded as objects: a slot for what exists only with the API. */
function recordsSlot(config: ServerConfig): {
  readonly records: AddressRecords | undefined;
  readonly fill: (api: Pick<Api, 'catalogue' | 'registry'>) => void;
} {
  const gates = config.featureGates ?? defaultGates;
  if (!gates.enabled('MultiCIDRServiceAllocator')) return { records: undefined, fill: () => {} };
  let made: AddressRecords | undefined;
  const records = (): AddressRecords => {
    if (made === undefined) throw new Error('nobody said where IPAddresses are kept');
    return made;
  };
  return {
    records: {
      caughtUp: () => records().caughtUp(),
      pools: (family) => records().pools(family),
      isRecorded: (key) => records().isRecorded(key),
      record: (ip, owner) => records().record(ip, owner),
      erase: (ip, owner) => records().erase(ip, owner),
    },
    fill: ({ catalogue, registry }) => {
      const dialect = dialectOf(config.dialect);
      made = createAddressRecords({
        kinds: addressKinds(catalogue, dialect),
        caches: registry.caches,
        inside: createInside({ registry, controller: 'ipallocator', user: serverContext.user }),
        dialect,
        logger: config.logger,
      });
    },
  };
}

/** The kinds of the ranges and addresses of Services; throws where they are not loaded. */
export function addressKinds(catalogue: Api['catalogue'], dialect: Dialect): AddressKinds {
  const group = dialect.group('networking');
  const snapshot = catalogue.snapshot();
  const ranges = snapshot.builtin(group, 'servicecidrs');
  const addresses = snapshot.builtin(group, 'ipaddresses');
  if (ranges === undefined || addresses === undefined) {
    throw new Error('the catalogue has no ServiceCIDRs');
  }
  return { ranges, addresses };
}

function usageOf(pool: Pool, keys: ReadonlySet<string>): PoolUsage {
  let allocated = 0;
  for (const key of keys) if (pool.has(key)) allocated += 1;
  return { allocated, free: pool.size - allocated };
}
