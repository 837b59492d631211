import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import { createInside } from '../../controllers/inside.ts';
import { startDefaultServiceCidr } from '../../controllers/services/default-service-cidr.ts';
import { startServiceAddressRepair } from '../../controllers/services/service-address-repair.ts';
import { serverContext } from '../../registry/server-context.ts';
import type { Around } from '../context.ts';
import type { Background } from '../health/begin-after.ts';
import { addressKinds } from './service-numbers.ts';

/** What an API server itself does for ServiceCIDRs; begins with the server. */
export interface ServiceRanges extends Background {
  /** The ranges of the command line can be allocated from. */
  readonly ready: Promise<void>;
}

/** Keeps the default ServiceCIDR, and Services and IPAddresses in agreement once it is there. */
export function startServiceRanges(options: Around): ServiceRanges {
  const { config, dialect, api } = options;
  const { registry, catalogue, queues } = api;
  const { clock, logger } = config;
  const texts = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if ('error' in texts) throw new Error(texts.error);
  const kinds = addressKinds(catalogue, dialect);
  const services = catalogue.snapshot().builtin('', 'services');
  if (services === undefined) throw new Error('the catalogue has no services');
  const inside = (controller: string) =>
    createInside({ registry, controller, user: serverContext.user });
  const tools = { caches: registry.caches, dialect, clock, logger, queues };
  const defaultRange = startDefaultServiceCidr({
    ...tools,
    ranges: kinds.ranges,
    cidrs: texts.addresses.map(({ text }) => text),
    inside: inside(`${dialect.productName}-service-cidr-controller`),
  });
  const repair = defaultRange.first.then(() =>
    startServiceAddressRepair({
      ...tools,
      kinds,
      services,
      inside: inside('ipallocator-repair-controller'),
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
