import { defaultGates } from '../apis/feature-gates.ts';
import type { Around } from '../context.ts';
import { type Background, beginAfter } from '../health/begin-after.ts';
import type { Hook } from '../health/start-hooks.ts';

/** What runs for features that are off by default. */
export interface FeatureControllers extends Background {
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
