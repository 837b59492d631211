import { readFileSync } from 'node:fs';
import type { ApiObject, Dialect, MetricRegistry } from '@wheelhouse/machinery';
import { createAuthentication } from '../gates/authn/authentication.ts';
import { createBootstrapTokenAuthenticator } from '../gates/authn/bootstrap-token.ts';
import {
  type CertificateAuthenticator,
  createClientCertificateAuthenticator,
} from '../gates/authn/client-certificate.ts';
import type { Authenticator } from '../gates/authn/contract.ts';
import { createImpersonation } from '../gates/authn/impersonation.ts';
import { createRequestHeaderAuthenticator } from '../gates/authn/request-header.ts';
import { createStaticTokenAuthenticator } from '../gates/authn/static-token.ts';
import { parseTokenFile } from '../gates/authn/token-file.ts';
import { createTokenReviewer } from '../gates/authn/token-review.ts';
import { createAuthorization } from '../gates/authz/authorization.ts';
import { FairFlowControl } from '../gates/flowcontrol/fair-flow-control.ts';
import type { Gates } from '../pipeline.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import type { Api } from './api.ts';
import type { OidcAuthentication } from './authentication/oidc.ts';
import { createAuthorizers } from './authorization/authorizers.ts';
import type { AuthorizationSettings } from './authorization/configured-authorizers.ts';
import type { ServerConfig } from './config.ts';
import { followCertificates, readConfigurationFile } from './files/followed-files.ts';
import { createFlowControl } from './limits/flow-control.ts';
import type { Metrics } from './observability/metrics.ts';
import { accountSettings } from './service-accounts/service-account-tokens.ts';
import { certificateLifetimes } from './serving/connection-metrics.ts';
import { originTest } from './serving/cross-origin.ts';

interface GatesOptions {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
  readonly registry: MetricRegistry;
  readonly metrics: Metrics;
  readonly authorization: AuthorizationSettings;
}

/**
 * Makes the gates of the pipeline from the configuration; `close` ends what they follow. What is
 * open already is closed again when it rejects.
 */
export async function createGates(
  options: GatesOptions,
): Promise<Omit<Gates, 'audit'> & { close(): void }> {
  const closers: (() => void)[] = [];
  const close = () => {
    for (const one of closers.splice(0)) one();
  };
  try {
    const gates = await openGates(options, (one) => void closers.push(() => one?.close()));
    return { ...gates, close };
  } catch (error) {
    close();
    throw error;
  }
}

async function openGates(
  options: GatesOptions,
  closesWith: (opened: { close(): void } | undefined) => void,
): Promise<Omit<Gates, 'audit'>> {
  const { config, api } = options;
  const { logger } = config;
  const oidc = await openOidc(options);
  closesWith(oidc);
  const webhook = await openWebhook(options);
  closesWith(webhook);
  const list = [
    api.tokenAuthenticator,
    ...(config.embedding?.authenticators ?? []),
    ...authenticators(options, closesWith),
    ...(oidc === undefined ? [] : [oidc.authenticator]),
    ...(webhook === undefined ? [] : [webhook.authenticator]),
  ];
  const authenticate = createAuthentication({
    authenticators: list,
    ...anonymousAccess(config, oidc),
    onRejected: ({ authenticator, error }) =>
      logger.debug(3, 'a credential was refused', { authenticator, error: String(error) }),
  });
  const chosen = await createAuthorizers(options);
  closesWith(chosen);
  const authorization = createAuthorization({
    authorizers: chosen.list,
    onError: ({ authorizer, error }) =>
      logger.error('an authorizer failed', { authorizer, error: String(error) }),
  });
  const { rules, rulesFor } = chosen;
  const { audiences } = accountSettings(config, options.dialect);
  const reviewToken = createTokenReviewer({ authenticators: list, audiences });
  api.authorization.fill({ authorization, rules, rulesFor, reviewToken });
  const flowControl = createFlowControl(options);
  closesWith(flowControl instanceof FairFlowControl ? flowControl : undefined);
  const impersonate = createImpersonation({ authorization, dialect: options.dialect });
  return { authenticate, impersonate, authorization, flowControl };
}

/** Loaded only when it is asked for, with the libraries it needs. */
async function openOidc(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly registry: MetricRegistry;
}): Promise<OidcAuthentication | undefined> {
  const { oidc, configFile } = options.config.authentication;
  if (oidc === undefined && configFile === undefined) return undefined;
  const loaded = await import('./authentication/oidc.ts');
  return loaded.openOidc(options);
}

/** Loaded only when it is asked for; last, as each token that nobody else knows costs a call. */
async function openWebhook(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly registry: MetricRegistry;
}) {
  const { webhook } = options.config.authentication;
  if (webhook === undefined) return undefined;
  const { openWebhookTokens } = await import('./authentication/webhook-tokens.ts');
  return openWebhookTokens(options, webhook);
}

/** Who may come without a credential: what the file says, or else the flag. */
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

function authenticators(
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    readonly api: Api;
    readonly registry: MetricRegistry;
  },
  closesWith: (opened: { close(): void }) => void,
): readonly Authenticator[] {
  const { config, dialect } = options;
  const { tokenFile, clientCaFile, adminToken, requestHeader } = config.authentication;
  const { clock } = config;
  const list: Authenticator[] = [];
  const onLifetime = certificateLifetimes(options.registry);
  if (requestHeader !== undefined) {
    const trusting = (bundlePem: string) =>
      createRequestHeaderAuthenticator({ ...requestHeader, bundlePem, clock, dialect });
    list.push(followBundle(requestHeader.clientCaFile, { config, trusting, closesWith }));
  }
  if (adminToken !== undefined) {
    const user = { name: 'system:admin', uid: '', groups: ['system:masters'], extra: {} };
    const entries = [{ token: adminToken, user }];
    list.push(createStaticTokenAuthenticator({ name: 'admin', entries }));
  }
  if (clientCaFile !== undefined) {
    const mayUpgradeFrom = originTest(config.traffic?.allowedOrigins ?? []);
    const about = { clock, dialect, onLifetime, mayUpgradeFrom };
    const trusting = (bundlePem: string) =>
      createClientCertificateAuthenticator({ ...about, bundlePem });
    list.push(followBundle(clientCaFile, { config, trusting, closesWith }));
  }
  if (tokenFile !== undefined) {
    const text = readFileSync(tokenFile, 'utf8');
    const warn = (message: string) => config.logger.warn(message);
    const entries = parseTokenFile({ file: tokenFile, text, warn });
    list.push(createStaticTokenAuthenticator({ name: 'token-file', entries }));
  }
  if (config.authentication.bootstrapTokens === 'on') {
    list.push(createBootstrapTokenAuthenticator({ dialect, clock, find: secretFinder(options) }));
  }
  return list;
}

/** An authenticator that trusts what a file of authorities holds, now and when it changes. */
function followBundle(
  file: string,
  options: {
    readonly config: ServerConfig;
    readonly trusting: (bundlePem: string) => CertificateAuthenticator;
    readonly closesWith: (opened: { close(): void }) => void;
  },
): Authenticator {
  const { clock, logger } = options.config;
  const text = readConfigurationFile(file);
  const authenticator = options.trusting(text);
  const load = (changed: string) => authenticator.trust(changed);
  const followed = followCertificates({ file, text, load, clock, logger });
  options.closesWith({ close: () => followed.stop() });
  return authenticator;
}

/** Finds Secrets of the system namespace, as new as the store has them. */
function secretFinder({ dialect, api }: { readonly dialect: Dialect; readonly api: Api }) {
  const namespace = dialect.systemNamespace('system');
  return async (name: string): Promise<ApiObject | undefined> => {
    const def = api.catalogue.snapshot().builtin('', 'secrets');
    if (def === undefined) return undefined;
    const secrets = api.registry.caches.of(def);
    const entry = await secrets.get(objectKey(namespace, name), undefined);
    return entry === undefined ? undefined : decodeEntry(entry);
  };
}
