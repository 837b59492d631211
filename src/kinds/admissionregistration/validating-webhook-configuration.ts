import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { webhookConfiguration } from './webhook-configuration.ts';

/** ValidatingWebhookConfiguration: webhooks that may refuse what is written. */
export function validatingWebhookConfiguration(dialect: Dialect): ResourceDef {
  return webhookConfiguration(dialect, {
    kind: 'ValidatingWebhookConfiguration',
    resource: 'validatingwebhookconfigurations',
    mutating: false,
  });
}
