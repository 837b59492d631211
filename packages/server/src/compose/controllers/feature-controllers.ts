import type { Dialect } from '@wheelhouse/machinery';
import type { Api } from '../api.ts';
import type { ServerConfig } from '../flags/config.ts';
import { defaultGates } from '../flags/feature-gates.ts';
import type { Background } from '../health/begin-after.ts';
import type { Hook } from '../health/start-hooks.ts';

/** What runs for features that are off by default. */
export interface FeatureControllers extends Background {
  /** What has to be done before the server is ready. */
  readonly hooks: readonly Hook[];
}

/**
 * Starts what an API server itself does for features that are off by default. The code of each is
 * loaded when its gate is on.
 */
export async function startFeatures(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): Promise<FeatureControllers> {
  const gates = options.config.featureGates ?? defaultGates;
  const { productName } = options.dialect;
  const hooks: Hook[] = [];
  const started: Background[] = [];
  if (gates.enabled('MultiCIDRServiceAllocator')) {
    const { startServiceRanges } = await import('../services/service-ranges.ts');
    const ranges = startServiceRanges(options);
    hooks.push([`start-${productName}-service-cidr-controller`, () => ranges.ready]);
    started.push(ranges);
  }
  return {
    hooks,
    async close() {
      await Promise.all(started.map((one) => one.close()));
    },
  };
}
