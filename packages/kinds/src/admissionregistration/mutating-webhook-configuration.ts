import type { Dialect } from '@wheelhouse/machinery';
import type { ResourceDef } from '../resource-def.ts';
import type { AdmissionKindOptions } from './expressions.ts';
import { webhookConfiguration } from './webhook-configuration.ts';

/** MutatingWebhookConfiguration: webhooks that may change what is written. */
export function mutatingWebhookConfiguration(
  dialect: Dialect,
  options: AdmissionKindOptions = {},
): ResourceDef {
  return webhookConfiguration(dialect, {
    ...options,
    kind: 'MutatingWebhookConfiguration',
    resource: 'mutatingwebhookconfigurations',
    mutating: true,
  });
}
