import { appendAll, type Dialect } from '@wheelhouse/machinery';
import { startApiServices } from '../../controllers/aggregation/api-services.ts';
import { startEventExpiry } from '../../controllers/event-expiry.ts';
import { startGarbageCollector } from '../../controllers/garbage-collector.ts';
import { startClusterRoleAggregation } from '../../controllers/identity/cluster-role-aggregation.ts';
import { startLegacyTokenTracking } from '../../controllers/identity/legacy-token-tracking.ts';
import { createInside } from '../../controllers/inside.ts';
import { startNamespaceDeletion } from '../../controllers/namespace-deletion.ts';
import { startPolicyTypeChecking } from '../../controllers/policy-type-checking.ts';
import type { ServerPeers } from '../../controllers/services/default-service.ts';
import type { Api } from '../api.ts';
import type { ServerConfig } from '../flags/config.ts';
import { tokenTracking } from '../health/own-records.ts';
import { wiredRegistration } from '../registration.ts';
import { startOwnService } from '../services/default-service.ts';
import { controllerSelection } from './controller-selection.ts';
import { startIdentityControllers } from './identity-controllers.ts';
import { startResourceControllers } from './resource-controllers.ts';

/** Starts those of `--controllers` that finish what requests begin: deletions and aggregations. */
function startFollowUps(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): { close(): Promise<void> }[] {
  const { config, dialect, api } = options;
  const { clock, logger } = config;
  const { catalogue, registry } = api;
  const runs = controllerSelection(config.controllers ?? ['*']);
  const builtin = (group: string, resource: string) => {
    const def = catalogue.snapshot().builtin(group, resource);
    if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
    return def;
  };
  const inside = (controller: string) => createInside({ registry, controller });
  const tools = { caches: registry.caches, clock, logger, queues: api.queues };
  const started: { close(): Promise<void> }[] = [];
  if (runs('clusterrole-aggregation-controller')) {
    started.push(
      startClusterRoleAggregation({
        ...tools,
        clusterRoles: builtin(dialect.group('rbac.authorization'), 'clusterroles'),
        inside: createInside({
          registry,
          controller: 'clusterrole-aggregation-controller',
          // It writes rules that it does not hold, as its own role lets it where RBAC is on.
          groups: ['system:masters'],
        }),
      }),
    );
  }
  if (runs('validatingadmissionpolicy-status-controller')) {
    started.push(
      startPolicyTypeChecking({
        ...tools,
        policies: builtin(dialect.group('admissionregistration'), 'validatingadmissionpolicies'),
        inside: inside('validatingadmissionpolicy-status-controller'),
        snapshot: catalogue.snapshot,
      }),
    );
  }
  if (runs('autoregister-controller')) {
    started.push(startApiServices(wiredRegistration(options)));
  }
  if (runs('namespace-controller')) {
    started.push(
      startNamespaceDeletion({
        ...tools,
        catalogue,
        inside: inside('namespace-controller'),
        namespaces: builtin('', 'namespaces'),
        finalizer: dialect.productName,
      }),
    );
  }
  if (runs('garbage-collector-controller')) {
    const collector = inside('generic-garbage-collector');
    started.push(startGarbageCollector({ ...tools, catalogue, inside: collector }));
  }
  return started;
}

/** Starts the loops that keep the API's promises after a request is answered. */
export function startControllers(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
  /** The CA to publish; absent when the server has none of its own. */
  readonly caPem: string | undefined;
  /** The port that the server listens on. */
  readonly port: number;
  /** Other servers on the same store. */
  readonly peers?: ServerPeers | undefined;
}): { close(): Promise<void> } {
  const { config, api } = options;
  const { clock, logger } = config;
  const { catalogue, registry } = api;
  const started = startFollowUps(options);
  const events = catalogue.snapshot().builtin('', 'events');
  // Etcd lets Events go by itself.
  if (events !== undefined && config.eventTtlMs > 0 && config.store.type !== 'etcd') {
    const ttlMs = config.eventTtlMs;
    started.push(startEventExpiry({ events, registry, clock, logger, ttlMs }));
  }
  if (controllerSelection(config.controllers ?? ['*'])('default-service-controller')) {
    const own = startOwnService(options);
    if (own !== undefined) started.push(own);
  }
  const tracking = tokenTracking(options);
  if (tracking !== undefined) started.push(startLegacyTokenTracking(tracking));
  appendAll(started, startIdentityControllers(options));
  appendAll(started, startResourceControllers(options));
  return {
    async close() {
      await Promise.all(started.map((controller) => controller.close()));
    },
  };
}
