import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, forbiddenField, notSupported, required } from '../../meta/field-error.ts';
import { breaks, dnsSubdomain, qualifiedName } from '../../meta/names.ts';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { immutable, sameOrEmpty } from '../checks.ts';
import { defineKind } from '../define.ts';
import { fill } from '../fill.ts';

const fillDefaults = (object: JsonObject) =>
  fill(object, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' });

function validate(object: JsonObject): FieldError[] {
  const provisioner = textAt(object, 'provisioner');
  const errors =
    provisioner === ''
      ? [required('provisioner')]
      : breaks('provisioner', provisioner.toLowerCase(), qualifiedName);
  const choice = (field: string, allowed: readonly string[]) => {
    const value = textAt(object, field);
    if (value !== '' && !allowed.includes(value)) errors.push(notSupported(field, value, allowed));
  };
  choice('reclaimPolicy', ['Delete', 'Retain']);
  choice('volumeBindingMode', ['Immediate', 'WaitForFirstConsumer']);
  return errors;
}

function kept(object: JsonObject, old: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const same = (field: string) => sameOrEmpty(object[field], old[field]);
  const forbid = (field: string) =>
    errors.push(forbiddenField(field, `updates to ${field} are forbidden.`));
  for (const field of ['parameters', 'provisioner', 'reclaimPolicy']) {
    if (!same(field)) forbid(field);
  }
  const mode = 'volumeBindingMode';
  return [...errors, ...immutable(mode, object[mode], old[mode])];
}

/** StorageClass: a kind of storage that can be asked for. */
export function storageClass(dialect: Dialect): ResourceDef {
  const isDefault = (object: JsonObject) =>
    textAt(object, 'metadata', 'annotations', dialect.label('is-default-class', 'storageclass')) ===
    'true';
  const text = (name: string, member: string, description: string) =>
    column(name, (object) => textAt(object, member), { description });
  return defineKind({
    dialect,
    facts: 'storage',
    kind: 'StorageClass',
    resource: 'storageclasses',
    scope: 'Cluster',
    shortNames: ['sc'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          {
            ...nameColumn,
            cell: (object) =>
              `${textAt(object, 'metadata', 'name')}${isDefault(object) ? ' (default)' : ''}`,
          },
          text('Provisioner', 'provisioner', 'Who makes the volumes.'),
          text('ReclaimPolicy', 'reclaimPolicy', 'What becomes of released volumes.'),
          text('VolumeBindingMode', 'volumeBindingMode', 'When volumes are made.'),
          column('AllowVolumeExpansion', (object) => at(object, 'allowVolumeExpansion') === true, {
            type: 'boolean',
            description: 'Whether volumes can grow.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [...validate(object), ...kept(object, old)],
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: `${dialect.group('storage')}/v1`,
      kind: 'StorageClass',
      metadata: { name: 'example' },
      provisioner: 'driver.example.com',
    }),
  });
}
