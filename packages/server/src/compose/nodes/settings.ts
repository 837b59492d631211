import { FlagError, flagsIn } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** Settings of connections to nodes. */
export interface NodeSettings {
  /** How to reach kubelets for logs and streams; by default without a client certificate. */
  readonly kubelets?: KubeletSettings;
  /** Path of an egress configuration. */
  readonly egressFile?: string;
}

/** The client certificate for kubelets, and how their certificates are verified. */
interface KubeletSettings {
  /** Types of node addresses to use, the preferred type first. */
  readonly addressTypes?: readonly string[];
  /** The kubelet port of nodes that report none; defaults to 10250. */
  readonly port?: number;
  readonly certificate?: { readonly certFile: string; readonly keyFile: string };
  /** The CA bundle for kubelets' certificates, which are not verified when this is absent. */
  readonly caFile?: string;
  /** Maps the proxied address to the one to connect to, for tests. */
  readonly connectTo?: (host: string) => string;
}

/** Flags of connections to nodes and cloud providers. */
const nodeFlags = flagsIn('Misc', {
  'kubelet-preferred-address-types': {
    after: 'kubernetes-service-node-port',
    type: 'list',
    default: 'Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP',
    help: 'Types of node addresses to use for logs, exec, attach, port-forward, and proxy; the first type that a node has is used.',
  },
  'kubelet-client-certificate': {
    type: 'string',
    file: 'certificates',
    help: 'File with the client certificate for kubelets.',
  },
  'kubelet-client-key': {
    type: 'string',
    file: 'private key',
    keyOf: 'kubelet-client-certificate',
    help: 'File with the private key of --kubelet-client-certificate.',
  },
  'kubelet-certificate-authority': {
    type: 'string',
    file: 'certificates',
    help: "CA bundle for kubelets' certificates, which are not verified when this is empty.",
  },
  'kubelet-timeout': {
    type: 'duration',
    default: '5s',
    help: 'Without effect, as in kube-apiserver: logs and streams have no time limit.',
  },
  'egress-selector-config-file': {
    after: 'max-connection-bytes-per-sec',
    type: 'string',
    file: 'any',
    help: 'Egress configuration file; connections are always direct, so it must not name a proxy.',
  },
  'cloud-config': {
    after: 'apiserver-count',
    type: 'string',
    deprecated: 'will be removed in a future version',
    help: 'Configuration file of an in-process cloud provider; without effect, since there is none.',
  },
  'cloud-provider': {
    type: 'string',
    deprecated: 'will be removed in a future version',
    help: 'The cloud provider: external, or empty for none.',
  },
  'kubelet-port': {
    after: 'enable-logs-handler',
    type: 'int',
    default: '10250',
    deprecated: 'kubelet-port is deprecated and will be removed.',
    help: 'The kubelet port of nodes that report none.',
  },
  'kubelet-read-only-port': {
    type: 'int',
    default: '10255',
    deprecated: 'kubelet-read-only-port is deprecated and will be removed.',
    help: 'The read-only port of kubelets; without effect, as in kube-apiserver.',
  },
});

/** Connections to nodes, and the flags of cloud providers. */
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
