import { type FlagDefinition, FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import { authorizerNames } from '../authorization/settings.ts';
import type { CommandLine, Feature } from '../feature.ts';

/** Settings of authentication. */
export interface AuthenticationSettings {
  readonly authentication: {
    readonly anonymous: boolean;
    readonly tokenFile?: string;
    readonly clientCaFile?: string;
    /** Accepts the tokens of bootstrap-token Secrets; `off` when absent. */
    readonly bootstrapTokens?: 'on' | 'off';
    /** An authenticating proxy that names the user in headers. */
    readonly requestHeader?: {
      readonly clientCaFile: string;
      /** Common names that the proxy's certificate may have; any when empty. */
      readonly allowedNames: readonly string[];
      /** Headers are tried in order. */
      readonly usernameHeaders: readonly string[];
      readonly uidHeaders?: readonly string[];
      readonly groupHeaders: readonly string[];
      readonly extraHeaderPrefixes: readonly string[];
    };
    /** One OpenID provider (AUTHN-7); not together with `configFile`. */
    readonly oidc?: {
      readonly issuerUrl: string;
      readonly clientId: string;
      readonly usernameClaim: string;
      /** Empty: the issuer, unless the claim is `email`; `-`: no prefix. */
      readonly usernamePrefix: string;
      /** Empty: no groups. */
      readonly groupsClaim: string;
      readonly groupsPrefix: string;
      readonly requiredClaims: ReadonlyMap<string, string>;
      readonly signingAlgorithms: readonly string[];
      /** The host's CAs when absent. */
      readonly caFile?: string;
    };
    /** A file with OpenID providers and the rule for anonymous requests (AUTHN-8). */
    readonly configFile?: {
      readonly path: string;
      /** Whether a flag set `anonymous`, which the file must then not set. */
      readonly anonymousFlag: 'given' | 'absent';
    };
    /** A webhook that reviews tokens (AUTHN-9). */
    readonly webhook?: {
      /** Path of a kubeconfig. */
      readonly configFile: string;
      readonly version: string;
      readonly cacheTtlMs: number;
    };
    /** A token of group `system:masters` for the user who starts the server. */
    readonly adminToken?: string;
  };
}

type Authentication = AuthenticationSettings['authentication'];

/** Flags of authentication, except for service accounts. */
const authenticationFlags = flagsIn('Authentication', {
  'enable-bootstrap-token-auth': {
    after: 'api-audiences',
    type: 'bool',
    help: 'Accept the tokens of bootstrap-token Secrets in the system namespace.',
  },
  'requestheader-client-ca-file': {
    type: 'string',
    file: 'certificates',
    help: 'CA bundle of the authenticating proxies whose headers name the user.',
  },
  'requestheader-allowed-names': {
    type: 'list',
    help: "Common names that a proxy's client certificate may have; any when empty.",
  },
  'requestheader-username-headers': {
    type: 'list',
    help: 'Headers that name the user, tried in order; X-Remote-User is common.',
  },
  'requestheader-uid-headers': {
    type: 'list',
    stage: 'alpha',
    help: "Headers that name the user's UID, tried in order; X-Remote-Uid is common. Requires the gate RemoteRequestHeaderUID.",
  },
  'requestheader-group-headers': {
    type: 'list',
    help: 'Headers that name groups; X-Remote-Group is common.',
  },
  'requestheader-extra-headers-prefix': {
    type: 'list',
    help: 'Prefixes of headers with extra attributes of the user; X-Remote-Extra- is common.',
  },
  'authentication-config': {
    after: 'service-account-signing-endpoint',
    type: 'string',
    file: 'any',
    stage: 'beta',
    help: 'AuthenticationConfiguration file with OpenID providers, rules for their tokens, and the paths open to anonymous requests; reloaded when it changes. Excludes --oidc-*, and --anonymous-auth if the file configures anonymous requests.',
  },
  'oidc-issuer-url': {
    type: 'string',
    help: 'The https URL of an OpenID provider whose ID tokens authenticate users; the server discovers its keys there.',
  },
  'oidc-client-id': {
    type: 'string',
    help: 'The audience that ID tokens must have; required with --oidc-issuer-url.',
  },
  'oidc-ca-file': {
    type: 'string',
    file: 'certificates',
    help: "CA bundle for the certificate of the provider; the host's CAs when empty.",
  },
  'oidc-username-claim': {
    type: 'string',
    default: 'sub',
    help: 'The claim used as the user name; claims other than sub may be neither unique nor stable.',
  },
  'oidc-username-prefix': {
    type: 'string',
    help: 'Prefix of user names; - means none. When empty, the issuer URL and # for claims other than email.',
  },
  'oidc-groups-claim': {
    type: 'string',
    help: "The claim that holds the user's groups, one or a list.",
  },
  'oidc-groups-prefix': { type: 'string', help: 'Prefix of the names of these groups.' },
  'oidc-required-claim': {
    type: 'pair',
    help: 'A claim=value pair that the ID token must have; may be repeated.',
  },
  'oidc-signing-algs': {
    type: 'list',
    default: 'RS256',
    help: 'Accepted signing algorithms: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.',
  },
  'authentication-token-webhook-config-file': {
    type: 'string',
    file: 'any',
    help: 'Kubeconfig of a webhook that reviews bearer tokens.',
  },
  'authentication-token-webhook-version': {
    type: 'string',
    default: 'v1beta1',
    help: 'The version of TokenReview to exchange with the webhook: v1 or v1beta1.',
  },
  'authentication-token-webhook-cache-ttl': {
    type: 'duration',
    default: '2m0s',
    help: "How long the webhook's verdicts on tokens are cached.",
  },
  'anonymous-auth': {
    type: 'bool',
    default: 'true',
    help: 'Accept requests without a credential as user system:anonymous of group system:unauthenticated; always off with --authorization-mode=AlwaysAllow.',
  },
  'client-ca-file': {
    type: 'string',
    file: 'certificates',
    help: 'CA bundle for client certificates; the common name is the user, the organizations are the groups.',
  },
  'token-auth-file': {
    type: 'string',
    file: 'any',
    help: 'CSV file of bearer tokens: token,user,uid,"group1,group2".',
  },
  'admin-kubeconfig': {
    group: 'Misc',
    after: 'allow-privileged',
    type: 'string',
    stage: 'own',
    help: 'File to write a kubeconfig of group system:masters to; in --data-dir when empty.',
  },
});

type Values = FlagValues<typeof authenticationFlags>;

type ModeFlags = {
  readonly 'authorization-mode': FlagDefinition & { readonly type: 'list' };
  readonly 'authorization-config': FlagDefinition & { readonly type: 'string' };
};

/** Authentication: certificates, tokens, proxies, OpenID Connect, and webhooks. */
export const authenticationFeature: Feature<
  typeof authenticationFlags,
  AuthenticationSettings,
  ModeFlags
> = {
  flags: authenticationFlags,
  settings(values, line) {
    checkUidHeaders(values, line);
    const allowsAll = authorizerNames(values).includes('AlwaysAllow');
    return {
      authentication: {
        // AlwaysAllow must not extend to unauthenticated requests; kube-apiserver does the same.
        anonymous:
          values['anonymous-auth'] && (!allowsAll || values['authorization-config'] !== ''),
        ...(values['token-auth-file'] === '' ? {} : { tokenFile: values['token-auth-file'] }),
        ...(values['client-ca-file'] === '' ? {} : { clientCaFile: values['client-ca-file'] }),
        bootstrapTokens: values['enable-bootstrap-token-auth'] ? 'on' : 'off',
        ...requestHeaderOf(values),
        ...oidcSettings(values, line),
        ...webhookSettings(values),
      },
    };
  },
};

function checkUidHeaders(values: Values, { gates }: Pick<CommandLine, 'gates'>): void {
  const names = values['requestheader-uid-headers'];
  if (names.length === 0) return;
  if (!gates.enabled('RemoteRequestHeaderUID')) {
    throw new FlagError(
      '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
    );
  }
  if (names.some((name) => name.toLowerCase() === 'x-remote-uid')) return;
  throw new FlagError(
    '--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work',
  );
}

function requestHeaderOf(values: Values): Pick<Authentication, 'requestHeader'> {
  const names = [
    'username-headers',
    'uid-headers',
    'group-headers',
    'extra-headers-prefix',
    'allowed-names',
  ] as const;
  for (const name of names) {
    if (values[`requestheader-${name}`].some((header) => header.trim() === '')) {
      throw new FlagError(`empty value in "requestheader-${name}"`);
    }
  }
  const uidHeaders = values['requestheader-uid-headers'];
  const clientCaFile = values['requestheader-client-ca-file'];
  if (clientCaFile === '') return {};
  return {
    requestHeader: {
      clientCaFile,
      allowedNames: values['requestheader-allowed-names'],
      usernameHeaders: values['requestheader-username-headers'],
      ...(uidHeaders.length === 0 ? {} : { uidHeaders }),
      groupHeaders: values['requestheader-group-headers'],
      extraHeaderPrefixes: values['requestheader-extra-headers-prefix'],
    },
  };
}

/**
 * The OpenID settings from the flags. Throws FlagError for contradictions. The providers and the
 * file are validated when they are opened.
 */
function oidcSettings(
  values: Values,
  { specifiedFlags, gates }: Pick<CommandLine, 'specifiedFlags' | 'gates'>,
): Pick<Authentication, 'oidc' | 'configFile'> {
  const givesOidc = [...specifiedFlags].some((name) => name.startsWith('oidc-'));
  const path = values['authentication-config'];
  if (path !== '') {
    if (!gates.enabled('StructuredAuthenticationConfiguration')) {
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

/** The webhook settings from the flags; none without a kubeconfig. */
function webhookSettings(values: Values): Pick<Authentication, 'webhook'> {
  const configFile = values['authentication-token-webhook-config-file'];
  if (configFile === '') return {};
  return {
    webhook: {
      configFile,
      version: values['authentication-token-webhook-version'],
      cacheTtlMs: values['authentication-token-webhook-cache-ttl'],
    },
  };
}
