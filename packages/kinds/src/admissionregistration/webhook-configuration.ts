import { type Dialect, dnsSubdomain, type JsonObject } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ValidatingWebhookConfiguration } from '../gen/types/admissionregistration/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { fillAbsent } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import type { AdmissionKindOptions } from './expressions.ts';
import { validateWebhooks } from './webhook-rules.ts';

/** What the two kinds of webhook configuration share. */

function fillDefaults(
  object: Stored<ValidatingWebhookConfiguration>,
  options: { mutating: boolean },
): void {
  for (const webhook of object.webhooks ?? []) {
    fillAbsent(webhook, { failurePolicy: 'Fail', matchPolicy: 'Equivalent', timeoutSeconds: 10 });
    fillAbsent(webhook, { namespaceSelector: {}, objectSelector: {} });
    if (options.mutating) fillAbsent(webhook, { reinvocationPolicy: 'Never' });
    const service = webhook.clientConfig?.service;
    fillAbsent(service, { port: 443 });
    for (const rule of webhook.rules ?? []) fillAbsent(rule, { scope: '*' });
  }
}

const example = (dialect: Dialect, kind: string): JsonObject => ({
  apiVersion: `${dialect.group('admissionregistration')}/v1`,
  kind,
  metadata: { name: 'example' },
  webhooks: [
    {
      name: 'check.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { url: 'https://127.0.0.1:9443/check' },
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
      ],
    },
  ],
});

/** Either kind: they differ in names, and in what a mutating webhook says of being called again. */
export function webhookConfiguration(
  dialect: Dialect,
  options: { kind: string; resource: string; mutating: boolean } & AdmissionKindOptions,
): ResourceDef {
  const { mutating, checkExpression: check } = options;
  const webhooks = column('Webhooks', (object) => listAt(object, 'webhooks').length, {
    type: 'integer',
    description: 'Number of webhooks.',
  });
  return defineKind({
    dialect,
    facts: 'admissionregistration',
    kind: options.kind,
    resource: options.resource,
    scope: 'Cluster',
    categories: ['api-extensions'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillDefaults(object, options),
        columns: [nameColumn, webhooks, ageColumn],
      },
    ],
    generation: true,
    strategy: {
      metadataTold: { '': ['whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateWebhooks(object, { mutating, check }),
      validateUpdate: (_, object, old) => validateWebhooks(object, { mutating, check, old }),
      allowUnconditionalUpdate: false,
    },
    example: () => example(dialect, options.kind),
  });
}
