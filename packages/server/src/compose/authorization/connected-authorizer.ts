import type { Dialect } from '@wheelhouse/machinery';
import type { ConfiguredWebhook } from '../../gates/authz/authorization-configuration.ts';
import { createWebhookAuthorizer } from '../../gates/authz/webhook-authorizer.ts';
import {
  createWebhook,
  webhookInCluster,
  webhookOfKubeconfig,
} from '../../webhooks/webhook-client.ts';
import type { ServerConfig } from '../config.ts';
import type { AuthorizationMetrics, AuthorizerPart } from './authorizer-parts.ts';
import { selectorsOf } from './configured-authorizers.ts';

/**
 * A webhook authorizer with its connection, cache, and metrics. Rejects when the kubeconfig is
 * unusable; the webhook itself is first contacted for the first request.
 */
export async function connectAuthorizer(
  configured: ConfiguredWebhook,
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    readonly metrics: AuthorizationMetrics;
  },
): Promise<AuthorizerPart & { retire(): void; close(): void }> {
  const { config, dialect, metrics } = options;
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
    }),
    retire: webhook.retire,
    close: webhook.close,
  };
}
