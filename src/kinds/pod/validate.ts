import type { JsonObject, JsonValue } from '../../base/json.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../meta/field-error.ts';
import {
  breaks,
  dnsLabel,
  dnsSubdomain,
  environmentName,
  inRange,
  labelValue,
  portName,
  qualifiedName,
} from '../../meta/names.ts';
import { at, numberAt, textAt } from '../cells.ts';
import { sortedKeys } from '../checks.ts';
import { objectAt, objectsAt } from '../fill.ts';

/** Rules of a pod's spec at `path` (`spec`, `spec.template.spec`). */
export function validatePodSpec(spec: JsonObject, path: string): FieldError[] {
  const volumes = validateVolumes(objectsAt(spec, 'volumes'), `${path}.volumes`);
  const containers = objectsAt(spec, 'containers');
  const errors = [...volumes.errors];
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  const names = new Set<string>();
  for (const member of ['containers', 'initContainers', 'ephemeralContainers']) {
    objectsAt(spec, member).forEach((container, index) => {
      const where = { path: `${path}.${member}[${index}]`, names, volumes: volumes.names };
      errors.push(...validateContainer(container, where));
    });
  }
  return [...errors, ...validatePolicies(spec, path), ...validateReferences(spec, path)];
}

function validatePolicies(spec: JsonObject, path: string): FieldError[] {
  return [
    ...oneOf(spec, `${path}.restartPolicy`, ['Always', 'OnFailure', 'Never']),
    ...oneOf(spec, `${path}.dnsPolicy`, [
      'ClusterFirstWithHostNet',
      'ClusterFirst',
      'Default',
      'None',
    ]),
    ...notNegative(spec, `${path}.terminationGracePeriodSeconds`),
    ...boundedDeadline(spec, path),
  ];
}

function boundedDeadline(spec: JsonObject, path: string): FieldError[] {
  const value = at(spec, 'activeDeadlineSeconds');
  if (typeof value !== 'number') return [];
  const field = `${path}.activeDeadlineSeconds`;
  return inRange(value, 1, 2147483647).map((message) => invalid(field, value, message));
}

function validateReferences(spec: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const name = (member: string, rule: typeof dnsLabel) => {
    const value = textAt(spec, member);
    if (value !== '') errors.push(...breaks(`${path}.${member}`, value, rule));
  };
  name('serviceAccountName', dnsSubdomain);
  name('nodeName', dnsSubdomain);
  name('hostname', dnsLabel);
  name('subdomain', dnsLabel);
  const selector = objectAt(spec, 'nodeSelector');
  for (const key of sortedKeys(selector)) {
    errors.push(...breaks(`${path}.nodeSelector`, key, qualifiedName));
    errors.push(...breaks(`${path}.nodeSelector`, textAt(selector, key), labelValue));
  }
  objectsAt(spec, 'tolerations').forEach((toleration, index) => {
    errors.push(...validateToleration(toleration, `${path}.tolerations[${index}]`));
  });
  return errors;
}

function validateToleration(toleration: JsonObject, path: string): FieldError[] {
  const key = textAt(toleration, 'key');
  const operator = textAt(toleration, 'operator');
  const value = textAt(toleration, 'value');
  const effect = textAt(toleration, 'effect');
  const errors = key === '' ? [] : breaks(`${path}.key`, key, qualifiedName);
  if (key === '' && operator !== 'Exists') {
    const detail =
      'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    errors.push(invalid(`${path}.operator`, operator, detail));
  }
  if (toleration['tolerationSeconds'] !== undefined && effect !== 'NoExecute') {
    const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    errors.push(invalid(`${path}.effect`, effect, detail));
  }
  if (operator === 'Exists' && value !== '') {
    const detail = "value must be empty when `operator` is 'Exists'";
    errors.push(invalid(`${path}.operator`, value, detail));
  }
  if (operator !== '' && operator !== 'Exists' && operator !== 'Equal') {
    errors.push(notSupported(`${path}.operator`, operator, ['Equal', 'Exists']));
  }
  return effect === '' ? errors : [...errors, ...validateEffect(effect, `${path}.effect`)];
}

/** A taint's or toleration's effect. */
export function validateEffect(effect: string, field: string): FieldError[] {
  const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
  return effects.includes(effect) ? [] : [notSupported(field, effect, effects)];
}

interface ContainerPlace {
  readonly path: string;
  /** Names of the containers before this one. */
  readonly names: Set<string>;
  readonly volumes: ReadonlySet<string>;
}

function validateContainer(container: JsonObject, place: ContainerPlace): FieldError[] {
  const { path, names } = place;
  const name = textAt(container, 'name');
  const image = textAt(container, 'image');
  const errors = name === '' ? [required(`${path}.name`)] : breaks(`${path}.name`, name, dnsLabel);
  if (name !== '' && names.has(name)) errors.push(duplicate(`${path}.name`, name));
  names.add(name);
  // A template may leave the image to a later writer; a controller that makes pods will not.
  if (image === '') errors.push(required(`${path}.image`));
  else if (image.trim() !== image) {
    errors.push(invalid(`${path}.image`, image, 'must not have leading or trailing whitespace'));
  }
  return [
    ...errors,
    ...oneOf(container, `${path}.imagePullPolicy`, ['Always', 'IfNotPresent', 'Never']),
    ...oneOf(container, `${path}.terminationMessagePolicy`, ['File', 'FallbackToLogsOnError']),
    ...validatePorts(objectsAt(container, 'ports'), `${path}.ports`),
    ...validateEnvironment(objectsAt(container, 'env'), `${path}.env`),
    ...validateMounts(objectsAt(container, 'volumeMounts'), place),
  ];
}

function validatePorts(ports: readonly JsonObject[], path: string): FieldError[] {
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const field = `${path}[${index}]`;
    const name = textAt(port, 'name');
    const errors = name === '' ? [] : breaks(`${field}.name`, name, portName);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${field}.name`, name));
    names.add(name);
    const number = numberAt(port, 'containerPort');
    if (number === 0) errors.push(required(`${field}.containerPort`));
    else errors.push(...portNumber(`${field}.containerPort`, number));
    const hostPort = numberAt(port, 'hostPort');
    if (hostPort !== 0) errors.push(...portNumber(`${field}.hostPort`, hostPort));
    return [...errors, ...oneOf(port, `${field}.protocol`, ['SCTP', 'TCP', 'UDP'])];
  });
}

/** A port number within 1 to 65535. */
export function portNumber(field: string, number: number): FieldError[] {
  return inRange(number, 1, 65535).map((message) => invalid(field, number, message));
}

function validateEnvironment(variables: readonly JsonObject[], path: string): FieldError[] {
  return variables.flatMap((variable, index) => {
    const field = `${path}[${index}]`;
    const name = textAt(variable, 'name');
    const errors =
      name === '' ? [required(`${field}.name`)] : breaks(`${field}.name`, name, environmentName);
    const source = objectAt(variable, 'valueFrom');
    if (source !== undefined && textAt(variable, 'value') !== '') {
      const detail = 'may not be specified when `value` is not empty';
      errors.push(invalid(`${field}.valueFrom`, '', detail));
    }
    return errors;
  });
}

function validateMounts(mounts: readonly JsonObject[], place: ContainerPlace): FieldError[] {
  const paths = new Set<string>();
  return mounts.flatMap((mount, index) => {
    const field = `${place.path}.volumeMounts[${index}]`;
    const name = textAt(mount, 'name');
    const mountPath = textAt(mount, 'mountPath');
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(`${field}.name`));
    else if (!place.volumes.has(name)) errors.push(notFoundValue(`${field}.name`, name));
    if (mountPath === '') errors.push(required(`${field}.mountPath`));
    else if (paths.has(mountPath)) {
      errors.push(invalid(`${field}.mountPath`, mountPath, 'must be unique'));
    }
    paths.add(mountPath);
    return errors;
  });
}

function notFoundValue(field: string, value: string): FieldError {
  return {
    type: 'FieldValueNotFound',
    field,
    message: `Not found: ${JSON.stringify(value)}`,
  };
}

function validateVolumes(
  volumes: readonly JsonObject[],
  path: string,
): { errors: FieldError[]; names: ReadonlySet<string> } {
  const names = new Set<string>();
  const errors = volumes.flatMap((volume, index) => {
    const field = `${path}[${index}]`;
    const name = textAt(volume, 'name');
    const found =
      name === '' ? [required(`${field}.name`)] : breaks(`${field}.name`, name, dnsLabel);
    if (names.has(name)) found.push(duplicate(`${field}.name`, name));
    if (name !== '') names.add(name);
    const sources = Object.keys(volume).filter((one) => one !== 'name');
    if (sources.length === 0) found.push(required(field, 'must specify a volume type'));
    for (const source of sources.slice(1)) {
      found.push(forbiddenField(`${field}.${source}`, 'may not specify more than 1 volume type'));
    }
    return found;
  });
  return { errors, names };
}

/** The field at the end of `field` must hold one of `allowed`; empty counts as missing. */
export function oneOf(object: JsonObject, field: string, allowed: readonly string[]): FieldError[] {
  const value = textAt(object, field.slice(field.lastIndexOf('.') + 1));
  if (value === '') return [required(field)];
  return allowed.includes(value) ? [] : [notSupported(field, value, allowed)];
}

/** The number at the end of `field` must not be negative, when there is one. */
export function notNegative(object: JsonObject, field: string): FieldError[] {
  const value: JsonValue | undefined = at(object, field.slice(field.lastIndexOf('.') + 1));
  if (typeof value !== 'number' || value >= 0) return [];
  return [invalid(field, value, 'must be greater than or equal to 0')];
}
