import { readFileSync } from 'node:fs';
import type { ApiObject, MetricRegistry } from '@wheelhouse/machinery';
import { followCertificates, readConfigurationFile } from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import {
  type Authenticate,
  createAuthentication,
  createTokenCacheMeter,
} from '../../gates/authn/authentication.ts';
import { createBootstrapTokenAuthenticator } from '../../gates/authn/bootstrap-token.ts';
import {
  type CertificateAuthenticator,
  createClientCertificateAuthenticator,
  createRequestHeaderAuthenticator,
} from '../../gates/authn/client-certificate.ts';
import type { Authenticator, TokenCacheMeter } from '../../gates/authn/contract.ts';
import { createStaticTokenAuthenticator, parseTokenFile } from '../../gates/authn/static-token.ts';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { clientMeter } from '../../webhooks/client-metrics.ts';
import type { ServerConfig } from '../config.ts';
import type { Base, ReadingBase } from '../context.ts';
import type { OpenParts } from '../parts.ts';
import {
  accountSettings,
  type ServiceAccountTokens,
} from '../service-accounts/service-account-tokens.ts';
import type { OidcAuthentication } from './oidc.ts';

type AuthenticationOptions = ReadingBase & { readonly tokens: ServiceAccountTokens };

/** The authentication gate. */
export interface OpenAuthentication {
  readonly authenticate: Authenticate;
  /** For TokenReviews. */
  readonly authenticators: readonly Authenticator[];
  readonly tokens: TokenCacheMeter;
}

/**
 * Builds the gate from the configuration. Rejects when a file that it names is unusable.
 * @param parts collects what follows files or keeps connections
 */
export async function openAuthentication(
  options: AuthenticationOptions,
  parts: OpenParts,
): Promise<OpenAuthentication> {
  const { config, tokens } = options;
  const { logger, featureGates: features = defaultGates } = config;
  const oidc = parts.add(await openOidc(options));
  const meter = createTokenCacheMeter(options.metrics.registry);
  const webhook = parts.add(await openWebhook(options, meter));
  const { dialect } = options;
  const { clock } = config;
  // Cheap ones first: most requests to an embedded server are by its own identity, and a static
  // token is compared with the last one of the connection.
  const list = [
    ...(config.embedding?.authenticators ?? []),
    ...fileAuthenticators(options, parts),
    tokens.authenticator,
    ...(config.authentication.bootstrapTokens === 'on'
      ? [createBootstrapTokenAuthenticator({ dialect, clock, find: secretFinder(options) })]
      : []),
    ...(oidc === undefined ? [] : [oidc.authenticator]),
    ...(webhook === undefined ? [] : [webhook.authenticator]),
  ];
  const authenticate = createAuthentication({
    authenticators: list,
    ...anonymousAccess(config, oidc),
    tokens: meter,
    unauthenticatedHttp2: features.enabled('UnauthenticatedHTTP2DOSMitigation')
      ? 'one request'
      : 'any number',
    onRejected: ({ authenticator, error }) =>
      logger.debug(3, 'a credential was refused', { authenticator, error: String(error) }),
  });
  return { authenticate, authenticators: list, tokens: meter };
}

/** Loads OpenID Connect and its libraries only if it is configured. */
async function openOidc(options: Base): Promise<OidcAuthentication | undefined> {
  const { oidc, configFile } = options.config.authentication;
  if (oidc === undefined && configFile === undefined) return undefined;
  const loaded = await import('./oidc.ts');
  return loaded.openOidc({ ...options, registry: options.metrics.registry });
}

/** Time limit of a token review in milliseconds. */
const reviewTimeoutMs = 30_000;

/**
 * An authenticator that asks a webhook to review tokens (AUTHN-9); its code is loaded only if it is
 * configured. It comes last, since every token that no other authenticator knows costs a call.
 * Rejects when the kubeconfig is unusable; the webhook itself is first contacted for the first
 * token.
 */
async function openWebhook({ config, dialect, metrics }: Base, meter: TokenCacheMeter) {
  const { webhook: settings } = config.authentication;
  if (settings === undefined) return undefined;
  const [{ createWebhook, webhookOfKubeconfig }, { createWebhookTokenAuthenticator }] =
    await Promise.all([
      import('../../webhooks/webhook-client.ts'),
      import('../../gates/authn/webhook-token.ts'),
    ]);
  const { clock, logger } = config;
  const webhook = createWebhook({
    client: await webhookOfKubeconfig(settings.configFile),
    timeoutMs: reviewTimeoutMs,
    clock,
    meter: clientMeter(metrics.registry, clock),
  });
  const authenticator = createWebhookTokenAuthenticator({
    webhook,
    version: settings.version,
    dialect,
    audiences: accountSettings(config, dialect).audiences,
    ttlMs: settings.cacheTtlMs,
    clock,
    meter,
    onFailure: (error) =>
      logger.error('the authentication webhook failed', { error: String(error) }),
  });
  return { authenticator, close: webhook.close };
}

/** Who may send requests without a credential: the file decides, otherwise the flag. */
function anonymousAccess(config: ServerConfig, oidc: OidcAuthentication | undefined) {
  const { enabled, conditions } = oidc?.anonymous ?? {
    enabled: config.authentication.anonymous,
    conditions: null,
  };
  const paths = (conditions ?? []).map(({ path }) => path);
  return {
    anonymous: enabled,
    anonymousPaths: paths.length === 0 ? undefined : new Set(paths),
  };
}

/** The authenticators of client certificates and of tokens in files. */
function fileAuthenticators(options: ReadingBase, parts: OpenParts): readonly Authenticator[] {
  const { config, dialect } = options;
  const { tokenFile, clientCaFile, adminToken, requestHeader } = config.authentication;
  const { clock } = config;
  const list: Authenticator[] = [];
  const onLifetime = certificateLifetimes(options.metrics.registry);
  if (requestHeader !== undefined) {
    const trusting = (bundlePem: string) =>
      createRequestHeaderAuthenticator({ ...requestHeader, bundlePem, clock, dialect });
    list.push(followBundle(requestHeader.clientCaFile, { config, trusting, parts }));
  }
  if (adminToken !== undefined) {
    const user = { name: 'system:admin', uid: '', groups: ['system:masters'], extra: {} };
    const entries = [{ token: adminToken, user }];
    list.push(createStaticTokenAuthenticator({ name: 'admin', entries }));
  }
  if (clientCaFile !== undefined) {
    const mayUpgradeFrom = config.traffic?.allowsOrigin ?? (() => false);
    const about = { clock, dialect, onLifetime, mayUpgradeFrom };
    const trusting = (bundlePem: string) =>
      createClientCertificateAuthenticator({ ...about, bundlePem });
    list.push(followBundle(clientCaFile, { config, trusting, parts }));
  }
  if (tokenFile !== undefined) {
    const text = readFileSync(tokenFile, 'utf8');
    const warn = (message: string) => config.logger.warn(message);
    const entries = parseTokenFile({ file: tokenFile, text, warn });
    list.push(createStaticTokenAuthenticator({ name: 'token-file', entries }));
  }
  return list;
}

/** An authenticator that trusts a CA bundle and follows its file. */
function followBundle(
  file: string,
  options: {
    readonly config: ServerConfig;
    readonly trusting: (bundlePem: string) => CertificateAuthenticator;
    readonly parts: OpenParts;
  },
): Authenticator {
  const { clock, logger } = options.config;
  const text = readConfigurationFile(file);
  const authenticator = options.trusting(text);
  const load = (changed: string) => authenticator.trust(changed);
  const followed = followCertificates({ file, text, load, clock, logger });
  options.parts.add({ close: followed.stop });
  return authenticator;
}

/** Finds Secrets of the system namespace, as new as the store. */
function secretFinder({ config, dialect, catalogue, caches }: ReadingBase) {
  const namespace = dialect.systemNamespace('system');
  return async (name: string): Promise<ApiObject | undefined> => {
    const def = catalogue.snapshot().builtin('', 'secrets');
    if (def === undefined) return undefined;
    const secrets = caches.of(def);
    const entry = await secrets.get(objectKey(namespace, name), undefined);
    return entry === undefined ? undefined : decodedInSlices(entry, config.clock);
  };
}

const day = 86_400;
const lifetimeBuckets = [
  0,
  1800,
  3600,
  7200,
  21_600,
  43_200,
  day,
  2 * day,
  4 * day,
  7 * day,
  30 * day,
  90 * day,
  180 * day,
  360 * day,
];

/** Records the remaining lifetime of each client certificate, in seconds. */
function certificateLifetimes(registry: MetricRegistry): (seconds: number) => void {
  const histogram = registry
    .histogram({
      name: 'apiserver_client_certificate_expiration_seconds',
      help: 'Remaining lifetime of the client certificates that authenticated requests.',
      stability: 'ALPHA',
      labels: [],
      buckets: lifetimeBuckets,
    })
    .of();
  return (seconds) => histogram.observe(seconds);
}
