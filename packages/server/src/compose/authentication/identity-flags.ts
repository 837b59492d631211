import { controllerNames, unknownController } from '../controllers/controller-selection.ts';
import type { ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';
import { isHttpsUrl } from './issuer-discovery.ts';

/** Flags of accounts, bootstrap tokens and the authenticating proxy, part of `serverFlags`. */
export const identityFlags = {
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
  'enable-bootstrap-token-auth': {
    group: 'Authentication',
    type: 'bool',
    default: 'false',
    help: 'Accept the tokens of bootstrap-token Secrets in the system namespace.',
  },
  'requestheader-client-ca-file': {
    group: 'Authentication',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of the CAs of authenticating proxies, whose headers name the user.',
  },
  'requestheader-allowed-names': {
    group: 'Authentication',
    type: 'list',
    default: '',
    help: 'Common names that a proxy’s client certificate may have. Any when empty.',
  },
  'requestheader-username-headers': {
    group: 'Authentication',
    type: 'list',
    default: '',
    help: 'Headers that name the user, asked in order; X-Remote-User is common.',
  },
  'requestheader-uid-headers': {
    group: 'Authentication',
    type: 'list',
    default: '',
    stage: 'alpha',
    help: 'Headers that name the user’s uid, asked in order; X-Remote-Uid is common. Needs the gate RemoteRequestHeaderUID.',
  },
  'requestheader-group-headers': {
    group: 'Authentication',
    type: 'list',
    default: '',
    help: 'Headers that name groups; X-Remote-Group is common.',
  },
  'requestheader-extra-headers-prefix': {
    group: 'Authentication',
    type: 'list',
    default: '',
    help: 'Prefixes of headers with more about the user; X-Remote-Extra- is common.',
  },
  controllers: {
    group: 'Controllers',
    type: 'list',
    default: '*',
    help: `Controllers to run: * is all that run by default, api-server those that a kube-apiserver runs itself, for use with a controller manager or with none, name or -name is that one or all but it. Known are ${controllerNames.join(', ')}; the last two do not run by default.`,
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof identityFlags>;

type IdentityConfig = Required<Pick<ServerConfig, 'serviceAccounts' | 'controllers'>> & {
  readonly authentication: Pick<
    ServerConfig['authentication'],
    'bootstrapTokens' | 'requestHeader'
  >;
};

/** What the flags come to. Throws FlagError for a controller nobody knows and bad names. */
export function identityOptions(values: Values): IdentityConfig {
  const stranger = unknownController(values.controllers);
  if (stranger !== undefined) {
    const name = JSON.stringify(stranger.replace(/^-/, ''));
    throw new FlagError(`--controllers: ${name} is not in the list of known controllers`);
  }
  return {
    controllers: values.controllers,
    serviceAccounts: accountsOf(values),
    authentication: {
      bootstrapTokens: values['enable-bootstrap-token-auth'] ? 'on' : 'off',
      ...requestHeaderOf(values),
    },
  };
}

function accountsOf(values: Values): NonNullable<ServerConfig['serviceAccounts']> {
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

function requestHeaderOf(values: Values): Pick<ServerConfig['authentication'], 'requestHeader'> {
  const names = [
    'username-headers',
    'uid-headers',
    'group-headers',
    'extra-headers-prefix',
  ] as const;
  for (const name of names) {
    if (values[`requestheader-${name}`].some((header) => header.trim() === '')) {
      throw new FlagError(`--requestheader-${name} holds an empty name`);
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
