import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid } from '../../meta/field-error.ts';
import { breaks, dnsSubdomain, qualifiedName } from '../../meta/names.ts';
import { ageColumn, at, column, nameColumn } from '../cells.ts';
import { sameOrEmpty, sortedKeys } from '../checks.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { objectAt } from '../fill.ts';

function validate(object: JsonObject): FieldError[] {
  const hard = objectAt(object, 'spec', 'hard');
  return sortedKeys(hard).flatMap((name) => {
    const path = `spec.hard[${name}]`;
    const errors = breaks(path, name, qualifiedName);
    const amount = String(hard?.[name]);
    if (amount.startsWith('-')) {
      errors.push(invalid(path, amount, 'must be greater than or equal to 0'));
    }
    return errors;
  });
}

function scopesKept(object: JsonObject, old: JsonObject): FieldError[] {
  const scopes = at(object, 'spec', 'scopes');
  if (sameOrEmpty(scopes, at(old, 'spec', 'scopes'))) return [];
  return [invalid('spec.scopes', scopes ?? null, 'field is immutable')];
}

/** `used/hard` of each resource of a sort. */
function usage(object: JsonObject, options: { limits: boolean }): string {
  const hard = objectAt(object, 'status', 'hard');
  return sortedKeys(hard)
    .filter((name) => name.startsWith('limits') === options.limits)
    .map((name) => `${name}: ${at(object, 'status', 'used', name) ?? '0'}/${hard?.[name]}`)
    .join(', ');
}

/** ResourceQuota: how much a namespace may use. */
export function resourceQuota(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'ResourceQuota',
    resource: 'resourcequotas',
    scope: 'Namespaced',
    shortNames: ['quota'],
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Request', (object) => usage(object, { limits: false }), {
            description: 'Requests and counts, used of allowed.',
          }),
          column('Limit', (object) => usage(object, { limits: true }), {
            description: 'Limits, used of allowed.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status' ? [] : [...validate(object), ...scopesKept(object, old)],
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
