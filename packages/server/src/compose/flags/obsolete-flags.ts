import { FlagError, type FlagTable, type FlagValues } from './flags.ts';

/**
 * Flags that upstream has deprecated and still accepts, part of `serverFlags`. Command lines of
 * older installations have them; what they once changed does not exist here.
 */
export const obsoleteFlags = {
  'apiserver-count': {
    group: 'Misc',
    type: 'int',
    default: '1',
    deprecated: 'apiserver-count is deprecated and will be removed in a future version.',
    help: 'How many servers there are. They are counted by their leases.',
  },
  'cloud-config': {
    group: 'Misc',
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
  'default-watch-cache-size': {
    group: 'Storage',
    type: 'int',
    default: '100',
    deprecated:
      'watch caches are sized automatically and this flag will be removed in a future version',
    help: 'Size of watch caches, which have the size they need.',
  },
  'enable-logs-handler': {
    group: 'Misc',
    type: 'bool',
    default: 'false',
    deprecated: 'This flag will be removed in v1.33',
    only: 'the log goes to the standard error alone',
    help: 'Show files of logs at /logs. There are none.',
  },
  'kubelet-port': {
    group: 'Misc',
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

/** Throws FlagError for values that upstream refuses too. */
export function checkObsoleteFlags(values: FlagValues<typeof obsoleteFlags>): void {
  const count = values['apiserver-count'];
  if (count <= 0) {
    throw new FlagError(
      `--apiserver-count should be a positive number, but value '${count}' provided`,
    );
  }
  const provider = values['cloud-provider'];
  if (provider !== '' && provider !== 'external') {
    throw new FlagError(`unknown --cloud-provider: ${provider}`);
  }
  for (const name of ['kubelet-port', 'kubelet-read-only-port'] as const) {
    if (values[name] < 0) throw new FlagError(`--${name} must not be negative`);
  }
}
