import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { defineKind } from '../define.ts';
import { objectAt } from '../fill.ts';

/**
 * The Scale, which is never stored and has no path of its own: other kinds show one as their
 * sub-resource.
 */
export function scale(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'autoscaling',
    kind: 'Scale',
    resource: 'scales',
    scope: 'Namespaced',
    verbs: ['get', 'patch', 'update'],
    versions: [{ version: 'v1' }],
    strategy: { validateName: dnsSubdomain },
  });
}

/** Judges a Scale that a client sent. */
export function validateScale(object: JsonObject): FieldError[] {
  const replicas = objectAt(object, 'spec')?.['replicas'];
  if (typeof replicas !== 'number' || replicas >= 0) return [];
  return [invalid('spec.replicas', replicas, 'must be greater than or equal to 0')];
}
