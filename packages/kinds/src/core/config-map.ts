import {
  appendAll,
  configMapKey,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  ruleErrors,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, sizeAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ConfigMap, Secret } from '../gen/types/core/v1.ts';
import type { ColumnDef, ResourceDef } from '../resource-def.ts';
import { keyed, sameOrEmpty, sortedKeys } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** The column with the number of entries of a ConfigMap or Secret. */
export const dataColumn: ColumnDef = column(
  'Data',
  (object) => sizeAt(object, 'data', 'binaryData'),
  { description: 'Number of entries.' },
);

/** ConfigMap: named strings and bytes, at most 1 MiB in total. */
export function configMap(dialect: Dialect): ResourceDef {
  return defineKind<ConfigMap>({
    dialect,
    facts: 'core',
    kind: 'ConfigMap',
    resource: 'configmaps',
    scope: 'Namespaced',
    shortNames: ['cm'],
    versions: [{ version: 'v1', columns: [nameColumn, dataColumn, ageColumn] }],
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...validateImmutableData(object, old),
        ...validate(object),
      ],
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'example', namespace: 'default' },
      data: { greeting: 'hello' },
      binaryData: { raw: 'AAEC' },
    }),
  });
}

/** Upper bound of the total size of a ConfigMap's or Secret's values, in bytes. */
export const dataBytesMax = 1024 * 1024;

function validate(object: Stored<ConfigMap>): FieldError[] {
  const errors: FieldError[] = [];
  if (isClearlyValid(object)) return errors;
  const { data = {}, binaryData = {} } = object;
  let total = 0;
  for (const key of sortedKeys(data)) {
    const path = keyed('data', key);
    appendAll(errors, ruleErrors(path, key, configMapKey));
    if (Object.hasOwn(binaryData, key)) {
      errors.push(invalid(path, key, 'duplicate of key present in binaryData'));
    }
    total += Buffer.byteLength(data[key] ?? '');
  }
  for (const key of sortedKeys(binaryData)) {
    appendAll(errors, ruleErrors(keyed('binaryData', key), key, configMapKey));
    total += decodedLength(binaryData[key] ?? '');
  }
  // kube-apiserver's path for the object as a whole.
  if (total > dataBytesMax) errors.push(tooLong('[]', dataBytesMax));
  return errors;
}

/**
 * A fast check that accepts most objects: valid keys, no bytes, and little text in any encoding.
 */
function isClearlyValid({ data, binaryData }: Stored<ConfigMap>): boolean {
  if (binaryData !== undefined) return false;
  let length = 0;
  for (const key in data) {
    if (configMapKey(key).length > 0) return false;
    length += data[key]?.length ?? 0;
  }
  return length * 3 <= dataBytesMax;
}

/** The number of bytes that a base64 text encodes. */
export function decodedLength(base64: string): number {
  return Buffer.byteLength(base64, 'base64');
}

/** Rejects changes of a ConfigMap or Secret whose `immutable` is true. */
export function validateImmutableData(
  object: Stored<ConfigMap> | Stored<Secret>,
  old: Stored<ConfigMap> | Stored<Secret>,
): FieldError[] {
  if (old.immutable !== true) return [];
  const detail = 'field is immutable when `immutable` is set';
  const errors = object.immutable === true ? [] : [forbiddenField('immutable', detail)];
  if (!sameOrEmpty(object.data, old.data)) errors.push(forbiddenField('data', detail));
  const binary = (stored: Stored<ConfigMap | Secret>) =>
    'binaryData' in stored ? stored.binaryData : undefined;
  if (!sameOrEmpty(binary(object), binary(old))) errors.push(forbiddenField('binaryData', detail));
  return errors;
}
