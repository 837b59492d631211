import type { Dialect, Logger, MetricRegistry, Webhook } from '@wheelhouse/machinery';
import type { Authenticator, TokenCacheMeter } from '../../gates/authn/contract.ts';
import {
  createWebhookTokenAuthenticator,
  type TokenReviewVersion,
  tokenReviewVersions,
} from '../../gates/authn/webhook-token.ts';
import { clientMeter } from '../../webhooks/client-metrics.ts';
import { createWebhook, webhookOfKubeconfig } from '../../webhooks/webhook-client.ts';
import type { ServerConfig } from '../config.ts';
import { accountSettings } from '../service-accounts/service-account-tokens.ts';

/** Time limit of a token review in milliseconds. */
const timeoutMs = 30_000;

/**
 * An authenticator that asks a webhook to review tokens (AUTHN-9). Rejects when the kubeconfig is
 * unusable; the webhook itself is first contacted for the first token.
 */
export async function openWebhookTokens(
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    readonly registry: MetricRegistry;
    readonly tokens: TokenCacheMeter;
  },
  webhook: NonNullable<ServerConfig['authentication']['webhook']>,
): Promise<{ readonly authenticator: Authenticator; close(): void }> {
  const { config, dialect } = options;
  const { clock } = config;
  const client = await webhookOfKubeconfig(webhook.configFile);
  const meter = clientMeter(options.registry, clock);
  const connected = createWebhook({ client, timeoutMs, clock, meter });
  const authenticator = createWebhookTokenAuthenticator({
    webhook: telling(connected, config.logger),
    version: versionOf(webhook.version),
    dialect,
    audiences: accountSettings(config, dialect).audiences,
    ttlMs: webhook.cacheTtlMs,
    clock,
    meter: options.tokens,
  });
  return { authenticator, close: connected.close };
}

/** Logs failures of the webhook: clients see an outage as a rejected token. */
function telling(webhook: Webhook, logger: Logger): Webhook {
  return {
    async call(body, read) {
      try {
        return await webhook.call(body, read);
      } catch (error) {
        logger.error('the authentication webhook failed', { error: String(error) });
        throw error;
      }
    },
  };
}

function versionOf(name: string): TokenReviewVersion {
  const version = tokenReviewVersions.find((one) => one === name);
  if (version !== undefined) return version;
  const supported = tokenReviewVersions.map((one) => JSON.stringify(one)).join(', ');
  throw new Error(
    `unsupported authentication webhook version ${JSON.stringify(name)}, supported versions are ${supported}`,
  );
}
