import type { ServerConfig } from '../flags/config.ts';
import type { FlagTable, FlagValues } from '../flags/flags.ts';

/** Flags of the webhook that reviews tokens, part of `serverFlags`. */
export const webhookTokenFlags = {
  'authentication-token-webhook-config-file': {
    group: 'Authentication',
    type: 'string',
    file: 'any',
    default: '',
    help: 'Kubeconfig of a webhook that is asked whose a bearer token is.',
  },
  'authentication-token-webhook-version': {
    group: 'Authentication',
    type: 'string',
    default: 'v1beta1',
    help: 'The version of TokenReview that the webhook is sent and expected to answer: v1 or v1beta1.',
  },
  'authentication-token-webhook-cache-ttl': {
    group: 'Authentication',
    type: 'duration',
    default: '2m0s',
    help: 'How long the webhook’s verdicts on tokens are kept.',
  },
} as const satisfies FlagTable;

/** What the flags come to: nothing without a kubeconfig. */
export function webhookTokenOptions(
  values: FlagValues<typeof webhookTokenFlags>,
): Pick<ServerConfig['authentication'], 'webhook'> {
  const configFile = values['authentication-token-webhook-config-file'];
  if (configFile === '') return {};
  return {
    webhook: {
      configFile,
      version: values['authentication-token-webhook-version'],
      cacheTtlMs: values['authentication-token-webhook-cache-ttl'],
    },
  };
}
