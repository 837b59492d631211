import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { environmentProxy } from '@wheelhouse/client';
import {
  type Dialect,
  errorText,
  type FieldError,
  fieldErrorsText,
  forbiddenField,
  type JsonValue,
  jsonEqual,
  type Logger,
  type MetricRegistry,
  runInSlices,
} from '@wheelhouse/machinery';
import {
  createReloadMetrics,
  followFile,
  hostRoots,
  type ReloadedFile,
  type ReloadOutcome,
  readConfigurationFile,
} from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import {
  createJwtAuthentication,
  type JwtAuthentication,
  ProvidersNotReady,
} from '../../gates/authn/jwt/authenticator.ts';
import {
  type AnonymousConfiguration,
  type AuthenticationConfiguration,
  readAuthenticationConfiguration,
} from '../../gates/authn/jwt/configuration.ts';
import { signingAlgorithms } from '../../gates/authn/jwt/provider.ts';
import {
  type CheckedAuthenticator,
  validateAuthentication,
} from '../../gates/authn/jwt/validate.ts';
import type { ServerConfig } from '../config.ts';
import { accountSettings } from '../service-accounts/service-account-tokens.ts';

/** OpenID authentication, and the other settings of its file. */
export interface OidcAuthentication {
  readonly authenticator: JwtAuthentication;
  /** Null when the file does not set it or there is no file. */
  readonly anonymous: AnonymousConfiguration | null;
  close(): void;
}

interface Options {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly registry: MetricRegistry;
}

/**
 * Opens the providers of `--oidc-*` or `--authentication-config` (AUTHN-7, AUTHN-8). Rejects with a
 * one-line error for an invalid configuration; an unreachable provider is no error.
 */
export async function openOidc(options: Options): Promise<OidcAuthentication> {
  const { oidc, configFile } = options.config.authentication;
  if (configFile !== undefined) return openFile(options, configFile);
  const algorithms = oidc?.signingAlgorithms ?? [];
  const unknown = algorithms.find((algorithm) => !signingAlgorithms.includes(algorithm));
  if (unknown !== undefined) {
    throw new Error(`oidc: unsupported signing alg: ${JSON.stringify(unknown)}`);
  }
  const jwt = oidc === undefined ? [] : [configurationOfFlags(oidc)];
  const checked = await validated({ jwt, anonymous: null }, options);
  if (checked.errors.length > 0) {
    throw new Error(`invalid authentication configuration: ${fieldErrorsText(checked.errors)}`);
  }
  const authenticator = create(checked.authenticators, options, algorithms);
  return { authenticator, anonymous: null, close: () => authenticator.stop() };
}

type OidcFlags = NonNullable<ServerConfig['authentication']['oidc']>;

/** Converts the flags to an entry of the file, as kube-apiserver reads them. */
function configurationOfFlags(
  flags: OidcFlags,
): NonNullable<AuthenticationConfiguration['jwt']>[number] {
  const { issuerUrl, clientId, usernameClaim, usernamePrefix, groupsClaim } = flags;
  const byIssuer = usernameClaim === 'email' ? '' : `${issuerUrl}#`;
  const prefix = usernamePrefix === '' ? byIssuer : usernamePrefix === '-' ? '' : usernamePrefix;
  const withGroups = groupsClaim !== '';
  return {
    issuer: {
      url: issuerUrl,
      discoveryURL: null,
      certificateAuthority: flags.caFile === undefined ? '' : readFileSync(flags.caFile, 'utf8'),
      audiences: [clientId],
      audienceMatchPolicy: '',
    },
    claimValidationRules: [...flags.requiredClaims].map(([claim, requiredValue]) => ({
      claim,
      requiredValue,
      expression: '',
      message: '',
    })),
    claimMappings: {
      username: { claim: usernameClaim, prefix, expression: '' },
      groups: {
        claim: groupsClaim,
        prefix: withGroups ? flags.groupsPrefix : null,
        expression: '',
      },
      uid: { claim: '', expression: '' },
      extra: null,
    },
    userValidationRules: null,
  };
}

type ConfigFile = NonNullable<ServerConfig['authentication']['configFile']>;

async function openFile(options: Options, configFile: ConfigFile): Promise<OidcAuthentication> {
  const first = await readFirst(options, configFile);
  const authenticator = create(first.authenticators, options, signingAlgorithms);
  const followed = follow(authenticator, { ...options, ...first, path: configFile.path });
  return {
    authenticator,
    anonymous: first.anonymous,
    close() {
      followed.stop();
      authenticator.stop();
    },
  };
}

/** Reads the file at the start, where any error rejects. */
async function readFirst(options: Options, { path, anonymousFlag }: ConfigFile) {
  const file = JSON.stringify(path);
  const errorPrefix = `failed to load authentication configuration from file ${file}`;
  const text = inContext(errorPrefix, () => readConfigurationFile(path));
  const configuration = await readAuthenticationConfiguration(text, options.dialect).catch(
    (error: unknown) => {
      throw new Error(`${errorPrefix}: ${errorText(error)}`);
    },
  );
  const { anonymous } = configuration;
  const { errors, authenticators } = await validated(configuration, options);
  if (anonymous !== null && anonymousFlag === 'given') {
    const field = 'anonymous field is configured in authentication configuration file';
    const detail = `--anonymous-auth flag cannot be set when ${field}`;
    errors.unshift(forbiddenField('anonymous', detail));
  }
  if (errors.length > 0) {
    throw new Error(
      `invalid authentication configuration in file ${file}: ${fieldErrorsText(errors)}`,
    );
  }
  return { text, anonymous, authenticators };
}

/** Reconfigures the authenticator whenever the file changes, and counts the outcomes. */
function follow(
  authenticator: JwtAuthentication,
  options: Options & {
    readonly path: string;
    readonly text: string;
    readonly anonymous: AnonymousConfiguration | null;
  },
): ReloadedFile {
  const { config, dialect, registry, path, text, anonymous } = options;
  const { clock, logger } = config;
  const count = createReloadMetrics(registry, {
    controller: 'authentication_config_controller',
    what: 'authentication configuration',
    clock,
    dialect,
  });
  return followFile({
    file: path,
    text,
    clock,
    load: async (changed) => {
      const next = await readAuthenticationConfiguration(changed, dialect);
      await authenticator.replace(await authenticatorsOf(next, anonymous, options));
    },
    isTemporary: (error) => error instanceof ProvidersNotReady,
    observe: (outcome) => {
      count(outcome.status);
      logReload(logger, path, outcome);
    },
  });
}

function logReload(logger: Logger, file: string, outcome: ReloadOutcome): void {
  if (outcome.status === 'success') logger.info('reloaded authentication config', { file });
  else {
    const error = errorText(outcome.error);
    logger.error('failed to reload authentication config, keeping the previous one', {
      file,
      error,
    });
  }
}

/** The authenticators of a changed file. Changes of anonymous access are refused. */
async function authenticatorsOf(
  next: AuthenticationConfiguration,
  anonymous: AnonymousConfiguration | null,
  options: Options,
): Promise<readonly CheckedAuthenticator[]> {
  const { errors, authenticators } = await validated(next, options);
  if (!jsonEqual(next.anonymous as JsonValue, anonymous as JsonValue)) {
    errors.push(forbiddenField('anonymous', 'changed from initial configuration file'));
  }
  if (errors.length > 0) throw new Error(fieldErrorsText(errors));
  return authenticators;
}

async function validated(
  configuration: AuthenticationConfiguration,
  { config, dialect }: Options,
): Promise<{ errors: FieldError[]; authenticators: readonly CheckedAuthenticator[] }> {
  const gates = config.featureGates ?? defaultGates;
  const validation = validateAuthentication(configuration, {
    disallowedIssuers: accountSettings(config, dialect).issuers,
    dialect,
    anonymousConfigurable: gates.enabled('AnonymousAuthConfigurableEndpoints'),
  });
  const { errors, authenticators } = await runInSlices(validation, config.clock);
  return { errors: [...errors], authenticators };
}

function create(
  authenticators: readonly CheckedAuthenticator[],
  { config, dialect, registry }: Options,
  algorithms: readonly string[],
): JwtAuthentication {
  const { clock, logger } = config;
  const latency = registry.histogram({
    name: 'apiserver_authentication_jwt_authenticator_latency_seconds',
    help: 'Latency of JWT authentication operations in seconds, for tokens that were not in the cache.',
    stability: 'ALPHA',
    labels: ['result', 'jwt_issuer_hash'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  return createJwtAuthentication(authenticators, {
    algorithms,
    hostRoots,
    proxyOf: (url) => environmentProxy(url, process.env),
    credentialKey: dialect.label('credential-id', 'authentication'),
    clock,
    logger,
    onVerified: ({ issuer, result, durationMs }) => {
      const hash = `sha256:${createHash('sha256').update(issuer).digest('hex')}`;
      latency.of(result, hash).observe(durationMs / 1000);
    },
  });
}

function inContext<Result>(what: string, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw new Error(`${what}: ${errorText(error)}`);
  }
}
