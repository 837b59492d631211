import type { Feature } from './feature.ts';
import { FlagError, type FlagTable } from './flags/flags.ts';

/** What is said of nodes, which this control plane connects to none of. */
export interface NodeSettings {
  /** Types of addresses by which nodes could be reached; any when absent. */
  readonly kubeletAddressTypes?: readonly string[];
}

/** Flags of connections to nodes and clouds. */
const nodeFlags = {
  'kubelet-preferred-address-types': {
    group: 'Misc',
    after: 'kubernetes-service-node-port',
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
    keyOf: 'kubelet-client-certificate',
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
  'egress-selector-config-file': {
    group: 'Misc',
    after: 'max-connection-bytes-per-sec',
    type: 'string',
    default: '',
    only: 'connections go out directly, not through a proxy',
    help: 'Proxies for connections that the server makes. They go out directly.',
  },
  'cloud-config': {
    group: 'Misc',
    after: 'apiserver-count',
    type: 'string',
    default: '',
    deprecated: 'will be removed in a future version',
    help: 'File for a cloud provider inside the process, of which there is none.',
  },
  'cloud-provider': {
    group: 'Misc',
    type: 'string',
    default: '',
    deprecated: 'will be removed in a future version',
    help: 'Who runs the cloud controllers: external, or nobody when empty.',
  },
  'kubelet-port': {
    group: 'Misc',
    after: 'enable-logs-handler',
    type: 'int',
    default: '10250',
    deprecated: 'kubelet-port is deprecated and will be removed.',
    help: 'The port of kubelets, which this control plane does not connect to.',
  },
  'kubelet-read-only-port': {
    group: 'Misc',
    type: 'int',
    default: '10255',
    deprecated: 'kubelet-read-only-port is deprecated and will be removed.',
    help: 'Another port of kubelets, which this control plane does not connect to.',
  },
} as const satisfies FlagTable;

/** Nodes and clouds, as far as a control plane without them has settings. */
export const nodeFeature: Feature<typeof nodeFlags, NodeSettings> = {
  flags: nodeFlags,
  settings(values) {
    const provider = values['cloud-provider'];
    if (provider !== '' && provider !== 'external') {
      throw new FlagError(`unknown --cloud-provider: ${provider}`);
    }
    for (const name of ['kubelet-port', 'kubelet-read-only-port'] as const) {
      if (values[name] < 0) throw new FlagError(`--${name} must not be negative`);
    }
    return { kubeletAddressTypes: values['kubelet-preferred-address-types'] };
  },
};
