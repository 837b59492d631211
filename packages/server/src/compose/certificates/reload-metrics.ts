import { hostname } from 'node:os';
import type { Clock, Dialect, MetricRegistry } from '@wheelhouse/machinery';
import { serverIdentityHash } from '../../controllers/server-identity.ts';

/** Counts one reload of a file; made once for each controller of a registry. */
export type CountReload = (status: 'success' | 'failure') => void;

/**
 * The metrics of reloads of a file of configuration (AUTHN-8), named by what upstream calls its
 * controller: `authentication_config_controller`. `what` stands in their help.
 */
export function createReloadMetrics(
  registry: MetricRegistry,
  options: {
    readonly controller: string;
    readonly what: string;
    readonly clock: Clock;
    readonly dialect: Dialect;
  },
): CountReload {
  const { controller, what, clock, dialect } = options;
  const labels = ['status', 'apiserver_id_hash'];
  const split = `of ${what} split by status and apiserver identity.`;
  const total = registry.counter({
    name: `apiserver_${controller}_automatic_reloads_total`,
    help: `Total number of automatic reloads ${split}`,
    stability: 'ALPHA',
    labels,
  });
  const last = registry.gauge({
    name: `apiserver_${controller}_automatic_reload_last_timestamp_seconds`,
    help: `Timestamp of the last automatic reload ${split}`,
    stability: 'ALPHA',
    labels,
  });
  const identity = serverIdentityHash(hostname(), dialect.component('apiserver'));
  return (status) => {
    total.of(status, identity).add(1);
    last.of(status, identity).set(clock.now() / 1000);
  };
}
