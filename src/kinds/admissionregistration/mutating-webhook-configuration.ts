import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { webhookConfiguration } from './webhook-configuration.ts';

/** MutatingWebhookConfiguration: webhooks that may change what is written. */
export function mutatingWebhookConfiguration(dialect: Dialect): ResourceDef {
  return webhookConfiguration(dialect, {
    kind: 'MutatingWebhookConfiguration',
    resource: 'mutatingwebhookconfigurations',
    mutating: true,
  });
}
