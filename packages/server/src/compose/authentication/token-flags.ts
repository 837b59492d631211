import { printGoDuration } from '@wheelhouse/schema';
import type { ServerConfig } from '../flags/config.ts';
import type { FeatureGates } from '../flags/feature-gates.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';
import type { identityFlags } from './identity-flags.ts';

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
    stage: 'alpha',
    help: 'The path of the Unix socket of a process that signs service account tokens and keeps their keys, or its abstract name behind @. Instead of --service-account-signing-key-file, --service-account-key-file, and --service-account-max-token-expiration. Secrets are given no tokens then. Needs the gate ExternalServiceAccountTokenSigner.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof tokenFlags>;

const hourSeconds = 60 * 60;
/** What admission asks for on behalf of pods, so that it is told from what somebody chose. */
export const projectedSeconds = hourSeconds + 7;
/** How long such a token is good nevertheless, for programs that read theirs once. */
export const yearSeconds = 365 * 24 * hourSeconds;

/** A path, or `@` and a name of Linux's abstract sockets. */
const socketName = /^(?:(?:\/[^/ ]*)+|@(?:[a-zA-Z0-9_-]+\.)*[a-zA-Z0-9_-]+)$/;

/** What the flags come to, and what their user should know. */
export interface TokenOptions {
  readonly accounts: Pick<
    NonNullable<ServerConfig['serviceAccounts']>,
    'maxSeconds' | 'extension' | 'signingEndpoint'
  >;
  readonly warnings: readonly string[];
}

/**
 * Reads the flags of tokens. Throws FlagError for a bad longest time, and for a signer's socket that
 * is no path, lacks its gate, or contradicts another flag.
 */
export function tokenOptions(
  values: Values & FlagValues<typeof identityFlags>,
  gates: FeatureGates,
): TokenOptions {
  const endpoint = values['service-account-signing-endpoint'];
  if (endpoint === '') return ownTokenOptions(values);
  checkEndpoint(values, gates);
  const extension = values['service-account-extend-token-expiration'] ? 'on' : 'off';
  return { accounts: { extension, signingEndpoint: endpoint }, warnings: [] };
}

function checkEndpoint(
  values: Values & FlagValues<typeof identityFlags>,
  gates: FeatureGates,
): void {
  const flag = '--service-account-signing-endpoint';
  const endpoint = values['service-account-signing-endpoint'];
  if (
    values['service-account-signing-key-file'] !== '' ||
    values['service-account-key-file'].length > 0
  ) {
    throw new FlagError(
      `can't set \`--service-account-signing-key-file\` and/or \`--service-account-key-file\` with \`${flag}\` (They are mutually exclusive)`,
    );
  }
  if (!gates.enabled('ExternalServiceAccountTokenSigner')) {
    throw new FlagError(
      `setting \`${flag}\` requires enabling ExternalServiceAccountTokenSigner feature gate`,
    );
  }
  if (!socketName.test(endpoint)) {
    throw new FlagError(
      `invalid value ${JSON.stringify(endpoint)} passed for \`${flag}\`, should be a valid location on the filesystem or must be prefixed with @ to name UDS in abstract namespace`,
    );
  }
  if (values['service-account-max-token-expiration'] !== 0) {
    throw new FlagError(
      'service-account-max-token-expiration and service-account-signing-endpoint are mutually exclusive and cannot be set at the same time',
    );
  }
}

function ownTokenOptions(values: Values): TokenOptions {
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
