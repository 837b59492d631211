import { statSync } from 'node:fs';
import { type Dialect, errorText, systemErrorCode } from '@wheelhouse/machinery';
import type { ReviewPort } from '../../endpoints/call.ts';
import {
  createReloadMetrics,
  followFile,
  readConfigurationFile,
} from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import {
  type Authorizer,
  type AuthorizerType,
  createPrivilegedGroupAuthorizer,
} from '../../gates/authz/authorization.ts';
import type {
  ConfiguredAuthorizer,
  ConfiguredWebhook,
} from '../../gates/authz/authorization-configuration.ts';
import type { EscalationPort } from '../../gates/authz/rbac/escalation-check.ts';
import type { ServerConfig } from '../config.ts';
import type { Around, ReadingBase } from '../context.ts';
import { runsController } from '../controllers/settings.ts';
import {
  type AuthorizationMetrics,
  type AuthorizerPart,
  type AuthorizerParts,
  createAuthorizationMetrics,
  openAuthorizerParts,
} from './authorizer-parts.ts';

interface AuthorizersOptions extends ReadingBase {
  readonly configured: ConfiguredAuthorizers;
}

/** The current chain. */
export interface Authorizers {
  /** The authorizers in order; a new list when the configuration changes. */
  readonly list: readonly Authorizer[];
  readonly rules: EscalationPort['rules'];
  readonly rulesFor: ReviewPort['rulesFor'];
  close(): void;
}

/** The chain of one configuration. */
interface Chain {
  readonly list: readonly Authorizer[];
  readonly parts: readonly AuthorizerPart[];
  /** Closes connections once the requests in flight have ended. */
  retire(): void;
  /** Closes connections at once. */
  close(): void;
}

/**
 * The configured authorizers, with members of `system:masters` allowed ahead of them (AUTHZ-2,
 * AUTHZ-10). Authorizers of a file are replaced when it changes (AUTHZ-3); an invalid file changes
 * nothing. Rejects when one cannot be set up.
 */
export async function createAuthorizers(
  base: ReadingBase,
  configured: ConfiguredAuthorizers,
): Promise<Authorizers> {
  const options = { ...base, configured };
  const { authorizers, file } = configured;
  const types = new Set(authorizers.map(({ type }) => type));
  const parts = await openAuthorizerParts(options, types);
  const meter = createAuthorizationMetrics(base.metrics.registry, base.config.clock);
  const build = (authorizers: readonly ConfiguredAuthorizer[]) =>
    buildChain(authorizers, { ...options, parts, meter });
  let chain: Chain;
  try {
    chain = await build(authorizers);
  } catch (error) {
    parts.close();
    throw error;
  }
  const exchange = (next: Chain): void => {
    chain.retire();
    chain = next;
    current.list = next.list;
  };
  const followed =
    file === undefined ? undefined : followAuthorization({ ...options, file, build, exchange });
  const current: Authorizers & { list: readonly Authorizer[] } = {
    list: chain.list,
    rules: parts.rules,
    async rulesFor(user, namespace) {
      const answers = await Promise.all(chain.parts.map((part) => part.rulesFor(user, namespace)));
      return {
        rules: answers.flatMap(({ rules }) => rules),
        errors: answers.flatMap(({ errors }) => errors),
        extent: answers.every(({ extent }) => extent === 'whole') ? 'whole' : 'partial',
      };
    },
    close() {
      followed?.stop();
      chain.close();
      parts.close();
    },
  };
  return current;
}

async function buildChain(
  configured: readonly ConfiguredAuthorizer[],
  options: AuthorizersOptions & {
    readonly parts: AuthorizerParts;
    readonly meter: AuthorizationMetrics;
  },
): Promise<Chain> {
  const { parts, meter } = options;
  const chainParts: AuthorizerPart[] = [];
  const webhooks: { retire(): void; close(): void }[] = [];
  const list: Authorizer[] = [createPrivilegedGroupAuthorizer()];
  const disconnect = (how: 'retire' | 'close') => {
    for (const webhook of webhooks) webhook[how]();
  };
  try {
    for (const authorizer of configured) {
      const { type, name } = authorizer;
      let part: AuthorizerPart | undefined;
      if (authorizer.type === 'Webhook') {
        const webhook = await connectAuthorizer(authorizer.webhook, { ...options, metrics: meter });
        webhooks.push(webhook);
        part = webhook;
      } else {
        part = parts.of(type);
      }
      if (part === undefined) {
        throw new Error(
          `authorizer type ${type} is not allowed if it was not enabled at initial server startup`,
        );
      }
      chainParts.push(part);
      list.push(meter.measured(part.authorizer, { type, name }));
    }
  } catch (error) {
    disconnect('close');
    throw error;
  }
  const retire = () => disconnect('retire');
  return { list, parts: chainParts, retire, close: () => disconnect('close') };
}

/**
 * A webhook authorizer with its connection, cache, and metrics. Rejects when the kubeconfig is
 * unusable; the webhook itself is first contacted for the first request. The code is loaded with
 * the first webhook.
 */
async function connectAuthorizer(
  configured: ConfiguredWebhook,
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    readonly metrics: AuthorizationMetrics;
  },
): Promise<AuthorizerPart & { retire(): void; close(): void }> {
  const { config, dialect, metrics } = options;
  const [{ createWebhook, webhookInCluster, webhookOfKubeconfig }, { createWebhookAuthorizer }] =
    await Promise.all([
      import('../../webhooks/webhook-client.ts'),
      import('../../gates/authz/webhook-authorizer.ts'),
    ]);
  const { clock, logger } = config;
  const { name, timeoutMs, kubeConfigFile, matches, version } = configured;
  const client =
    kubeConfigFile === undefined
      ? webhookInCluster({ dialect, version })
      : await webhookOfKubeconfig(kubeConfigFile);
  const webhook = createWebhook({
    client,
    timeoutMs,
    clock,
    meter: metrics.client,
    onAttempt: (attempt) => metrics.attempt(name, attempt),
  });
  const authorizer = createWebhookAuthorizer(
    { ...configured, selectors: selectorsOf(config) },
    {
      webhook,
      dialect,
      clock,
      matches: matches === undefined ? undefined : metrics.measuredConditions(name, matches),
      onError: (error) =>
        logger.error('an authorization webhook failed', { name, error: String(error) }),
      onFailOpen: (outcome) => metrics.failOpen(name, outcome),
    },
  );
  return {
    authorizer,
    rulesFor: () => ({
      rules: [],
      errors: ['webhook authorizer does not support user rule resolution'],
      extent: 'partial',
    }),
    retire: webhook.retire,
    close: webhook.close,
  };
}

function followAuthorization(
  options: AuthorizersOptions & {
    readonly file: { readonly path: string; readonly text: string };
    readonly build: (configured: readonly ConfiguredAuthorizer[]) => Promise<Chain>;
    readonly exchange: (next: Chain) => void;
  },
): { stop(): void } {
  const { config, dialect, metrics, file, build, exchange } = options;
  const { clock, logger } = config;
  const count = createReloadMetrics(metrics.registry, {
    controller: 'authorization_config_controller',
    what: 'authorization configuration',
    clock,
    dialect,
  });
  const requiredTypes = new Set(
    options.configured.authorizers.map(({ type }) => type).filter((type) => type !== 'Webhook'),
  );
  let current = comparable(options.configured.authorizers);
  let hasChanged = false;
  return followFile({
    file: file.path,
    text: file.text,
    clock,
    async load(text) {
      const configured = await readAuthorizers(text, { config, dialect, requiredTypes });
      const next = comparable(configured);
      hasChanged = next !== current;
      if (!hasChanged) return;
      current = next;
      exchange(await build(configured));
    },
    observe(outcome) {
      // A file with the same authorizers is not counted as a reload, as in kube-apiserver.
      if (outcome.status === 'success' && !hasChanged) return;
      count(outcome.status);
      if (outcome.status === 'success') logger.info('reloaded the authorization configuration');
      else {
        const error = String(outcome.error);
        logger.error('reloading the authorization configuration', { error });
      }
    },
  });
}

/** A text that identifies a chain; its functions are represented by their expressions. */
function comparable(authorizers: readonly ConfiguredAuthorizer[]): string {
  return JSON.stringify(authorizers);
}

/** The authorizers a server starts with, and the file to follow if they came from one. */
export interface ConfiguredAuthorizers {
  readonly authorizers: readonly ConfiguredAuthorizer[];
  readonly file: { readonly path: string; readonly text: string } | undefined;
}

/** Time limit of the webhook that flags configure, in milliseconds. */
const flagTimeoutMs = 30_000;

/**
 * The authorizers that flags or the configuration file select (AUTHZ-2, AUTHZ-3). Rejects with the
 * first error in the file.
 */
export async function readAuthorization(
  config: ServerConfig,
  dialect: Dialect,
): Promise<ConfiguredAuthorizers> {
  const path = config.authorization?.configFile;
  if (path === undefined) {
    return { authorizers: config.authorizationModes.map(ofFlags(config)), file: undefined };
  }
  let text: string;
  try {
    text = readConfigurationFile(path);
  } catch (error) {
    const why = errorText(error);
    throw new Error(`failed to load AuthorizationConfiguration from file: ${why}`);
  }
  const requiredTypes = new Set<AuthorizerType>();
  const authorizers = await readAuthorizers(text, { config, dialect, requiredTypes });
  return { authorizers, file: { path, text } };
}

/** Parses the authorizers of a file's text; loads the parser on first use. */
async function readAuthorizers(
  text: string,
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    /** Types that the file must keep. */
    readonly requiredTypes: ReadonlySet<AuthorizerType>;
  },
): Promise<readonly ConfiguredAuthorizer[]> {
  const { config, dialect, requiredTypes } = options;
  const { loadAuthorizationConfiguration } = await import(
    '../../gates/authz/authorization-configuration.ts'
  );
  return loadAuthorizationConfiguration(text, {
    dialect,
    requiredTypes,
    fileProblem,
    selectors: selectorsOf(config),
    clock: config.clock,
  });
}

/** Whether webhooks and match conditions receive selectors. */
export function selectorsOf(config: ServerConfig): 'included' | 'omitted' {
  const gates = config.featureGates ?? defaultGates;
  return gates.enabled('AuthorizeWithSelectors') ? 'included' : 'omitted';
}

function ofFlags(config: ServerConfig): (type: AuthorizerType) => ConfiguredAuthorizer {
  return (type) => {
    if (type !== 'Webhook') return { type, name: type.toLowerCase() };
    const webhook = config.authorization?.webhook;
    if (webhook === undefined) {
      throw new Error("authorization-mode Webhook's authorization config file not passed");
    }
    const { configFile, ...settings } = webhook;
    const name = 'default';
    return {
      type,
      name,
      webhook: {
        ...settings,
        name,
        timeoutMs: flagTimeoutMs,
        failurePolicy: 'NoOpinion',
        kubeConfigFile: configFile,
        matches: undefined,
        expressions: [],
      },
    };
  };
}

/** The problem of a configured file; undefined if it is a regular file. */
function fileProblem(file: string): string | undefined {
  try {
    return statSync(file).isFile() ? undefined : 'must be a regular file';
  } catch (error) {
    const code = systemErrorCode(error);
    const reason = code === 'ENOENT' ? 'no such file or directory' : String(code);
    return `error loading file: stat ${file}: ${reason}`;
  }
}

/**
 * Creates the default roles and bindings; those in namespaces once `namespaces` resolves. A server
 * that allows every request does not create them, unlike kube-apiserver: they would take a quarter
 * of the CPU time of its start and 10 MB of memory.
 */
export async function createDefaultRoles(
  { config, dialect, api }: Around,
  namespaces: Promise<void>,
): Promise<void> {
  if (config.authorizationModes.every((mode) => mode === 'AlwaysAllow')) return;
  const { reconcileDefaultRoles } = await import('../../controllers/identity/default-roles.ts');
  const { featureGates: features = defaultGates, logger } = config;
  await reconcileDefaultRoles({
    registry: api.registry,
    snapshot: api.catalogue.snapshot(),
    dialect,
    namespaces,
    aggregates: runsController(config, 'clusterrole-aggregation-controller'),
    logger,
    features,
  });
}
