import { readServiceRanges, type ServiceRangeTexts } from '@wheelhouse/kinds';
import type { ServerConfig } from './config.ts';
import { FlagError, type FlagTable, type FlagValues } from './flags.ts';

const endpointReconcilers = ['lease', 'none', 'master-count'];

/** Flags of what a cluster around the server would be, part of `serverFlags`. */
export const clusterFlags = {
  'external-hostname': {
    group: 'Generic',
    type: 'string',
    default: '',
    help: 'The host, or host:port, that discovery and the issuer of tokens tell clients. The advertised address when empty.',
  },
  'endpoint-reconciler-type': {
    group: 'Misc',
    type: 'string',
    default: 'lease',
    help: 'Who stands in the endpoints of the server’s own Service: lease for the servers that run, none for leaving the endpoints alone.',
  },
  'kubernetes-service-node-port': {
    group: 'Misc',
    type: 'int',
    default: '0',
    help: 'Make the server’s own Service one of type NodePort, on this port. ClusterIP when 0.',
  },
  'kubelet-preferred-address-types': {
    group: 'Misc',
    type: 'list',
    default: 'Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP',
    help: 'Types of addresses by which a node could be reached. What needs a node that has none of them is answered 500, all else about running containers 503: this control plane connects to no kubelet.',
  },
  'kubelet-client-certificate': {
    group: 'Misc',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of the client certificate for kubelets. This control plane connects to none: the file is checked.',
  },
  'kubelet-client-key': {
    group: 'Misc',
    type: 'string',
    file: 'private key',
    default: '',
    help: 'File of the key of --kubelet-client-certificate, checked as that is.',
  },
  'kubelet-certificate-authority': {
    group: 'Misc',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of the authorities of kubelets’ certificates. This control plane connects to none: the file is checked.',
  },
  'kubelet-timeout': {
    group: 'Misc',
    type: 'duration',
    default: '5s',
    help: 'How long a kubelet may take to answer. This control plane asks none, so that nothing takes longer.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof clusterFlags>;

/** What the flags come to. Throws FlagError for ports and reconcilers that cannot be had. */
export function clusterOptions(
  values: Values,
  ranges: ServiceRangeTexts,
): Pick<ServerConfig, 'externalHost' | 'ownService' | 'kubeletAddressTypes'> {
  const externalHost = values['external-hostname'];
  if ((values['kubelet-client-certificate'] === '') !== (values['kubelet-client-key'] === '')) {
    throw new FlagError(
      '--kubelet-client-certificate and --kubelet-client-key must be given together',
    );
  }
  const nodePort = nodePortOf(values['kubernetes-service-node-port'], ranges);
  return {
    kubeletAddressTypes: values['kubelet-preferred-address-types'],
    ownService: {
      endpoints: endpointsOf(values['endpoint-reconciler-type']),
      ...(nodePort === 0 ? {} : { nodePort }),
    },
    ...(externalHost === '' ? {} : { externalHost }),
  };
}

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

function nodePortOf(port: number, texts: ServiceRangeTexts): number {
  if (port < 0 || port > 65_535) {
    throw new FlagError(
      `--kubernetes-service-node-port ${port} must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP`,
    );
  }
  const ranges = readServiceRanges(texts);
  if ('error' in ranges || port === 0) return port;
  if (ranges.nodePorts.keyOfPort(port) !== undefined) return port;
  throw new FlagError(
    `kubernetes service node port range ${ranges.nodePorts.text} doesn't contain ${port}`,
  );
}
