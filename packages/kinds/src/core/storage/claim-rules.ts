import {
  type ApiObject,
  annotationErrorSteps,
  appendAll,
  cloneJson,
  cloneJsonSteps,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  notSupported,
  parseQuantity,
  qualifiedName,
  required,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { at, textAt } from '../../cells.ts';
import type { Features } from '../../features/features.ts';
import type {
  EphemeralVolumeSource,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  TypedLocalObjectReference,
  TypedObjectReference,
} from '../../gen/types/core/v1.ts';
import type { ObjectMeta } from '../../gen/types/meta/v1.ts';
import { isSet, labelErrorSteps, notSupportedGo } from '../../pod/fields.ts';
import { goDifference } from '../../pod/go-text.ts';
import { isNative } from '../../pod/validation/resources.ts';
import type { Stored } from '../../resource-def.ts';
import {
  flatMapSteps,
  immutable,
  keyed,
  reportedTwice,
  sameOrEmptySteps,
  sortedKeys,
} from '../../rules/checks.ts';
import { ensure } from '../../rules/fill.ts';
import {
  validateAccessModes,
  validateNotNegativeQuantity,
  validatePositiveQuantity,
  validateVolumeMode,
} from './volumes.ts';

/** Validates an `ephemeral` volume, whose claim is created and deleted with the pod, in steps. */
export function* validateEphemeral(
  source: Stored<EphemeralVolumeSource>,
  path: string,
  { rules }: { readonly rules: { readonly features: Features } },
): Generator<void, FieldError[]> {
  const template = source.volumeClaimTemplate;
  const field = `${path}.volumeClaimTemplate`;
  if (template === undefined) return [required(field)];
  return [
    ...(yield* validateTemplateMetadata(template.metadata, `${field}.metadata`)),
    ...(yield* validateClaimSpec(template.spec ?? {}, `${field}.spec`, {
      groups: 'validated',
      // Unlike a claim, a template keeps the class if the feature is disabled.
      classes: rules.features.enabled('VolumeAttributesClass') ? 'validated' : 'accepted',
    })),
  ];
}

/**
 * Validates the metadata of a claim's template, which may only have labels and annotations, in
 * steps.
 */
export function* validateTemplateMetadata(
  metadata: Stored<ObjectMeta> | undefined,
  path: string,
): Generator<void, FieldError[]> {
  if (metadata === undefined) return [];
  const others = Object.keys(metadata).filter(
    (name) => name !== 'labels' && name !== 'annotations' && isSet(metadata, name),
  );
  return [
    ...(yield* annotationErrorSteps(metadata.annotations ?? {}, `${path}.annotations`)),
    ...(yield* labelErrorSteps(metadata.labels, `${path}.labels`)),
    ...others.map((name) => forbiddenField(`${path}.${goMember(name)}`, 'cannot be set')),
  ];
}

/** kube-apiserver derives the name from that of the Go field. */
const goMember = (name: string) => (name === 'uid' ? 'uID' : name);

/** Which parts of a claim are validated. */
interface ClaimTolerance {
  /** The API group of a data source: validated unless the old claim had one. */
  readonly groups: 'validated' | 'accepted';
  /** The name of the volume attributes class; absent: validated. */
  readonly classes?: 'validated' | 'accepted';
}

/** Validates the spec of a claim or of a claim's template, in steps. */
export function* validateClaimSpec(
  spec: Stored<PersistentVolumeClaimSpec>,
  path: string,
  tolerance: ClaimTolerance = { groups: 'validated' },
): Generator<void, FieldError[]> {
  const selector = spec.selector;
  const modes = `${path}.accessModes`;
  const noMode = required(modes, 'at least 1 access mode is required');
  return [
    ...((spec.accessModes ?? []).length === 0 ? [noMode] : []),
    ...validateLabelSelector(selector, `${path}.selector`),
    ...(yield* validateAccessModes(spec, modes)),
    ...validateRequest(spec, keyed(`${path}.resources`, 'storage')),
    ...validateClassName(spec.storageClassName, `${path}.storageClassName`),
    ...validateVolumeMode(spec, `${path}.volumeMode`),
    ...validateDataSource(spec.dataSource, `${path}.dataSource`, tolerance),
    ...validateDataSource(spec.dataSourceRef, `${path}.dataSourceRef`, tolerance),
    ...validateSourcesAgree(spec, path),
    ...(tolerance.classes === 'accepted'
      ? []
      : validateClassName(spec.volumeAttributesClassName, `${path}.volumeAttributesClassName`)),
  ];
}

function validateRequest(spec: Stored<PersistentVolumeClaimSpec>, field: string): FieldError[] {
  const size = spec.resources?.requests?.['storage'];
  return size === undefined ? [required(field)] : validatePositiveQuantity(size, field);
}

const validateClassName = (name = '', field: string): FieldError[] =>
  name === '' ? [] : ruleErrors(field, name, dnsSubdomain);

const claimKind = 'PersistentVolumeClaim';

function validateDataSource(
  source: Stored<TypedLocalObjectReference | TypedObjectReference> | undefined,
  path: string,
  { groups }: ClaimTolerance,
): FieldError[] {
  if (source === undefined) return [];
  const [kind, group] = [source.kind ?? '', source.apiGroup ?? ''];
  const errors = (['name', 'kind'] as const)
    .filter((name) => (source[name] ?? '') === '')
    .map((name) => required(`${path}.${name}`));
  if (group !== '') {
    if (groups === 'validated')
      appendAll(errors, ruleErrors(`${path}.apiGroup`, group, dnsSubdomain));
  } else if (kind !== claimKind) {
    const detail = `must be '${claimKind}' when referencing the default apiGroup`;
    errors.push(invalid(path, kind, detail));
  }
  const namespace = textAt(source, 'namespace');
  return namespace === ''
    ? errors
    : [...errors, ...ruleErrors(`${path}.namespace`, namespace, dnsLabel)];
}

const sourceParts = ['apiGroup', 'kind', 'name'] as const;

function validateSourcesAgree(spec: Stored<PersistentVolumeClaimSpec>, path: string): FieldError[] {
  const [plain, any] = [spec.dataSource, spec.dataSourceRef];
  if (plain === undefined || any === undefined) return [];
  if ((any.namespace ?? '') !== '') {
    const detail = 'may not be specified when dataSourceRef.namespace is specified';
    return [invalid(path, `${path}.dataSource`, detail)];
  }
  // An empty API group differs from an absent one.
  const isSame = (any.apiGroup ?? undefined) === (plain.apiGroup ?? undefined);
  if (isSame && any.kind === plain.kind && any.name === plain.name) return [];
  return [invalid(path, `${path}.dataSource`, 'must match dataSourceRef')];
}

/** The dialect and features that the rules of claims depend on. */
export interface ClaimPorts {
  readonly dialect: Dialect;
  readonly features: Features;
}

/** Drops a data source that `dataSource` does not support, and completes both members. */
export function normalizeDataSources(
  object: Stored<PersistentVolumeClaim>,
  old: Stored<PersistentVolumeClaim> | undefined,
  { dialect, features }: ClaimPorts,
) {
  const spec = ensure(object, 'spec');
  const before = old?.spec?.dataSourceRef;
  const isInUse = before ?? old?.spec?.dataSource;
  const any = spec.dataSourceRef;
  const plain = spec.dataSource;
  if (plain !== undefined && any === undefined && isInUse === undefined) {
    if (!isOldSource(plain, dialect)) delete spec.dataSource;
  }
  completeDataSources(object, features);
}

/** Whether the source is a claim or a snapshot of one. */
function isOldSource(source: Stored<TypedLocalObjectReference>, dialect: Dialect): boolean {
  const [kind, group] = [source.kind ?? '', source.apiGroup ?? ''];
  if (kind === claimKind) return group === '';
  return kind === 'VolumeSnapshot' && group === dialect.group('snapshot.storage');
}

/** Copies the data source to the other of its two members if that can express it. */
export function completeDataSources(
  object: Stored<PersistentVolumeClaim>,
  features: Features,
): void {
  if (!features.enabled('AnyVolumeDataSource')) return;
  const spec = ensure(object, 'spec');
  const any = spec.dataSourceRef;
  const plain = spec.dataSource;
  if (plain !== undefined && any === undefined) spec.dataSourceRef = cloneJson(plain);
  if (plain === undefined && any !== undefined && (any.namespace ?? '') === '') {
    const parts = sourceParts.filter((part) => any[part] !== undefined);
    spec.dataSource = Object.fromEntries(parts.map((part) => [part, any[part]]));
  }
}

const immutableSpec =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName ' +
  'for bound claims';

/** Validates a changed claim: first the whole claim, then the changes. */
export function* validateClaimUpdate(
  object: Stored<PersistentVolumeClaim>,
  old: Stored<PersistentVolumeClaim>,
  ports: ClaimPorts,
): Generator<void, FieldError[]> {
  const { dialect } = ports;
  const namedGroup = (['dataSource', 'dataSourceRef'] as const).some(
    (source) => typeof old.spec?.[source]?.apiGroup === 'string',
  );
  const groups = namedGroup ? 'accepted' : 'validated';
  const errors = reportedTwice(yield* validateClaimSpec(object.spec ?? {}, 'spec', { groups }));
  const now = yield* cloneJsonSteps(ensure(object, 'spec'));
  const before = yield* cloneJsonSteps(ensure(old, 'spec'));
  if ((before.volumeName ?? '') === '') before.volumeName = now.volumeName;
  appendAll(errors, validateClassChange({ object, old, now, before, dialect }));
  const requests = now.resources?.requests;
  const size = old.spec?.resources?.requests?.['storage'];
  const isBound = object.status?.phase === 'Bound';
  if (isBound && requests !== undefined) {
    if (size === undefined) delete requests['storage'];
    else requests['storage'] = size;
  }
  if (isBound && now.volumeAttributesClassName !== undefined) {
    now.volumeAttributesClassName = before.volumeAttributesClassName;
  }
  yield;
  if (!(yield* sameOrEmptySteps(now, before))) {
    const difference = yield* goDifference('core.PersistentVolumeClaimSpec', before, now);
    errors.push(forbiddenField('spec', `${immutableSpec}\n${difference}`));
  }
  return [
    ...errors,
    ...validateSize(object, old, ports),
    ...validateImmutableMembers(object, old, ports),
  ];
}

/**
 * Validates a change of the storage class. Removes an allowed one from `now`: setting a class where
 * there was none, or moving it from the annotation to the spec. The annotation is immutable.
 */
function validateClassChange(change: {
  object: ApiObject;
  old: ApiObject;
  now: JsonObject;
  before: JsonObject;
  dialect: Dialect;
}): FieldError[] {
  const { object, old, now, before, dialect } = change;
  const name = dialect.label('storage-class', 'volume.beta');
  const annotation = (claim: ApiObject) => {
    const annotations = claim.metadata.annotations ?? {};
    return Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  };
  const [annotated, wasAnnotated] = [annotation(object), annotation(old)];
  const className = at(now, 'storageClassName');
  const isNew = at(before, 'storageClassName') === undefined && className !== undefined;
  const isMoved = isNew && className === wasAnnotated;
  if (isMoved || (isNew && wasAnnotated === undefined)) delete now['storageClassName'];
  if (isMoved && (annotated === undefined || annotated === wasAnnotated)) return [];
  if ((annotated ?? '') === (wasAnnotated ?? '')) return [];
  return [invalid(`metadata.annotations.${name}`, annotated ?? '', 'field is immutable')];
}

/**
 * Validates a change of the requested size, which may decrease to recover from a failed expansion,
 * but must exceed the capacity.
 */
function validateSize(
  object: Stored<PersistentVolumeClaim>,
  old: Stored<PersistentVolumeClaim>,
  { features }: ClaimPorts,
): FieldError[] {
  const size = (claim: Stored<PersistentVolumeClaim>, ...path: string[]) => {
    const quantity = parseQuantity(String(at(claim, ...path) ?? '0'));
    return 'error' in quantity ? 0n : quantity.nano;
  };
  const request = ['spec', 'resources', 'requests', 'storage'];
  const requested = size(object, ...request);
  if (requested >= size(old, ...request)) return [];
  const { allocatedResources, allocatedResourceStatuses } = old.status ?? {};
  const mayRecover =
    features.enabled('RecoverVolumeExpansionFailure') ||
    allocatedResources !== undefined ||
    allocatedResourceStatuses !== undefined;
  if (!mayRecover) {
    return [forbiddenField(request.join('.'), 'field can not be less than previous value')];
  }
  if (requested > size(old, 'status', 'capacity', 'storage')) return [];
  return [forbiddenField(request.join('.'), 'field can not be less than status.capacity')];
}

function validateImmutableMembers(
  object: Stored<PersistentVolumeClaim>,
  old: Stored<PersistentVolumeClaim>,
  { features }: ClaimPorts,
): FieldError[] {
  const of = (claim: Stored<PersistentVolumeClaim>, name: string) => at(claim, 'spec', name);
  const errors = immutable('volumeMode', of(object, 'volumeMode'), of(old, 'volumeMode'));
  const [now, before] = [object, old].map(({ spec }) => spec?.volumeAttributesClassName);
  appendAll(errors, validateAttributesClassUnchanged(now, before, features));
  if (now !== '' || (before ?? '') === '') return errors;
  const detail = 'update from non-nil value to an empty string is forbidden';
  return [...errors, forbiddenField('spec.volumeAttributesClassName', detail)];
}

/** Rejects a changed class without the feature, and a removed class. */
export function validateAttributesClassUnchanged(
  now: string | undefined,
  before: string | undefined,
  features: Features,
): FieldError[] {
  if (now === before) return [];
  const refuse = (detail: string) => forbiddenField('spec.volumeAttributesClassName', detail);
  const isDisabled = !features.enabled('VolumeAttributesClass');
  const gate = 'the VolumeAttributesClass feature gate';
  return [
    ...(isDisabled ? [refuse(`update is forbidden when ${gate} is disabled`)] : []),
    ...(now === undefined ? [refuse('update from non-nil value to nil is forbidden')] : []),
  ];
}

/** Validates `status` of a claim: its quantities and states of resizing. */
export function* validateClaimStatus(
  object: Stored<PersistentVolumeClaim>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const status = object.status ?? {};
  const capacity = status.capacity;
  const noMode = (object.spec?.accessModes ?? []).length === 0;
  return [
    ...(noMode ? [required('Spec.accessModes')] : []),
    ...(yield* flatMapSteps(sortedKeys(capacity), (name) =>
      validateNotNegativeQuantity(capacity?.[name], keyed('status.capacity', name)),
    )),
    ...(yield* validateStates(status.allocatedResourceStatuses, dialect)),
    ...(yield* validateAllocated(status.allocatedResources, dialect)),
  ];
}

const resizeStates = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'NodeResizePending',
];

function validateStates(
  states: JsonObject | undefined,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  // kube-apiserver's error contains this name, and the resource instead of the state.
  const field = 'status.allocatedResourceStatus';
  return flatMapSteps(sortedKeys(states), (name) => [
    ...validateClaimResource(name, field, dialect),
    ...(resizeStates.includes(String(states?.[name]))
      ? []
      : [notSupportedGo(field, name, resizeStates)]),
  ]);
}

/** Validates the name of a claim's resource: storage, or one with a domain. */
function validateClaimResource(name: string, field: string, dialect: Dialect): FieldError[] {
  const errors = ruleErrors(field, name, qualifiedName);
  if (errors.length > 0 || name === 'storage' || !isNative(name, dialect)) return errors;
  return [notSupported(field, name, ['storage'])];
}

function validateAllocated(
  allocated: JsonObject | undefined,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const path = 'status.allocatedResources';
  return flatMapSteps(sortedKeys(allocated), (name) => {
    const unknown = validateClaimResource(name, path, dialect);
    if (unknown.length > 0) return unknown;
    const field = keyed(path, name);
    return validateNotNegativeQuantity(allocated?.[name], field);
  });
}
