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
import type { Authorizer } from '../authz/contract.ts';
import type { EscalationPort } from '../authz/escalation-check.ts';
import { alwaysAllow, alwaysDeny, createPrivilegedGroupAuthorizer } from '../authz/fixed.ts';
import { createRbacAuthorizer } from '../authz/rbac-authorizer.ts';
import { policyRule } from '../authz/rules.ts';
import type { Dialect } from '../dialect.ts';
import type { ReviewPort } from '../endpoints/review-port.ts';
import { limitInFlight } from '../flowcontrol/in-flight.ts';
import type { ApiObject } from '../meta/types.ts';
import type { Gates } from '../pipeline.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import type { Api } from './api.ts';
import type { ServerConfig } from './config.ts';
import { openRbacSource } from './rbac-source.ts';
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
  const chosen = await authorizers(options);
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

/** Members of `system:masters` pass unasked; then come the modes as ordered (AUTHZ-2, AUTHZ-10). */
async function authorizers(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): Promise<{
  readonly list: readonly Authorizer[];
  readonly rules: EscalationPort['rules'];
  readonly rulesFor: ReviewPort['rulesFor'];
  readonly close: () => void;
}> {
  const list: Authorizer[] = [createPrivilegedGroupAuthorizer()];
  const rbac = createRbac(options);
  for (const mode of options.config.authorizationModes) {
    if (mode === 'AlwaysAllow') list.push(alwaysAllow);
    else if (mode === 'AlwaysDeny') list.push(alwaysDeny);
    else list.push((await rbac.open()).authorizer);
  }
  const modes = new Set(options.config.authorizationModes);
  return {
    list,
    rules: rbac.rules,
    async rulesFor(user, namespace) {
      const everything = modes.has('AlwaysAllow') ? allRules : [];
      if (!modes.has('RBAC')) return { rules: everything, errors: [] };
      const { authorizer } = await rbac.open();
      const { rules, errors } = authorizer.rulesFor(user, namespace);
      return { rules: [...everything, ...rules], errors };
    },
    close: rbac.close,
  };
}

const allRules = [
  policyRule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }),
  policyRule({ verbs: ['*'], nonResourceURLs: ['*'] }),
];

/** Also for servers where RBAC does not decide: granting more than one holds is checked there too. */
function createRbac({ api, dialect }: { api: Api; dialect: Dialect }) {
  const { caches } = api.registry;
  const open = async () => {
    const source = await openRbacSource({ caches, snapshot: api.catalogue.snapshot(), dialect });
    return { source, authorizer: createRbacAuthorizer({ source, dialect }) };
  };
  let opened: ReturnType<typeof open> | undefined;
  const openOnce = () => {
    opened ??= open();
    return opened;
  };
  return {
    open: openOnce,
    async rules() {
      const { source, authorizer } = await openOnce();
      await source.fresh();
      return authorizer;
    },
    close: () => void opened?.then(({ authorizer }) => authorizer.stop()),
  };
}
