import {
  appendAll,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type {
  Container,
  EphemeralContainer,
  Volume,
  VolumeDevice,
  VolumeMount,
} from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps } from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import {
  isTrue,
  notFoundValue,
  validateDescendingPath,
  validateNoBacksteps,
  validateOptionalChoice,
} from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { isClaimed, validateSource } from './volume-sources.ts';

/** The valid volumes of a pod, by name. */
export type Volumes = ReadonlyMap<string, JsonObject>;

/** Validates the volumes of a spec in steps, and returns the valid ones. */
export function* validateVolumes(
  volumes: readonly Stored<Volume>[],
  path: string,
  rules: PodRules,
): Generator<void, { errors: FieldError[]; volumes: Volumes }> {
  const validVolumes = new Map<string, JsonObject>();
  const podName = rules.pod?.metadata.name ?? '';
  const ephemeralNames = ephemeralClaimNames(volumes, podName);
  const errors = yield* flatMapSteps(volumes, function* (volume, index) {
    const field = `${path}[${index}]`;
    const name = volume.name ?? '';
    const sourceErrors = yield* validateSource(volume, field, { volume: name, rules });
    if (isEphemeral(volume) && podName !== '' && name !== '') {
      appendAll(sourceErrors, validateClaimName({ podName, name }, field));
    }
    if (name === '') sourceErrors.push(required(`${field}.name`));
    else appendAll(sourceErrors, ruleErrors(`${field}.name`, name, dnsLabel));
    if (validVolumes.has(name)) sourceErrors.push(duplicate(`${field}.name`, name));
    if (sourceErrors.length === 0) validVolumes.set(name, volume);
    const claim = volume.persistentVolumeClaim?.claimName ?? '';
    if (ephemeralNames.has(claim)) {
      const detail = 'must not reference a PVC that gets created for an ephemeral volume';
      sourceErrors.push(invalid(`${field}.persistentVolumeClaim.claimName`, claim, detail));
    }
    return sourceErrors;
  });
  return { errors, volumes: validVolumes };
}

/**
 * Whether a volume is validated as ephemeral. Only the first of several sources is validated, and
 * this one is last.
 */
const isEphemeral = (volume: Stored<Volume>) =>
  Object.keys(volume).filter((name) => objectAt(volume, name) !== undefined).length === 1 &&
  volume.ephemeral !== undefined;

/** The names of the claims that are created for the ephemeral volumes of a pod. */
function ephemeralClaimNames(
  volumes: readonly Stored<Volume>[],
  podName: string,
): ReadonlySet<string> {
  if (podName === '') return new Set();
  const ephemeral = volumes.filter((volume) => volume.ephemeral !== undefined);
  return new Set(ephemeral.map((volume) => `${podName}-${volume.name ?? ''}`));
}

function validateClaimName(
  { podName, name }: { podName: string; name: string },
  path: string,
): FieldError[] {
  const claim = `${podName}-${name}`;
  return dnsSubdomain(claim).map((message) =>
    invalid(`${path}.name`, name, `PVC name ${JSON.stringify(claim)}: ${message}`),
  );
}

const pairsOf = (
  list: readonly Stored<VolumeDevice | VolumeMount>[],
  member: string,
): ReadonlyMap<string, string> =>
  new Map(list.map((item) => [item.name ?? '', textAt(item, member)]));

/** Validates the mounts of a container against the volumes of the pod, in steps. */
export function* validateMounts(
  container: Stored<Container | EphemeralContainer>,
  path: string,
  volumes: Volumes,
): Generator<void, FieldError[]> {
  const devices = pairsOf(container.volumeDevices ?? [], 'devicePath');
  const devicePaths = new Set(devices.values());
  const seen = new Set<string>();
  return yield* flatMapSteps(container.volumeMounts ?? [], (mount, index) => {
    const field = `${path}[${index}]`;
    const name = mount.name ?? '';
    const mountPath = mount.mountPath ?? '';
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(`${field}.name`));
    if (!volumes.has(name)) errors.push(notFoundValue(`${field}.name`, name));
    const refusePath = (detail: string) =>
      errors.push(invalid(`${field}.mountPath`, mountPath, detail));
    if (mountPath === '') errors.push(required(`${field}.mountPath`));
    if (seen.has(mountPath)) refusePath('must be unique');
    seen.add(mountPath);
    if (devices.has(name)) {
      errors.push(invalid(`${field}.name`, name, 'must not already exist in volumeDevices'));
    }
    if (devicePaths.has(mountPath)) refusePath('must not already exist as a path in volumeDevices');
    if (objectAt(volumes.get(name), 'image') !== undefined) {
      appendAll(errors, refuseSubPaths(mount, field));
    }
    appendAll(errors, validateSubPaths(mount, { field, path }));
    appendAll(errors, validatePropagation(mount, container, path));
    return errors;
  });
}

/** Rejects a path inside an image volume, which is mounted as a whole. */
function refuseSubPaths(mount: Stored<VolumeMount>, field: string): FieldError[] {
  return (['subPath', 'subPathExpr'] as const).flatMap((name) => {
    const path = mount[name] ?? '';
    if (path === '') return [];
    return [invalid(`${field}.${name}`, path, 'not allowed in image volume sources')];
  });
}

/**
 * Validates `subPath` and `subPathExpr`. As in kube-apiserver, the path of an error about one of
 * them has no index of the mount; that of an error about both has.
 */
function validateSubPaths(
  mount: Stored<VolumeMount>,
  { field, path }: { field: string; path: string },
): FieldError[] {
  const subPath = mount.subPath ?? '';
  const expression = mount.subPathExpr ?? '';
  const errors = subPath === '' ? [] : validateDescendingPath(`${path}.subPath`, subPath);
  if (expression === '') return errors;
  if (subPath !== '') {
    const detail = 'subPathExpr and subPath are mutually exclusive';
    errors.push(invalid(`${field}.subPathExpr`, expression, detail));
  }
  return [...errors, ...validateDescendingPath(`${path}.subPathExpr`, expression)];
}

const propagations = ['Bidirectional', 'HostToContainer', 'None'];

function validatePropagation(
  mount: Stored<VolumeMount>,
  container: Stored<Container | EphemeralContainer>,
  path: string,
): FieldError[] {
  const propagation = mount.mountPropagation;
  const errors = validateOptionalChoice(mount, path, 'mountPropagation', propagations);
  const isPrivileged = isTrue(container, 'securityContext', 'privileged');
  if (propagation === 'Bidirectional' && !isPrivileged) {
    const why = 'Bidirectional mount propagation is available only to privileged containers';
    errors.push(forbiddenField(`${path}.mountPropagation`, why));
  }
  return [...errors, ...validateReadOnly(mount, propagation ?? 'None', path)];
}

function validateReadOnly(
  mount: Stored<VolumeMount>,
  propagation: string,
  path: string,
): FieldError[] {
  const field = `${path}.recursiveReadOnly`;
  const allowed = ['Disabled', 'Enabled', 'IfPossible'];
  const errors = validateOptionalChoice(mount, path, 'recursiveReadOnly', allowed);
  const value = mount.recursiveReadOnly;
  if (value !== 'Enabled' && value !== 'IfPossible') return errors;
  if (!isTrue(mount, 'readOnly')) {
    errors.push(forbiddenField(field, 'may only be specified when readOnly is true'));
  }
  if (propagation !== 'None') {
    const why = 'may only be specified when mountPropagation is None or not specified';
    errors.push(forbiddenField(field, why));
  }
  return errors;
}

/** Validates the block devices of a container against the volumes of the pod, in steps. */
export function* validateDevices(
  container: Stored<Container | EphemeralContainer>,
  path: string,
  volumes: Volumes,
): Generator<void, FieldError[]> {
  const mounts = pairsOf(container.volumeMounts ?? [], 'mountPath');
  const mountPaths = new Set(mounts.values());
  const seen = { names: new Set<string>(), paths: new Set<string>() };
  return yield* flatMapSteps(container.volumeDevices ?? [], (device, index) =>
    validateDevice(device, `${path}[${index}]`, { mounts, mountPaths, seen, volumes }),
  );
}

function validateDevice(
  device: Stored<VolumeDevice>,
  field: string,
  context: {
    mounts: ReadonlyMap<string, string>;
    mountPaths: ReadonlySet<string>;
    seen: { names: Set<string>; paths: Set<string> };
    volumes: Volumes;
  },
): FieldError[] {
  const { mounts, mountPaths, seen, volumes } = context;
  const [name, path] = [device.name ?? '', device.devicePath ?? ''];
  const errors: FieldError[] = [];
  const refuseName = (detail: string) => errors.push(invalid(`${field}.name`, name, detail));
  const refusePath = (detail: string) => errors.push(invalid(`${field}.devicePath`, path, detail));
  if (name === '') errors.push(required(`${field}.name`));
  if (seen.names.has(name)) refuseName('must be unique');
  const volume = volumes.get(name);
  if (volume === undefined) errors.push(notFoundValue(`${field}.name`, name));
  else if (!isClaimed(volume)) {
    refuseName(
      'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
    );
  }
  if (path === '') errors.push(required(`${field}.devicePath`));
  if (seen.paths.has(path)) refusePath('must be unique');
  if (path !== '' && validateNoBacksteps(field, path).length > 0) {
    refusePath("can not contain backsteps ('..')");
  } else seen.paths.add(path);
  if (mounts.has(name)) refuseName('must not already exist in volumeMounts');
  if (mountPaths.has(path)) refusePath('must not already exist as a path in volumeMounts');
  if (name !== '') seen.names.add(name);
  return errors;
}
