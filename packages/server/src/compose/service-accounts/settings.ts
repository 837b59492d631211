import { printGoDuration } from '@wheelhouse/schema';
import type { FeatureGates } from '../apis/feature-gates.ts';
import type { CommandLine, Feature } from '../feature.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';
import { isHttpsUrl } from './issuer-discovery.ts';

/** The tokens of service accounts. */
export interface ServiceAccountSettings {
  /** Absent: a key and issuer of the server's own. */
  readonly serviceAccounts?: {
    readonly issuer?: string;
    /** Issuers whose tokens are accepted; `issuer` alone when absent. */
    readonly acceptedIssuers?: readonly string[];
    readonly audiences?: readonly string[];
    /** PEM files of keys that verify tokens, besides the signing key. */
    readonly keyFiles?: readonly string[];
    readonly signingKeyFile?: string;
    /** The socket of a process that signs the tokens and keeps the keys; not together with files. */
    readonly signingEndpoint?: string;
    /** Where the public keys are said to be; at this server's own address when absent. */
    readonly jwksUri?: string;
    /** `off` accepts tokens of accounts that are gone. */
    readonly lookup?: 'required' | 'off';
    /** The longest that a token is good for; as long as is asked when absent. */
    readonly maxSeconds?: number;
    /** Whether the tokens that admission puts into pods are good for a year; `on` when absent. */
    readonly extension?: 'on' | 'off';
  };
}

type Accounts = NonNullable<ServiceAccountSettings['serviceAccounts']>;

/** Flags of service accounts and their tokens. */
const serviceAccountFlags = {
  'service-account-key-file': {
    group: 'Authentication',
    type: 'list',
    file: 'keys',
    default: '',
    help: 'PEM files of RSA or ECDSA private or public keys that verify service account tokens, besides the signing key; a file may hold several. The key of --tls-private-key-file when none are given.',
  },
  'service-account-signing-key-file': {
    group: 'Authentication',
    type: 'string',
    file: 'signing key',
    default: '',
    help: 'PEM file of the private key that signs service account tokens. A key of the server’s own when empty.',
  },
  'service-account-issuer': {
    group: 'Authentication',
    type: 'list',
    default: '',
    help: 'Issuers of service account tokens: the first stands in new ones, all are accepted.',
  },
  'service-account-jwks-uri': {
    group: 'Authentication',
    type: 'string',
    default: '',
    help: 'Where the issuer’s description says that its public keys are: a URL of https. This server’s own address when empty.',
  },
  'service-account-lookup': {
    group: 'Authentication',
    type: 'bool',
    default: 'true',
    help: 'Accept a service account token only while its account, and what it is bound to, exist.',
  },
  'api-audiences': {
    group: 'Authentication',
    type: 'list',
    default: '',
    help: 'Audiences of this server, one of which a token must be for. The issuers when empty.',
  },
  'service-account-max-token-expiration': {
    group: 'Authentication',
    after: 'requestheader-extra-headers-prefix',
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
    help: 'The path of the Unix socket of a process that signs service account tokens and keeps their keys, or its abstract name behind @ (Node 20 pads that with zeros to its full length, which most programs do not: prefer a path). Instead of --service-account-signing-key-file, --service-account-key-file, and --service-account-max-token-expiration. Secrets are given no tokens then. Needs the gate ExternalServiceAccountTokenSigner.',
  },
} as const satisfies FlagTable;

/** Service accounts: who signs their tokens, and how long those are good. */
export const serviceAccountFeature: Feature<typeof serviceAccountFlags, ServiceAccountSettings> = {
  flags: serviceAccountFlags,
  settings(values, line) {
    checkNodeBinding(line.gates);
    const signingEndpoint = values['service-account-signing-endpoint'];
    if (signingEndpoint !== '') checkEndpoint(values, line.gates);
    const extension = values['service-account-extend-token-expiration'] ? 'on' : 'off';
    return {
      serviceAccounts: {
        ...accountsOf(values),
        ...(signingEndpoint === ''
          ? lifetimeSettings(values, line)
          : { extension, signingEndpoint }),
      },
    };
  },
};

function checkNodeBinding(gates: FeatureGates): void {
  const [binding, validation] = [
    'ServiceAccountTokenNodeBinding',
    'ServiceAccountTokenNodeBindingValidation',
  ] as const;
  if (!gates.enabled(binding) || gates.enabled(validation)) return;
  throw new FlagError(
    `the "${binding}" feature gate can only be enabled if the "${validation}" feature gate is also enabled`,
  );
}

function accountsOf(values: Values): Accounts {
  const issuers = values['service-account-issuer'];
  const [issuer] = issuers;
  const audiences = values['api-audiences'];
  const signingKeyFile = values['service-account-signing-key-file'];
  const keyFiles = values['service-account-key-file'];
  const jwksUri = values['service-account-jwks-uri'];
  if (jwksUri !== '' && !isHttpsUrl(jwksUri)) {
    throw new FlagError(`service-account-jwks-uri requires https scheme, parsed as: ${jwksUri}`);
  }
  return {
    ...(jwksUri === '' ? {} : { jwksUri }),
    ...(issuer === undefined ? {} : { issuer, acceptedIssuers: issuers }),
    ...(audiences.length > 0 ? { audiences } : {}),
    keyFiles,
    ...(signingKeyFile === '' ? {} : { signingKeyFile }),
    lookup: values['service-account-lookup'] ? 'required' : 'off',
  };
}

type Values = FlagValues<typeof serviceAccountFlags>;

const hourSeconds = 60 * 60;
/** What admission asks for on behalf of pods, so that it is told from what somebody chose. */
export const projectedSeconds = hourSeconds + 7;
/** How long such a token is good nevertheless, for programs that read theirs once. */
export const yearSeconds = 365 * 24 * hourSeconds;

/** A path, or `@` and a name of Linux's abstract sockets. */
const socketName = /^(?:(?:\/[^/ ]*)+|@(?:[a-zA-Z0-9_-]+\.)*[a-zA-Z0-9_-]+)$/;

function checkEndpoint(values: Values, gates: FeatureGates): void {
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

function lifetimeSettings(
  values: Values,
  { warn }: Pick<CommandLine, 'warn'>,
): Pick<Accounts, 'maxSeconds' | 'extension'> {
  const longestMs = values['service-account-max-token-expiration'];
  const extension = values['service-account-extend-token-expiration'] ? 'on' : 'off';
  if (longestMs === 0) return { extension };
  const maxSeconds = Math.floor(longestMs / 1000);
  if (longestMs < hourSeconds * 1000 || longestMs > 2 ** 32 * 1000) {
    throw new FlagError(
      'the service-account-max-token-expiration must be between 1 hour and 2^32 seconds',
    );
  }
  if (extension === 'on') {
    const said = 'service-account-extend-token-expiration is true,';
    const set = printGoDuration(BigInt(Math.round(longestMs * 1e6)));
    if (maxSeconds < projectedSeconds) {
      warn(
        `${said} in order to correctly trigger safe transition logic, service-account-max-token-expiration must be set longer than ${projectedSeconds} seconds (currently ${set})`,
      );
    }
    if (maxSeconds < yearSeconds) {
      warn(
        `${said} enabling tokens valid up to ${yearSeconds} seconds, which is longer than service-account-max-token-expiration set to ${set}`,
      );
    }
  }
  return { extension, maxSeconds };
}
