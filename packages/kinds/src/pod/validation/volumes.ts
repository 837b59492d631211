import {
  appendAll,
  breaks,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  required,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import { objectAt, objectsAt } from '../../rules/fill.ts';
import {
  descendingPath,
  isTrue,
  noBacksteps,
  notFoundValue,
  oneOfIfSet,
  optionalText,
} from '../fields.ts';
import type { PodRules } from '../rules.ts';
import { isClaimed, validateSource } from './volume-sources.ts';

/** A pod's sound volumes by name: what its containers may mount. */
export type Volumes = ReadonlyMap<string, JsonObject>;

/** Judges the volumes of a spec, and gives those that are right. */
export function validateVolumes(
  volumes: readonly JsonObject[],
  path: string,
  rules: PodRules,
): { errors: FieldError[]; volumes: Volumes } {
  const sound = new Map<string, JsonObject>();
  const podName = rules.pod?.metadata.name ?? '';
  const made = claimsMade(volumes, podName);
  const errors = volumes.flatMap((volume, index) => {
    const field = `${path}[${index}]`;
    const name = textAt(volume, 'name');
    const found = validateSource(volume, field, { volume: name, rules });
    if (isEphemeral(volume) && podName !== '' && name !== '') {
      appendAll(found, validateClaimName({ podName, name }, field));
    }
    if (name === '') found.push(required(`${field}.name`));
    else appendAll(found, breaks(`${field}.name`, name, dnsLabel));
    if (sound.has(name)) found.push(duplicate(`${field}.name`, name));
    if (found.length === 0) sound.set(name, volume);
    const claim = textAt(volume, 'persistentVolumeClaim', 'claimName');
    if (made.has(claim)) {
      const detail = 'must not reference a PVC that gets created for an ephemeral volume';
      found.push(invalid(`${field}.persistentVolumeClaim.claimName`, claim, detail));
    }
    return found;
  });
  return { errors, volumes: sound };
}

/** Of several sources the first alone is judged, and this is the last. */
const isEphemeral = (volume: JsonObject) =>
  Object.keys(volume).filter((name) => objectAt(volume, name) !== undefined).length === 1 &&
  objectAt(volume, 'ephemeral') !== undefined;

/** Names of the claims that will be made for the pod's ephemeral volumes. */
function claimsMade(volumes: readonly JsonObject[], podName: string): ReadonlySet<string> {
  if (podName === '') return new Set();
  const ephemeral = volumes.filter((volume) => objectAt(volume, 'ephemeral') !== undefined);
  return new Set(ephemeral.map((volume) => `${podName}-${textAt(volume, 'name')}`));
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

const pairsOf = (list: readonly JsonObject[], member: string): ReadonlyMap<string, string> =>
  new Map(list.map((one) => [textAt(one, 'name'), textAt(one, member)]));

const holds = (pairs: ReadonlyMap<string, string>, value: string) =>
  pairs.size > 0 && [...pairs.values()].includes(value);

/** What a container mounts, against what its pod has. */
export function validateMounts(
  container: JsonObject,
  path: string,
  volumes: Volumes,
): FieldError[] {
  const devices = pairsOf(objectsAt(container, 'volumeDevices'), 'devicePath');
  const taken = new Set<string>();
  return objectsAt(container, 'volumeMounts').flatMap((mount, index) => {
    const field = `${path}[${index}]`;
    const name = textAt(mount, 'name');
    const mountPath = textAt(mount, 'mountPath');
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
    if (holds(devices, mountPath)) refusePath('must not already exist as a path in volumeDevices');
    if (objectAt(volumes.get(name), 'image') !== undefined) {
      appendAll(errors, refuseSubPaths(mount, field));
    }
    appendAll(errors, validateSubPaths(mount, { field, path }));
    appendAll(errors, validatePropagation(mount, container, path));
    return errors;
  });
}

/** An image is mounted as a whole. */
function refuseSubPaths(mount: JsonObject, field: string): FieldError[] {
  return ['subPath', 'subPathExpr'].flatMap((name) => {
    const path = textAt(mount, name);
    if (path === '') return [];
    return [invalid(`${field}.${name}`, path, 'not allowed in image volume sources')];
  });
}

/** Upstream tells what is wrong with a path of the list, what is wrong with two of the item. */
function validateSubPaths(
  mount: JsonObject,
  { field, path }: { field: string; path: string },
): FieldError[] {
  const subPath = textAt(mount, 'subPath');
  const expression = textAt(mount, 'subPathExpr');
  const errors = subPath === '' ? [] : descendingPath(`${path}.subPath`, subPath);
  if (expression === '') return errors;
  if (subPath !== '') {
    const detail = 'subPathExpr and subPath are mutually exclusive';
    errors.push(invalid(`${field}.subPathExpr`, expression, detail));
  }
  return [...errors, ...descendingPath(`${path}.subPathExpr`, expression)];
}

const propagations = ['Bidirectional', 'HostToContainer', 'None'];

function validatePropagation(mount: JsonObject, container: JsonObject, path: string): FieldError[] {
  const propagation = optionalText(mount, 'mountPropagation');
  const errors = oneOfIfSet(mount, path, 'mountPropagation', propagations);
  const isPrivileged = isTrue(container, 'securityContext', 'privileged');
  if (propagation === 'Bidirectional' && !isPrivileged) {
    const why = 'Bidirectional mount propagation is available only to privileged containers';
    errors.push(forbiddenField(`${path}.mountPropagation`, why));
  }
  return [...errors, ...validateReadOnly(mount, propagation ?? 'None', path)];
}

function validateReadOnly(mount: JsonObject, propagation: string, path: string): FieldError[] {
  const field = `${path}.recursiveReadOnly`;
  const allowed = ['Disabled', 'Enabled', 'IfPossible'];
  const errors = oneOfIfSet(mount, path, 'recursiveReadOnly', allowed);
  const value = optionalText(mount, 'recursiveReadOnly');
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

/** The volumes that a container has as devices, against what its pod has. */
export function validateDevices(
  container: JsonObject,
  path: string,
  volumes: Volumes,
): FieldError[] {
  const mounts = pairsOf(objectsAt(container, 'volumeMounts'), 'mountPath');
  const taken = { names: new Set<string>(), paths: new Set<string>() };
  return objectsAt(container, 'volumeDevices').flatMap((device, index) =>
    validateDevice(device, `${path}[${index}]`, { mounts, taken, volumes }),
  );
}

function validateDevice(
  device: JsonObject,
  field: string,
  among: {
    mounts: ReadonlyMap<string, string>;
    taken: { names: Set<string>; paths: Set<string> };
    volumes: Volumes;
  },
): FieldError[] {
  const { mounts, taken, volumes } = among;
  const [name, path] = [textAt(device, 'name'), textAt(device, 'devicePath')];
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
  if (holds(mounts, path)) refusePath('must not already exist as a path in volumeMounts');
  if (name !== '') taken.names.add(name);
  return errors;
}
