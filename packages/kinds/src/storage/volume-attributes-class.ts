import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  jsonEqual,
  qualifiedName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { VolumeAttributesClass } from '../gen/types/storage/v1beta1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { validateParameters } from './storage-class.ts';

/** VolumeAttributesClass: mutable attributes of volumes, interpreted by their driver. */
export function volumeAttributesClass(dialect: Dialect): ResourceDef {
  const driver = column('DriverName', driverOf, { description: 'Driver of the volumes.' });
  const columns = [nameColumn, driver, ageColumn];
  return defineKind({
    dialect,
    facts: 'storage',
    kind: 'VolumeAttributesClass',
    scope: 'Cluster',
    shortNames: ['vac'],
    versions: ['v1beta1', 'v1alpha1'].map((version) => ({ version, columns })),
    strategy: {
      validateName: dnsSubdomain,
      deleteAnswers: 'object',
      validateCreate: (_, object) => validate(object),
      extraMetadataChecks: { '': ['whole', 'change', 'whole'] },
      validateUpdate(_, object, old) {
        const errors = validate(object);
        // kube-apiserver validates the whole object both on its own and as part of the change.
        return [...errors, ...validateImmutable(object, old), ...errors];
      },
    },
    example: () => ({ driverName: 'driver.example.com', parameters: { a: 'b' } }),
  });
}

const driverOf = (object: Stored<VolumeAttributesClass>) => object.driverName ?? '';

function validate(object: Stored<VolumeAttributesClass>): FieldError[] {
  const driver = driverOf(object);
  const parameters = object.parameters;
  const isEmpty = Object.keys(parameters ?? {}).length === 0;
  return [
    ...(driver === ''
      ? [required('driverName')]
      : ruleErrors('driverName', driver.toLowerCase(), qualifiedName)),
    ...validateParameters(parameters),
    ...(isEmpty ? [required('parameters', 'must contain at least one key/value pair')] : []),
  ];
}

function validateImmutable(
  object: Stored<VolumeAttributesClass>,
  old: Stored<VolumeAttributesClass>,
): FieldError[] {
  const { parameters } = object;
  const before = old.parameters;
  return [
    ...(driverOf(object) === driverOf(old)
      ? []
      : [forbiddenField('driverName', 'updates to driverName are forbidden.')]),
    ...(jsonEqual(parameters ?? null, before ?? null)
      ? []
      : [forbiddenField('parameters', 'updates to parameters are forbidden.')]),
  ];
}
