import { hostname } from 'node:os';
import { randomUuid } from '@wheelhouse/machinery';
import { startCoordinatedElection } from '../../controllers/coordination/coordinated-election.ts';
import { startLeaderElection } from '../../controllers/leader-election.ts';
import { controllerTools } from '../../controllers/tools.ts';
import { serverContext } from '../../registry/registry.ts';
import type { Around } from '../context.ts';
import type { Background } from '../parts.ts';

/** kube-apiserver's figures, which it has no flags for. */
const periods = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

/**
 * Elects Lease holders among LeaseCandidates, in the leader only if servers share the store. Does
 * nothing unless `--runtime-config` enables LeaseCandidates.
 */
export function startElections(options: Around): Background {
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
    lead: () => startCoordinatedElection({ ...tools, leases, candidates }),
  });
}
