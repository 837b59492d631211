import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  type JsonObject,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { at, column, listAt, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { PodSecurityPolicy, PodSecurityPolicySpec } from '../gen/types/policy/v1beta1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { ensure, fill, objectAt, objectsAt } from '../rules/fill.ts';

/** Kinds that the current release does not serve in any version. */
export function removedKinds(dialect: Dialect): readonly ResourceDef[] {
  return [podSecurityPolicy(dialect)];
}

const rulesOf: Readonly<Record<string, readonly string[]>> = {
  seLinux: ['MustRunAs', 'RunAsAny'],
  runAsUser: ['MustRunAs', 'MustRunAsNonRoot', 'RunAsAny'],
  runAsGroup: ['MustRunAs', 'RunAsAny', 'MayRunAs'],
  supplementalGroups: ['MayRunAs', 'MustRunAs', 'RunAsAny'],
  fsGroup: ['MayRunAs', 'MustRunAs', 'RunAsAny'],
};

const volumeTypes = [
  '*',
  'awsElasticBlockStore',
  'azureDisk',
  'azureFile',
  'cephFS',
  'cinder',
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'fc',
  'flexVolume',
  'flocker',
  'gcePersistentDisk',
  'gitRepo',
  'glusterfs',
  'hostPath',
  'iscsi',
  'nfs',
  'persistentVolumeClaim',
  'photonPersistentDisk',
  'portworxVolume',
  'projected',
  'quobyte',
  'rbd',
  'scaleIO',
  'secret',
  'storageos',
  'vsphereVolume',
];

function validateRanges(options: JsonObject, path: string): FieldError[] {
  return objectsAt(options, 'ranges').flatMap((range, index) => {
    const field = `${path}.ranges[${index}]`;
    const [min, max] = [numberAt(range, 'min'), numberAt(range, 'max')];
    const errors: FieldError[] = [];
    if (min < 0) errors.push(invalid(`${field}.min`, min, 'min cannot be negative'));
    if (max < 0) errors.push(invalid(`${field}.max`, max, 'max cannot be negative'));
    if (min > max) errors.push(invalid(`${field}.min`, min, 'min cannot be greater than max'));
    return errors;
  });
}

function validateStrategy(spec: Stored<PodSecurityPolicySpec>, name: string): FieldError[] {
  const options = objectAt(spec, name);
  if (options === undefined && name === 'runAsGroup') return [];
  const path = `spec.${name}`;
  const rule = textAt(options, 'rule');
  const allowed = rulesOf[name] ?? [];
  const errors = allowed.includes(rule) ? [] : [notSupported(`${path}.rule`, rule, allowed)];
  return [...errors, ...validateRanges(options ?? {}, path)];
}

function validateCapabilities(spec: Stored<PodSecurityPolicySpec>): FieldError[] {
  const dropped = new Set(spec.requiredDropCapabilities);
  const errors: FieldError[] = [];
  if (dropped.size > 0 && (spec.allowedCapabilities ?? []).includes('*')) {
    const detail = 'must be empty when all capabilities are allowed by a wildcard';
    const shown = [...(spec.requiredDropCapabilities ?? [])];
    errors.push(invalid('requiredDropCapabilities', shown, detail));
  }
  for (const field of ['defaultAddCapabilities', 'allowedCapabilities'] as const) {
    for (const capability of spec[field] ?? []) {
      if (!dropped.has(capability)) continue;
      const detail = 'capability is also listed in requiredDropCapabilities';
      errors.push(invalid(field, capability, detail));
    }
  }
  return errors;
}

function validatePaths(spec: Stored<PodSecurityPolicySpec>): FieldError[] {
  return (spec.allowedHostPaths ?? []).flatMap((path, index) => {
    const field = `spec.allowedHostPaths[${index}]`;
    const prefix = path.pathPrefix ?? '';
    if (prefix === '') return [required(field, 'is required')];
    return prefix.split('/').includes('..')
      ? [invalid(field, prefix, "must not contain '..'")]
      : [];
  });
}

function validate(object: Stored<PodSecurityPolicy>): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors = ['runAsUser', 'runAsGroup', 'seLinux', 'supplementalGroups', 'fsGroup'].flatMap(
    (name) => validateStrategy(spec, name),
  );
  for (const type of spec.volumes ?? []) {
    if (typeof type === 'string' && volumeTypes.includes(type)) continue;
    errors.push(notSupported('spec.volumes', type, volumeTypes));
  }
  appendAll(errors, validateCapabilities(spec));
  const mayEscalate = spec.defaultAllowPrivilegeEscalation;
  if (mayEscalate === true && spec.allowPrivilegeEscalation === false) {
    const field = 'spec.defaultAllowPrivilegeEscalation';
    const detail =
      'Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true';
    errors.push(invalid(field, true, detail));
  }
  return [...errors, ...validatePaths(spec)];
}

const specText = (name: string, path: readonly string[], description: string) =>
  column(name, (object) => String(at(object, 'spec', ...path) ?? ''), { description });

const listText = (name: string, member: string, description: string) =>
  column(name, (object) => listAt(object, 'spec', member).join(',') || '<none>', { description });

/** PodSecurityPolicy: restricts pods; Pod Security admission replaces it. */
function podSecurityPolicy(dialect: Dialect): ResourceDef {
  return defineKind<PodSecurityPolicy>({
    dialect,
    facts: 'policy',
    kind: 'PodSecurityPolicy',
    scope: 'Cluster',
    shortNames: ['psp'],
    versions: [
      {
        version: 'v1beta1',
        defaults: (object) => fill(ensure(object, 'spec'), { allowPrivilegeEscalation: true }),
        columns: [
          nameColumn,
          column('Priv', (object) => String(object.spec?.privileged ?? false), {
            description: 'Whether pods may be privileged.',
          }),
          listText('Caps', 'allowedCapabilities', 'Capabilities that may be added.'),
          specText('Selinux', ['seLinux', 'rule'], 'Rule for SELinux labels.'),
          specText('RunAsUser', ['runAsUser', 'rule'], 'Rule for users.'),
          specText('FsGroup', ['fsGroup', 'rule'], 'Rule for the group of volumes.'),
          specText('Supgroup', ['supplementalGroups', 'rule'], 'Rule for supplemental groups.'),
          column('ReadOnlyRootFs', (object) =>
            String(object.spec?.readOnlyRootFilesystem ?? false),
          ),
          listText('Volumes', 'volumes', 'Types of volumes that may be used.'),
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
    },
    example: () => ({
      spec: {
        seLinux: { rule: 'RunAsAny' },
        runAsUser: { rule: 'RunAsAny' },
        supplementalGroups: { rule: 'RunAsAny' },
        fsGroup: { rule: 'RunAsAny' },
        volumes: ['*'],
      },
    }),
  });
}
