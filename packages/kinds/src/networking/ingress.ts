import {
  appendAll,
  type Dialect,
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  domainPrefixedPath,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  notSupported,
  parseIpAddress,
  pathSegment,
  portName,
  required,
  ruleErrors,
  tooLong,
  wildcardSubdomain,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { validateIp } from '../core/addresses.ts';
import { balancerAddresses, validateBalancerHost } from '../core/service/load-balancer-status.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { TypedLocalObjectReference } from '../gen/types/core/v1.ts';
import type {
  HTTPIngressPath,
  Ingress,
  IngressBackend,
  IngressClass,
  IngressClassParametersReference,
  IngressRule,
  IngressServiceBackend,
  IngressTLS,
} from '../gen/types/networking/v1.ts';
import { validatePortNumber } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, goList, immutable, someSteps } from '../rules/checks.ts';
import { fillAbsent } from '../rules/fill.ts';

/** Ingress: routes HTTP traffic from outside to Services. */
export function ingress(dialect: Dialect): ResourceDef {
  return defineKind<Ingress>({
    dialect,
    facts: 'networking',
    kind: 'Ingress',
    scope: 'Namespaced',
    shortNames: ['ing'],
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Class', (object) => (object.spec?.ingressClassName ?? '') || '<none>', {
            description: 'Ingress class.',
          }),
          column('Hosts', hosts, { description: 'Hosts of the rules.' }),
          column('Address', addresses, { description: 'Addresses of the load balancer.' }),
          column('Ports', (object) => ((object.spec?.tls ?? []).length > 0 ? '80, 443' : '80'), {
            description: 'Ports of the ingress.',
          }),
          ageColumn,
        ],
      },
    ],
    storage: { prefix: '/registry/ingress/' },
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validateNewIngress(object, dialect),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateIngressStatus(object)
          : validateIngressChange(object, old),
      warnings: (object, old) => ingressWarnings(object, old, dialect),
    },
    subresources: [statusSubresource],
    example: () => ({
      spec: {
        rules: [
          {
            host: 'example.com',
            http: {
              paths: [
                {
                  path: '/',
                  pathType: 'Prefix',
                  backend: { service: { name: 'example', port: { number: 80 } } },
                },
              ],
            },
          },
        ],
      },
    }),
  });
}

const shownHostsMax = 3;

/** The first hosts; as in kube-apiserver, the number of omitted ones counts rules without a host. */
function hosts(object: Stored<Ingress>): string {
  const rules = object.spec?.rules ?? [];
  const shown: string[] = [];
  for (const { host = '' } of rules) {
    if (shown.length === shownHostsMax) {
      return `${shown.join(',')} + ${rules.length - shownHostsMax} more...`;
    }
    if (host !== '') shown.push(host);
  }
  return shown.join(',') || '*';
}

const addresses = (object: Stored<Ingress>): string =>
  balancerAddresses(object.status?.loadBalancer?.ingress).join(',');

/** Rules that an update may break, because the old object broke them. */
interface Tolerated {
  readonly secretNames: boolean;
  readonly wildcardRules: boolean;
}

const noneTolerated: Tolerated = { secretNames: false, wildcardRules: false };

/** Validates a new Ingress, which may set the class either in the spec or in the annotation. */
function* validateNewIngress(
  object: Stored<Ingress>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const errors = yield* validateSpec(object, noneTolerated);
  const annotation = dialect.label('ingress.class');
  const annotations = object.metadata.annotations ?? {};
  const className = object.spec?.ingressClassName;
  if (className === undefined || !Object.hasOwn(annotations, annotation)) return errors;
  if (annotations[annotation] === className) return errors;
  const detail = 'must match `ingressClassName` when both are specified';
  return [...errors, invalid(`annotations.${annotation}`, annotations[annotation], detail)];
}

function* validateSpec(
  object: Stored<Ingress>,
  tolerated: Tolerated,
): Generator<void, FieldError[]> {
  const rules = object.spec?.rules ?? [];
  const fallback = object.spec?.defaultBackend;
  const errors: FieldError[] = [];
  if (rules.length === 0 && fallback === undefined) {
    const detail = 'either `defaultBackend` or `rules` must be specified';
    errors.push(invalidGo('spec', () => goList('networking.IngressRule', undefined), detail));
  }
  if (fallback !== undefined) appendAll(errors, validateBackend(fallback, 'spec.defaultBackend'));
  const ofRules = yield* flatMapSteps(rules, (rule, index) =>
    validateRule(rule, `spec.rules[${index}]`, tolerated),
  );
  const ofTls = yield* flatMapSteps(object.spec?.tls ?? [], (tls, index) =>
    validateTls(tls, `spec.tls[${index}]`, tolerated),
  );
  appendAll(errors, ofRules);
  appendAll(errors, ofTls);
  const className = object.spec?.ingressClassName;
  if (typeof className === 'string') {
    appendAll(errors, ruleErrors('spec.ingressClassName', className, dnsSubdomain));
  }
  return errors;
}

function validateBackend(backend: Stored<IngressBackend>, path: string): FieldError[] {
  const service = backend.service;
  const resource = backend.resource;
  if (resource !== undefined && service !== undefined) {
    return [invalid(path, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) return validateTypedReference(resource, `${path}.resource`);
  if (service === undefined) return [invalid(path, '', 'resource or service backend is required')];
  const name = service.name ?? '';
  const field = `${path}.service.name`;
  return [
    ...(name === '' ? [required(field)] : ruleErrors(field, name, dns1035Label)),
    ...validateBackendPort(service, path),
  ];
}

/** Validates a reference to an object of any kind in the same namespace. */
function validateTypedReference(
  reference: Stored<TypedLocalObjectReference | IngressClassParametersReference>,
  path: string,
): FieldError[] {
  const group = reference.apiGroup;
  const errors =
    typeof group === 'string' ? ruleErrors(`${path}.apiGroup`, group, dnsSubdomain) : [];
  for (const name of ['kind', 'name'] as const) {
    const value = reference[name] ?? '';
    const field = `${path}.${name}`;
    if (value === '') errors.push(required(field, `${name} is required`));
    else appendAll(errors, ruleErrors(field, value, pathSegment));
  }
  return errors;
}

function validateBackendPort(service: Stored<IngressServiceBackend>, path: string): FieldError[] {
  const name = service.port?.name ?? '';
  const number = service.port?.number ?? 0;
  if (name !== '' && number !== 0) {
    return [invalid(path, '', 'cannot set both port name & port number')];
  }
  if (name !== '') return ruleErrors(`${path}.service.port.name`, name, portName);
  if (number !== 0) return validatePortNumber(`${path}.service.port.number`, number);
  return [required(path, 'port name or number is required')];
}

function* validateRule(
  rule: Stored<IngressRule>,
  path: string,
  tolerated: Tolerated,
): Generator<void, FieldError[]> {
  const host = rule.host ?? '';
  const errors: FieldError[] = [];
  if (host !== '') {
    if (parseIpAddress(host) !== undefined) {
      errors.push(invalid(`${path}.host`, host, 'must be a DNS name, not an IP address'));
    }
    appendAll(errors, ruleErrors(`${path}.host`, host, hostRule(host)));
  }
  if (host.includes('*') && tolerated.wildcardRules) return errors;
  return [...errors, ...(yield* validateRuleValue(rule, path))];
}

const hostRule = (host: string) => (host.includes('*') ? wildcardSubdomain : dnsSubdomain);

function* validateRuleValue(
  rule: Stored<IngressRule>,
  path: string,
): Generator<void, FieldError[]> {
  const http = rule.http;
  if (http === undefined) return [];
  const paths = http.paths ?? [];
  if (paths.length === 0) return [required(`${path}.http.paths`)];
  return yield* flatMapSteps(paths, (httpPath, index) =>
    validatePath(httpPath, `${path}.http.paths[${index}]`),
  );
}

function validatePath(rule: Stored<HTTPIngressPath>, path: string): FieldError[] {
  if ((rule.pathType ?? null) === null) {
    return [required(`${path}.pathType`, 'pathType must be specified')];
  }
  const backend = rule.backend ?? {};
  return [...validatePathText(rule, path), ...validateBackend(backend, `${path}.backend`)];
}

/** Parts that an exact path or a prefix cannot contain, or end in. */
const refusedParts = ['//', '/./', '/../', '%2f', '%2F'];
const refusedEnds = ['/..', '/.'];

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix'];

function validatePathText(rule: Stored<HTTPIngressPath>, path: string): FieldError[] {
  const type = rule.pathType ?? '';
  const value = rule.path ?? '';
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

function* validateTls(
  tls: Stored<IngressTLS>,
  path: string,
  tolerated: Tolerated,
): Generator<void, FieldError[]> {
  const errors = yield* flatMapSteps(tls.hosts ?? [], (host, index) =>
    ruleErrors(`${path}.hosts[${index}]`, String(host), hostRule(String(host))),
  );
  return tolerated.secretNames ? errors : [...errors, ...validateSecretName(tls, path)];
}

function validateSecretName(tls: Stored<IngressTLS>, path: string): FieldError[] {
  const name = tls.secretName ?? '';
  return name === '' ? [] : ruleErrors(`${path}.secretName`, name, dnsSubdomain);
}

/** Validates `status.loadBalancer` of an Ingress. */
function validateIngressStatus(object: Stored<Ingress>): Generator<void, FieldError[]> {
  return flatMapSteps(object.status?.loadBalancer?.ingress ?? [], (entry, index) => {
    const path = `status.loadBalancer.ingress[${index}]`;
    const ip = entry.ip ?? '';
    return [
      ...(ip === '' ? [] : validateIp(`${path}.ip`, ip)),
      ...validateBalancerHost(entry, path),
    ];
  });
}

/** Validates a changed Ingress, which may keep some errors of the old one. */
function* validateIngressChange(
  object: Stored<Ingress>,
  old: Stored<Ingress>,
): Generator<void, FieldError[]> {
  const secretNames = yield* someSteps(
    old.spec?.tls ?? [],
    (tls) => validateSecretName(tls, '').length > 0,
  );
  const wildcardRules = yield* someSteps(old.spec?.rules ?? [], function* (rule) {
    return (rule.host ?? '').includes('*') && (yield* validateRuleValue(rule, '')).length > 0;
  });
  return yield* validateSpec(object, { secretNames, wildcardRules });
}

/** Returns a warning about a new Ingress that sets its class only in the annotation. */
function ingressWarnings(
  object: Stored<Ingress>,
  old: Stored<Ingress> | undefined,
  dialect: Dialect,
): readonly string[] {
  const annotation = dialect.label('ingress.class');
  const isNamed = Object.hasOwn(object.metadata.annotations ?? {}, annotation);
  if (old !== undefined || !isNamed) return [];
  if (object.spec?.ingressClassName !== undefined) return [];
  const name = JSON.stringify(annotation);
  return [`annotation ${name} is deprecated, please use 'spec.ingressClassName' instead`];
}

/** IngressClass: the controller that serves Ingresses of the class. */
export function ingressClass(dialect: Dialect): ResourceDef {
  return defineKind<IngressClass>({
    dialect,
    facts: 'networking',
    kind: 'IngressClass',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillAbsent(object.spec?.parameters, { scope: 'Cluster' }),
        columns: [
          nameColumn,
          column('Controller', (object) => object.spec?.controller ?? '', {
            description: 'Controller that implements the class.',
          }),
          column('Parameters', parameters, {
            description: 'Reference to further parameters of the class.',
          }),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...immutable('spec.controller', object.spec?.controller ?? '', old.spec?.controller ?? ''),
        ...validate(object),
      ],
    },
    example: () => ({ spec: { controller: 'example.com/ingress' } }),
  });
}

function parameters(object: Stored<IngressClass>): string {
  const kind = object.spec?.parameters?.kind ?? '';
  if (kind === '') return '<none>';
  const group = object.spec?.parameters?.apiGroup ?? '';
  return `${group === '' ? kind : `${kind}.${group}`}/${object.spec?.parameters?.name ?? ''}`;
}

const controllerBytesMax = 250;

function validate(object: Stored<IngressClass>): FieldError[] {
  const controller = object.spec?.controller ?? '';
  const field = 'spec.controller';
  const isLong = Buffer.byteLength(controller) > controllerBytesMax;
  return [
    ...(isLong ? [tooLong(field, controllerBytesMax)] : []),
    ...domainPrefixedPath(field, controller),
    ...validateParameters(object.spec?.parameters, 'spec.parameters'),
  ];
}

function validateParameters(
  parameters: Stored<IngressClassParametersReference> | undefined,
  path: string,
): FieldError[] {
  if (parameters === undefined) return [];
  const errors = validateTypedReference(parameters, path);
  const scope = parameters.scope;
  const namespace = parameters.namespace;
  const field = `${path}.namespace`;
  if (scope === undefined) errors.push(required(`${path}.scope`));
  else if (scope !== 'Cluster' && scope !== 'Namespace') {
    errors.push(notSupported(`${path}.scope`, scope, ['Cluster', 'Namespace']));
  } else if (scope === 'Cluster') {
    const detail = "`parameters.scope` is set to 'Cluster'";
    if (namespace !== undefined) errors.push(forbiddenField(field, detail));
  } else if (namespace === undefined) {
    errors.push(required(field, "`parameters.scope` is set to 'Namespace'"));
  } else appendAll(errors, ruleErrors(field, String(namespace), dnsLabel));
  return errors;
}
