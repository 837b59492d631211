import { hostname } from 'node:os';
import {
  apiVersionIn,
  builtinKinds,
  defaultServiceRanges,
  loadOlderReleases,
  readServiceRanges,
} from '@wheelhouse/kinds';
import { parseApiVersion, randomUuid } from '@wheelhouse/machinery';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { controllerTools, createObjectWriter } from '../../controllers/tools.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { serverIdentity } from '../../observe/server-identity.ts';
import { serverContext } from '../../registry/registry.ts';
import type { Around } from '../context.ts';
import type { Hook } from '../health/start-hooks.ts';
import { type Background, beginAfter } from '../parts.ts';
import { addressKinds } from '../service-network/service-numbers.ts';

/** Background work of features that are off by default. */
interface GatedControllers extends Background {
  /** Start hooks that must pass before the server is ready. */
  readonly hooks: readonly Hook[];
  /** Starts work that needs the namespaces the server creates. */
  startAfter(ready: Promise<void>): void;
}

/**
 * Starts what kube-apiserver itself does for features that are off by default. The code of each is
 * loaded only if its gate is on.
 */
export async function startGatedControllers(options: Around): Promise<GatedControllers> {
  const gates = options.config.featureGates ?? defaultGates;
  const { productName } = options.dialect;
  const hooks: Hook[] = [];
  const started: Background[] = [];
  const late: (() => Promise<Background>)[] = [];
  if (gates.enabled('MultiCIDRServiceAllocator')) {
    const ranges = await startServiceRanges(options);
    hooks.push([`start-${productName}-service-cidr-controller`, () => ranges.ready]);
    started.push(ranges);
  }
  if (gates.enabled('CoordinatedLeaderElection')) {
    const server = options.dialect.serverProgram;
    hooks.push([`start-${server}-coordinated-leader-election-controller`, async () => {}]);
    late.push(() => startElections(options));
  }
  if (gates.enabled('StorageVersionAPI') && gates.enabled('APIServerIdentity')) {
    const name = 'built-in-resources-storage-version-updater';
    hooks.push([name, () => recordOwnStorageVersions(options)]);
  }
  return {
    hooks,
    startAfter(ready) {
      const { clock, logger, controllersPauseMs: pauseMs } = options.config;
      for (const begin of late) started.push(beginAfter(ready, { clock, logger, pauseMs }, begin));
    },
    async close() {
      await Promise.all(started.map((background) => background.close()));
    },
  };
}

/** The controllers of ServiceCIDRs that kube-apiserver itself runs; they start with the server. */
interface ServiceRanges extends Background {
  /** Resolves when addresses can be allocated from the ranges of the command line. */
  readonly ready: Promise<void>;
}

/** Maintains the default ServiceCIDR, and then keeps Services and IPAddresses consistent. */
async function startServiceRanges(options: Around): Promise<ServiceRanges> {
  const [{ startDefaultServiceCidr }, { startServiceAddressRepair, addressRepairer }] =
    await Promise.all([
      import('../../controllers/services/default-service-cidr.ts'),
      import('../../controllers/services/service-address-repair.ts'),
    ]);
  const { config, dialect, api } = options;
  const { catalogue } = api;
  const texts = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if ('error' in texts) throw new Error(texts.error);
  const kinds = addressKinds(catalogue, dialect);
  const services = requiredKind(catalogue.snapshot(), '', 'services');
  const tools = (controller: string) => ({
    ...controllerTools(options, { controller, user: serverContext.user }),
    dialect,
  });
  const defaultRange = startDefaultServiceCidr({
    ...tools(`${dialect.productName}-service-cidr-controller`),
    ranges: kinds.ranges,
    cidrs: texts.addresses.map(({ text }) => text),
  });
  const repair = defaultRange.first.then(() =>
    startServiceAddressRepair({
      ...tools(addressRepairer),
      kinds,
      services,
      events: requiredKind(catalogue.snapshot(), '', 'events'),
    }),
  );
  return {
    ready: defaultRange.first,
    async close() {
      await defaultRange.close();
      await repair.then(
        (running) => running.close(),
        () => {},
      );
    },
  };
}

/** kube-apiserver's periods, which no flag changes. */
const periods = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

/**
 * Elects Lease holders among LeaseCandidates, in the leader only if servers share the store. Does
 * nothing unless `--runtime-config` enables LeaseCandidates.
 */
async function startElections(options: Around): Promise<Background> {
  const { config, dialect, api } = options;
  const { clock, logger } = config;
  const { registry, catalogue } = api;
  const group = dialect.group('coordination');
  const leases = catalogue.snapshot().builtin(group, 'leases');
  const candidates = catalogue.snapshot().builtin(group, 'leasecandidates');
  if (leases === undefined || candidates === undefined) {
    logger.warn('CoordinatedLeaderElection is on, and LeaseCandidates are not served');
    return { close: async () => {} };
  }
  const [{ startLeaderElection }, { startCoordinatedElection }] = await Promise.all([
    import('../../controllers/leader-election.ts'),
    import('../../controllers/coordination/coordinated-election.ts'),
  ]);
  const controller = 'leader-election-controller';
  const tools = controllerTools(options, { controller, user: serverContext.user });
  return startLeaderElection({
    ...periods,
    leases,
    registry,
    clock,
    logger,
    namespace: dialect.systemNamespace('system'),
    name: controller,
    identity: `${hostname()}_${randomUuid()}`,
    startWork: () => startCoordinatedElection({ ...tools, leases, candidates }),
  });
}

/**
 * Records the versions in which this server stores built-in kinds. Does nothing unless
 * `--runtime-config` enables StorageVersions.
 */
async function recordOwnStorageVersions(options: Around): Promise<void> {
  const { config, dialect, api } = options;
  const { builtins, builtin } = api.catalogue.snapshot();
  const group = dialect.group('internal.apiserver');
  const storageVersions = builtin(group, 'storageversions');
  if (storageVersions === undefined) {
    config.logger.warn('StorageVersionAPI is on, and StorageVersions are not served');
    return;
  }
  const stored = builtins.filter(
    ({ isComputed, convertedFrom, verbs, versions, group: own, storage }) =>
      isComputed !== true &&
      convertedFrom === undefined &&
      // A kind of two groups is recorded for the group it is stored in.
      parseApiVersion(storage.apiVersion)?.group === own &&
      verbs.includes('list') &&
      versions.some(({ served }) => served),
  );
  const [{ recordStorageVersions }, { kindsOfAllReleases }] = await Promise.all([
    import('../../controllers/storage-version-records.ts'),
    loadOlderReleases(),
  ]);
  const all = new Map(
    kindsOfAllReleases(builtinKinds(dialect), dialect).map((def) => [
      `${def.group}/${def.resource}`,
      def.versions.map((version) => apiVersionIn(def, version)),
    ]),
  );
  await recordStorageVersions({
    storageVersions,
    resources: stored.map((def) => ({
      def,
      allVersions: all.get(`${def.group}/${def.resource}`) ?? [],
    })),
    writer: createObjectWriter({
      registry: api.registry,
      controller: 'built-in-resources-storage-version-updater',
      user: serverContext.user,
    }),
    serverId: serverIdentity(hostname(), dialect.serverProgram),
    nowMs: config.clock.now(),
  });
}
