import {
  appendAll,
  dnsLabel,
  dnsSubdomain,
  exceedsBytes,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  type JsonObject,
  notSupported,
  parseQuantity,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { at, listAt, textAt } from '../../cells.ts';
import { validateEphemeral } from '../../core/storage/claim-rules.ts';
import type { Volume } from '../../gen/types/core/v1.ts';
import type { Findings, Stored } from '../../resource-def.ts';
import {
  errorSteps,
  flatMapSteps,
  goStrings,
  keyed,
  partsOf,
  sortedKeys,
} from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import {
  intAt,
  isSet,
  isTrue,
  optionalText,
  pullPolicies,
  requireTexts,
  textsAt,
  validateChoiceIn,
  validateDescendingPath,
  validateDriverName,
  validateNoBacksteps,
  validateOptionalChoice,
  validateRange,
} from '../fields.ts';
import type { PodRules } from '../rules.ts';
import {
  validateConfigMapVolume,
  validateDownwardVolume,
  validateProjectedVolume,
  validateSecretVolume,
} from './projected-volumes.ts';

/** Context of the rules of a volume's source. */
interface SourceContext {
  /** The name of the volume. */
  readonly volume: string;
  readonly rules: PodRules;
}

/** Validates the source of a volume at `path`. */
type SourceRule = (source: JsonObject, path: string, context: SourceContext) => FieldError[];

/** Like `SourceRule`, for sources with lists of any length; may run in steps. */
type LongSourceRule = (...args: Parameters<SourceRule>) => Findings;

/** Returns the rule of a driver that only requires some texts. */
const needs =
  (...names: string[]): SourceRule =>
  (source, path) =>
    requireTexts(source, path, ...names);

/** Requires the name of a Secret in `secretRef`, if present. */
const validateSecretRef = (source: JsonObject, path: string) =>
  isSet(source, 'secretRef') ? requireTexts(source, path, 'secretRef.name') : [];

const emptyDir: SourceRule = (source, path) => {
  const limit = parseQuantity(String(at(source, 'sizeLimit') ?? '0'));
  if ('error' in limit || limit.nano >= 0n) return [];
  return [forbiddenField(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')];
};

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

const hostPath: SourceRule = (source, path) => {
  const nodePath = textAt(source, 'path');
  if (nodePath === '') return [required(`${path}.path`)];
  return [
    ...validateNoBacksteps(`${path}.path`, nodePath),
    ...validateOptionalChoice(source, path, 'type', hostPathTypes),
  ];
};

const gitRepo: SourceRule = (source, path) => [
  ...requireTexts(source, path, 'repository'),
  ...validateDescendingPath(`${path}.directory`, textAt(source, 'directory')),
];

/**
 * Returns the rule of a disk with a partition from 0 to 255. 0 means the whole disk, although the
 * message excludes it.
 * @param name the member that identifies the disk
 */
const disk =
  (name: string): SourceRule =>
  (source, path) => {
    const partition = intAt(source, 'partition') ?? 0;
    const fits = partition >= 0 && partition <= 255;
    const errors = requireTexts(source, path, name);
    if (fits) return errors;
    return [
      ...errors,
      invalid(`${path}.partition`, partition, 'must be between 1 and 255, inclusive'),
    ];
  };

const nfs: SourceRule = (source, path) => {
  const exportPath = textAt(source, 'path');
  const errors = requireTexts(source, path, 'server', 'path');
  if (exportPath.startsWith('/')) return errors;
  return [...errors, invalid(`${path}.path`, exportPath, 'must be an absolute path')];
};

const initiatorForms: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.[a-zA-Z0-9.-]+:[^,;*&$|\s]+$/,
  eui: /^eui.[a-zA-Z0-9]{16}$/,
  naa: /^naa.[a-zA-Z0-9]{32}$/,
};

/** Bounds the time that the pattern takes; no valid name is this long. */
const initiatorLengthMax = 2048;

function validateInitiator(field: string, value: string, kinds: string): FieldError[] {
  const form = initiatorForms[value.slice(0, 3)];
  if (form === undefined) return [invalid(field, value, `must be valid format${kinds}`)];
  const isReadable = value.length <= initiatorLengthMax;
  return isReadable && form.test(value) ? [] : [invalid(field, value, 'must be valid format')];
}

const portalLengthMax = 64;

interface IscsiRules {
  /** The end of the error for a name with an unsupported prefix. */
  readonly kinds: string;
  /** Further rules of the portal and of the secret. */
  readonly portal?: SourceRule;
  readonly secret?: SourceRule;
}

/** Returns the rule of iSCSI; errors are in kube-apiserver's order. */
const iscsiBy =
  ({ kinds, portal, secret }: IscsiRules): SourceRule =>
  (source, path, context) => {
    const iqn = textAt(source, 'iqn');
    const initiator = optionalText(source, 'initiatorName');
    const authenticates = isTrue(source, 'chapAuthDiscovery') || isTrue(source, 'chapAuthSession');
    return [
      ...requireTexts(source, path, 'targetPortal'),
      ...(portal?.(source, path, context) ?? []),
      ...requireTexts(source, path, 'iqn'),
      ...(iqn === '' ? [] : validateInitiator(`${path}.iqn`, iqn, kinds)),
      ...validateRange(source, path, 'lun', [0, 255]),
      ...(authenticates && !isSet(source, 'secretRef') ? [required(`${path}.secretRef`)] : []),
      ...(secret?.(source, path, context) ?? []),
      ...(initiator === undefined
        ? []
        : validateInitiator(`${path}.initiatorname`, initiator, kinds)),
    ];
  };

const iscsi = iscsiBy({ kinds: ' starting with iqn, eui, or naa' });

const portalLengthDetail =
  'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.';

/** Whether a volume with an initiator's name has too long a name and portal together. */
const isPortalTooLong = (source: JsonObject, volume: string) =>
  isSet(source, 'initiatorName') &&
  exceedsBytes(`${volume}:${textAt(source, 'targetPortal')}`, portalLengthMax);

/** The rule of iSCSI as the source of a PersistentVolume. */
export const persistentIscsi = iscsiBy({
  kinds: '',
  portal: (source, path, { volume }) =>
    isPortalTooLong(source, volume)
      ? [invalid(`${path}.targetportal`, textAt(source, 'targetPortal'), portalLengthDetail)]
      : [],
  secret: validateSecretRef,
});

const fc: SourceRule = (source, path) => {
  const names = textsAt(source, 'targetWWNs');
  const ids = listAt(source, 'wwids');
  const field = `${path}.targetWWNs`;
  if (names.length === 0) {
    const detail = 'must specify either targetWWNs or wwids, but not both';
    return ids.length === 0 ? [required(field, detail)] : [];
  }
  const errors: FieldError[] = [];
  if (ids.length > 0) {
    const detail = 'targetWWNs and wwids can not be specified simultaneously';
    errors.push(invalidGo(field, () => goStrings(names), detail));
  }
  if (!isSet(source, 'lun')) {
    return [...errors, required(`${path}.lun`, 'lun is required if targetWWNs is specified')];
  }
  return [...errors, ...validateRange(source, path, 'lun', [0, 255])];
};

const flocker: SourceRule = (source, path) => {
  const [name, id] = [textAt(source, 'datasetName'), textAt(source, 'datasetUUID')];
  const errors: FieldError[] = [];
  if (name === '' && id === '') {
    errors.push(required(path, 'one of datasetName and datasetUUID is required'));
  }
  if (name !== '' && id !== '') {
    const detail = 'datasetName and datasetUUID can not be specified simultaneously';
    errors.push(invalid(path, 'resource', detail));
  }
  if (name.includes('/')) errors.push(invalid(`${path}.datasetName`, name, "must not contain '/'"));
  return errors;
};

const registryDetail = 'must be a host:port pair or multiple pairs separated by commas';
const tenantLengthMax = 64;

function* quobyte(source: JsonObject, path: string): Generator<void, FieldError[]> {
  const registry = textAt(source, 'registry');
  const errors: FieldError[] = [];
  if (registry === '') errors.push(required(`${path}.registry`, registryDetail));
  else if (exceedsBytes(textAt(source, 'tenant'), tenantLengthMax)) {
    const detail = 'must be a UUID and may not exceed a length of 64 characters';
    errors.push(required(`${path}.tenant`, detail));
  } else {
    const ofPairs = yield* flatMapSteps(partsOf(registry, ','), (pair) =>
      isHostAndPort(pair) ? [] : [invalid(`${path}.registry`, registry, registryDetail)],
    );
    appendAll(errors, ofPairs);
  }
  return [...errors, ...requireTexts(source, path, 'volume')];
}

const isHostAndPort = (text: string): boolean =>
  /^\[[^[\]]*\]:[^:[\]]*$/.test(text) || /^[^:[\]]*:[^:[\]]*$/.test(text);

const cinder: SourceRule = (source, path) => [
  ...requireTexts(source, path, 'volumeID'),
  ...validateSecretRef(source, path),
];

/** Returns the rule of a driver that requires a list of monitors and some texts. */
const monitored =
  (...more: string[]): SourceRule =>
  (source, path) => [
    ...(listAt(source, 'monitors').length === 0 ? [required(`${path}.monitors`)] : []),
    ...requireTexts(source, path, ...more),
  ];

function* flexVolume(
  source: JsonObject,
  path: string,
  { rules }: SourceContext,
): Generator<void, FieldError[]> {
  const { labelDomain, groupSuffix } = rules.dialect;
  const domains = [...new Set([labelDomain, groupSuffix])];
  const detail = `${domains.join(' and ')} namespaces are reserved`;
  const reserved = yield* flatMapSteps(sortedKeys(objectAt(source, 'options')), (key) => {
    const [namespace = ''] = key.split('/', 1);
    const normalized = `.${namespace.toLowerCase()}`;
    const isReserved = domains.some((domain) => normalized.endsWith(`.${domain}`));
    return isReserved ? [invalid(keyed(`${path}.options`, key), key, detail)] : [];
  });
  return [...requireTexts(source, path, 'driver'), ...reserved];
}

const diskForms = {
  managed:
    '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}',
  blob: 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd',
};

const azureDisk: SourceRule = (source, path) => {
  const kind = optionalText(source, 'kind');
  const uri = textAt(source, 'diskURI');
  const errors = [
    ...requireTexts(source, path, 'diskName', 'diskURI'),
    ...validateOptionalChoice(source, path, 'cachingMode', ['None', 'ReadOnly', 'ReadWrite']),
    ...validateOptionalChoice(source, path, 'kind', ['Dedicated', 'Managed', 'Shared']),
  ];
  if (kind === undefined) return errors;
  const [start, form] =
    kind === 'Managed' ? ['/subscriptions/', diskForms.managed] : ['https://', diskForms.blob];
  if (uri.startsWith(start)) return errors;
  return [...errors, notSupported(`${path}.diskURI`, uri, [form])];
};

const storageos: SourceRule = (source, path) => {
  const name = textAt(source, 'volumeName');
  const namespace = textAt(source, 'volumeNamespace');
  const nameField = `${path}.volumeName`;
  return [
    ...(name === '' ? [required(nameField)] : ruleErrors(nameField, name, dnsLabel)),
    ...(namespace === '' ? [] : ruleErrors(`${path}.volumeNamespace`, namespace, dnsLabel)),
    ...validateSecretRef(source, path),
  ];
};

const csi: SourceRule = (source, path) => {
  const errors = validateDriverName(textAt(source, 'driver'), `${path}.driver`);
  if (!isSet(source, 'nodePublishSecretRef')) return errors;
  const name = textAt(source, 'nodePublishSecretRef', 'name');
  if (name === '') return [...errors, required(`${path}.nodePublishSecretRef.name`)];
  return [...errors, ...ruleErrors(`${path}.name`, name, dnsSubdomain)];
};

/**
 * Validates an image volume. A template may omit the image, which the creator of its pods may add.
 */
function validateImage(source: JsonObject, path: string, { rules }: SourceContext): FieldError[] {
  return [
    ...(rules.pod === undefined ? [] : requireTexts(source, path, 'reference')),
    ...validateChoiceIn(source, path, 'pullPolicy', pullPolicies),
  ];
}

/** The rule of each source of a volume, in the order in which kube-apiserver checks them. */
const sources: Readonly<Record<string, LongSourceRule>> = {
  emptyDir,
  hostPath,
  gitRepo,
  gcePersistentDisk: disk('pdName'),
  awsElasticBlockStore: disk('volumeID'),
  secret: validateSecretVolume,
  nfs,
  iscsi,
  glusterfs: needs('endpoints', 'path'),
  flocker,
  persistentVolumeClaim: needs('claimName'),
  rbd: monitored('image'),
  cinder,
  cephfs: monitored(),
  quobyte,
  downwardAPI: validateDownwardVolume,
  fc,
  flexVolume,
  configMap: validateConfigMapVolume,
  azureFile: needs('secretName', 'shareName'),
  vsphereVolume: needs('volumePath'),
  photonPersistentDisk: needs('pdID'),
  portworxVolume: needs('volumeID'),
  azureDisk,
  storageos,
  projected: validateProjectedVolume,
  scaleIO: needs('gateway', 'system', 'volumeName'),
  csi,
  ephemeral: validateEphemeral,
  image: validateImage,
};

/**
 * Names in kube-apiserver's paths that differ from the member: in errors inside the source, and in
 * errors about a second source.
 */
const innerNames: Readonly<Record<string, string>> = { gcePersistentDisk: 'persistentDisk' };
const outerNames: Readonly<Record<string, string>> = {
  cephfs: 'cephFS',
  downwardAPI: 'downwarAPI',
};

/** Requires that a volume has exactly one source, and validates it, in steps. */
export function* validateSource(
  volume: Stored<Volume>,
  path: string,
  context: SourceContext,
): Generator<void, FieldError[]> {
  const sourceNames = Object.keys(volume).filter(
    (name) => Object.hasOwn(sources, name) && objectAt(volume, name) !== undefined,
  );
  const [only] = sourceNames;
  if (only === undefined) return [required(path, 'must specify a volume type')];
  const ordered =
    sourceNames.length === 1
      ? sourceNames
      : Object.keys(sources).filter((member) => sourceNames.includes(member));
  const all: FieldError[] = [];
  for (const [index, name] of ordered.entries()) {
    const source = objectAt(volume, name) ?? {};
    const rule = sources[name] as LongSourceRule;
    if (index > 0) {
      const field = `${path}.${outerNames[name] ?? name}`;
      all.push(forbiddenField(field, 'may not specify more than 1 volume type'));
    } else {
      const findings = rule(source, `${path}.${innerNames[name] ?? name}`, context);
      appendAll(all, yield* errorSteps(findings));
    }
    if (name === 'iscsi' && isPortalTooLong(source, context.volume)) {
      all.push(invalid(`${path}.name`, context.volume, portalLengthDetail));
    }
  }
  return all;
}

/** Returns the rule of the source `name`, or undefined for another member. */
export const sourceRule = (name: string): LongSourceRule | undefined =>
  Object.hasOwn(sources, name) ? sources[name] : undefined;

/** Whether a volume comes from a claim, so that containers may use it as a block device. */
export const isClaimed = (volume: Stored<Volume> | undefined): boolean =>
  (['persistentVolumeClaim', 'ephemeral'] as const).some((name) => volume?.[name] !== undefined);
