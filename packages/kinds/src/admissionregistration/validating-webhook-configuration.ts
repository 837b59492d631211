import type { Dialect } from '@wheelhouse/machinery';
import type { ResourceDef } from '../resource-def.ts';
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
