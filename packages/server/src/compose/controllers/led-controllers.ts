import { hostname } from 'node:os';
import { randomUuid } from '@wheelhouse/machinery';
import { requiredKind } from '../../catalogue/catalogue.ts';
import type { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import { defaultGates } from '../apis/feature-gates.ts';
import type { Around } from '../context.ts';
import { type Background, beginAfter } from '../health/begin-after.ts';
import type { Hook } from '../health/start-hooks.ts';
import { ownAddress } from '../serving/own-address.ts';
import type { Presence } from '../storage/presence.ts';
import { controllerSelection } from './controller-selection.ts';
import { type ControllerOptions, startControllers } from './controllers.ts';
import type { LeaderElectionSettings } from './settings.ts';

/** What runs for features that are off by default. */
interface FeatureControllers extends Background {
  /** What has to be done before the server is ready. */
  readonly hooks: readonly Hook[];
  /** Starts what needs the namespaces that the server creates. */
  startAfter(ready: Promise<void>): void;
}

/**
 * Starts what an API server itself does for features that are off by default. The code of each is
 * loaded when its gate is on.
 */
export async function startFeatures(options: Around): Promise<FeatureControllers> {
  const gates = options.config.featureGates ?? defaultGates;
  const { productName } = options.dialect;
  const hooks: Hook[] = [];
  const started: Background[] = [];
  const late: (() => Promise<Background>)[] = [];
  if (gates.enabled('MultiCIDRServiceAllocator')) {
    const { startServiceRanges } = await import('../service-network/service-ranges.ts');
    const ranges = startServiceRanges(options);
    hooks.push([`start-${productName}-service-cidr-controller`, () => ranges.ready]);
    started.push(ranges);
  }
  if (gates.enabled('CoordinatedLeaderElection')) {
    const { startElections } = await import('./elections.ts');
    const server = options.dialect.component('apiserver');
    hooks.push([`start-${server}-coordinated-leader-election-controller`, async () => {}]);
    late.push(async () => startElections(options));
  }
  if (gates.enabled('StorageVersionAPI') && gates.enabled('APIServerIdentity')) {
    const { recordOwnStorageVersions } = await import('./storage-versions.ts');
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
      await Promise.all(started.map((one) => one.close()));
    },
  };
}

type LedOptions = Omit<ControllerOptions, 'peers'> & {
  /** Where servers on one store tell of themselves. */
  readonly presence: Presence | undefined;
  readonly lease: IdentityLease | undefined;
};

/**
 * Starts the controllers: in the one server that leads, where there are several (STORE-2). Each of
 * them is among the endpoints of their own Service as long as it runs.
 */
async function startLedControllers(around: LedOptions): Promise<{ close(): Promise<void> }> {
  const { config, presence, lease } = around;
  const settings = config.leaderElection;
  const isListed = controllerSelection(config.controllers ?? ['*'])('default-service-controller');
  const address = isListed ? ownAddress(config) : undefined;
  const announced = address === undefined ? undefined : presence?.announce(address);
  lease?.start();
  const led =
    settings === undefined
      ? startControllers({ ...around, peers: presence })
      : await elect(around, settings);
  return {
    async close() {
      await announced?.close();
      await lease?.close();
      await led.close();
    },
  };
}

/** Starts the controllers when the server is ready; `close` stops them, begun or not. */
export function controllersAfter(ready: Promise<void>, around: LedOptions): Background {
  const { clock, logger, controllersPauseMs: pauseMs } = around.config;
  return beginAfter(ready, { clock, logger, pauseMs }, () => startLedControllers(around));
}

async function elect(
  around: LedOptions,
  settings: LeaderElectionSettings,
): Promise<{ close(): Promise<void> }> {
  const { config, dialect, api, presence } = around;
  const { startLeaderElection } = await import('../../controllers/leader-election.ts');
  const leases = requiredKind(api.catalogue.snapshot(), dialect.group('coordination'), 'leases');
  return startLeaderElection({
    ...settings,
    leases,
    registry: api.registry,
    clock: config.clock,
    logger: config.logger,
    namespace: settings.namespace ?? dialect.systemNamespace('system'),
    identity: `${hostname()}_${randomUuid()}`,
    lead: () => startControllers({ ...around, peers: presence }),
  });
}
