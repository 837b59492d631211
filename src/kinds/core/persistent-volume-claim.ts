import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, forbiddenField, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { sameOrEmpty } from '../checks.ts';
import { defineKind } from '../define.ts';
import { ensure, fill } from '../fill.ts';
import { accessModesText, quantityText, validateAccessModes } from './volumes.ts';

function fillDefaults(object: JsonObject): void {
  fill(ensure(object, 'spec'), { volumeMode: 'Filesystem' });
  fill(ensure(object, 'status'), { phase: 'Pending' });
}

function validate(object: JsonObject): FieldError[] {
  const errors = validateAccessModes(object);
  if (at(object, 'spec', 'resources', 'requests', 'storage') === undefined) {
    errors.push(required('spec.resources[storage]'));
  }
  return errors;
}

const isBound = (object: JsonObject) => textAt(object, 'spec', 'volumeName') !== '';

/** Once made, a claim may only be bound, and once bound, grow. */
function specKept(object: JsonObject, old: JsonObject): FieldError[] {
  const [spec, before] = [{ ...ensure(object, 'spec') }, { ...ensure(old, 'spec') }];
  if (!isBound(old)) before['volumeName'] = spec['volumeName'];
  else before['resources'] = spec['resources'];
  before['volumeAttributesClassName'] = spec['volumeAttributesClassName'];
  if (sameOrEmpty(spec, before)) return [];
  const detail =
    'spec is immutable after creation except resources.requests and ' +
    'volumeAttributesClassName for bound claims';
  return [forbiddenField('spec', detail)];
}

function phase(object: JsonObject): string {
  const deleting = at(object, 'metadata', 'deletionTimestamp') !== undefined;
  return deleting ? 'Terminating' : textAt(object, 'status', 'phase');
}

/** PersistentVolumeClaim: a request for storage. */
export function persistentVolumeClaim(dialect: Dialect): ResourceDef {
  const bound = (object: JsonObject, text: string) => (isBound(object) ? text : '');
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'PersistentVolumeClaim',
    resource: 'persistentvolumeclaims',
    scope: 'Namespaced',
    shortNames: ['pvc'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          column('Status', phase, { description: 'Pending, Bound or Lost.' }),
          column('Volume', (object) => textAt(object, 'spec', 'volumeName'), {
            description: 'The volume it is bound to.',
          }),
          column(
            'Capacity',
            (object) => bound(object, quantityText(object, 'status', 'capacity', 'storage')),
            { description: 'Size of the volume.' },
          ),
          column(
            'Access Modes',
            (object) => bound(object, accessModesText(listAt(object, 'status', 'accessModes'))),
            { description: 'How the volume can be mounted.' },
          ),
          column('StorageClass', (object) => textAt(object, 'spec', 'storageClassName'), {
            description: 'Class of storage asked for.',
          }),
          column(
            'VolumeAttributesClass',
            (object) => textAt(object, 'spec', 'volumeAttributesClassName') || '<unset>',
            { description: 'Class of attributes asked for.' },
          ),
          ageColumn,
          column('VolumeMode', (object) => textAt(object, 'spec', 'volumeMode') || '<unset>', {
            priority: 1,
            description: 'Filesystem or Block.',
          }),
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => {
        object['status'] = { phase: 'Pending' };
      },
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status' ? [] : [...validate(object), ...specKept(object, old)],
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'example', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }),
  });
}
