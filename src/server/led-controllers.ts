import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { LeaderElectionSettings } from './config.ts';
import { startControllers } from './controllers.ts';

type Around = Parameters<typeof startControllers>[0];

/** Starts the controllers: in the one server that leads, where there are several (STORE-2). */
export async function startLedControllers(around: Around): Promise<{ close(): Promise<void> }> {
  const settings = around.config.leaderElection;
  return settings === undefined ? startControllers(around) : elect(around, settings);
}

async function elect(
  around: Around,
  settings: LeaderElectionSettings,
): Promise<{ close(): Promise<void> }> {
  const { config, dialect, api } = around;
  const { startLeaderElection } = await import('../controllers/leader-election.ts');
  const leases = api.catalogue.snapshot().builtin(dialect.group('coordination'), 'leases');
  if (leases === undefined) throw new Error('the catalogue has no leases');
  return startLeaderElection({
    ...settings,
    leases,
    registry: api.registry,
    clock: config.clock,
    logger: config.logger,
    namespace: settings.namespace ?? dialect.systemNamespace('system'),
    identity: `${hostname()}_${randomUUID()}`,
    lead: () => startControllers(around),
  });
}
