import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { ResourceQuota } from '../gen/types/core/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { sortedKeys } from '../rules/checks.ts';
import { fillAmounts } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateQuota, validateQuotaStatus, validateQuotaUpdate } from './resource-quota-rules.ts';

function fillDefaults(object: Stored<ResourceQuota>): void {
  fillAmounts(object.spec?.hard);
  fillAmounts(object.status?.hard);
  fillAmounts(object.status?.used);
}

/** `used/hard` of each resource of a sort. */
function usage(object: Stored<ResourceQuota>, options: { limits: boolean }): string {
  const hard = object.status?.hard;
  return sortedKeys(hard)
    .filter((name) => name.startsWith('limits.') === options.limits)
    .map((name) => `${name}: ${at(object, 'status', 'used', name) ?? '0'}/${hard?.[name]}`)
    .join(', ');
}

/** ResourceQuota: how much a namespace may use. */
export function resourceQuota(dialect: Dialect): ResourceDef {
  return defineKind<ResourceQuota>({
    dialect,
    facts: 'core',
    kind: 'ResourceQuota',
    resource: 'resourcequotas',
    scope: 'Namespaced',
    shortNames: ['quota'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          ageColumn,
          column('Request', (object) => usage(object, { limits: false }), {
            description: 'Requests and counts, used of allowed.',
          }),
          column('Limit', (object) => usage(object, { limits: true }), {
            description: 'Limits, used of allowed.',
          }),
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validateQuota(object, dialect),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateQuotaStatus(object, dialect)
          : validateQuotaUpdate(object, old, dialect),
      deleteAnswers: 'object',
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'example', namespace: 'default' },
      spec: { hard: { pods: '10', 'limits.memory': '4Gi' } },
    }),
  });
}
