import { posix } from 'node:path';
import {
  type ApiObject,
  appendAll,
  cloneJsonSteps,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  goItems,
  invalid,
  type JsonObject,
  notSupported,
  required,
  ruleErrors,
  Stride,
} from '@wheelhouse/machinery';
import { at, sizeAt, textAt } from '../../cells.ts';
import { defaultFeatures } from '../../features/features.ts';
import type {
  PersistentVolume,
  PersistentVolumeSpec,
  SecretReference,
  VolumeNodeAffinity,
} from '../../gen/types/core/v1.ts';
import { isSet, requireTexts, validateDriverName, validateNoBacksteps } from '../../pod/fields.ts';
import { goDifference, goQuantity } from '../../pod/go-text.ts';
import { newPodRules } from '../../pod/rules.ts';
import { nodeSelectorErrorSteps } from '../../pod/validation/affinity.ts';
import { persistentIscsi, sourceRule } from '../../pod/validation/volume-sources.ts';
import type { Findings, Stored } from '../../resource-def.ts';
import {
  errorSteps,
  flatMapSteps,
  immutable,
  keyed,
  sameOrEmptySteps,
  sortedKeys,
} from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import { type ClaimPorts, validateAttributesClassUnchanged } from './claim-rules.ts';
import {
  validateAccessModes,
  validateNotNegativeQuantity,
  validatePositiveQuantity,
  validateVolumeMode,
} from './volumes.ts';

/** Validates a PersistentVolume except its metadata. */
export function* validateVolume(
  object: Stored<PersistentVolume>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  return [...(yield* validateMembers(object, dialect)), ...validateMountOptions(object, dialect)];
}

function* validateMembers(
  object: Stored<PersistentVolume>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  const volume = object.metadata.name ?? '';
  return [
    ...((spec.accessModes ?? []).length === 0 ? [required('spec.accessModes')] : []),
    ...(yield* validateAccessModes(spec, 'spec.accessModes')),
    ...(yield* validateCapacity(spec)),
    ...validateReclaimPolicy(spec),
    ...(yield* validateNodeAffinity(spec)),
    ...(yield* validateVolumeSource(spec, 'spec', { volume, dialect })),
    ...validateRest(spec),
    ...validateAttributesClass(spec),
  ];
}

function* validateCapacity(spec: Stored<PersistentVolumeSpec>): Generator<void, FieldError[]> {
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
  const ofValues = yield* flatMapSteps(names, (name) => {
    const field = keyed('spec.capacity', name);
    const value = capacity?.[name];
    return [
      ...validateNotNegativeQuantity(value, field),
      ...validatePositiveQuantity(value, field),
    ];
  });
  return [...errors, ...ofValues];
}

/** A resource list as Go prints it. */
function goResources(list: JsonObject | undefined): string {
  if (list === undefined) return 'core.ResourceList(nil)';
  const entry = (name: string) => `${JSON.stringify(name)}:${goQuantity(String(list[name]))}`;
  return `core.ResourceList{${goItems(sortedKeys(list), entry)}}`;
}

const policies = ['Delete', 'Recycle', 'Retain'];

function validateReclaimPolicy(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const policy = spec.persistentVolumeReclaimPolicy ?? '';
  if (policy === '' || policies.includes(policy)) return [];
  return [notSupported('spec.persistentVolumeReclaimPolicy', policy, policies)];
}

function* validateNodeAffinity(spec: Stored<PersistentVolumeSpec>): Generator<void, FieldError[]> {
  const affinity = spec.nodeAffinity;
  if (affinity === undefined) return [];
  const selector = affinity.required;
  const field = 'spec.nodeAffinity.required';
  if (selector === undefined) return [required(field, 'must specify required node constraints')];
  return yield* nodeSelectorErrorSteps(selector, field);
}

interface SourceContext {
  /** The volume's name. */
  readonly volume: string;
  readonly dialect: Dialect;
  /** Whether the volume is part of a VolumeAttachment, where node affinity does not apply. */
  readonly isInline?: boolean;
}

type Rule = (source: JsonObject, path: string, context: SourceContext) => Findings;

/** The rule of a source that volumes of pods have in the same form. */
const shared =
  (name: string): Rule =>
  (source, path, { volume, dialect }) =>
    sourceRule(name)?.(source, path, {
      volume,
      rules: newPodRules({ dialect, features: defaultFeatures }),
    }) ?? [];

const glusterfs: Rule = (source, path) => {
  const errors = requireTexts(source, path, 'endpoints', 'path');
  const namespace = at(source, 'endpointsNamespace');
  const field = `${path}.endpointsNamespace`;
  if (typeof namespace !== 'string') return errors;
  if (namespace !== '') return [...errors, ...ruleErrors(field, namespace, dnsLabel)];
  const detail = 'if the endpointnamespace is set, it must be a valid namespace name';
  return [...errors, invalid(field, namespace, detail)];
};

const iscsi: Rule = (source, path, { volume, dialect }) =>
  persistentIscsi(source, path, {
    volume,
    rules: newPodRules({ dialect, features: defaultFeatures }),
  });

const azureFile: Rule = (source, path) => {
  const errors = requireTexts(source, path, 'secretName', 'shareName');
  const namespace = at(source, 'secretNamespace');
  return namespace === '' ? [...errors, required(`${path}.secretNamespace`)] : errors;
};

const local: Rule = (source, path) => {
  const sourcePath = textAt(source, 'path');
  return sourcePath === ''
    ? [required(`${path}.path`)]
    : validateNoBacksteps(`${path}.path`, sourcePath);
};

const storageos: Rule = (source, path) => {
  const name = textAt(source, 'volumeName');
  const namespace = textAt(source, 'volumeNamespace');
  return [
    ...(name === ''
      ? [required(`${path}.volumeName`)]
      : ruleErrors(`${path}.volumeName`, name, dnsLabel)),
    ...(namespace === '' ? [] : ruleErrors(`${path}.volumeNamespace`, namespace, dnsLabel)),
    ...namedSecret(source, path),
  ];
};

/** Validates an optional reference to a secret, whose name and namespace are required. */
const namedSecret = (source: JsonObject, path: string) =>
  isSet(source, 'secretRef')
    ? requireTexts(source, path, 'secretRef.name', 'secretRef.namespace')
    : [];

const csiSecrets = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
];

const csi: Rule = (source, path) => [
  ...validateDriverName(textAt(source, 'driver'), `${path}.driver`),
  ...requireTexts(source, path, 'volumeHandle'),
  ...csiSecrets.flatMap((name) => {
    const reference = objectAt(source, name);
    return reference === undefined ? [] : validateSecret(reference, `${path}.${name}`);
  }),
];

/** The sources of a PersistentVolume, in the order in which kube-apiserver validates them. */
const sources: Readonly<Record<string, Rule>> = {
  hostPath: shared('hostPath'),
  gcePersistentDisk: shared('gcePersistentDisk'),
  awsElasticBlockStore: shared('awsElasticBlockStore'),
  glusterfs,
  flocker: shared('flocker'),
  nfs: shared('nfs'),
  rbd: shared('rbd'),
  quobyte: shared('quobyte'),
  cephfs: shared('cephfs'),
  iscsi,
  cinder: (source, path) => [
    ...requireTexts(source, path, 'volumeID'),
    ...namedSecret(source, path),
  ],
  fc: shared('fc'),
  flexVolume: shared('flexVolume'),
  azureFile,
  vsphereVolume: shared('vsphereVolume'),
  photonPersistentDisk: shared('photonPersistentDisk'),
  portworxVolume: shared('portworxVolume'),
  azureDisk: shared('azureDisk'),
  scaleIO: shared('scaleIO'),
  local,
  storageos,
  csi,
};

/** The members of a spec that are sources. */
const volumeSources: readonly string[] = Object.keys(sources);

/** Validates the source, of which there must be exactly one. */
function* validateVolumeSource(
  spec: Stored<PersistentVolumeSpec>,
  path: string,
  context: SourceContext,
): Generator<void, FieldError[]> {
  const sourceNames = volumeSources.filter((name) => objectAt(spec, name) !== undefined);
  if (sourceNames.length === 0) return [required(path, 'must specify a volume type')];
  return yield* flatMapSteps(sourceNames, function* (name, index) {
    const source = objectAt(spec, name) ?? {};
    // kube-apiserver counts a flexVolume as a source, but accepts it after another one.
    if (index > 0 && name !== 'flexVolume') {
      const shown = name === 'cephfs' ? 'cephFS' : name;
      return [forbiddenField(`${path}.${shown}`, 'may not specify more than 1 volume type')];
    }
    const inner = name === 'gcePersistentDisk' ? 'persistentDisk' : name;
    const errors = yield* errorSteps(sources[name]?.(source, `${path}.${inner}`, context));
    const hasAffinity = spec.nodeAffinity !== undefined && context.isInline !== true;
    if (name !== 'local' || hasAffinity) return errors;
    return [...errors, required(`${path}.nodeAffinity`, 'Local volume requires node affinity')];
  });
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
  if (className !== '')
    appendAll(errors, ruleErrors('spec.storageClassName', className, dnsSubdomain));
  return [...errors, ...validateVolumeMode(spec, 'spec.volumeMode')];
}

/** Validates the class of attributes, which only volumes of CSI drivers have. */
function validateAttributesClass(spec: Stored<PersistentVolumeSpec>): FieldError[] {
  const { volumeAttributesClassName: name, csi } = spec;
  if (name === undefined) return [];
  const field = 'spec.volumeAttributesClassName';
  const noDriver = required('spec.csi', 'has to be specified when using volumeAttributesClassName');
  return [
    ...(name === ''
      ? [required(field, 'an empty string is disallowed')]
      : ruleErrors(field, name, dnsSubdomain)),
    ...(csi === undefined ? [noDriver] : []),
  ];
}

/** Sources that support the annotation with mount options, which `mountOptions` replaces. */
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

/**
 * Validates the inline volume of a VolumeAttachment, which cannot have members about claims, in
 * steps.
 */
export function* validateInlineVolume(
  spec: Stored<PersistentVolumeSpec>,
  path: string,
  dialect: Dialect,
): Generator<void, FieldError[]> {
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
    ...(yield* validateAccessModes(spec, `${path}.accessModes`)),
    ...(policy === '' || policy === 'Retain' ? [] : [retained]),
    ...refused('nodeAffinity'),
    ...(yield* validateVolumeSource(spec, path, { volume: '', dialect, isInline: true })),
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

/** Validates a changed volume: first the whole volume, then the changes. */
export function* validateVolumeUpdate(
  object: Stored<PersistentVolume>,
  old: Stored<PersistentVolume>,
  { dialect, features }: ClaimPorts,
): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  const before = old.spec ?? {};
  // kube-apiserver reports errors in members twice, but those in mount options once.
  const memberErrors = yield* validateMembers(object, dialect);
  const errors = [...memberErrors, ...validateMountOptions(object, dialect), ...memberErrors];
  const [source, oldSource] = [sourceOf(withoutNewSecret(spec, before)), sourceOf(before)];
  if (!(yield* sameOrEmptySteps(source, oldSource))) {
    const difference = yield* goDifference('core.PersistentVolumeSource', oldSource, source);
    const detail = `spec.persistentvolumesource is immutable after creation\n${difference}`;
    errors.push(forbiddenField('spec.persistentvolumesource', detail));
  }
  appendAll(errors, immutable('volumeMode', spec.volumeMode, before.volumeMode));
  yield;
  const affinity = before.nodeAffinity;
  if (affinity !== undefined && !(yield* isSameAffinity(spec.nodeAffinity, affinity, dialect))) {
    errors.push(changedAffinity(spec));
  }
  const [name, oldName] = [spec.volumeAttributesClassName, before.volumeAttributesClassName];
  return [...errors, ...validateAttributesClassUnchanged(name, oldName, features)];
}

const sourceOf = (spec: JsonObject): JsonObject =>
  Object.fromEntries(
    volumeSources
      .filter((name) => objectAt(spec, name) !== undefined)
      .map((name) => [name, spec[name]]),
  );

/** Removes the controller's secret for expanding a volume if the old one lacks it. */
function withoutNewSecret(
  spec: Stored<PersistentVolumeSpec>,
  before: Stored<PersistentVolumeSpec>,
): JsonObject {
  if (spec.csi === undefined || before.csi === undefined) return spec;
  if (before.csi.controllerExpandSecretRef !== undefined) return spec;
  const { controllerExpandSecretRef: _, ...csi } = spec.csi;
  return { ...spec, csi };
}

/**
 * Whether affinities are equal, except that a deprecated node label may have its new name, in steps
 * (TRUST-2).
 */
function* isSameAffinity(
  affinity: Stored<VolumeNodeAffinity> | undefined,
  before: Stored<VolumeNodeAffinity>,
  dialect: Dialect,
): Generator<void, boolean> {
  if (yield* sameOrEmptySteps(affinity, before)) return true;
  const newerLabels = newerLabelsOf(dialect);
  const renamed = yield* cloneJsonSteps(before);
  const stride = new Stride();
  const termsOf = (holder: Stored<VolumeNodeAffinity> | undefined) =>
    holder?.required?.nodeSelectorTerms ?? [];
  const termsNow = termsOf(affinity);
  for (const [index, term] of termsOf(renamed).entries()) {
    for (const list of ['matchExpressions', 'matchFields'] as const) {
      const requirementsNow = termsNow[index]?.[list] ?? [];
      stride.count();
      for (const [at, requirement] of (term[list] ?? []).entries()) {
        stride.count();
        if (stride.isOver) yield;
        const newer = newerLabels.get(requirement.key ?? '');
        const key = requirementsNow[at]?.key;
        if (newer !== undefined && key === newer) requirement.key = newer;
      }
    }
  }
  return yield* sameOrEmptySteps(affinity, renamed);
}

/** The new names of the deprecated node labels. */
const newerLabelsOf = ({ label }: Dialect): ReadonlyMap<string, string> =>
  new Map([
    [label('zone', 'failure-domain.beta'), label('zone', 'topology')],
    [label('region', 'failure-domain.beta'), label('region', 'topology')],
    [label('os', 'beta'), label('os')],
    [label('arch', 'beta'), label('arch')],
    [label('instance-type', 'beta'), label('instance-type', 'node')],
  ]);

function changedAffinity(spec: Stored<PersistentVolumeSpec>): FieldError {
  const detail = 'field is immutable, except for updating from beta label to GA';
  // kube-apiserver prints memory addresses instead of the members.
  const shown = spec.nodeAffinity === undefined ? '"null"' : 'core.VolumeNodeAffinity{…}';
  const message = `Invalid value: ${shown}: ${detail}`;
  return { type: 'FieldValueInvalid', field: 'nodeAffinity', message };
}

function validateSecret(reference: Stored<SecretReference>, path: string): FieldError[] {
  const [name, namespace] = [reference.name ?? '', reference.namespace ?? ''];
  const errors =
    name === '' ? [required(`${path}.name`)] : ruleErrors(`${path}.name`, name, dnsSubdomain);
  return [
    ...errors,
    ...(namespace === ''
      ? [required(`${path}.namespace`)]
      : ruleErrors(`${path}.namespace`, namespace, dnsLabel)),
  ];
}
