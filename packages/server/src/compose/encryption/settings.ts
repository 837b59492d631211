import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable } from '../flags/flags.ts';

/** Settings of encryption at rest (STORE-3). */
export interface EncryptionSettings {
  /** No encryption when absent. */
  readonly encryption?: {
    /** Path of an EncryptionConfiguration. */
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
    help: 'EncryptionConfiguration file: which resources are encrypted in the store, and how.',
  },
  'encryption-provider-config-automatic-reload': {
    group,
    type: 'bool',
    default: 'false',
    help: 'Reload --encryption-provider-config when it changes, so that keys rotate without a restart.',
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
