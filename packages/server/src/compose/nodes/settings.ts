import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable } from '../flags/flags.ts';

/** How nodes are reached. */
export interface NodeSettings {
  /** How kubelets are reached for logs and streams; without certificates when absent. */
  readonly kubelets?: KubeletSettings;
  /** File that says through which proxies connections go; they go out directly when absent. */
  readonly egressFile?: string;
}

/** Who kubelets are to the server, and who it is to them. */
export interface KubeletSettings {
  /** Types of addresses by which a node is reached, the preferred one first. */
  readonly addressTypes?: readonly string[];
  /** The port of kubelets whose nodes name none; 10250 when absent. */
  readonly port?: number;
  readonly certificate?: { readonly certFile: string; readonly keyFile: string };
  /** The authorities of kubelets' certificates, which are not verified when this is absent. */
  readonly caFile?: string;
  /** Where the `proxy` of an address connects to, for tests; there when absent. */
  readonly connectTo?: (host: string) => string;
}

/** Flags of connections to nodes and clouds. */
const nodeFlags = {
  'kubelet-preferred-address-types': {
    group: 'Misc',
    after: 'kubernetes-service-node-port',
    type: 'list',
    default: 'Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP',
    help: 'Types of addresses by which nodes are reached for logs, exec, attach, port-forward, and proxy; the first that a node has is taken.',
  },
  'kubelet-client-certificate': {
    group: 'Misc',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of the client certificate for kubelets.',
  },
  'kubelet-client-key': {
    group: 'Misc',
    type: 'string',
    file: 'private key',
    keyOf: 'kubelet-client-certificate',
    default: '',
    help: 'File of the key of --kubelet-client-certificate.',
  },
  'kubelet-certificate-authority': {
    group: 'Misc',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of the authorities of kubelets’ certificates. When empty, their certificates are not verified.',
  },
  'kubelet-timeout': {
    group: 'Misc',
    type: 'duration',
    default: '5s',
    help: 'Without effect, as upstream: logs and streams last as long as they are wanted.',
  },
  'egress-selector-config-file': {
    group: 'Misc',
    after: 'max-connection-bytes-per-sec',
    type: 'string',
    file: 'any',
    default: '',
    help: 'File that says through which proxies connections go. Here they go out directly, so that it may name no proxy.',
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
    help: 'The port of kubelets whose nodes name none.',
  },
  'kubelet-read-only-port': {
    group: 'Misc',
    type: 'int',
    default: '10255',
    deprecated: 'kubelet-read-only-port is deprecated and will be removed.',
    help: 'Another port of kubelets. Without effect, as upstream.',
  },
} as const satisfies FlagTable;

/** Connections to nodes, and clouds as far as a control plane without them has settings. */
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
    const certFile = values['kubelet-client-certificate'];
    const keyFile = values['kubelet-client-key'];
    const caFile = values['kubelet-certificate-authority'];
    const egressFile = values['egress-selector-config-file'];
    return {
      ...(egressFile === '' ? {} : { egressFile }),
      kubelets: {
        addressTypes: values['kubelet-preferred-address-types'],
        port: values['kubelet-port'],
        ...(certFile === '' ? {} : { certificate: { certFile, keyFile } }),
        ...(caFile === '' ? {} : { caFile }),
      },
    };
  },
};
