import { type JsonValue, textOf } from '../base/json.ts';
import { appendAll, flatMapSteps } from '../base/lists.ts';
import { runInOnePiece } from '../base/work.ts';
import {
  type FieldError,
  forbiddenField,
  goItems,
  invalid,
  invalidGo,
  required,
  tooLong,
} from './field-error.ts';
import {
  dnsLabel,
  labelValue,
  type NameRule,
  pathSegment,
  qualifiedName,
  ruleErrors,
} from './names.ts';
import {
  type ManagedFieldsEntry,
  type ObjectMeta,
  type OwnerReference,
  parseApiVersion,
} from './types.ts';

/** Validates owner references: each is complete, and at most one is the controller (META-7). */
const validateOwnerReferences = (references: readonly OwnerReference[], path: string) =>
  references.flatMap(ownerRule(references, path));

/** Returns a function that validates each reference in turn. */
function ownerRule(references: readonly OwnerReference[], path: string) {
  let controller = '';
  return (reference: OwnerReference): FieldError[] => {
    const errors = validateReference(reference, path);
    if (reference.controller !== true) return errors;
    const name = `${reference.kind ?? ''}/${reference.name ?? ''}`;
    if (controller === '') controller = name;
    else {
      const why =
        'Only one reference can have Controller set to true. ' +
        `Found "true" in references for ${controller} and ${name}`;
      const show = () => `[]v1.OwnerReference{${goItems(references, goReference)}}`;
      errors.push(invalidGo(path, show, why));
    }
    return errors;
  };
}

function validateReference(reference: OwnerReference, path: string): FieldError[] {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference;
  const errors: FieldError[] = [];
  const { group, version = '' } = parseApiVersion(apiVersion) ?? {};
  if (version === '') {
    errors.push(invalid(`${path}.apiVersion`, apiVersion, 'version must not be empty'));
  }
  if (kind === '') errors.push(invalid(`${path}.kind`, kind, 'kind must not be empty'));
  if (name === '') errors.push(invalid(`${path}.name`, name, 'name must not be empty'));
  if (uid === '') errors.push(invalid(`${path}.uid`, uid, 'uid must not be empty'));
  if (group === '' && version === 'v1' && kind === 'Event') {
    const why = '/v1, Kind=Event is disallowed from being an owner';
    errors.push(invalidGo(path, () => goReference(reference), why));
  }
  return errors;
}

/** Prints the struct as Go does, but with the targets of pointers instead of addresses. */
function goReference(reference: OwnerReference): string {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference;
  const texts = Object.entries({ APIVersion: apiVersion, Kind: kind, Name: name, UID: uid });
  const flags = {
    Controller: reference.controller,
    BlockOwnerDeletion: reference.blockOwnerDeletion,
  };
  return `v1.OwnerReference{${[
    ...texts.map(([field, value]) => `${field}:${JSON.stringify(value)}`),
    ...Object.entries(flags).map(([field, value]) => `${field}:(*bool)(${value ?? 'nil'})`),
  ].join(', ')}}`;
}

/** Returns the references without later duplicates, and the UIDs of the duplicates. */
export function dedupOwnerReferences(references: readonly OwnerReference[]): {
  readonly kept: readonly OwnerReference[];
  readonly duplicateUids: readonly string[];
} {
  const kept: OwnerReference[] = [];
  const duplicateUids: string[] = [];
  const uids = new Set<string>();
  const repeatedUids = new Set<string>();
  for (const { uid } of references) {
    if (uids.has(uid)) repeatedUids.add(uid);
    uids.add(uid);
  }
  const identities = new Set<string>();
  for (const reference of references) {
    const identity = repeatedUids.has(reference.uid) ? identityOf(reference) : undefined;
    if (identity !== undefined && identities.has(identity)) duplicateUids.push(reference.uid);
    else kept.push(reference);
    if (identity !== undefined) identities.add(identity);
  }
  return { kept, duplicateUids };
}

/** Returns a text that is the same for equal references only. */
function identityOf(reference: OwnerReference): string {
  const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = reference;
  return JSON.stringify([apiVersion, kind, name, uid, controller, blockOwnerDeletion]);
}

const managerBytesMax = 128;
/** Matches almost every name; these need no further check. */
const plainManager = /^[ -~]{0,128}$/;
/**
 * Characters that Go's `unicode.IsPrint` rejects. It accepts letters, marks, numbers, punctuation,
 * symbols, and the space.
 */
export const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/**
 * Validates the name of a field manager (MF-2). An empty one means that the client named none and
 * is valid.
 */
export function validateFieldManager(name: string, field: string): FieldError[] {
  if (plainManager.test(name)) return [];
  const errors = Buffer.byteLength(name) > managerBytesMax ? [tooLong(field, managerBytesMax)] : [];
  for (const found of name.matchAll(unprintable)) {
    const code = (found[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const position = Buffer.byteLength(name.slice(0, found.index));
    const why = `invalid character U+${code} (at position ${position})`;
    errors.push(invalid(field, name, why));
  }
  return errors;
}

/** The rules for the metadata of a kind. */
export interface MetaRules {
  readonly namespaced: boolean;
  readonly validateName: NameRule;
  /** The rule for the prefix of a generated name; absent: follows from that for names. */
  readonly validatePrefix?: NameRule;
  /** Path of the metadata: `metadata`. */
  readonly path: string;
  /**
   * Finalizers that are allowed without a domain. If absent, all are (custom kinds get a warning
   * instead).
   */
  readonly standardFinalizers?: ReadonlySet<string>;
  /**
   * Validations of the metadata of an update by kube-apiserver's strategy for the kind, in addition
   * to the two passes for all kinds. Each pass adds its causes.
   */
  readonly extraPasses?: readonly MetadataPass[];
}

/**
 * A pass over changed metadata: `whole` applies the rules for every object, `change` those for
 * updates.
 */
export type MetadataPass = 'whole' | 'change';

const annotationsBytesMax = 256 * 1024;
const subresourceBytesMax = 256;

/**
 * The garbage collector's finalizers, which retain an object until its dependents are processed.
 */
export const orphanFinalizer = 'orphan';
/**
 * The garbage collector's finalizer that retains an object until its blocking dependents are gone
 * (DEL-5).
 */
export const foregroundFinalizer = 'foregroundDeletion';

/** Validates the metadata of a new object (META-1, META-3, META-7). */
export const validateObjectMeta = (meta: ObjectMeta, rules: MetaRules): FieldError[] =>
  newMetaErrors(meta, rules, partErrors(meta, rules));

/** Does the work of `validateObjectMeta` in steps, for metadata that may be large (TRUST-2). */
export function* validateObjectMetaSteps(
  meta: ObjectMeta,
  rules: MetaRules,
): Generator<void, FieldError[]> {
  return newMetaErrors(meta, rules, yield* partErrorSteps(meta, rules));
}

function newMetaErrors(meta: ObjectMeta, rules: MetaRules, parts: PartErrors): FieldError[] {
  const { validateName, validatePrefix = asPrefix(validateName), path } = rules;
  const name = meta.name ?? '';
  return [
    ...prefixErrors(meta, validatePrefix, path),
    ...(name === ''
      ? [required(`${path}.name`, 'name or generateName is required')]
      : ruleErrors(`${path}.name`, name, validateName)),
    ...validateNamespace(meta, rules),
    ...((meta.generation ?? 0) >= 0
      ? none
      : [invalid(`${path}.generation`, meta.generation, 'must be greater than or equal to 0')]),
    ...parts.shared,
    ...parts.finalizers,
    ...parts.plainFinalizers,
  ];
}

/** The errors of the members of metadata that may have many items. */
interface PartErrors {
  /** Of labels, annotations, owner references, and managed fields. */
  readonly shared: readonly FieldError[];
  readonly finalizers: readonly FieldError[];
  /** Of finalizers without a domain. */
  readonly plainFinalizers: readonly FieldError[];
}

function partErrors(meta: ObjectMeta, rules: MetaRules): PartErrors {
  const finalizers = meta.finalizers ?? [];
  return {
    shared: validateShared(meta, rules.path),
    finalizers: finalizers.length === 0 ? none : validateFinalizers(finalizers, rules),
    plainFinalizers: finalizers.length === 0 ? none : finalizers.flatMap(plainFinalizer(rules)),
  };
}

/** Returns the same as `partErrors`. */
function* partErrorSteps(meta: ObjectMeta, rules: MetaRules): Generator<void, PartErrors> {
  const { path } = rules;
  const finalizers = meta.finalizers ?? [];
  const { labels = {}, annotations = {}, ownerReferences = [], managedFields = [] } = meta;
  return {
    shared: [
      ...(yield* flatMapSteps(Object.keys(labels).sort(), labelRule(labels, `${path}.labels`))),
      ...(yield* annotationErrorSteps(annotations, `${path}.annotations`)),
      ...(yield* flatMapSteps(
        ownerReferences,
        ownerRule(ownerReferences, `${path}.ownerReferences`),
      )),
      ...(yield* flatMapSteps(managedFields, entryRule(`${path}.managedFields`))),
    ],
    finalizers: [
      ...(yield* flatMapSteps(finalizers, finalizerRule(path))),
      ...contradictingFinalizers(finalizers, path),
    ],
    plainFinalizers: yield* flatMapSteps(finalizers, plainFinalizer(rules)),
  };
}

function prefixErrors(
  { generateName = '' }: ObjectMeta,
  rule: NameRule,
  path: string,
): readonly FieldError[] {
  return generateName === '' ? none : ruleErrors(`${path}.generateName`, generateName, rule);
}

/** The rule for a prefix of names: a generated suffix follows it, so it may end with a dash. */
export function asPrefix(rule: NameRule): NameRule {
  // As in kube-apiserver, an `a` replaces the dash and the byte before it: `A-` is valid, `é-` is not.
  return (prefix) => rule(/.-$/s.test(prefix) ? prefix.replace(/[\0-\x7f]?-$/, 'a') : prefix);
}

function validateNamespace(meta: ObjectMeta, { namespaced, path }: MetaRules): FieldError[] {
  const isSet = (meta.namespace ?? '') !== '';
  const field = `${path}.namespace`;
  if (namespaced)
    return isSet ? ruleErrors(field, meta.namespace ?? '', dnsLabel) : [required(field)];
  return isSet ? [forbiddenField(field, 'not allowed on this type')] : none;
}

/** A shared empty list of errors; must not be modified. */
const none: FieldError[] = [];

function validateShared(meta: ObjectMeta, path: string): FieldError[] {
  const { labels, annotations, ownerReferences, managedFields } = meta;
  const lists = [
    labels === undefined ? none : validateLabels(labels, `${path}.labels`),
    annotations === undefined ? none : validateAnnotations(annotations, `${path}.annotations`),
    ownerReferences === undefined
      ? none
      : validateOwnerReferences(ownerReferences, `${path}.ownerReferences`),
    managedFields === undefined
      ? none
      : validateManagedFields(managedFields, `${path}.managedFields`),
  ];
  return lists.every((errors) => errors.length === 0) ? none : lists.flat();
}

/** Validates labels. Errors name the map, not the label, as in kube-apiserver. */
export function validateLabels(labels: ObjectMeta['labels'], path: string): FieldError[] {
  if (labels === undefined || areValidLabels(labels)) return none;
  return Object.keys(labels).sort().flatMap(labelRule(labels, path));
}

const labelRule = (labels: Readonly<Record<string, string>>, path: string) => (key: string) => [
  ...ruleErrors(path, key, qualifiedName),
  ...ruleErrors(path, labels[key] ?? '', labelValue),
];

function areValidLabels(labels: Readonly<Record<string, string>>): boolean {
  for (const key in labels) {
    if (qualifiedName(key).length > 0 || labelValue(labels[key] ?? '').length > 0) return false;
  }
  return true;
}

/**
 * Validates annotations: keys like those of labels but in any case, arbitrary values, at most 256
 * KiB in total (META-3).
 */
export function validateAnnotations(
  annotations: Annotations | undefined,
  path: string,
): FieldError[] {
  return annotations === undefined ? [] : runInOnePiece(annotationErrorSteps(annotations, path));
}

/** A map of texts. */
type Annotations = Readonly<Record<string, JsonValue | undefined>>;

/** Does the work of `validateAnnotations` in steps (TRUST-2). */
export function* annotationErrorSteps(
  annotations: Annotations,
  path: string,
): Generator<void, FieldError[]> {
  let bytes = 0;
  const errors = yield* flatMapSteps(Object.keys(annotations).sort(), (key) => {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(textOf(annotations[key]));
    return qualifiedName(key.toLowerCase()).map((message) => invalid(path, key, message));
  });
  if (bytes > annotationsBytesMax) errors.push(tooLong(path, annotationsBytesMax));
  return errors;
}

const validateFinalizers = (finalizers: readonly string[], { path }: MetaRules): FieldError[] => [
  ...finalizers.flatMap(finalizerRule(path)),
  ...contradictingFinalizers(finalizers, path),
];

const finalizerRule = (path: string) => (name: string) =>
  ruleErrors(`${path}.finalizers`, name, qualifiedName);

function contradictingFinalizers(finalizers: readonly string[], path: string): FieldError[] {
  if (!finalizers.includes(orphanFinalizer) || !finalizers.includes(foregroundFinalizer)) {
    return none;
  }
  const why = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`;
  return [invalidGo(`${path}.finalizers`, () => goStringList(finalizers), why)];
}

const plainWhy = 'name is neither a standard finalizer name nor is it fully qualified';

/** Returns a function that rejects a finalizer without a domain unless it is a standard one. */
const plainFinalizer =
  ({ path, standardFinalizers }: MetaRules) =>
  (name: string, index: number): FieldError[] =>
    standardFinalizers === undefined || name.includes('/') || standardFinalizers.has(name)
      ? none
      : [invalid(`${path}.finalizers[${index}]`, name, plainWhy)];

function goStringList(values: readonly string[]): string {
  return `[]string{${goItems(values, (value) => JSON.stringify(value))}}`;
}

function isValidEntry({
  operation,
  fieldsType,
  manager,
  subresource,
}: ManagedFieldsEntry): boolean {
  return (
    (operation === 'Apply' || operation === 'Update') &&
    fieldsType === 'FieldsV1' &&
    subresource === undefined &&
    validateFieldManager(manager ?? '', '').length === 0
  );
}

function validateManagedFields(entries: readonly ManagedFieldsEntry[], path: string): FieldError[] {
  return entries.every(isValidEntry) ? none : entries.flatMap(entryRule(path));
}

/** Returns a function that validates each entry. */
function entryRule(path: string) {
  return (entry: ManagedFieldsEntry, index: number): FieldError[] => {
    const at = `${path}[${index}]`;
    const errors: FieldError[] = [];
    const { operation, fieldsType, subresource = '' } = entry;
    if (operation !== 'Apply' && operation !== 'Update') {
      errors.push(invalid(`${at}.operation`, operation ?? '', 'must be `Apply` or `Update`'));
    }
    if (fieldsType !== undefined && fieldsType !== 'FieldsV1') {
      errors.push(invalid(`${at}.fieldsType`, fieldsType, 'must be `FieldsV1`'));
    }
    appendAll(errors, validateFieldManager(entry.manager ?? '', `${at}.manager`));
    if (Buffer.byteLength(subresource) > subresourceBytesMax) {
      errors.push(tooLong(`${at}.subresource`, subresourceBytesMax));
    }
    return errors;
  };
}

const fixedTexts = ['name', 'namespace', 'uid'] as const;
const fixedTimes = ['creationTimestamp', 'deletionTimestamp'] as const;

/**
 * Validates the metadata of an update: the rules for a new object except that for its name, which
 * may have become stricter since; immutable fields; and no new finalizers after the start of
 * deletion (META-2, META-4, META-5).
 */
export const validateObjectMetaUpdate = (
  meta: ObjectMeta,
  old: ObjectMeta,
  rules: MetaRules,
): FieldError[] => changedMetaErrors(meta, old, { rules, parts: partErrors(meta, rules) });

/** Does the work of `validateObjectMetaUpdate` in steps, for metadata that may be large (TRUST-2). */
export function* validateObjectMetaUpdateSteps(
  meta: ObjectMeta,
  old: ObjectMeta,
  rules: MetaRules,
): Generator<void, FieldError[]> {
  const parts = yield* partErrorSteps(meta, rules);
  yield;
  return changedMetaErrors(meta, old, { rules, parts });
}

function changedMetaErrors(
  meta: ObjectMeta,
  old: ObjectMeta,
  { rules, parts }: { readonly rules: MetaRules; readonly parts: PartErrors },
): FieldError[] {
  const { path } = rules;
  const { shared, finalizers, plainFinalizers: plain } = parts;
  const prefixAsSegment = prefixErrors(meta, asPrefix(pathSegment), path);
  const prefixAsName = prefixErrors(meta, asPrefix(rules.validateName), path);
  const lists = [
    prefixAsSegment,
    prefixAsName,
    validateNamespace(meta, rules),
    shared,
    finalizers,
    validateNoNewFinalizers(meta, old, path),
    validateFixed(meta, old, path),
    validateGrace(meta, old, path),
  ];
  if (plain.length === 0 && lists.every((errors) => errors.length === 0)) return none;
  const ofObject = lists.slice(2, 5).flat();
  const ofUpdate = [...lists.slice(5).flat(), ...shared];
  const repeated = (rules.extraPasses ?? []).flatMap((how) => [
    ...(how === 'whole' ? [...prefixAsName, ...ofObject] : ofUpdate),
    ...plain,
  ]);
  return [...prefixAsSegment, ...ofObject, ...ofUpdate, ...repeated];
}

function validateFixed(meta: ObjectMeta, old: ObjectMeta, path: string): FieldError[] {
  const changed = (name: (typeof fixedTexts | typeof fixedTimes)[number]) =>
    (meta[name] ?? '') !== (old[name] ?? '');
  if (!fixedTexts.some(changed) && !fixedTimes.some(changed)) return none;
  return [
    ...fixedTexts
      .filter(changed)
      .map((name) => invalid(`${path}.${name}`, meta[name] ?? '', immutable)),
    ...fixedTimes
      .filter(changed)
      .map((name) => immutableError(`${path}.${name}`, goTime(meta[name] ?? ''))),
  ];
}

const immutable = 'field is immutable';

const immutableError = (field: string, shown: string): FieldError => ({
  type: 'FieldValueInvalid',
  field,
  message: `Invalid value: ${shown}: ${immutable}`,
});

/** Prints a stored time as Go does: `2026-01-02 03:04:05 +0000 UTC`. */
function goTime(text: string): string {
  return text === '' ? 'null' : `${text.slice(0, 19).replace('T', ' ')} +0000 UTC`;
}

function validateGrace(meta: ObjectMeta, old: ObjectMeta, path: string): FieldError[] {
  const { deletionGracePeriodSeconds: seconds } = meta;
  if ((seconds ?? null) === (old.deletionGracePeriodSeconds ?? null)) return none;
  return [immutableError(`${path}.deletionGracePeriodSeconds`, String(seconds ?? null))];
}

function validateNoNewFinalizers(meta: ObjectMeta, old: ObjectMeta, path: string): FieldError[] {
  if (old.deletionTimestamp === undefined) return none;
  const oldFinalizers = new Set(old.finalizers ?? []);
  const added = [...new Set(meta.finalizers ?? [])]
    .filter((finalizer) => !oldFinalizers.has(finalizer))
    .sort();
  if (added.length === 0) return [];
  const why =
    'no new finalizers can be added if the object is being deleted, ' +
    `found new finalizers ${goStringList(added)}`;
  return [forbiddenField(`${path}.finalizers`, why)];
}
