import type { ResourceDef, StorageDef, VersionDef } from '@wheelhouse/kinds';
import {
  badRequest,
  type ChargedMemory,
  type FieldError,
  type FieldRequirement,
  forbiddenField,
  invalidObject,
  type LabelSelection,
  notSupported,
  parseFieldSelector,
  parseLabelSelector,
  type StatusError,
} from '@wheelhouse/machinery';
import { type ListOptions, type ListsByWatch, parseListOptions } from '../request/options.ts';
import type { EntryFilter, EntryIndex } from '../watchcache/entry.ts';
import type { ApiCall, EndpointContext } from './call.ts';

/** The query parameters of a list or watch that concern versions; an empty string means unset. */
export interface VersionOptions {
  readonly watch: boolean;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly continueToken: string;
  readonly sendInitialEvents: boolean | undefined;
  /** Whether a watch may replace a list; `served` when absent. */
  readonly listsByWatch?: ListsByWatch;
}

const matchField = 'resourceVersionMatch';

/** Errors in the combination of options of a list or watch (LIST-5, WATCH-5). */
export function validateListOptions(options: VersionOptions): readonly FieldError[] {
  return options.watch ? validateWatch(options) : validateList(options);
}

/**
 * The 422 for the errors of `validateListOptions`.
 * @param metaGroup the dialect's group of ListOptions, `meta.…`
 */
export function invalidListOptions(metaGroup: string, errors: readonly FieldError[]): StatusError {
  return invalidObject({ group: metaGroup, kind: 'ListOptions' }, '', errors);
}

function validateList(options: VersionOptions): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { resourceVersionMatch: match, resourceVersion } = options;
  if (match !== '') {
    if (resourceVersion === '') {
      errors.push(
        forbiddenField(matchField, `${matchField} is forbidden unless resourceVersion is provided`),
      );
    }
    if (options.continueToken !== '') errors.push(forbiddenWithContinue());
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(notSupported(matchField, match, ['Exact', 'NotOlderThan', '']));
    }
    if (match === 'Exact' && resourceVersion === '0') {
      errors.push(
        forbiddenField(matchField, `${matchField} "exact" is forbidden for resourceVersion "0"`),
      );
    }
  }
  if (options.sendInitialEvents !== undefined) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return errors;
}

function validateWatch(options: VersionOptions): readonly FieldError[] {
  const errors: FieldError[] = [];
  const match = options.resourceVersionMatch;
  if (options.sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(
      forbiddenField(
        matchField,
        `sendInitialEvents requires setting ${matchField} to NotOlderThan`,
      ),
    );
  }
  if (options.sendInitialEvents !== undefined && options.listsByWatch === 'refused') {
    const why =
      'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
    errors.push(forbiddenField('sendInitialEvents', why));
  }
  if (match === '') return errors;
  if (options.sendInitialEvents === undefined) {
    const why = `${matchField} is forbidden for watch unless sendInitialEvents is provided`;
    errors.push(forbiddenField(matchField, why));
  }
  if (match !== 'NotOlderThan') {
    errors.push(notSupported(matchField, match, ['NotOlderThan']));
  }
  if (options.continueToken !== '') errors.push(forbiddenWithContinue());
  return errors;
}

function forbiddenWithContinue(): FieldError {
  return forbiddenField(matchField, `${matchField} is forbidden when continue is provided`);
}

/** The objects of a collection that a list, watch, or deletecollection selects. */
interface Selection {
  /**
   * The namespace of the path, or else the only one that can match, which avoids a scan; empty if
   * there is none. `filter` requires it as well.
   */
  readonly namespace: string;
  /** Absent when no selector narrows the collection. */
  readonly filter: EntryFilter | undefined;
  /** Set when only one name can match (WATCH-8); `filter` requires it as well. */
  readonly name: string | undefined;
  /** Whether the name is the only requirement. */
  readonly isNameOnly: boolean;
  /** Memory of the selectors, which equal selectors share (TRUST-4). */
  readonly memory: NonNullable<ChargedMemory['shared']>;
}

/** The parsed selectors of a request. */
interface Selectors {
  readonly labels: LabelSelection;
  readonly fields: readonly FieldRequirement[];
}

/** Parses a request's selectors. Throws 400 for malformed text. */
function parseSelectors(options: ListOptions): Selectors {
  const labels = parseLabelSelector(options.labelSelector);
  return { labels, fields: parseFieldSelector(options.fieldSelector) };
}

/**
 * What a request's selectors and the name in its path select (API-13). Throws 400 for a field that
 * the kind does not offer in this version, and for a field selector that contradicts the path.
 */
export function selectionOf(
  call: Pick<ApiCall, 'info' | 'target'>,
  { labels, fields }: Selectors,
): Selection {
  const plan = fieldPlanOf(call, fields);
  const hasLabels = labels.requirements.length > 0;
  const { test, name } = plan;
  const namespace = call.target.namespace === '' ? plan.namespace : call.target.namespace;
  const isNameOnly = plan.isNameOnly && !hasLabels;
  const memory = memoryOf({ labels, fields });
  if (!hasLabels) return { filter: test, namespace, name, isNameOnly, memory };
  const { matches } = labels;
  const filter = (index: EntryIndex) =>
    matches(index.labels) && (test === undefined || test(index));
  return { filter, namespace, name, isNameOnly, memory };
}

/**
 * Measured size of a requirement with its plan, and of a value with its entry in a set, in bytes.
 */
const requirementBytes = 400;
const valueBytes = 120;

function memoryOf({ labels, fields }: Selectors): Selection['memory'] {
  const { requirements } = labels;
  if (requirements.length === 0 && fields.length === 0) return noMemory;
  const values = requirements.reduce((sum, { values: some }) => sum + some.length, 0);
  return [
    { key: labels, bytes: requirementBytes * requirements.length + valueBytes * values },
    { key: fields, bytes: requirementBytes * fields.length },
  ].filter(({ bytes }) => bytes > 0);
}

const noMemory: Selection['memory'] = [];

const nameLabel = 'metadata.name';
const namespaceLabel = 'metadata.namespace';

/** The field requirements of a request, in terms of the labels of the stored form. */
interface FieldPlan {
  readonly test: EntryFilter | undefined;
  /** The only namespace that can match; empty if there is none. */
  readonly namespace: string;
  /** Set when only one name can match. */
  readonly name: string | undefined;
  readonly isNameOnly: boolean;
}

const noFields: FieldPlan = { test: undefined, namespace: '', name: undefined, isNameOnly: false };

function fieldPlanOf(
  { info, target }: Pick<ApiCall, 'info' | 'target'>,
  requirements: readonly FieldRequirement[],
): FieldPlan {
  const plan = requirements.length === 0 ? noFields : sharedPlan(target, requirements);
  // `info.name` may come from the field selector; only a name in the path is in `info.parts`.
  if (info.parts.length < 2) return plan;
  if (requirements.length === 0) {
    return planOf([{ label: nameLabel, operator: '=', value: target.name }]);
  }
  if (plan.name !== target.name) {
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  }
  return plan;
}

interface Offering {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/** The latest plan of each parsed selector, so that equal watches of a kind share one (TRUST-4). */
const plans = new WeakMap<readonly FieldRequirement[], SharedPlan>();

/** A plan for a kind, held weakly: parsed selectors outlive a server, to which its kinds refer. */
interface SharedPlan {
  readonly def: WeakRef<ResourceDef>;
  readonly version: WeakRef<VersionDef>;
  readonly plan: FieldPlan;
}

function sharedPlan(
  { def, version }: Offering,
  requirements: readonly FieldRequirement[],
): FieldPlan {
  const last = plans.get(requirements);
  if (last?.def.deref() === def && last.version.deref() === version) return last.plan;
  const fields = requirements.map((requirement) => ({
    ...requirement,
    label: storedLabel({ def, version }, requirement.label),
  }));
  const plan = planOf(fields);
  plans.set(requirements, { def: new WeakRef(def), version: new WeakRef(version), plan });
  return plan;
}

function planOf(fields: readonly FieldRequirement[]): FieldPlan {
  const equal = (one: string) =>
    fields.find(({ label, operator }) => label === one && operator === '=')?.value;
  const name = equal(nameLabel);
  const tests = testsOf(fields);
  const [first, second] = tests;
  const test =
    second === undefined ? first : (index: EntryIndex) => tests.every((matches) => matches(index));
  const isNameOnly = name !== undefined && fields.length === 1;
  return { test, namespace: equal(namespaceLabel) ?? '', name, isNameOnly };
}

/** The index label of a label of the request's version. Throws 400 for one that is not offered. */
function storedLabel(target: Offering, label: string): string {
  const { def, version } = target;
  if (label === nameLabel) return label;
  const own = offeredLabels(def, version);
  const isPlain = own.size === 0 && def.behavior.selectableFields === 'stored';
  if (label === namespaceLabel && (isPlain || def.scope === 'Namespaced')) return label;
  const stored = own.get(label);
  if (stored !== undefined) return stored;
  throw badRequest(
    def.strategy.unknownFieldMessage?.(label, version.version) ??
      (isPlain
        ? `${JSON.stringify(label)} is not a known field selector: ` +
          `only "${nameLabel}", "${namespaceLabel}"`
        : `field label not supported: ${label}`),
  );
}

/** The kind's own labels in a version, each with the stored label. */
function offeredLabels(def: ResourceDef, version: VersionDef): ReadonlyMap<string, string> {
  const labels = def.strategy.fieldLabels;
  if (labels !== undefined && Object.hasOwn(labels, version.version)) {
    return new Map(Object.entries(labels[version.version] ?? {}));
  }
  if (def.behavior.selectableFields === 'declared') return new Map();
  return new Map(storedLabels(def.storage).map((label) => [label, label]));
}

const storedLabelsMemo = new WeakMap<StorageDef, readonly string[]>();

/** The labels of the stored form: `fieldsOf` returns all of them for any object. */
function storedLabels(storage: StorageDef): readonly string[] {
  const cached = storedLabelsMemo.get(storage);
  if (cached !== undefined) return cached;
  const { apiVersion, kind } = storage;
  const labels = Object.keys(storage.fieldsOf?.({ apiVersion, kind, metadata: {} }) ?? {});
  storedLabelsMemo.set(storage, labels);
  return labels;
}

/** One test per label and operator, each with one lookup for any number of values. */
function testsOf(fields: readonly FieldRequirement[]): EntryFilter[] {
  const byLabel = new Map<string, FieldRequirement & { readonly values: Set<string> }>();
  for (const field of fields) {
    const key = `${field.operator}${field.label}`;
    const existing = byLabel.get(key);
    if (existing === undefined) byLabel.set(key, { ...field, values: new Set([field.value]) });
    else existing.values.add(field.value);
  }
  return Array.from(byLabel.values(), fieldTest);
}

function fieldTest(
  field: FieldRequirement & { readonly values: ReadonlySet<string> },
): EntryFilter {
  const { label, operator, value, values } = field;
  if (operator === '!=' && values.size > 1) {
    return (index) => !values.has(fieldValue(index, label));
  }
  // A field has one value, so it cannot equal two.
  if (values.size > 1) return () => false;
  const isEqual = operator === '=';
  switch (label) {
    case nameLabel:
      return (index) => (index.name === value) === isEqual;
    case namespaceLabel:
      return (index) => (index.namespace === value) === isEqual;
    default:
      return (index) => (fieldValue(index, label) === value) === isEqual;
  }
}

function fieldValue({ fields, name, namespace }: EntryIndex, label: string): string {
  if (label === nameLabel) return name;
  if (label === namespaceLabel) return namespace;
  return Object.hasOwn(fields, label) ? (fields[label] ?? '') : '';
}

/**
 * Validates the options of a list, watch, or deletecollection in kube-apiserver's order: malformed
 * selectors (400), invalid combinations (422; LIST-5, WATCH-5), then fields that the kind does not
 * offer (400). Returns the selection.
 */
export function checkedSelection(call: ApiCall, options: ListOptions): Selection {
  const selectors = parseSelectors(options);
  checkCombinations(call.context, options);
  return selectionOf(call, selectors);
}

/** Throws for options that are invalid for any kind. */
export function checkListQuery(
  context: Pick<EndpointContext, 'dialect' | 'features'>,
  query: URLSearchParams,
): void {
  const options = parseListOptions(query, listsByWatch(context));
  parseSelectors(options);
  checkCombinations(context, options);
}

/** Whether the server lets a watch replace a list. */
export function listsByWatch({ features }: Pick<EndpointContext, 'features'>): ListsByWatch {
  return features.enabled('WatchList') ? 'served' : 'refused';
}

function checkCombinations(
  context: Pick<EndpointContext, 'dialect' | 'features'>,
  options: ListOptions,
): void {
  const errors = validateListOptions({
    watch: options.watch,
    resourceVersion: options.resourceVersion ?? '',
    resourceVersionMatch: options.resourceVersionMatch ?? '',
    continueToken: options.continueToken ?? '',
    sendInitialEvents: options.sendInitialEvents,
    listsByWatch: listsByWatch(context),
  });
  if (errors.length > 0) throw invalidListOptions(context.dialect.group('meta'), errors);
}
