import type { Dialect } from '@wheelhouse/machinery';
import { createInside } from '../../controllers/inside.ts';
import { startResourceQuotas } from '../../controllers/resource-quota.ts';
import { startServiceCidrs } from '../../controllers/services/service-cidrs.ts';
import {
  startClaimProtection,
  startVolumeProtection,
} from '../../controllers/volume-protection.ts';
import type { Api } from '../api.ts';
import type { ServerConfig } from '../flags/config.ts';
import { defaultGates } from '../flags/feature-gates.ts';
import { addressKinds } from '../services/service-numbers.ts';
import { controllerSelection } from './controller-selection.ts';

/** How often quotas are counted anew whatever happened, ms; upstream's default. */
const quotaResyncMs = 300_000;

/**
 * Starts those of `--controllers` that finish what admission begins: they let volumes and claims go
 * when nothing uses them, count what namespaces take up, and protect ranges of addresses.
 */
export function startResourceControllers(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): { close(): Promise<void> }[] {
  const { config, dialect, api } = options;
  const { registry, catalogue } = api;
  const runs = controllerSelection(config.controllers ?? ['*']);
  const core = (resource: string) => {
    const def = catalogue.snapshot().builtin('', resource);
    if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
    return def;
  };
  const tools = (controller: string) => ({
    caches: registry.caches,
    clock: config.clock,
    logger: config.logger,
    queues: api.queues,
    inside: createInside({ registry, controller }),
  });
  const started: { close(): Promise<void> }[] = [];
  if (runs('persistentvolumeclaim-protection-controller')) {
    const [claims, pods] = [core('persistentvolumeclaims'), core('pods')];
    const finalizer = dialect.label('pvc-protection');
    const shared = tools('pvc-protection-controller');
    started.push(startClaimProtection({ ...shared, finalizer, claims, pods }));
  }
  if (runs('persistentvolume-protection-controller')) {
    const finalizer = dialect.label('pv-protection');
    const shared = tools('pv-protection-controller');
    const volumes = core('persistentvolumes');
    started.push(startVolumeProtection({ ...shared, finalizer, volumes }));
  }
  if (runs('resourcequota-controller')) {
    started.push(
      startResourceQuotas({
        ...tools('resourcequota-controller'),
        quotas: core('resourcequotas'),
        snapshot: catalogue.snapshot,
        dialect,
        ledger: api.quotaLedger,
        resyncMs: quotaResyncMs,
      }),
    );
  }
  const gates = config.featureGates ?? defaultGates;
  if (gates.enabled('MultiCIDRServiceAllocator') && runs('service-cidr-controller')) {
    const shared = tools('service-cidrs-controller');
    const kinds = addressKinds(catalogue, dialect);
    started.push(startServiceCidrs({ ...shared, kinds, dialect }));
  }
  return started;
}
