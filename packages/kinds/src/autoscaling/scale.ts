import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  foregroundFinalizer,
  invalid,
  orphanFinalizer,
  validateObjectMeta,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, numberAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { Scale } from '../gen/types/autoscaling/v1.ts';
import type { ColumnDef, ResourceDef, Stored } from '../resource-def.ts';

const columns: readonly ColumnDef[] = [
  { ...nameColumn, format: '' },
  column('Desired', (object) => numberAt(object, 'spec', 'replicas'), {
    type: 'integer',
    description: 'Desired number of instances.',
  }),
  column('Available', (object) => numberAt(object, 'status', 'replicas'), {
    type: 'integer',
    description: 'Current number of instances.',
  }),
  ageColumn,
];

/** Scale: the subresource of other kinds with their replicas; never stored. */
export function scale(dialect: Dialect): ResourceDef {
  return defineKind<Scale>({
    dialect,
    facts: 'autoscaling',
    kind: 'Scale',
    scope: 'Namespaced',
    verbs: ['get', 'patch', 'update'],
    versions: [{ version: 'v1', columns }],
    strategy: { validateName: dnsSubdomain },
  });
}

/** Validates a Scale in a request. */
export function validateScale(object: Stored<Scale>, dialect: Dialect): FieldError[] {
  const replicas = object.spec?.replicas;
  const errors = validateObjectMeta(object.metadata, {
    namespaced: true,
    validateName: dnsSubdomain,
    path: 'metadata',
    standardFinalizers: new Set([orphanFinalizer, foregroundFinalizer, dialect.productName]),
  });
  if (typeof replicas !== 'number' || replicas >= 0) return errors;
  return [...errors, invalid('spec.replicas', replicas, 'must be greater than or equal to 0')];
}
