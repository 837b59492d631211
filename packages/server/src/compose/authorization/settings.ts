import { supportedVersion } from '@wheelhouse/machinery';
import { FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import {
  type AccessReviewVersion,
  type AuthorizerType,
  accessReviewVersions,
  authorizerTypes,
} from '../../gates/authz/authorization.ts';
import type { CommandLine, Feature } from '../feature.ts';

/** Settings of authorization. */
export interface AuthorizationSettings {
  /** Replaced by those of `authorization.configFile`. */
  readonly authorizationModes: readonly AuthorizerType[];
  /** Settings of individual modes. */
  readonly authorization?: {
    /** A file that configures the authorizers (AUTHZ-3). */
    readonly configFile?: string;
    /** Policies of mode ABAC. */
    readonly policyFile?: string;
    readonly webhook?: {
      /** Path of a kubeconfig. */
      readonly configFile: string;
      readonly version: AccessReviewVersion;
      readonly authorizedTtlMs: number;
      readonly unauthorizedTtlMs: number;
    };
  };
}

/** Flags of authorization. */
const authorizationFlags = flagsIn('Authorization', {
  'authorization-mode': {
    type: 'list',
    default: 'AlwaysAllow',
    help: `Authorizers, consulted in order: ${authorizerTypes.join(', ')}.`,
  },
  'authorization-config': {
    type: 'string',
    file: 'any',
    help: 'AuthorizationConfiguration file with the authorizers, consulted in order, including any number of webhooks; reloaded when it changes. Excludes --authorization-mode and --authorization-webhook-*.',
  },
  'authorization-policy-file': {
    type: 'string',
    file: 'any',
    help: 'File with the policies of mode ABAC, one JSON object per line.',
  },
  'authorization-webhook-config-file': {
    type: 'string',
    file: 'any',
    help: 'Kubeconfig of the webhook of mode Webhook.',
  },
  'authorization-webhook-version': {
    type: 'string',
    default: 'v1beta1',
    help: 'The version of SubjectAccessReview to exchange with the webhook: v1 or v1beta1.',
  },
  'authorization-webhook-cache-authorized-ttl': {
    type: 'duration',
    default: '5m0s',
    help: "How long the webhook's verdicts that allow are cached.",
  },
  'authorization-webhook-cache-unauthorized-ttl': {
    type: 'duration',
    default: '30s',
    help: "How long the webhook's other verdicts are cached.",
  },
});

/** The authorization feature: authorizers, consulted in order. */
export const authorizationFeature: Feature<typeof authorizationFlags, AuthorizationSettings> = {
  flags: authorizationFlags,
  settings: authorizationSettings,
};

type Values = FlagValues<typeof authorizationFlags>;

/**
 * The authorization settings from the flags. Throws FlagError, mostly in kube-apiserver's wording,
 * for contradictions, and for a file of authorizers if the emulated release does not support one.
 */
function authorizationSettings(
  values: Values,
  { specifiedFlags, gates }: CommandLine,
): AuthorizationSettings {
  if (gates.enabled('AuthorizeNodeWithSelectors') && !gates.enabled('AuthorizeWithSelectors')) {
    throw new FlagError(
      'AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled',
    );
  }
  const policyFile = values['authorization-policy-file'];
  const policy = policyFile === '' ? {} : { policyFile };
  const configFile = values['authorization-config'];
  if (configFile !== '') {
    if (!gates.enabled('StructuredAuthorizationConfiguration')) {
      throw new FlagError(
        '--authorization-config cannot be used without enabling StructuredAuthorizationConfiguration feature flag',
      );
    }
    refuseBesideFile(specifiedFlags);
    return { authorizationModes: [], authorization: { configFile, ...policy } };
  }
  const authorizationModes = modesOf(authorizerNames(values));
  checkFiles(values, new Set(authorizationModes));
  const webhook = webhookOf(values);
  const authorization = { ...policy, ...(webhook === undefined ? {} : { webhook }) };
  const isEmpty = Object.keys(authorization).length === 0;
  return { authorizationModes, ...(isEmpty ? {} : { authorization }) };
}

/** The modes that flags name; like kube-apiserver, AlwaysAllow if the flag names none. */
export function authorizerNames(values: {
  readonly 'authorization-mode': readonly string[];
}): readonly string[] {
  const names = values['authorization-mode'];
  return names.length === 0 ? ['AlwaysAllow'] : names;
}

function refuseBesideFile(specifiedFlags: ReadonlySet<string>): void {
  const clash = [...specifiedFlags].find(
    (name) => name === 'authorization-mode' || name.startsWith('authorization-webhook-'),
  );
  if (clash === undefined) return;
  throw new FlagError(
    '--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined',
  );
}

function modesOf(names: readonly string[]): readonly AuthorizerType[] {
  const modes = names.map((value) => {
    const mode = authorizerTypes.find((type) => type === value);
    if (mode !== undefined) return mode;
    throw new FlagError(`authorization-mode ${JSON.stringify(value)} is not a valid mode`);
  });
  if (new Set(modes).size === modes.length) return modes;
  const shown = modes.map((mode) => JSON.stringify(mode)).join(' ');
  throw new FlagError(`authorization-mode [${shown}] has mode specified more than once`);
}

function checkFiles(values: Values, modes: ReadonlySet<AuthorizerType>): void {
  const hasPolicies = values['authorization-policy-file'] !== '';
  const hasWebhook = values['authorization-webhook-config-file'] !== '';
  if (modes.has('ABAC') && !hasPolicies) {
    throw new FlagError("authorization-mode ABAC's authorization policy file not passed");
  }
  if (modes.has('Webhook') && !hasWebhook) {
    throw new FlagError("authorization-mode Webhook's authorization config file not passed");
  }
  if (hasPolicies && !modes.has('ABAC')) {
    throw new FlagError('cannot specify --authorization-policy-file without mode ABAC');
  }
  if (hasWebhook && !modes.has('Webhook')) {
    throw new FlagError('cannot specify --authorization-webhook-config-file without mode Webhook');
  }
}

function webhookOf(values: Values): NonNullable<AuthorizationSettings['authorization']>['webhook'] {
  const configFile = values['authorization-webhook-config-file'];
  if (configFile === '') return undefined;
  return {
    configFile,
    version: supportedVersion(values['authorization-webhook-version'], {
      what: 'webhook authorizer',
      versions: accessReviewVersions,
    }),
    authorizedTtlMs: values['authorization-webhook-cache-authorized-ttl'],
    unauthorizedTtlMs: values['authorization-webhook-cache-unauthorized-ttl'],
  };
}
