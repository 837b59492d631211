import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import type { AdmissionKindOptions } from './expressions.ts';
import { webhookConfiguration } from './webhook-configuration.ts';

/** ValidatingWebhookConfiguration: webhooks that may refuse what is written. */
export function validatingWebhookConfiguration(
  dialect: Dialect,
  options: AdmissionKindOptions = {},
): ResourceDef {
  return webhookConfiguration(dialect, {
    ...options,
    kind: 'ValidatingWebhookConfiguration',
    resource: 'validatingwebhookconfigurations',
    mutating: false,
  });
}
