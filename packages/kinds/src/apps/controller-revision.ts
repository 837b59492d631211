import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalidGo,
  isObject,
  type JsonValue,
  jsonEqual,
  required,
  showValue,
} from '@wheelhouse/machinery';
import { ageColumn, asStringColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ControllerRevision } from '../gen/types/apps/v1.ts';
import { validateNonNegative } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { countColumn } from './workload.ts';

/** ControllerRevision: a snapshot of a controller's template. */
export function controllerRevision(dialect: Dialect): ResourceDef {
  return defineKind<ControllerRevision>({
    dialect,
    facts: 'apps',
    kind: 'ControllerRevision',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Controller', controller, { description: 'Controller that owns the revision.' }),
          asStringColumn(countColumn('Revision', ['revision'], 'Number of the revision.')),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => [...validate(object), ...validateData(object.data)],
      validateUpdate: (_, object, old) => [
        ...validate(object),
        ...validateDataImmutable(object.data, old.data),
      ],
    },
    example: () => ({
      metadata: { name: 'example-1', namespace: 'default' },
      data: { spec: { template: {} } },
      revision: 1,
    }),
  });
}

function controller(object: Stored<ControllerRevision>): string {
  const owner = (object.metadata.ownerReferences ?? []).find(
    (ownerReference) => ownerReference.controller === true,
  );
  if (owner === undefined) return '<none>';
  const [group = ''] = String(owner.apiVersion).split('/');
  const kind = String(owner.kind).toLowerCase();
  const qualified = String(owner.apiVersion).includes('/') ? `${kind}.${group}` : kind;
  return `${qualified}/${String(owner.name)}`;
}

const validate = (object: Stored<ControllerRevision>): FieldError[] =>
  validateNonNegative(object, '', 'revision');

/** Validates the data of a new revision; a change cannot alter it. */
function validateData(data: JsonValue | undefined): FieldError[] {
  if (data === undefined || data === null) return [required('data', 'data is mandatory')];
  return isObject(data) ? [] : [required('data', 'data must be a valid JSON object')];
}

/** Rejects a change of the data, which kube-apiserver stores and prints as bytes. */
function validateDataImmutable(
  data: JsonValue | undefined,
  old: JsonValue | undefined,
): FieldError[] {
  if (jsonEqual(data, old)) return [];
  const bytes = [...Buffer.from(data === undefined ? 'null' : showValue(data))];
  const shown = bytes.map((byte) => `0x${byte.toString(16)}`).join(', ');
  const value = `runtime.RawExtension{Raw:[]uint8{${shown}}, Object:runtime.Object(nil)}`;
  return [invalidGo('data', () => value, 'field is immutable')];
}
