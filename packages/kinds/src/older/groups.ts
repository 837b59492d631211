import {
  type ApiObject,
  type Dialect,
  type FieldError,
  type JsonObject,
  jsonEqual,
} from '@wheelhouse/machinery';
import { crdSchema } from '../apiextensions/crd-schema.ts';
import { defaultCrd } from '../apiextensions/custom-resource-definition.ts';
import { at, listAt, textAt } from '../cells.ts';
import { requestedNames } from '../certificates/certificate-request.ts';
import { crdOf } from '../custom/definition.ts';
import {
  defaultShares,
  fillLevel,
  zeroSharesAnnotation,
} from '../flowcontrol/priority-level-configuration.ts';
import type { Strategy } from '../resource-def.ts';
import { errorSteps } from '../rules/checks.ts';
import { ensure, fill, fillAbsent, objectAt, objectsAt, renameAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

/**
 * CustomResourceDefinition `v1beta1`, in which the members of a single version are at the top
 * level, a schema is optional, and unspecified members are kept by default.
 */
export function olderApiExtensions(): readonly OlderKind[] {
  const facts = 'apiextensions';
  return [
    {
      facts,
      kind: 'CustomResourceDefinition',
      older: [
        {
          facts,
          version: 'v1beta1',
          life: {
            introduced: 7,
            deprecated: 16,
            removed: 22,
            replacement: { group: facts, version: 'v1', kind: 'CustomResourceDefinition' },
          },
          schema: () => crdSchema('v1beta1'),
          defaulting: 'alone',
          defaults: fillDefaults,
          toStorage,
          fromStorage,
        },
      ],
    },
  ];
}

function fillDefaults(object: ApiObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { scope: 'Namespaced' });
  fill(spec, { preserveUnknownFields: true });
  const name = textAt(spec, 'version');
  const [first] = objectsAt(spec, 'versions');
  if (first === undefined && name !== '') {
    spec['versions'] = [{ name, served: true, storage: true }];
  }
  if (name === '' && first !== undefined) spec['version'] = textAt(first, 'name');
  const conversion = ensure(spec, 'conversion');
  fill(conversion, { strategy: 'None' });
  if (conversion['strategy'] === 'Webhook') {
    fill(conversion, { conversionReviewVersions: ['v1beta1'] });
  }
  fill(objectAt(conversion, 'webhookClientConfig', 'service'), { port: 443 });
  ensure(spec, 'names');
  defaultCrd(crdOf(object));
}

/** Top-level members and their names in the versions of `v1`. */
const moved = [
  ['validation', 'schema'],
  ['subresources', 'subresources'],
  ['additionalPrinterColumns', 'additionalPrinterColumns'],
  ['selectableFields', 'selectableFields'],
] as const;

function toStorage(object: ApiObject): ApiObject {
  const spec = ensure(object, 'spec');
  const versions = objectsAt(spec, 'versions');
  for (const [top, own] of moved) {
    const value = spec[top];
    delete spec[top];
    if (value === undefined || value === null) continue;
    for (const version of versions) version[own] = structuredClone(value);
  }
  delete spec['version'];
  for (const version of versions) renamePaths(version, { from: 'JSONPath', to: 'jsonPath' });
  const conversion = objectAt(spec, 'conversion');
  if (conversion === undefined) return object;
  const { webhookClientConfig, conversionReviewVersions, ...rest } = conversion;
  spec['conversion'] = rest;
  if (webhookClientConfig === undefined && conversionReviewVersions === undefined) return object;
  rest['webhook'] = {
    ...(webhookClientConfig === undefined ? {} : { clientConfig: webhookClientConfig }),
    conversionReviewVersions: conversionReviewVersions ?? null,
  };
  return object;
}

/** Renames the member with the path of each printer column. */
function renamePaths(owner: JsonObject, change: { from: string; to: string }): void {
  for (const column of objectsAt(owner, 'additionalPrinterColumns')) {
    renameAt(column, [], change);
  }
}

function fromStorage(object: ApiObject): ApiObject {
  const spec = ensure(object, 'spec');
  const versions = objectsAt(spec, 'versions');
  for (const version of versions) renamePaths(version, { from: 'jsonPath', to: 'JSONPath' });
  const [first] = versions;
  for (const [top, own] of first === undefined ? [] : moved) {
    const value = first?.[own];
    if (!versions.every((version) => jsonEqual(version[own] ?? null, value ?? null))) continue;
    for (const version of versions) delete version[own];
    if (value !== undefined) spec[top] = value;
  }
  if (first !== undefined) spec['version'] = textAt(first, 'name');
  const conversion = objectAt(spec, 'conversion');
  if (conversion === undefined) return object;
  const { webhook: _, ...rest } = conversion;
  const webhook = objectAt(conversion, 'webhook');
  const { clientConfig, conversionReviewVersions } = webhook ?? {};
  if (clientConfig !== undefined) rest['webhookClientConfig'] = clientConfig;
  if (conversionReviewVersions !== undefined) {
    rest['conversionReviewVersions'] = conversionReviewVersions;
  }
  spec['conversion'] = rest;
  return object;
}

const defaultUsages = ['digital signature', 'key encipherment'];

/** CertificateSigningRequest `v1beta1`, which has fewer rules and a default signer. */
export function olderCertificates(dialect: Dialect): readonly OlderKind[] {
  const legacySigner = dialect.label('legacy-unknown');
  const rules = (strategy: Strategy): Partial<Strategy> => ({
    *validateCreate(context, object) {
      const errors = yield* errorSteps(strategy.validateCreate?.(context, object));
      return lenient(errors, legacySigner);
    },
    *validateUpdate(context, object, old) {
      const errors = yield* errorSteps(strategy.validateUpdate?.(context, object, old));
      return lenient(errors, legacySigner);
    },
  });
  return [
    {
      facts: 'certificates',
      kind: 'CertificateSigningRequest',
      older: [
        {
          facts: 'certificates',
          version: 'v1beta1',
          rules,
          defaults(object) {
            const spec = ensure(object, 'spec');
            if (at(spec, 'usages') === undefined) spec['usages'] = [...defaultUsages];
            if (textAt(spec, 'signerName') === '') spec['signerName'] = signerOf(object, dialect);
            for (const condition of objectsAt(object, 'status', 'conditions')) {
              fill(condition, { status: 'True' });
            }
          },
        },
      ],
    },
  ];
}

/** Removes the errors of rules that `v1beta1` does not have. */
function lenient(errors: readonly FieldError[], legacySigner: string): readonly FieldError[] {
  return errors.filter(({ type, field, message }) => {
    if (/^spec\.usages(\[|$)/.test(field)) return false;
    if (field === 'spec.signerName' && message.includes(legacySigner)) return false;
    return !(field.startsWith('status.conditions[') && type !== 'FieldValueRequired');
  });
}

const nodeGroup = 'system:nodes';
const nodePrefix = 'system:node:';

/**
 * The default signer, which depends on whether the subject and the usages are those of a kubelet.
 */
function signerOf(object: JsonObject, dialect: Dialect): string {
  const unknown = dialect.label('legacy-unknown');
  const pem = Buffer.from(textAt(object, 'spec', 'request'), 'base64');
  const names = requestedNames(pem);
  if (names === undefined) return unknown;
  const isNode =
    names.organizations.join() === nodeGroup && names.commonName.startsWith(nodePrefix);
  if (!isNode) return unknown;
  if (!names.hasAlternatives && hasUsages(object, 'client auth')) {
    return dialect.label('kube-apiserver-client-kubelet');
  }
  const serves = names.hasAlternatives && hasUsages(object, 'server auth');
  return serves ? dialect.label('kubelet-serving') : unknown;
}

/** Whether the usages are `digital signature`, `kind`, and possibly `key encipherment`. */
function hasUsages(object: JsonObject, kind: string): boolean {
  const usages = new Set(listAt(object, 'spec', 'usages'));
  usages.delete('key encipherment');
  return usages.size === 2 && usages.has('digital signature') && usages.has(kind);
}

const assured = 'assuredConcurrencyShares';
const nominal = 'nominalConcurrencyShares';
const sharesPath = ['spec', 'limited'];

/** The versions with `assuredConcurrencyShares`. */
const assuredLevel: Omit<OlderVersion, 'facts' | 'version'> = {
  isOnByDefault: true,
  defaulting: 'alone',
  defaults(object) {
    fillShares(object, assured);
    fillLevel(object);
  },
  toStorage: (object) => renameAt(object, sharesPath, { from: assured, to: nominal }),
  fromStorage: (object) => renameAt(object, sharesPath, { from: nominal, to: assured }),
};

/** Older versions of FlowSchema and PriorityLevelConfiguration. */
export function olderFlowControl(dialect: Dialect): readonly OlderKind[] {
  const facts = 'flowcontrol';
  const schema = (version: string): OlderVersion => ({ facts, version, isOnByDefault: true });
  return [
    { facts, kind: 'FlowSchema', older: ['v1beta3', 'v1beta2', 'v1beta1'].map(schema) },
    {
      facts,
      kind: 'PriorityLevelConfiguration',
      older: [
        nominalLevel(dialect),
        { facts, version: 'v1beta2', ...assuredLevel },
        { facts, version: 'v1beta1', ...assuredLevel },
      ],
    },
  ];
}

/**
 * PriorityLevelConfiguration `v1beta3`, which defaults only absent shares. As in kube-apiserver, an
 * annotation tells older clients that zero shares are intended.
 */
function nominalLevel(dialect: Dialect): OlderVersion {
  const key = zeroSharesAnnotation(dialect);
  return {
    facts: 'flowcontrol',
    version: 'v1beta3',
    isOnByDefault: true,
    defaulting: 'alone',
    defaults(object) {
      fill(objectAt(object, 'spec', 'limited'), { [nominal]: defaultShares });
      fillLevel(object);
    },
    toStorage(object) {
      const { [key]: _, ...others } = object.metadata.annotations ?? {};
      if (object.metadata.annotations !== undefined) object.metadata.annotations = others;
      if (Object.keys(others).length === 0) delete object.metadata.annotations;
      return object;
    },
    fromStorage(object) {
      if (at(object, 'spec', 'limited', nominal) !== 0) return object;
      object.metadata.annotations = { ...object.metadata.annotations, [key]: '' };
      return object;
    },
  };
}

/** Defaults the shares of versions in which zero equals absent. */
function fillShares(object: JsonObject, member: string): void {
  const limited = objectAt(object, 'spec', 'limited');
  if (limited === undefined) return;
  if ((limited[member] ?? 0) === 0) limited[member] = defaultShares;
}

/** Ingress before `v1`: backends have flat members for the Service, and paths need no type. */
const ingress: Omit<OlderVersion, 'facts' | 'version'> = {
  defaults(object) {
    for (const path of pathsOf(object)) fillAbsent(path, { pathType: 'ImplementationSpecific' });
  },
  toStorage: (object) =>
    renameBackends(object, { from: 'backend', to: 'defaultBackend', backend: serviceOf }),
  fromStorage: (object) =>
    renameBackends(object, { from: 'defaultBackend', to: 'backend', backend: flattenService }),
};

/** Older versions of Ingress and NetworkPolicy. */
export function olderNetworking(): readonly OlderKind[] {
  return [
    {
      facts: 'networking',
      kind: 'Ingress',
      older: [
        { facts: 'networking', version: 'v1beta1', ...ingress },
        { facts: 'extensions', version: 'v1beta1', ...ingress },
      ],
    },
    {
      facts: 'networking',
      kind: 'NetworkPolicy',
      older: [{ facts: 'extensions', version: 'v1beta1' }],
    },
  ];
}

const pathsOf = (object: JsonObject): readonly JsonObject[] =>
  objectsAt(object, 'spec', 'rules').flatMap((rule) => objectsAt(rule, 'http', 'paths'));

/** Converts every backend, and renames the member of the default one. */
function renameBackends(
  object: ApiObject,
  change: { from: string; to: string; backend: (backend: JsonObject) => void },
): ApiObject {
  const spec = objectAt(object, 'spec');
  const standard = objectAt(spec, change.from);
  if (spec !== undefined && standard !== undefined) {
    delete spec[change.from];
    spec[change.to] = standard;
    change.backend(standard);
  }
  for (const path of pathsOf(object)) {
    const backend = objectAt(path, 'backend');
    if (backend !== undefined) change.backend(backend);
  }
  return object;
}

function serviceOf(backend: JsonObject): void {
  const { serviceName, servicePort } = backend;
  delete backend['serviceName'];
  delete backend['servicePort'];
  const isNumber = typeof servicePort === 'number';
  const isUnset = servicePort === undefined || servicePort === null || servicePort === 0;
  const name = typeof serviceName === 'string' ? serviceName : '';
  if (name === '' && isUnset) return;
  const port = isUnset ? {} : isNumber ? { number: servicePort } : { name: servicePort };
  backend['service'] = { name, port };
}

function flattenService(backend: JsonObject): void {
  const service = objectAt(backend, 'service');
  if (service === undefined) return;
  delete backend['service'];
  backend['serviceName'] = textAt(service, 'name');
  const port = objectAt(service, 'port');
  backend['servicePort'] = textAt(port, 'name') || (port?.['number'] ?? 0);
}
