import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** Flags of OpenID Connect and of the file that says more of it, part of `serverFlags`. */
export const oidcFlags = {
  'authentication-config': {
    group: 'Authentication',
    type: 'string',
    file: 'any',
    stage: 'beta',
    default: '',
    help: 'File of kind AuthenticationConfiguration: OpenID providers with rules for their tokens, and who may come without a credential. Followed while the server runs. Not with --oidc-*, nor with --anonymous-auth when the file says who may be anonymous.',
  },
  'oidc-issuer-url': {
    group: 'Authentication',
    type: 'string',
    default: '',
    help: 'The https URL of an OpenID provider whose ID tokens authenticate. Its keys are found there.',
  },
  'oidc-client-id': {
    group: 'Authentication',
    type: 'string',
    default: '',
    help: 'The audience that ID tokens must be for. Given together with --oidc-issuer-url.',
  },
  'oidc-ca-file': {
    group: 'Authentication',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of the CAs that sign the certificate of the provider. The authorities of the host when empty.',
  },
  'oidc-username-claim': {
    group: 'Authentication',
    type: 'string',
    default: 'sub',
    help: 'The claim that is the user name. Others than sub need not be unique or stay the same.',
  },
  'oidc-username-prefix': {
    group: 'Authentication',
    type: 'string',
    default: '',
    help: 'What is put ahead of user names; - is nothing. When empty, the issuer URL and # for claims other than email.',
  },
  'oidc-groups-claim': {
    group: 'Authentication',
    type: 'string',
    default: '',
    help: "The claim that holds the user's groups, one or a list.",
  },
  'oidc-groups-prefix': {
    group: 'Authentication',
    type: 'string',
    default: '',
    help: 'What is put ahead of the names of these groups.',
  },
  'oidc-required-claim': {
    group: 'Authentication',
    type: 'pairs',
    default: '',
    help: 'A pair claim=value that the ID token must have. May be given several times.',
  },
  'oidc-signing-algs': {
    group: 'Authentication',
    type: 'list',
    default: 'RS256',
    help: 'Signing algorithms that are accepted: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof oidcFlags>;

/**
 * What the flags come to. Throws FlagError for contradictions; what the providers and the file must
 * be like is looked at when they are opened.
 */
export function oidcOptions(
  values: Values,
  context: {
    readonly specifiedFlags: ReadonlySet<string>;
    /** Gate StructuredAuthenticationConfiguration. */
    readonly structured: boolean;
  },
): Pick<ServerConfig['authentication'], 'oidc' | 'configFile'> {
  const { specifiedFlags } = context;
  const givesOidc = [...specifiedFlags].some((name) => name.startsWith('oidc-'));
  const path = values['authentication-config'];
  if (path !== '') {
    if (!context.structured) {
      const gate = '--feature-gates=StructuredAuthenticationConfiguration=true';
      throw new FlagError(`set ${gate} to use authentication-config file`);
    }
    if (givesOidc) {
      throw new FlagError('authentication-config file and oidc-* flags are mutually exclusive');
    }
    const anonymousFlag = specifiedFlags.has('anonymous-auth') ? 'given' : 'absent';
    return { configFile: { path, anonymousFlag } };
  }
  if (!givesOidc) return {};
  const [issuerUrl, clientId] = [values['oidc-issuer-url'], values['oidc-client-id']];
  if (issuerUrl === '' || clientId === '') {
    throw new FlagError(
      'oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set',
    );
  }
  const algorithms = values['oidc-signing-algs'];
  const caFile = values['oidc-ca-file'];
  return {
    oidc: {
      issuerUrl,
      clientId,
      usernameClaim: values['oidc-username-claim'],
      usernamePrefix: values['oidc-username-prefix'],
      groupsClaim: values['oidc-groups-claim'],
      groupsPrefix: values['oidc-groups-prefix'],
      requiredClaims: values['oidc-required-claim'],
      signingAlgorithms: algorithms.length === 0 ? ['RS256'] : algorithms,
      ...(caFile === '' ? {} : { caFile }),
    },
  };
}
