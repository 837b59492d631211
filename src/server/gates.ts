import { readFileSync } from 'node:fs';
import { createAuthentication } from '../authn/authentication.ts';
import { createBootstrapTokenAuthenticator } from '../authn/bootstrap-token.ts';
import { createClientCertificateAuthenticator } from '../authn/client-certificate.ts';
import type { Authenticator } from '../authn/contract.ts';
import { createImpersonation } from '../authn/impersonation.ts';
import { createRequestHeaderAuthenticator } from '../authn/request-header.ts';
import { createStaticTokenAuthenticator } from '../authn/static-token.ts';
import { parseTokenFile } from '../authn/token-file.ts';
import { createTokenReviewer } from '../authn/token-review.ts';
import { createAuthorization } from '../authz/authorization.ts';
import type { Dialect } from '../dialect.ts';
import { limitInFlight } from '../flowcontrol/in-flight.ts';
import type { ApiObject } from '../meta/types.ts';
import type { Gates } from '../pipeline.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import type { Api } from './api.ts';
import { createAuthorizers } from './authorizers.ts';
import type { ServerConfig } from './config.ts';
import { accountSettings } from './service-account-tokens.ts';

/** Makes the gates of the pipeline from the configuration; `close` ends what they follow. */
export async function createGates(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): Promise<Gates & { close(): void }> {
  const { config, api } = options;
  const { logger } = config;
  const list = [api.tokenAuthenticator, ...authenticators(options)];
  const authenticate = createAuthentication({
    authenticators: list,
    anonymous: config.authentication.anonymous,
    onRejected: ({ authenticator, error }) =>
      logger.debug(3, 'a credential was refused', { authenticator, error: String(error) }),
  });
  const chosen = await createAuthorizers(options);
  const authorization = createAuthorization({
    authorizers: chosen.list,
    onError: ({ authorizer, error }) =>
      logger.error('an authorizer failed', { authorizer, error: String(error) }),
  });
  const { rules, rulesFor } = chosen;
  const { audiences } = accountSettings(config, options.dialect);
  const reviewToken = createTokenReviewer({ authenticators: list, audiences });
  api.authorization.fill({ authorization, rules, rulesFor, reviewToken });
  const flowControl = limitInFlight({
    readOnlyMax: config.limits.readsInFlightMax,
    mutatingMax: config.limits.writesInFlightMax,
  });
  const impersonate = createImpersonation({ authorization, dialect: options.dialect });
  return { authenticate, impersonate, authorization, flowControl, close: chosen.close };
}

function authenticators(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): readonly Authenticator[] {
  const { config, dialect } = options;
  const { tokenFile, clientCaFile, adminToken, requestHeader } = config.authentication;
  const { clock } = config;
  const list: Authenticator[] = [];
  if (requestHeader !== undefined) {
    list.push(createRequestHeaderAuthenticator({ ...requestHeader, clock, dialect }));
  }
  if (adminToken !== undefined) {
    const user = { name: 'system:admin', uid: '', groups: ['system:masters'], extra: {} };
    const entries = [{ token: adminToken, user }];
    list.push(createStaticTokenAuthenticator({ name: 'admin', entries }));
  }
  if (clientCaFile !== undefined) {
    const bundlePem = readFileSync(clientCaFile, 'utf8');
    list.push(createClientCertificateAuthenticator({ bundlePem, clock, dialect }));
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
