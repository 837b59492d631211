import { hostname } from 'node:os';
import { randomUuid } from '@wheelhouse/machinery';
import type { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import { type Background, beginAfter } from '../health/begin-after.ts';
import { ownAddress } from '../serving/own-address.ts';
import type { Presence } from '../storage/presence.ts';
import { controllerSelection } from './controller-selection.ts';
import { type ControllerOptions, startControllers } from './controllers.ts';
import type { LeaderElectionSettings } from './settings.ts';

type Around = Omit<ControllerOptions, 'peers'> & {
  /** Where servers on one store tell of themselves. */
  readonly presence: Presence | undefined;
  readonly lease: IdentityLease | undefined;
};

/**
 * Starts the controllers: in the one server that leads, where there are several (STORE-2). Each of
 * them is among the endpoints of their own Service as long as it runs.
 */
async function startLedControllers(around: Around): Promise<{ close(): Promise<void> }> {
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
export function controllersAfter(ready: Promise<void>, around: Around): Background {
  const { clock, logger, controllersPauseMs: pauseMs } = around.config;
  return beginAfter(ready, { clock, logger, pauseMs }, () => startLedControllers(around));
}

async function elect(
  around: Around,
  settings: LeaderElectionSettings,
): Promise<{ close(): Promise<void> }> {
  const { config, dialect, api, presence } = around;
  const { startLeaderElection } = await import('../../controllers/leader-election.ts');
  const leases = api.catalogue.snapshot().builtin(dialect.group('coordination'), 'leases');
  if (leases === undefined) throw new Error('the catalogue has no leases');
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
