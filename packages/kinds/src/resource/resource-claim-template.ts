import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import type { AdmissionKindOptions } from '../admissionregistration/expressions.ts';
import { ageColumn, at, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { Features } from '../features/features.ts';
import type { ResourceClaimTemplate } from '../gen/types/resource/v1beta1.ts';
import { validateTemplateMetadata } from '../pod/claim-template.ts';
import type { ResourceDef } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';
import { fillRequests, validateClaimedDevices } from './device-rules.ts';

/** ResourceClaimTemplate: what the claims of pods are made from. */
export function resourceClaimTemplate(
  dialect: Dialect,
  options: AdmissionKindOptions & { readonly features?: Features },
): ResourceDef {
  const check = options.checkExpression;
  const columns = [nameColumn, ageColumn];
  const devicesOf = (object: Stored<ResourceClaimTemplate>) => object.spec?.spec?.devices;
  const defaults = (object: Stored<ResourceClaimTemplate>) => fillRequests(devicesOf(object));
  const judge = (object: Stored<ResourceClaimTemplate>, parts: 'new' | 'stored') => [
    ...validateTemplateMetadata(object.spec?.metadata, 'spec.metadata'),
    ...validateClaimedDevices(devicesOf(object), 'spec.spec.devices', { parts, check }),
  ];
  return defineKind<ResourceClaimTemplate>({
    dialect,
    ...(options.features === undefined ? {} : { features: options.features }),
    facts: 'resource',
    kind: 'ResourceClaimTemplate',
    resource: 'resourceclaimtemplates',
    scope: 'Namespaced',
    versions: ['v1beta1', 'v1alpha3'].map((version) => ({ version, columns, defaults })),
    strategy: {
      validateName: dnsSubdomain,
      deleteAnswers: 'object',
      validateCreate: (_, object) => judge(object, 'new'),
      validateUpdate: (_, object, old) => [
        ...judge(object, 'stored'),
        ...immutable('spec', at(object, 'spec'), at(old, 'spec')),
      ],
    },
    example: () => ({
      apiVersion: `${dialect.group('resource')}/v1beta1`,
      kind: 'ResourceClaimTemplate',
      metadata: { name: 'example', namespace: 'default' },
      spec: { spec: { devices: { requests: [{ name: 'r', deviceClassName: 'example' }] } } },
    }),
  });
}
