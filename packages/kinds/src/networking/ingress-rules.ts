import {
  type ApiObject,
  appendAll,
  breaks,
  type Dialect,
  dns1035Label,
  dnsSubdomain,
  type FieldError,
  invalid,
  invalidGo,
  type JsonObject,
  notSupported,
  parseIpAddress,
  pathSegment,
  portName,
  required,
  wildcardSubdomain,
} from '@wheelhouse/machinery';
import { at, listAt, numberAt, textAt } from '../cells.ts';
import { validIp } from '../core/addresses.ts';
import { validateBalancerHost } from '../core/service/load-balancer-status.ts';
import { portNumber } from '../pod/fields.ts';
import { goList } from '../rules/checks.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix'];
/** What a path may not contain, and how it may not end, where the server compares it. */
const refusedParts = ['//', '/./', '/../', '%2f', '%2F'];
const refusedEnds = ['/..', '/.'];

/** Faults of an older object that its update may keep. */
interface Tolerated {
  readonly secretNames: boolean;
  readonly wildcardRules: boolean;
}

const nothing: Tolerated = { secretNames: false, wildcardRules: false };

/** A new Ingress; class and annotation of the same meaning must agree. */
export function validateNewIngress(object: ApiObject, dialect: Dialect): FieldError[] {
  const errors = validateSpec(object, nothing);
  const annotation = dialect.label('ingress.class');
  const annotations = object.metadata.annotations ?? {};
  const className = at(object, 'spec', 'ingressClassName');
  if (className === undefined || !Object.hasOwn(annotations, annotation)) return errors;
  if (annotations[annotation] === className) return errors;
  const detail = 'must match `ingressClassName` when both are specified';
  return [...errors, invalid(`annotations.${annotation}`, annotations[annotation], detail)];
}

/** What a new Ingress is warned of: a class that the annotation alone names. */
export function ingressWarnings(
  object: ApiObject,
  old: ApiObject | undefined,
  dialect: Dialect,
): readonly string[] {
  const annotation = dialect.label('ingress.class');
  const isNamed = Object.hasOwn(object.metadata.annotations ?? {}, annotation);
  if (old !== undefined || !isNamed) return [];
  if (at(object, 'spec', 'ingressClassName') !== undefined) return [];
  const name = JSON.stringify(annotation);
  return [`annotation ${name} is deprecated, please use 'spec.ingressClassName' instead`];
}

/** A changed Ingress, which may keep faults it had before they were looked for. */
export function validateIngressChange(object: JsonObject, old: JsonObject): FieldError[] {
  const secretNames = objectsAt(old, 'spec', 'tls').some(
    (tls) => validateSecretName(tls, '').length > 0,
  );
  const wildcardRules = objectsAt(old, 'spec', 'rules').some(
    (rule) => textAt(rule, 'host').includes('*') && validateRuleValue(rule, '').length > 0,
  );
  return validateSpec(object, { secretNames, wildcardRules });
}

/** `status.loadBalancer` of an Ingress. */
export function validateIngressStatus(object: JsonObject): FieldError[] {
  return objectsAt(object, 'status', 'loadBalancer', 'ingress').flatMap((one, index) => {
    const path = `status.loadBalancer.ingress[${index}]`;
    const ip = textAt(one, 'ip');
    return [...(ip === '' ? [] : validIp(`${path}.ip`, ip)), ...validateBalancerHost(one, path)];
  });
}

function validateSpec(object: JsonObject, tolerated: Tolerated): FieldError[] {
  const rules = objectsAt(object, 'spec', 'rules');
  const fallback = objectAt(object, 'spec', 'defaultBackend');
  const errors: FieldError[] = [];
  if (rules.length === 0 && fallback === undefined) {
    const detail = 'either `defaultBackend` or `rules` must be specified';
    errors.push(invalidGo('spec', () => goList('networking.IngressRule', undefined), detail));
  }
  if (fallback !== undefined) appendAll(errors, validateBackend(fallback, 'spec.defaultBackend'));
  rules.forEach((rule, index) => {
    appendAll(errors, validateRule(rule, `spec.rules[${index}]`, tolerated));
  });
  objectsAt(object, 'spec', 'tls').forEach((tls, index) => {
    appendAll(errors, validateTls(tls, `spec.tls[${index}]`, tolerated));
  });
  const className = at(object, 'spec', 'ingressClassName');
  if (typeof className === 'string') {
    appendAll(errors, breaks('spec.ingressClassName', className, dnsSubdomain));
  }
  return errors;
}

const hostRule = (host: string) => (host.includes('*') ? wildcardSubdomain : dnsSubdomain);

function validateRule(rule: JsonObject, path: string, tolerated: Tolerated): FieldError[] {
  const host = textAt(rule, 'host');
  const errors: FieldError[] = [];
  if (host !== '') {
    if (parseIpAddress(host) !== undefined) {
      errors.push(invalid(`${path}.host`, host, 'must be a DNS name, not an IP address'));
    }
    appendAll(errors, breaks(`${path}.host`, host, hostRule(host)));
  }
  if (host.includes('*') && tolerated.wildcardRules) return errors;
  return [...errors, ...validateRuleValue(rule, path)];
}

function validateRuleValue(rule: JsonObject, path: string): FieldError[] {
  const http = objectAt(rule, 'http');
  if (http === undefined) return [];
  const paths = objectsAt(http, 'paths');
  if (paths.length === 0) return [required(`${path}.http.paths`)];
  return paths.flatMap((one, index) => validatePath(one, `${path}.http.paths[${index}]`));
}

function validatePath(rule: JsonObject, path: string): FieldError[] {
  if ((at(rule, 'pathType') ?? null) === null) {
    return [required(`${path}.pathType`, 'pathType must be specified')];
  }
  const backend = objectAt(rule, 'backend') ?? {};
  return [...validatePathText(rule, path), ...validateBackend(backend, `${path}.backend`)];
}

function validatePathText(rule: JsonObject, path: string): FieldError[] {
  const type = textAt(rule, 'pathType');
  const value = textAt(rule, 'path');
  const field = `${path}.path`;
  const relative = value.startsWith('/') ? [] : [invalid(field, value, 'must be an absolute path')];
  switch (type) {
    case 'Exact':
    case 'Prefix':
      return [
        ...relative,
        ...refusedParts
          .filter((part) => value.includes(part))
          .map((part) => invalid(field, value, `must not contain '${part}'`)),
        ...refusedEnds
          .filter((end) => value.endsWith(end))
          .map((end) => invalid(field, value, `cannot end with '${end}'`)),
      ];
    case 'ImplementationSpecific':
      return value === '' ? [] : relative;
    default:
      return [notSupported(`${path}.pathType`, type, pathTypes)];
  }
}

function validateBackend(backend: JsonObject, path: string): FieldError[] {
  const service = objectAt(backend, 'service');
  const resource = objectAt(backend, 'resource');
  if (resource !== undefined && service !== undefined) {
    return [invalid(path, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) return validateTypedReference(resource, `${path}.resource`);
  if (service === undefined) {
    return [invalid(path, '', 'resource or service backend is required')];
  }
  const name = textAt(service, 'name');
  const field = `${path}.service.name`;
  return [
    ...(name === '' ? [required(field)] : breaks(field, name, dns1035Label)),
    ...validateBackendPort(service, path),
  ];
}

function validateBackendPort(service: JsonObject, path: string): FieldError[] {
  const name = textAt(service, 'port', 'name');
  const number = numberAt(service, 'port', 'number');
  if (name !== '' && number !== 0) {
    return [invalid(path, '', 'cannot set both port name & port number')];
  }
  if (name !== '') return breaks(`${path}.service.port.name`, name, portName);
  if (number !== 0) return portNumber(`${path}.service.port.number`, number);
  return [required(path, 'port name or number is required')];
}

/** A reference to an object of any kind in the same namespace. */
export function validateTypedReference(reference: JsonObject, path: string): FieldError[] {
  const group = at(reference, 'apiGroup');
  const errors = typeof group === 'string' ? breaks(`${path}.apiGroup`, group, dnsSubdomain) : [];
  for (const name of ['kind', 'name']) {
    const value = textAt(reference, name);
    const field = `${path}.${name}`;
    if (value === '') errors.push(required(field, `${name} is required`));
    else appendAll(errors, breaks(field, value, pathSegment));
  }
  return errors;
}

function validateTls(tls: JsonObject, path: string, tolerated: Tolerated): FieldError[] {
  const errors = listAt(tls, 'hosts').flatMap((host, index) =>
    breaks(`${path}.hosts[${index}]`, String(host), hostRule(String(host))),
  );
  return tolerated.secretNames ? errors : [...errors, ...validateSecretName(tls, path)];
}

function validateSecretName(tls: JsonObject, path: string): FieldError[] {
  const name = textAt(tls, 'secretName');
  return name === '' ? [] : breaks(`${path}.secretName`, name, dnsSubdomain);
}
