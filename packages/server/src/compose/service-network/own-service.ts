import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { controllerTools } from '../../controllers/inside.ts';
import {
  createDefaultService,
  type ServerPeers,
  startDefaultService,
} from '../../controllers/services/default-service.ts';
import type { Around } from '../context.ts';
import { controllerSelection } from '../controllers/controller-selection.ts';
import { reachableAddress } from '../serving/own-address.ts';

interface OwnServiceOptions extends Around {
  /** The port that the server listens on. */
  readonly port: number;
  /** Other servers on the same store. */
  readonly peers?: ServerPeers | undefined;
}

/** Keeps the server's own Service; nothing to do for a server without TLS. */
export function startOwnService(
  options: OwnServiceOptions,
): { close(): Promise<void> } | undefined {
  const wired = wiredService(options);
  return wired === undefined ? undefined : startDefaultService(wired);
}

/** Creates the server's own Service where `--controllers` lets the server keep it. */
export async function createOwnService(options: OwnServiceOptions): Promise<void> {
  const { controllers = ['*'] } = options.config;
  if (!controllerSelection(controllers)('default-service-controller')) return;
  const wired = wiredService(options);
  if (wired !== undefined) await createDefaultService(wired);
}

function wiredService(options: OwnServiceOptions) {
  const { config, dialect, api, port, peers } = options;
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if (config.listen.tls === 'plaintext' || 'error' in ranges) return undefined;
  const def = (group: string, resource: string) =>
    requiredKind(api.catalogue.snapshot(), group, resource);
  const [{ family, addressOf }] = ranges.addresses;
  const { endpoints, nodePort } = config.ownService ?? { endpoints: 'kept' };
  const ip = endpoints === 'kept' ? reachableAddress(config, family) : undefined;
  return {
    ...controllerTools(options, {
      controller: 'default-service-controller',
      groups: ['system:masters'],
    }),
    defs: {
      services: def('', 'services'),
      endpoints: def('', 'endpoints'),
      endpointSlices: def(dialect.group('discovery'), 'endpointslices'),
    },
    dialect,
    place: {
      clusterIp: addressOf(0),
      port,
      ...(nodePort === undefined ? {} : { nodePort }),
      ...(ip === undefined ? {} : { ip }),
      ...(peers === undefined ? {} : { peers }),
    },
  };
}
