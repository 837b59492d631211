import { printGoDuration } from '@wheelhouse/schema';
import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** Flags of how long service account tokens are good, part of `serverFlags`. */
export const tokenFlags = {
  'service-account-max-token-expiration': {
    group: 'Authentication',
    type: 'duration',
    default: '0s',
    help: 'The longest that a service account token is issued for, between 1h and 2^32 seconds; whoever asks for more gets this, with a warning. As long as is asked for when 0.',
  },
  'service-account-extend-token-expiration': {
    group: 'Authentication',
    type: 'bool',
    default: 'true',
    help: 'Let the tokens that admission puts into pods be good for a year, whatever the longest is, and record the use of one behind its hour.',
  },
  'service-account-signing-endpoint': {
    group: 'Authentication',
    type: 'string',
    default: '',
    only: 'this server signs tokens itself',
    help: 'The socket of another signer of tokens. None can be had: this server signs them itself.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof tokenFlags>;

const hourSeconds = 60 * 60;
const projectedSeconds = hourSeconds + 7;
const yearSeconds = 365 * 24 * hourSeconds;

/** What the flags come to, and what their user should know. Throws FlagError for a bad longest time. */
export function tokenOptions(values: Values): {
  readonly accounts: Pick<NonNullable<ServerConfig['serviceAccounts']>, 'maxSeconds' | 'extension'>;
  readonly warnings: readonly string[];
} {
  const longestMs = values['service-account-max-token-expiration'];
  const extension = values['service-account-extend-token-expiration'] ? 'on' : 'off';
  if (longestMs === 0) return { accounts: { extension }, warnings: [] };
  const maxSeconds = Math.floor(longestMs / 1000);
  if (longestMs < hourSeconds * 1000 || longestMs > 2 ** 32 * 1000) {
    throw new FlagError(
      'the service-account-max-token-expiration must be between 1 hour and 2^32 seconds',
    );
  }
  const warnings: string[] = [];
  if (extension === 'on') {
    const said = 'service-account-extend-token-expiration is true,';
    const set = printGoDuration(BigInt(Math.round(longestMs * 1e6)));
    if (maxSeconds < projectedSeconds) {
      warnings.push(
        `${said} in order to correctly trigger safe transition logic, service-account-max-token-expiration must be set longer than ${projectedSeconds} seconds (currently ${set})`,
      );
    }
    if (maxSeconds < yearSeconds) {
      warnings.push(
        `${said} enabling tokens valid up to ${yearSeconds} seconds, which is longer than service-account-max-token-expiration set to ${set}`,
      );
    }
  }
  return { accounts: { extension, maxSeconds }, warnings };
}
