import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable } from '../flags/flags.ts';

/** How values are encrypted in the store (STORE-3). */
export interface EncryptionSettings {
  /** Not at all when absent. */
  readonly encryption?: {
    /** An EncryptionConfiguration. */
    readonly file: string;
    readonly reload: 'automatic' | 'off';
  };
}

const group = 'Storage';

/** Flags of encryption at rest. */
const encryptionFlags = {
  'encryption-provider-config': {
    group,
    after: 'storage-media-type',
    type: 'string',
    file: 'any',
    default: '',
    help: 'File that says how the values of which resources are encrypted in the store.',
  },
  'encryption-provider-config-automatic-reload': {
    group,
    type: 'bool',
    default: 'false',
    help: 'Follow --encryption-provider-config, so that keys change without a new start.',
  },
} as const satisfies FlagTable;

/** Encryption at rest. */
export const encryptionFeature: Feature<typeof encryptionFlags, EncryptionSettings> = {
  flags: encryptionFlags,
  settings(values) {
    const file = values['encryption-provider-config'];
    const isFollowed = values['encryption-provider-config-automatic-reload'];
    if (file !== '') return { encryption: { file, reload: isFollowed ? 'automatic' : 'off' } };
    if (!isFollowed) return {};
    throw new FlagError(
      '--encryption-provider-config-automatic-reload must be set with --encryption-provider-config',
    );
  },
};
