import {
  type Dialect,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  type JsonValue,
  notSupported,
  parseQuantity,
} from '@wheelhouse/machinery';
import { at, column, textAt } from '../../cells.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
} from '../../gen/types/core/v1.ts';
import { claimWarnings, nodeTermWarnings, sourceWarnings } from '../../pod/warnings.ts';
import type { ColumnDef, Stored } from '../../resource-def.ts';
import { flatMapSteps, keyed } from '../../rules/checks.ts';

const useClassName = 'deprecated since v1.8; use "storageClassName" attribute instead';
const useMountOptions = 'deprecated since v1.31; use "mountOptions" attribute instead';
/** In kube-apiserver's order for PersistentVolumes. */
const deprecatedSources = [
  'cephfs',
  'photonPersistentDisk',
  'scaleIO',
  'storageos',
  'glusterfs',
  'rbd',
] as const;
const recycleDeprecated =
  'The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic ' +
  'provisioning.';

/** Returns warnings about deprecated members of a PersistentVolume, in steps (TRUST-2). */
export function* volumeWarnings(
  object: Stored<PersistentVolume>,
  dialect: Dialect,
): Generator<void, string[]> {
  const spec = object.spec ?? {};
  const terms = 'spec.nodeAffinity.required.nodeSelectorTerms';
  const recycles = (spec.persistentVolumeReclaimPolicy ?? '') === 'Recycle';
  return [
    ...annotationWarning(object, dialect.label('storage-class', 'volume.beta'), useClassName),
    ...annotationWarning(object, dialect.label('mount-options', 'volume.beta'), useMountOptions),
    ...(recycles ? [`spec.persistentVolumeReclaimPolicy: ${recycleDeprecated}`] : []),
    ...(yield* flatMapSteps(spec.nodeAffinity?.required?.nodeSelectorTerms ?? [], (term, index) =>
      nodeTermWarnings(term, `${terms}[${index}]`, dialect),
    )),
    ...sourceWarnings(spec, 'spec', deprecatedSources),
  ];
}

function annotationWarning(
  object: Stored<PersistentVolume | PersistentVolumeClaim>,
  name: string,
  message: string,
): string[] {
  const annotations = object.metadata.annotations ?? {};
  const path = keyed('metadata.annotations', name);
  return Object.hasOwn(annotations, name) ? [`${path}: ${message}`] : [];
}

/** Returns warnings about deprecated members and fractional sizes of a PersistentVolumeClaim. */
export function volumeClaimWarnings(
  object: Stored<PersistentVolumeClaim>,
  dialect: Dialect,
): string[] {
  return [
    ...annotationWarning(object, dialect.label('storage-class', 'volume.beta'), useClassName),
    ...claimWarnings(object.spec, 'spec'),
  ];
}

const modes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

/** Abbreviated access modes (`RWO,ROX`), in kube-apiserver's fixed order. */
export function accessModesText(list: readonly JsonValue[]): string {
  return Object.keys(modes)
    .filter((mode) => list.includes(mode))
    .map((mode) => modes[mode])
    .join(',');
}

const modeNames = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

/** Validates access modes in steps; ReadWriteOncePod cannot be combined with others. */
export function* validateAccessModes(
  spec: Stored<PersistentVolumeClaimSpec | PersistentVolumeSpec>,
  field: string,
): Generator<void, FieldError[]> {
  const list = spec.accessModes ?? [];
  const errors = yield* flatMapSteps(list, (mode) =>
    modeNames.includes(mode) ? [] : [notSupported(field, mode, modeNames)],
  );
  yield;
  const exclusive = list.includes('ReadWriteOncePod');
  const shared = list.some((mode) => mode !== 'ReadWriteOncePod' && modeNames.includes(mode));
  if (!exclusive || !shared) return errors;
  const detail = 'may not use ReadWriteOncePod with other access modes';
  return [...errors, forbiddenField(field, detail)];
}

/** Validates an optional volume mode: `Filesystem` or `Block`. */
export function validateVolumeMode(
  spec: Stored<PersistentVolumeClaimSpec | PersistentVolumeSpec>,
  field: string,
): FieldError[] {
  const mode = spec.volumeMode;
  const supportedModes = ['Block', 'Filesystem'];
  if (mode === undefined || mode === null || supportedModes.includes(String(mode))) return [];
  return [notSupported(field, mode, supportedModes)];
}

/** Validates a quantity of storage that must be positive. */
export function validatePositiveQuantity(
  value: JsonValue | undefined,
  field: string,
): FieldError[] {
  const quantity = parseQuantity(String(value ?? '0'));
  if ('error' in quantity || quantity.nano > 0n) return [];
  return [invalid(field, quantity.text, 'must be greater than zero')];
}

/** Validates that a quantity is not negative; the error prints whole units. */
export function validateNotNegativeQuantity(
  value: JsonValue | undefined,
  field: string,
): FieldError[] {
  const quantity = parseQuantity(String(value ?? '0'));
  if ('error' in quantity || quantity.nano >= 0n) return [];
  const billion = 1_000_000_000n;
  // Rounds away from zero, as kube-apiserver does.
  const whole = Number((quantity.nano - billion + 1n) / billion);
  return [invalid(field, whole, 'must be a valid resource quantity')];
}

/** The quantity at a path as text; `0` if absent. */
export function quantityText(object: JsonObject, ...path: readonly string[]): string {
  const value = at(object, ...path);
  return value === undefined || value === null ? '0' : String(value);
}

/** The phase of a claim or volume; `Terminating` if it is being deleted. */
export function phaseText(object: Stored<PersistentVolume | PersistentVolumeClaim>): string {
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  return isDeleting ? 'Terminating' : (object.status?.phase ?? '');
}

/** The wide column with the volume mode of a claim or volume. */
export const volumeModeColumn: ColumnDef = column(
  'VolumeMode',
  (object) => textAt(object, 'spec', 'volumeMode') || '<unset>',
  { priority: 1, description: 'Filesystem or Block.' },
);

/** Returns the column with the storage class; the older annotation takes precedence over spec. */
export function storageClassColumn(dialect: Dialect, description: string): ColumnDef {
  const annotation = dialect.label('storage-class', 'volume.beta');
  const classOf = (object: JsonObject) =>
    at(object, 'metadata', 'annotations', annotation) ?? textAt(object, 'spec', 'storageClassName');
  return column('StorageClass', classOf, { description });
}
