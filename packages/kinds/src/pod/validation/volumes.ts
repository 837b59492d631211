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
import { eachError } from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import { descendingPath, isTrue, noBacksteps, notFoundValue, oneOfIfSet } from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { isClaimed, validateSource } from './volume-sources.ts';

/** The valid volumes of a pod by name, which containers may mount. */
export type Volumes = ReadonlyMap<string, JsonObject>;

/** Validates the volumes of a spec, and returns the valid ones. */
export function* validateVolumes(
  volumes: readonly Stored<Volume>[],
  path: string,
  rules: PodRules,
): Generator<void, { errors: FieldError[]; volumes: Volumes }> {
  const sound = new Map<string, JsonObject>();
  const podName = rules.pod?.metadata.name ?? '';
  const made = claimsMade(volumes, podName);
  const errors = yield* eachError(volumes, function* (volume, index) {
    const field = `${path}[${index}]`;
    const name = volume.name ?? '';
    const found = yield* validateSource(volume, field, { volume: name, rules });
    if (isEphemeral(volume) && podName !== '' && name !== '') {
      appendAll(found, validateClaimName({ podName, name }, field));
    }
    if (name === '') found.push(required(`${field}.name`));
    else appendAll(found, ruleErrors(`${field}.name`, name, dnsLabel));
    if (sound.has(name)) found.push(duplicate(`${field}.name`, name));
    if (found.length === 0) sound.set(name, volume);
    const claim = volume.persistentVolumeClaim?.claimName ?? '';
    if (made.has(claim)) {
      const detail = 'must not reference a PVC that gets created for an ephemeral volume';
      found.push(invalid(`${field}.persistentVolumeClaim.claimName`, claim, detail));
    }
    return found;
  });
  return { errors, volumes: sound };
}

/** Only the first of several sources is validated, and this one is last. */
const isEphemeral = (volume: Stored<Volume>) =>
  Object.keys(volume).filter((name) => objectAt(volume, name) !== undefined).length === 1 &&
  volume.ephemeral !== undefined;

/** Names of the claims that are made for the pod's ephemeral volumes. */
function claimsMade(volumes: readonly Stored<Volume>[], podName: string): ReadonlySet<string> {
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
): ReadonlyMap<string, string> => new Map(list.map((one) => [one.name ?? '', textAt(one, member)]));

/** Validates the mounts of a container against the volumes of the pod. */
export function* validateMounts(
  container: Stored<Container | EphemeralContainer>,
  path: string,
  volumes: Volumes,
): Generator<void, FieldError[]> {
  const devices = pairsOf(container.volumeDevices ?? [], 'devicePath');
  const devicePaths = new Set(devices.values());
  const taken = new Set<string>();
  return yield* eachError(container.volumeMounts ?? [], (mount, index) => {
    const field = `${path}[${index}]`;
    const name = mount.name ?? '';
    const mountPath = mount.mountPath ?? '';
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(`${field}.name`));
    if (!volumes.has(name)) errors.push(notFoundValue(`${field}.name`, name));
    const refusePath = (detail: string) =>
      errors.push(invalid(`${field}.mountPath`, mountPath, detail));
    if (mountPath === '') errors.push(required(`${field}.mountPath`));
    if (taken.has(mountPath)) refusePath('must be unique');
    taken.add(mountPath);
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

/** An image is mounted as a whole. */
function refuseSubPaths(mount: Stored<VolumeMount>, field: string): FieldError[] {
  return (['subPath', 'subPathExpr'] as const).flatMap((name) => {
    const path = mount[name] ?? '';
    if (path === '') return [];
    return [invalid(`${field}.${name}`, path, 'not allowed in image volume sources')];
  });
}

/** kube-apiserver reports an error of one path at the member, of both at the mount. */
function validateSubPaths(
  mount: Stored<VolumeMount>,
  { field, path }: { field: string; path: string },
): FieldError[] {
  const subPath = mount.subPath ?? '';
  const expression = mount.subPathExpr ?? '';
  const errors = subPath === '' ? [] : descendingPath(`${path}.subPath`, subPath);
  if (expression === '') return errors;
  if (subPath !== '') {
    const detail = 'subPathExpr and subPath are mutually exclusive';
    errors.push(invalid(`${field}.subPathExpr`, expression, detail));
  }
  return [...errors, ...descendingPath(`${path}.subPathExpr`, expression)];
}

const propagations = ['Bidirectional', 'HostToContainer', 'None'];

function validatePropagation(
  mount: Stored<VolumeMount>,
  container: Stored<Container | EphemeralContainer>,
  path: string,
): FieldError[] {
  const propagation = mount.mountPropagation;
  const errors = oneOfIfSet(mount, path, 'mountPropagation', propagations);
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
  const errors = oneOfIfSet(mount, path, 'recursiveReadOnly', allowed);
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

/** Validates the block devices of a container against the volumes of the pod. */
export function* validateDevices(
  container: Stored<Container | EphemeralContainer>,
  path: string,
  volumes: Volumes,
): Generator<void, FieldError[]> {
  const mounts = pairsOf(container.volumeMounts ?? [], 'mountPath');
  const mountPaths = new Set(mounts.values());
  const taken = { names: new Set<string>(), paths: new Set<string>() };
  return yield* eachError(container.volumeDevices ?? [], (device, index) =>
    validateDevice(device, `${path}[${index}]`, { mounts, mountPaths, taken, volumes }),
  );
}

function validateDevice(
  device: Stored<VolumeDevice>,
  field: string,
  among: {
    mounts: ReadonlyMap<string, string>;
    mountPaths: ReadonlySet<string>;
    taken: { names: Set<string>; paths: Set<string> };
    volumes: Volumes;
  },
): FieldError[] {
  const { mounts, mountPaths, taken, volumes } = among;
  const [name, path] = [device.name ?? '', device.devicePath ?? ''];
  const errors: FieldError[] = [];
  const refuseName = (detail: string) => errors.push(invalid(`${field}.name`, name, detail));
  const refusePath = (detail: string) => errors.push(invalid(`${field}.devicePath`, path, detail));
  if (name === '') errors.push(required(`${field}.name`));
  if (taken.names.has(name)) refuseName('must be unique');
  const volume = volumes.get(name);
  if (volume === undefined) errors.push(notFoundValue(`${field}.name`, name));
  else if (!isClaimed(volume)) {
    refuseName(
      'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
    );
  }
  if (path === '') errors.push(required(`${field}.devicePath`));
  if (taken.paths.has(path)) refusePath('must be unique');
  if (path !== '' && noBacksteps(field, path).length > 0) {
    refusePath("can not contain backsteps ('..')");
  } else taken.paths.add(path);
  if (mounts.has(name)) refuseName('must not already exist in volumeMounts');
  if (mountPaths.has(path)) refusePath('must not already exist as a path in volumeMounts');
  if (name !== '') taken.names.add(name);
  return errors;
}
