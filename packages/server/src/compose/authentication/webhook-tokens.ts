import type { Dialect, Logger, MetricRegistry, Webhook } from '@wheelhouse/machinery';
import type { Authenticator } from '../../gates/authn/contract.ts';
import {
  createWebhookTokenAuthenticator,
  type TokenCacheMeter,
  type TokenReviewVersion,
  tokenReviewVersions,
} from '../../gates/authn/webhook-token.ts';
import type { ServerConfig } from '../config.ts';
import { accountSettings } from '../service-accounts/service-account-tokens.ts';
import { clientMeter } from '../webhooks/client-metrics.ts';
import { createWebhook } from '../webhooks/webhook-client.ts';
import { webhookOfKubeconfig } from '../webhooks/webhook-connection.ts';

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts what the cache of token reviews does, under the reference's names (OPS-1). */
function tokenCacheMeter(registry: MetricRegistry): TokenCacheMeter {
  const definition = (name: string, help: string) => ({
    name: `authentication_token_cache_${name}`,
    help,
    stability: 'ALPHA' as const,
    labels: ['status'],
  });
  const requests = registry.counter(
    definition('request_total', 'Tokens looked up, by whether their verdict was cached.'),
  );
  const durations = registry.histogram({
    ...definition('request_duration_seconds', 'Time until the verdict on a token was there.'),
    buckets,
  });
  const fetches = registry.counter(
    definition('fetch_total', 'Tokens that the webhook was asked about, by how that ended.'),
  );
  const active = registry.gauge(
    definition('active_fetch_count', 'Requests that ask the webhook, or wait for an answer.'),
  );
  const [inFlight, blocked] = [active.of('in_flight'), active.of('blocked')];
  return {
    answered(from, tookMs) {
      requests.of(from).add(1);
      durations.of(from).observe(tookMs / 1000);
    },
    fetching() {
      inFlight.add(1);
      return (result) => {
        inFlight.add(-1);
        fetches.of(result).add(1);
      };
    },
    blocked() {
      blocked.add(1);
      return () => blocked.add(-1);
    },
  };
}

/** How long a review of a token may take. */
const timeoutMs = 30_000;

/**
 * The authenticator that asks a webhook about tokens (AUTHN-9). Rejects when the kubeconfig cannot
 * be used; whether the webhook answers is seen by the first token.
 */
export async function openWebhookTokens(
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    readonly registry: MetricRegistry;
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
    meter: tokenCacheMeter(options.registry),
  });
  return { authenticator, close: connected.close };
}

/** An outage refuses tokens like any bad token is, so that only the log tells of it. */
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
