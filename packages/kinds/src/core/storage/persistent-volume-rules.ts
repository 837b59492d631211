import { posix } from 'node:path';
import {
  type ApiObject,
  appendAll,
  breaks,
  cloneJson,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  goItems,
  type JsonObject,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { at, sizeAt } from '../../cells.ts';
import type {
  PersistentVolume,
  PersistentVolumeSpec,
  VolumeNodeAffinity,
} from '../../gen/types/core/v1.ts';
import { goDifference } from '../../pod/difference.ts';
import { goQuantity } from '../../pod/go-text.ts';
import { validateNodeSelector } from '../../pod/validation/affinity.ts';
import { immutable, keyed, sameOrEmpty, sortedKeys, toldTwice } from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import { validateVolumeSource, volumeSources } from './persistent-volume-sources.ts';
import { basicQuantity, knownAccessModes, knownVolumeMode, positiveQuantity } from './volumes.ts';

const policies = ['Delete', 'Recycle', 'Retain'];

/** All that is wrong with a PersistentVolume but for its metadata. */
export function validateVolume(object: Stored<PersistentVolume>, dialect: Dialect): FieldError[] {
  const spec = object.spec ?? {};
  const volume = object.metadata.name ?? '';
  return [
    ...((spec.accessModes ?? []).length === 0 ? [required('spec.accessModes')] : []),
    ...knownAccessModes(spec, 'spec.accessModes'),
    ...validateCapacity(spec),
    ...validateReclaimPolicy(spec),
    ...validateNodeAffinity(spec),
    ...validateVolumeSource(spec, 'spec', { volume, dialect }),
    ...validateRest(spec),
    ...validateMountOptions(object, dialect),
  ];
}

/** Sources that a mount's options may be given for in the annotation that once held them. */
const mountedWithOptions = [
  'awsElasticBlockStore',
  'azureDisk',
  'azureFile',
  'cephfs',
  'cinder',
  'gcePersistentDisk',
  'glusterfs',
  'iscsi',
  'nfs',
  'photonPersistentDisk',
  'quobyte',
  'rbd',
  'vsphereVolume',
];

function validateMountOptions({ metadata, ...object }: ApiObject, dialect: Dialect): FieldError[] {
  const annotation = dialect.label('mount-options', 'volume.beta');
  if (metadata.annotations?.[annotation] === undefined) return [];
  const spec = objectAt(object, 'spec');
  if (mountedWithOptions.some((name) => objectAt(spec, name) !== undefined)) return [];
  const detail = 'may not specify mount options for this volume type';
  return [forbiddenField(`metadata.annotations.${annotation}`, detail)];
}

/** A volume within a VolumeAttachment: what belongs to a claim has no place there. */
export function validateInlineVolume(
  spec: Stored<PersistentVolumeSpec>,
  path: string,
  dialect: Dialect,
): FieldError[] {
  const refuse = (name: string) =>
    forbiddenField(`${path}.${name}`, 'may not be specified in the context of inline volumes');
  const mode = spec.volumeMode;
  const refused = (name: string) => (at(spec, name) === undefined ? [] : [refuse(name)]);
  const noDriver = required(`${path}.csi`, 'has to be specified in the context of inline volumes');
  const policy = spec.persistentVolumeReclaimPolicy ?? '';
  const retained = forbiddenField(
    `${path}.persistentVolumeReclaimPolicy`,
    'may only be Retain in the context of inline volumes',
  );
  return [
    ...refused('claimRef'),
    ...(sizeAt(spec, 'capacity') > 0 ? [refuse('capacity')] : []),
    ...(spec.csi === undefined ? [noDriver] : []),
    ...((spec.accessModes ?? []).length === 0 ? [required(`${path}.accessModes`)] : []),
    ...knownAccessModes(spec, `${path}.accessModes`),
    ...(policy === '' || policy === 'Retain' ? [] : [retained]),
    ...refused('nodeAffinity'),
    ...validateVolumeSource(spec, path, { volume: '', dialect, isInline: true }),
    ...((spec.storageClassName ?? '') === '' ? [] : [refuse('storageClassName')]),
    ...(mode === undefined || mode === 'Filesystem'
      ? []
      : [
          forbiddenField(
            `${path}.volumeMode`,
            'may not specify volumeMode other than Filesystem in the context of inline volumes',
          ),
        ]),
  ];
}

function validateCapacity(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const capacity = spec.capacity;
  const names = sortedKeys(capacity);
  const errors: FieldError[] = [];
  if (names.length === 0) errors.push(required('spec.capacity'));
  if (names.length !== 1 || names[0] !== 'storage') {
    errors.push({
      ...notSupported('spec.capacity', '', ['storage']),
      message: `Unsupported value: ${goResources(capacity)}: supported values: "storage"`,
    });
  }
  for (const name of names) {
    const field = keyed('spec.capacity', name);
    const value = capacity?.[name];
    appendAll(errors, basicQuantity(value, field));
    appendAll(errors, positiveQuantity(value, field));
  }
  return errors;
}

/** A list of resources as Go prints it. */
function goResources(list: JsonObject | undefined): string {
  if (list === undefined) return 'core.ResourceList(nil)';
  const entry = (name: string) => `${JSON.stringify(name)}:${goQuantity(String(list[name]))}`;
  return `core.ResourceList{${goItems(sortedKeys(list), entry)}}`;
}

function validateReclaimPolicy(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const policy = spec.persistentVolumeReclaimPolicy ?? '';
  if (policy === '' || policies.includes(policy)) return [];
  return [notSupported('spec.persistentVolumeReclaimPolicy', policy, policies)];
}

function validateNodeAffinity(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const affinity = spec.nodeAffinity;
  if (affinity === undefined) return [];
  const wanted = affinity.required;
  const field = 'spec.nodeAffinity.required';
  if (wanted === undefined) return [required(field, 'must specify required node constraints')];
  return validateNodeSelector(wanted, field);
}

function validateRest(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const errors: FieldError[] = [];
  const policy = spec.persistentVolumeReclaimPolicy ?? '';
  const isRoot = posix.normalize(spec.hostPath?.path ?? '') === '/';
  if (policy === 'Recycle' && isRoot) {
    const detail = "may not be 'recycle' for a hostPath mount of '/'";
    errors.push(forbiddenField('spec.persistentVolumeReclaimPolicy', detail));
  }
  const className = spec.storageClassName ?? '';
  if (className !== '') appendAll(errors, breaks('spec.storageClassName', className, dnsSubdomain));
  return [...errors, ...knownVolumeMode(spec, 'spec.volumeMode')];
}

/** What an update may not do, after all that is wrong with the new volume. */
export function validateVolumeUpdate(
  object: Stored<PersistentVolume>,
  old: Stored<PersistentVolume>,
  dialect: Dialect,
): FieldError[] {
  const spec = object.spec ?? {};
  const before = old.spec ?? {};
  const errors = toldTwice(validateVolume(object, dialect));
  const [now, then] = [sourceOf(withoutNewSecrets(spec, before)), sourceOf(before)];
  if (!sameOrEmpty(now, then)) {
    const difference = goDifference('core.PersistentVolumeSource', then, now);
    const detail = `spec.persistentvolumesource is immutable after creation\n${difference}`;
    errors.push(forbiddenField('spec.persistentvolumesource', detail));
  }
  appendAll(errors, immutable('volumeMode', spec.volumeMode, before.volumeMode));
  const affinity = before.nodeAffinity;
  if (affinity !== undefined && !isSameAffinity(spec.nodeAffinity, affinity, dialect)) {
    appendAll(errors, affinityKept(spec));
  }
  return errors;
}

/** Equal, but that a node's label may get the name it has now in place of its older one. */
function isSameAffinity(
  affinity: Stored<VolumeNodeAffinity> | undefined,
  before: Stored<VolumeNodeAffinity>,
  dialect: Dialect,
): boolean {
  const renamed = cloneJson(before);
  const termsOf = (holder: Stored<VolumeNodeAffinity> | undefined) =>
    holder?.required?.nodeSelectorTerms ?? [];
  const termsNow = termsOf(affinity);
  for (const [index, term] of termsOf(renamed).entries()) {
    for (const list of ['matchExpressions', 'matchFields'] as const) {
      const requirementsNow = termsNow[index]?.[list] ?? [];
      for (const [at, requirement] of (term[list] ?? []).entries()) {
        const newer = newerLabel(requirement.key ?? '', dialect);
        const key = requirementsNow[at]?.key;
        if (newer !== undefined && key === newer) requirement.key = newer;
      }
    }
  }
  return sameOrEmpty(affinity, renamed);
}

/** The name that took the place of an older label of nodes. */
function newerLabel(name: string, { label }: Dialect): string | undefined {
  const names: readonly (readonly [older: string, newer: string])[] = [
    [label('zone', 'failure-domain.beta'), label('zone', 'topology')],
    [label('region', 'failure-domain.beta'), label('region', 'topology')],
    [label('os', 'beta'), label('os')],
    [label('arch', 'beta'), label('arch')],
    [label('instance-type', 'beta'), label('instance-type', 'node')],
  ];
  return names.find(([older]) => older === name)?.[1];
}

function affinityKept(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const detail = 'field is immutable, except for updating from beta label to GA';
  // Upstream shows where the rest is in its memory.
  const shown = spec.nodeAffinity === undefined ? '"null"' : 'core.VolumeNodeAffinity{…}';
  const message = `Invalid value: ${shown}: ${detail}`;
  return [{ type: 'FieldValueInvalid', field: 'nodeAffinity', message }];
}

const sourceOf = (spec: JsonObject): JsonObject =>
  Object.fromEntries(
    volumeSources
      .filter((name) => objectAt(spec, name) !== undefined)
      .map((name) => [name, spec[name]]),
  );

/** The secrets for growing a volume may be named later. */
function withoutNewSecrets(
  spec: Stored<PersistentVolumeSpec>,
  before: Stored<PersistentVolumeSpec>,
): JsonObject {
  const driver = spec.csi;
  if (driver === undefined || before.csi === undefined) return spec;
  const csi = { ...driver };
  for (const name of ['controllerExpandSecretRef', 'nodeExpandSecretRef'] as const) {
    if (before.csi[name] === undefined) delete csi[name];
  }
  return { ...spec, csi };
}
