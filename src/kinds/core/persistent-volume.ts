import type { JsonObject } from '../../base/json.ts';
import type { ColumnDef, ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, forbiddenField, notSupported, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { sameOrEmpty } from '../checks.ts';
import { defineKind } from '../define.ts';
import { ensure, fill } from '../fill.ts';
import { fillDrivers } from '../pod/defaults.ts';
import { accessModesText, quantityText, validateAccessModes } from './volumes.ts';

const policies = ['Delete', 'Recycle', 'Retain'];

/** Members of the spec that do not name a kind of storage. */
const plainMembers = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
]);

const sourcesOf = (spec: JsonObject) => Object.keys(spec).filter((name) => !plainMembers.has(name));

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' });
  fill(ensure(object, 'status'), { phase: 'Pending' });
  fillDrivers(spec);
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors = validateAccessModes(object);
  if (at(spec, 'capacity', 'storage') === undefined) {
    errors.push(
      at(spec, 'capacity') === undefined
        ? required('spec.capacity')
        : notSupported('spec.capacity', '', ['storage']),
    );
  }
  const [first, ...more] = sourcesOf(spec);
  if (first === undefined) errors.push(required('spec', 'must specify a volume type'));
  for (const source of more) {
    errors.push(forbiddenField(`spec.${source}`, 'may not specify more than 1 volume type'));
  }
  const policy = textAt(spec, 'persistentVolumeReclaimPolicy');
  if (policy !== '' && !policies.includes(policy)) {
    errors.push(notSupported('spec.persistentVolumeReclaimPolicy', policy, policies));
  }
  return errors;
}

function sourceKept(object: JsonObject, old: JsonObject): FieldError[] {
  const pick = (one: JsonObject) => {
    const spec = ensure(one, 'spec');
    return Object.fromEntries(sourcesOf(spec).map((name) => [name, spec[name]]));
  };
  if (sameOrEmpty(pick(object), pick(old))) return [];
  const detail = 'spec.persistentvolumesource is immutable after creation';
  return [forbiddenField('spec.persistentvolumesource', detail)];
}

function claim(object: JsonObject): string {
  const name = textAt(object, 'spec', 'claimRef', 'name');
  return name === '' ? '' : `${textAt(object, 'spec', 'claimRef', 'namespace')}/${name}`;
}

function phase(object: JsonObject): string {
  const deleting = at(object, 'metadata', 'deletionTimestamp') !== undefined;
  return deleting ? 'Terminating' : textAt(object, 'status', 'phase');
}

const specColumn = (name: string, member: string, description: string, empty = '') =>
  column(name, (object) => textAt(object, 'spec', member) || empty, { description });

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Capacity', (object) => quantityText(object, 'spec', 'capacity', 'storage'), {
    description: 'Size.',
  }),
  column('Access Modes', (object) => accessModesText(listAt(object, 'spec', 'accessModes')), {
    description: 'How it can be mounted.',
  }),
  specColumn(
    'Reclaim Policy',
    'persistentVolumeReclaimPolicy',
    'What becomes of it when released.',
  ),
  column('Status', phase, { description: 'Available, Bound, Released or Failed.' }),
  column('Claim', claim, { description: 'The claim it is bound to.' }),
  specColumn('StorageClass', 'storageClassName', 'Class of storage.'),
  specColumn(
    'VolumeAttributesClass',
    'volumeAttributesClassName',
    'Class of attributes.',
    '<unset>',
  ),
  column('Reason', (object) => textAt(object, 'status', 'reason'), {
    description: 'Why it is in its state.',
  }),
  ageColumn,
  column('VolumeMode', (object) => textAt(object, 'spec', 'volumeMode') || '<unset>', {
    priority: 1,
    description: 'Filesystem or Block.',
  }),
];

/** PersistentVolume: a piece of storage. */
export function persistentVolume(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'PersistentVolume',
    resource: 'persistentvolumes',
    scope: 'Cluster',
    shortNames: ['pv'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns,
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
        context.subresource === 'status' ? [] : [...validate(object), ...sourceKept(object, old)],
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'example' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/data' },
      },
    }),
  });
}
