import { isIPv4 } from 'node:net';
import { readServiceRanges, type ServiceRangeTexts } from '@wheelhouse/kinds';
import { type FlagDefinition, FlagError, flagsIn } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** Settings of Service addresses and of the server's own Service. */
export interface ServiceNetworkSettings {
  /** Ranges of Service addresses and node ports; the defaults when absent. */
  readonly serviceRanges?: ServiceRangeTexts;
  /** The Service through which programs in the cluster find the server. */
  readonly ownService?: {
    readonly endpoints: 'kept' | 'left alone';
    /** Makes the Service one of type NodePort. */
    readonly nodePort?: number;
  };
}

const defaults = { addresses: '10.0.0.0/24', ports: '30000-32767' } as const;

/** Flags of the addresses and ports of Services. */
const serviceNetworkFlags = flagsIn('Misc', {
  'service-cluster-ip-range': {
    group: 'Generic',
    after: 'web-console',
    type: 'string',
    default: defaults.addresses,
    help: 'CIDR block of Service addresses; two blocks of different families give Services two addresses. The last use of the flag counts.',
  },
  'service-node-port-range': {
    group: 'Generic',
    type: 'string',
    default: defaults.ports,
    help: 'Range of node ports for Services, both ends included; a change does not affect existing Services.',
  },
  'endpoint-reconciler-type': {
    type: 'string',
    default: 'lease',
    help: "How the endpoints of the server's own Service are maintained: lease lists the running servers, none leaves them alone.",
  },
  'kubernetes-service-node-port': {
    type: 'int',
    help: "Node port of the server's own Service, whose type becomes NodePort; ClusterIP when 0.",
  },
  'apiserver-count': {
    after: 'peer-advertise-port',
    type: 'int',
    default: '1',
    deprecated: 'apiserver-count is deprecated and will be removed in a future version.',
    help: 'Number of servers; without effect, since servers are counted by their leases.',
  },
});

/** The endpoints of the server's own Service have the advertised address. */
type AdvertiseFlag = { readonly 'advertise-address': { readonly type: 'ip' } & FlagDefinition };

/** Addresses and ports of Services, and the Service of the server itself. */
export const serviceNetworkFeature: Feature<
  typeof serviceNetworkFlags,
  ServiceNetworkSettings,
  AdvertiseFlag
> = {
  flags: serviceNetworkFlags,
  settings(values, { gates }) {
    const isUnlimited =
      gates.enabled('MultiCIDRServiceAllocator') && gates.enabled('DisableAllocatorDualWrite');
    const addresses = values['service-cluster-ip-range'];
    // Like kube-apiserver, an empty range is the default one.
    const serviceRanges: ServiceRangeTexts = {
      ...(isUnlimited ? { sizes: 'any' } : {}),
      clusterIps: (addresses || defaults.addresses).split(','),
      nodePorts: values['service-node-port-range'] || defaults.ports,
    };
    const ranges = readServiceRanges(serviceRanges);
    if ('error' in ranges) throw new FlagError(ranges.error);
    const nodePort = values['kubernetes-service-node-port'];
    checkNodePort(nodePort, ranges.nodePorts);
    const count = values['apiserver-count'];
    if (count <= 0) {
      throw new FlagError(
        `--apiserver-count should be a positive number, but value '${count}' provided`,
      );
    }
    const endpoints = endpointsOf(values['endpoint-reconciler-type']);
    if (endpoints === 'kept') checkFamily(ranges.addresses[0], values['advertise-address']);
    return {
      serviceRanges,
      ownService: {
        endpoints,
        ...(nodePort === 0 ? {} : { nodePort }),
      },
    };
  },
};

const endpointReconcilers = ['lease', 'none', 'master-count'];

function endpointsOf(type: string): 'kept' | 'left alone' {
  if (type === 'lease') return 'kept';
  if (type === 'none') return 'left alone';
  if (endpointReconcilers.includes(type)) {
    throw new FlagError(
      `--endpoint-reconciler-type=${type}: servers are counted by their leases here, use lease`,
    );
  }
  throw new FlagError(`unknown endpoint reconciler type: ${type}`);
}

/** Throws if the advertised address cannot be an endpoint of the server's own Service. */
function checkFamily(
  primary: { readonly family: 'IPv4' | 'IPv6'; readonly text: string },
  advertised: string,
): void {
  if (advertised === '' || isIPv4(advertised) === (primary.family === 'IPv4')) return;
  const [range, address] = [primary.text, advertised].map((text) => JSON.stringify(text));
  throw new FlagError(`service IP family ${range} must match public address family ${address}`);
}

function checkNodePort(
  port: number,
  range: { readonly text: string; keyOfPort(port: number): string | undefined },
): void {
  if (port < 0 || port > 65_535) {
    throw new FlagError(
      `--kubernetes-service-node-port ${port} must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP`,
    );
  }
  if (port === 0 || range.keyOfPort(port) !== undefined) return;
  throw new FlagError(`kubernetes service node port range ${range.text} doesn't contain ${port}`);
}
