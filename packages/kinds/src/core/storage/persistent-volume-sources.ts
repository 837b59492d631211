import {
  breaks,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  required,
} from '@wheelhouse/machinery';
import { at, textAt } from '../../cells.ts';
import { defaultFeatures } from '../../features/features.ts';
import type { PersistentVolumeSpec, SecretReference } from '../../gen/types/core/v1.ts';
import { driverName } from '../../pod/driver-name.ts';
import { isSet, needed, noBacksteps } from '../../pod/fields.ts';
import { newPodRules } from '../../pod/rules.ts';
import { persistentIscsi, sourceRule } from '../../pod/validation/volume-sources.ts';
import { objectAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';

interface SourceContext {
  /** The volume's name. */
  readonly volume: string;
  readonly dialect: Dialect;
  /** Whether the volume stands within a VolumeAttachment, where no affinity counts. */
  readonly isInline?: boolean;
}

type Rule = (source: JsonObject, path: string, context: SourceContext) => FieldError[];

/** A source that pods have in the same form. */
const shared =
  (name: string): Rule =>
  (source, path, { volume, dialect }) =>
    sourceRule(name)?.(source, path, {
      volume,
      rules: newPodRules({ dialect, features: defaultFeatures }),
    }) ?? [];

/** A secret named with its namespace, both of which must then be there. */
const namedSecret = (source: JsonObject, path: string) =>
  isSet(source, 'secretRef') ? needed(source, path, 'secretRef.name', 'secretRef.namespace') : [];

const glusterfs: Rule = (source, path) => {
  const errors = needed(source, path, 'endpoints', 'path');
  const namespace = at(source, 'endpointsNamespace');
  const field = `${path}.endpointsNamespace`;
  if (typeof namespace !== 'string') return errors;
  if (namespace !== '') return [...errors, ...breaks(field, namespace, dnsLabel)];
  const detail = 'if the endpointnamespace is set, it must be a valid namespace name';
  return [...errors, invalid(field, namespace, detail)];
};

const iscsi: Rule = (source, path, { volume, dialect }) =>
  persistentIscsi(source, path, {
    volume,
    rules: newPodRules({ dialect, features: defaultFeatures }),
  });

const flexVolume: Rule = (source, path, context) => shared('flexVolume')(source, path, context);

const azureFile: Rule = (source, path) => {
  const errors = needed(source, path, 'secretName', 'shareName');
  const namespace = at(source, 'secretNamespace');
  return namespace === '' ? [...errors, required(`${path}.secretNamespace`)] : errors;
};

const local: Rule = (source, path) => {
  const sourcePath = textAt(source, 'path');
  return sourcePath === '' ? [required(`${path}.path`)] : noBacksteps(`${path}.path`, sourcePath);
};

const storageos: Rule = (source, path) => {
  const name = textAt(source, 'volumeName');
  const namespace = textAt(source, 'volumeNamespace');
  return [
    ...(name === ''
      ? [required(`${path}.volumeName`)]
      : breaks(`${path}.volumeName`, name, dnsLabel)),
    ...(namespace === '' ? [] : breaks(`${path}.volumeNamespace`, namespace, dnsLabel)),
    ...namedSecret(source, path),
  ];
};

const csiSecrets = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
];

const csi: Rule = (source, path) => [
  ...driverName(textAt(source, 'driver'), `${path}.driver`),
  ...needed(source, path, 'volumeHandle'),
  ...csiSecrets.flatMap((name) => {
    const reference = objectAt(source, name);
    return reference === undefined ? [] : validateSecret(reference, `${path}.${name}`);
  }),
];

function validateSecret(reference: Stored<SecretReference>, path: string): FieldError[] {
  const [name, namespace] = [reference.name ?? '', reference.namespace ?? ''];
  const errors =
    name === '' ? [required(`${path}.name`)] : breaks(`${path}.name`, name, dnsSubdomain);
  return [
    ...errors,
    ...(namespace === ''
      ? [required(`${path}.namespace`)]
      : breaks(`${path}.namespace`, namespace, dnsLabel)),
  ];
}

/** The sources of which a PersistentVolume has one, in the order in which upstream looks for them. */
const sources: Readonly<Record<string, Rule>> = {
  hostPath: shared('hostPath'),
  gcePersistentDisk: shared('gcePersistentDisk'),
  awsElasticBlockStore: shared('awsElasticBlockStore'),
  glusterfs,
  flocker: shared('flocker'),
  nfs: shared('nfs'),
  rbd: shared('rbd'),
  quobyte: shared('quobyte'),
  cephfs: shared('cephfs'),
  iscsi,
  cinder: (source, path) => [...needed(source, path, 'volumeID'), ...namedSecret(source, path)],
  fc: shared('fc'),
  flexVolume,
  azureFile,
  vsphereVolume: shared('vsphereVolume'),
  photonPersistentDisk: shared('photonPersistentDisk'),
  portworxVolume: shared('portworxVolume'),
  azureDisk: shared('azureDisk'),
  scaleIO: shared('scaleIO'),
  local,
  storageos,
  csi,
};

/** Members of a spec that name where the volume is. */
export const volumeSources: readonly string[] = Object.keys(sources);

/** Exactly one source, and that one as its driver wants it. */
export function validateVolumeSource(
  spec: Stored<PersistentVolumeSpec>,
  path: string,
  context: SourceContext,
): FieldError[] {
  const sourceNames = volumeSources.filter((name) => objectAt(spec, name) !== undefined);
  if (sourceNames.length === 0) return [required(path, 'must specify a volume type')];
  return sourceNames.flatMap((name, index) => {
    const source = objectAt(spec, name) ?? {};
    // Upstream counts a flexVolume, but accepts it after another source.
    if (index > 0 && name !== 'flexVolume') {
      const shown = name === 'cephfs' ? 'cephFS' : name;
      return [forbiddenField(`${path}.${shown}`, 'may not specify more than 1 volume type')];
    }
    const inner = name === 'gcePersistentDisk' ? 'persistentDisk' : name;
    const errors = sources[name]?.(source, `${path}.${inner}`, context) ?? [];
    const hasAffinity = spec.nodeAffinity !== undefined && context.isInline !== true;
    if (name !== 'local' || hasAffinity) return errors;
    return [...errors, required(`${path}.nodeAffinity`, 'Local volume requires node affinity')];
  });
}
