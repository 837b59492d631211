import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { startDefaultServiceCidr } from '../../controllers/services/default-service-cidr.ts';
import { startServiceAddressRepair } from '../../controllers/services/service-address-repair.ts';
import { controllerTools } from '../../controllers/tools.ts';
import { serverContext } from '../../registry/registry.ts';
import type { Around } from '../context.ts';
import type { Background } from '../parts.ts';
import { addressKinds } from './service-numbers.ts';

/** The ServiceCIDR work of kube-apiserver itself; starts with the server. */
export interface ServiceRanges extends Background {
  /** Resolves when the command line's ranges can be allocated from. */
  readonly ready: Promise<void>;
}

/** Maintains the default ServiceCIDR, and then keeps Services and IPAddresses consistent. */
export function startServiceRanges(options: Around): ServiceRanges {
  const { config, dialect, api } = options;
  const { catalogue } = api;
  const texts = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if ('error' in texts) throw new Error(texts.error);
  const kinds = addressKinds(catalogue, dialect);
  const services = requiredKind(catalogue.snapshot(), '', 'services');
  const tools = (controller: string) => ({
    ...controllerTools(options, { controller, user: serverContext.user }),
    dialect,
  });
  const defaultRange = startDefaultServiceCidr({
    ...tools(`${dialect.productName}-service-cidr-controller`),
    ranges: kinds.ranges,
    cidrs: texts.addresses.map(({ text }) => text),
  });
  const repair = defaultRange.first.then(() =>
    startServiceAddressRepair({
      ...tools('ipallocator-repair-controller'),
      kinds,
      services,
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
