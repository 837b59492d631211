import {
  appendAll,
  configMapKey,
  dnsSubdomain,
  environmentName,
  type FieldError,
  invalid,
  type JsonObject,
  notSupported,
  parseQuantity,
  qualifiedName,
  required,
  ruleErrors,
  strictEnvironmentName,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type {
  EnvFromSource,
  EnvVar,
  ObjectFieldSelector,
  PodSpec,
  ResourceFieldSelector,
  SecretKeySelector,
} from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps } from '../../rules/checks.ts';
import { objectAt, objectsAt } from '../../rules/fill.ts';
import { containersOf } from '../references.ts';
import type { PodRules } from '../rules.ts';

/** Fields of the pod that a variable may expose. */
const variableFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];

/** Names that one step of `relaxedNames` checks. */
const namesPerStep = 500;

/**
 * Returns the names of variables in a spec, and the prefixes of names, that only the relaxed rule
 * allows, in steps (TRUST-2).
 */
export function* relaxedNames(spec: Stored<PodSpec>): Generator<void, ReadonlySet<string>> {
  const relaxed = new Set<string>();
  let count = 0;
  for (const container of containersOf(spec)) {
    for (const name of namesOf(container)) {
      count += 1;
      if (count % namesPerStep === 0) yield;
      if (strictEnvironmentName(name).length === 0) continue;
      if (environmentName(name).length === 0) relaxed.add(name);
    }
  }
  return relaxed;
}

const namesOf = (container: JsonObject): string[] => [
  ...objectsAt(container, 'env').map((variable) => textAt(variable, 'name')),
  ...objectsAt(container, 'envFrom').map((source) => textAt(source, 'prefix')),
];

/** Validates the `env` of one container in steps. */
export function validateEnvironment(
  variables: readonly Stored<EnvVar>[],
  path: string,
  { allow }: PodRules,
): Generator<void, FieldError[]> {
  const rule = allow.relaxedVariables ? environmentName : strictEnvironmentName;
  return flatMapSteps(variables, (variable, index) => {
    const field = `${path}[${index}]`;
    const name = variable.name ?? '';
    const errors =
      name === '' ? [required(`${field}.name`)] : ruleErrors(`${field}.name`, name, rule);
    return [...errors, ...validateValueFrom(variable, `${field}.valueFrom`)];
  });
}

function validateValueFrom(variable: Stored<EnvVar>, path: string): FieldError[] {
  const source = variable.valueFrom;
  if (source === undefined) return [];
  const errors: FieldError[] = [];
  let count = 0;
  const validatePart = (name: string, rule: (part: JsonObject, field: string) => FieldError[]) => {
    const part = objectAt(source, name);
    if (part === undefined) return;
    count += 1;
    appendAll(errors, rule(part, `${path}.${name}`));
  };
  validatePart('fieldRef', (part, field) => validateFieldRef(part, field, variableFields));
  validatePart('resourceFieldRef', (part, field) => validateResourceRef(part, field));
  validatePart('configMapKeyRef', validateKeyRef);
  validatePart('secretKeyRef', validateKeyRef);
  const detail = countProblem(count, (variable.value ?? '') !== '');
  return detail === undefined ? errors : [...errors, invalid(path, '', detail)];
}

function countProblem(count: number, hasValue: boolean): string | undefined {
  if (count === 0) {
    return 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
  }
  if (hasValue) return 'may not be specified when `value` is not empty';
  return count > 1 ? 'may not have more than one field specified at a time' : undefined;
}

function validateKeyRef(ref: Stored<SecretKeySelector>, path: string): FieldError[] {
  const key = ref.key ?? '';
  return [
    ...ruleErrors(`${path}.name`, ref.name ?? '', dnsSubdomain),
    ...(key === '' ? [required(`${path}.key`)] : ruleErrors(`${path}.key`, key, configMapKey)),
  ];
}

/** Validates the `envFrom` of one container in steps. */
export function validateEnvironmentSources(
  sources: readonly Stored<EnvFromSource>[],
  path: string,
  { allow }: PodRules,
): Generator<void, FieldError[]> {
  const rule = allow.relaxedVariables ? environmentName : strictEnvironmentName;
  return flatMapSteps(sources, (source, index) => {
    const field = `${path}[${index}]`;
    const prefix = source.prefix ?? '';
    const errors = prefix === '' ? [] : ruleErrors(`${field}.prefix`, prefix, rule);
    const sourceNames = (['configMapRef', 'secretRef'] as const).filter((name) => source[name]);
    for (const name of sourceNames) {
      appendAll(errors, validateNamedSource(textAt(source, name, 'name'), `${field}.${name}.name`));
    }
    if (sourceNames.length === 0) {
      errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (sourceNames.length > 1) {
      errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
    }
    return errors;
  });
}

/** Validates the name of a source like kube-apiserver, as a prefix, which may end with a dash. */
function validateNamedSource(name: string, field: string): FieldError[] {
  if (name === '') return [required(field)];
  const whole = name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name;
  return dnsSubdomain(whole).map((message) => invalid(field, name, message));
}

/** Fields of the pod whose paths kube-apiserver converts between versions. */
const convertibleFields = new Set([
  ...variableFields,
  'metadata.annotations',
  'metadata.labels',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]);

/** Splits `metadata.labels['key']` into path and key; undefined for a path without a key. */
function splitSubscript(path: string): { path: string; key: string } | undefined {
  if (!path.endsWith("']")) return undefined;
  const inner = path.slice(0, -2);
  const open = inner.indexOf("['");
  return open <= 0 ? undefined : { path: inner.slice(0, open), key: inner.slice(open + 2) };
}

/** Validates a reference to a field of the pod, which must be one of `allowed`. */
export function validateFieldRef(
  ref: Stored<ObjectFieldSelector>,
  path: string,
  allowed: readonly string[],
): FieldError[] {
  const version = ref.apiVersion ?? '';
  const fieldPath = ref.fieldPath ?? '';
  if (version === '') return [required(`${path}.apiVersion`)];
  if (fieldPath === '') return [required(`${path}.fieldPath`)];
  const parts = splitSubscript(fieldPath);
  const problem = conversionProblem({ version, fieldPath, path: parts?.path });
  if (problem !== undefined) {
    return [invalid(`${path}.fieldPath`, fieldPath, `error converting fieldPath: ${problem}`)];
  }
  if (parts !== undefined) {
    const isAnnotation = parts.path === 'metadata.annotations';
    return ruleErrors(path, isAnnotation ? parts.key.toLowerCase() : parts.key, qualifiedName);
  }
  const field = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath;
  return allowed.includes(field) ? [] : [notSupported(`${path}.fieldPath`, field, allowed)];
}

function conversionProblem(ref: {
  version: string;
  fieldPath: string;
  path: string | undefined;
}): string | undefined {
  const { version, fieldPath, path } = ref;
  if (version !== 'v1') return `unsupported pod version: ${version}`;
  if (path !== undefined) {
    const takesKey = path === 'metadata.annotations' || path === 'metadata.labels';
    return takesKey ? undefined : `field label does not support subscript: ${fieldPath}`;
  }
  const isConvertible = fieldPath === 'spec.host' || convertibleFields.has(fieldPath);
  return isConvertible ? undefined : `field label not supported: ${fieldPath}`;
}

const amounts = ['cpu', 'ephemeral-storage', 'memory'];
const resourceFields = ['limits', 'requests'].flatMap((kind) =>
  amounts.map((name) => `${kind}.${name}`),
);
const isHugePages = (resource: string) => /^(?:limits|requests)\.hugepages-/.test(resource);

/** Validates a reference to the resources of a container, which in a volume must be named. */
export function validateResourceRef(
  ref: Stored<ResourceFieldSelector>,
  path: string,
  options: { inVolume?: boolean } = {},
): FieldError[] {
  const resource = ref.resource ?? '';
  const errors: FieldError[] = [];
  if (options.inVolume === true && (ref.containerName ?? '') === '') {
    errors.push(required(`${path}.containerName`));
  } else if (resource === '') {
    errors.push(required(`${path}.resource`));
  } else if (!resourceFields.includes(resource) && !isHugePages(resource)) {
    errors.push(notSupported(`${path}.resource`, resource, resourceFields));
  }
  return [...errors, ...validateDivisor(ref, path)];
}

const byteDivisors = '1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei'.split(' ');

/** Allowed divisors by resource, and the name of the resource in messages. */
const divisors: readonly { pattern: RegExp; allowed: readonly string[]; name: string }[] = [
  { pattern: /^(?:limits|requests)\.cpu$/, allowed: ['1m', '1'], name: 'cpu' },
  { pattern: /^(?:limits|requests)\.memory$/, allowed: byteDivisors, name: 'memory' },
  {
    pattern: /^(?:limits|requests)\.ephemeral-storage$/,
    allowed: byteDivisors,
    name: 'local ephemeral storage',
  },
  { pattern: /^(?:limits|requests)\.hugepages-/, allowed: byteDivisors, name: 'hugepages' },
];

function validateDivisor(ref: Stored<ResourceFieldSelector>, path: string): FieldError[] {
  const divisor = ref.divisor;
  if (divisor === undefined || divisor === null) return [];
  const quantity = parseQuantity(String(divisor));
  if ('error' in quantity || quantity.nano === 0n) return [];
  const resource = ref.resource ?? '';
  const rule = divisors.find(({ pattern }) => pattern.test(resource));
  if (rule === undefined || rule.allowed.includes(quantity.text)) return [];
  const values = rule.name === 'cpu' ? '1m and 1' : rule.allowed.join(', ');
  const detail = `only divisor's values ${values} are supported with the ${rule.name} resource`;
  return [invalid(`${path}.divisor`, resource, detail)];
}
