import { parseGoUrl } from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { isHttpsUrl } from '../../endpoints/issuer-discovery.ts';
import type { FeatureGates } from '../../flags/feature-gates.ts';
import { FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import type { CommandLine, Feature } from '../feature.ts';

/** Settings of service account tokens. */
export interface ServiceAccountSettings {
  /** Absent: the server generates its own key and issuer. */
  readonly serviceAccounts?: {
    readonly issuer?: string;
    /** Issuers whose tokens are accepted; `issuer` alone when absent. */
    readonly acceptedIssuers?: readonly string[];
    readonly audiences?: readonly string[];
    /** PEM files of verification keys besides the signing key. */
    readonly keyFiles?: readonly string[];
    readonly signingKeyFile?: string;
    /** Socket of a process that signs the tokens and holds the keys; excludes key files. */
    readonly signingEndpoint?: string;
    /** The advertised URL of the public keys; at this server's own address when absent. */
    readonly jwksUri?: string;
    /** `off` accepts the tokens of deleted Secrets. */
    readonly lookup?: 'required' | 'off';
    /** Maximum lifetime of tokens in seconds; unlimited when absent. */
    readonly maxSeconds?: number;
    /** Whether tokens that admission puts into pods are valid for a year; `on` when absent. */
    readonly extension?: 'on' | 'off';
  };
}

type Accounts = NonNullable<ServiceAccountSettings['serviceAccounts']>;

/** Flags of service accounts and their tokens. */
const serviceAccountFlags = flagsIn('Authentication', {
  'service-account-key-file': {
    type: 'each',
    file: 'keys',
    help: 'PEM file of RSA or ECDSA keys, private or public, that verify service account tokens in addition to the signing key; --tls-private-key-file when none is given. A file may contain several keys. May be repeated.',
  },
  'service-account-signing-key-file': {
    type: 'string',
    file: 'signing key',
    help: 'PEM file of the private key that signs service account tokens; the server generates a key when empty.',
  },
  'service-account-issuer': {
    type: 'each',
    help: 'Issuers of service account tokens: new tokens name the first, all are accepted.',
  },
  'service-account-jwks-uri': {
    type: 'string',
    help: "The https URL of the public keys in the issuer's description; at this server's own address when empty.",
  },
  'service-account-lookup': {
    type: 'bool',
    default: 'true',
    help: 'Accept the token of a Secret only while the Secret and the account exist. Other service account tokens always need their account and the objects they are bound to.',
  },
  'api-audiences': {
    type: 'list',
    help: 'Audiences of this server, one of which a token must name; the issuers when empty.',
  },
  'service-account-max-token-expiration': {
    after: 'requestheader-extra-headers-prefix',
    type: 'duration',
    help: 'Maximum lifetime of service account tokens, between 1h and 2^32 seconds; longer requests are shortened with a warning. 0 means no maximum.',
  },
  'service-account-extend-token-expiration': {
    type: 'bool',
    default: 'true',
    help: 'Issue the tokens that admission puts into pods for a year, regardless of the maximum lifetime, and record uses after the first hour.',
  },
  'service-account-signing-endpoint': {
    type: 'string',
    stage: 'alpha',
    help: 'Unix socket of a process that signs service account tokens and holds their keys: a path, or @ and an abstract name (which Node.js 20 pads with zeros, unlike most programs, so prefer a path). Excludes --service-account-signing-key-file, --service-account-key-file, and --service-account-max-token-expiration; Secrets get no tokens. Needs the gate ExternalServiceAccountTokenSigner.',
  },
});

/** Service accounts: who signs their tokens, and for how long. */
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
  checkIssuers(issuers);
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

function checkIssuers(issuers: readonly string[]): void {
  for (const [index, issuer] of issuers.entries()) {
    const url = issuer.includes(':') ? parseGoUrl(issuer) : undefined;
    const shown = JSON.stringify(issuer);
    if (typeof url === 'string') {
      throw new FlagError(
        `service-account-issuer ${shown} contained a ':' but was not a valid URL: ${url}`,
      );
    }
    if (issuer === '') throw new FlagError('service-account-issuer should not be an empty string');
    if (issuers.indexOf(issuer) < index) {
      throw new FlagError(`service-account-issuer ${shown} is already specified`);
    }
  }
}

type Values = FlagValues<typeof serviceAccountFlags>;

const hourSeconds = 60 * 60;
/** The lifetime that admission requests for pods, distinct from round values that users choose. */
export const projectedSeconds = hourSeconds + 7;
/** The actual lifetime of such a token, for programs that read theirs only once. */
export const yearSeconds = 365 * 24 * hourSeconds;

/** A path, or `@` and a name in Linux's abstract socket namespace. */
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
