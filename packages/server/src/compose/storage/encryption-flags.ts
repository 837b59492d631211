import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

const group = 'Storage';

/** Flags of encryption at rest, part of `serverFlags` (STORE-3). */
export const encryptionFlags = {
  'encryption-provider-config': {
    group,
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

/** What the flags come to. Throws FlagError when there is nothing to follow. */
export function encryptionOptions(
  values: FlagValues<typeof encryptionFlags>,
): Pick<ServerConfig, 'encryption'> {
  const file = values['encryption-provider-config'];
  const isFollowed = values['encryption-provider-config-automatic-reload'];
  if (file !== '') return { encryption: { file, reload: isFollowed ? 'automatic' : 'off' } };
  if (!isFollowed) return {};
  throw new FlagError(
    '--encryption-provider-config-automatic-reload must be set with --encryption-provider-config',
  );
}
