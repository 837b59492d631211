import type { ResourceDef, StorageDef, VersionDef } from '@wheelhouse/kinds';
import {
  badRequest,
  type FieldRequirement,
  type HeldMemory,
  type LabelSelection,
  parseFieldSelector,
  parseLabelSelector,
} from '@wheelhouse/machinery';
import type { ListOptions } from '../request/options.ts';
import type { EntryFilter, EntryIndex } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';

/** Which objects of a collection a list, watch or deletecollection is about. */
export interface Selection {
  /** Absent when no selector narrows the collection. */
  readonly filter: EntryFilter | undefined;
  /** Set when only one name can match (WATCH-8); `filter` demands it as well. */
  readonly name: string | undefined;
  /** Whether the name is all that is demanded. */
  readonly isNameOnly: boolean;
  /** What the selectors take, which equal selectors share (TRUST-4). */
  readonly memory: NonNullable<HeldMemory['shared']>;
}

/** The selectors of a request, read. */
export interface Selectors {
  readonly labels: LabelSelection;
  readonly fields: readonly FieldRequirement[];
}

/** Reads a request's selectors; throws upstream's 400 for text that cannot be read. */
export function parseSelectors(options: ListOptions): Selectors {
  const labels = parseLabelSelector(options.labelSelector);
  return { labels, fields: parseFieldSelector(options.fieldSelector) };
}

/**
 * What a request's selectors select, its path's name included (API-13). Throws upstream's 400 for a
 * field that the kind does not offer in this version, and for a field selector that contradicts the
 * path.
 */
export function selectionOf(
  call: Pick<ApiCall, 'info' | 'target'>,
  { labels, fields }: Selectors,
): Selection {
  const plan = fieldPlanOf(call, fields);
  const hasLabels = labels.requirements.length > 0;
  const { test, name } = plan;
  const isNameOnly = plan.isNameOnly && !hasLabels;
  const memory = memoryOf({ labels, fields });
  if (!hasLabels) return { filter: test, name, isNameOnly, memory };
  const { matches } = labels;
  const filter = (index: EntryIndex) =>
    matches(index.labels) && (test === undefined || test(index));
  return { filter, name, isNameOnly, memory };
}

/** By measurement, bytes: of a requirement with its plan, and of a value with its place in a set. */
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

/** What the field requirements of a request demand, under the labels of the stored form. */
interface FieldPlan {
  readonly test: EntryFilter | undefined;
  /** Set when only one name can match. */
  readonly name: string | undefined;
  readonly isNameOnly: boolean;
}

const noFields: FieldPlan = { test: undefined, name: undefined, isNameOnly: false };

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
const plans = new WeakMap<readonly FieldRequirement[], Offering & { readonly plan: FieldPlan }>();

function sharedPlan(
  { def, version }: Offering,
  requirements: readonly FieldRequirement[],
): FieldPlan {
  const last = plans.get(requirements);
  if (last !== undefined && last.def === def && last.version === version) return last.plan;
  const fields = requirements.map((requirement) => ({
    ...requirement,
    label: storedLabel({ def, version }, requirement.label),
  }));
  const plan = planOf(fields);
  plans.set(requirements, { def, version, plan });
  return plan;
}

function planOf(fields: readonly FieldRequirement[]): FieldPlan {
  const name = fields.find(({ label, operator }) => label === nameLabel && operator === '=')?.value;
  const tests = testsOf(fields);
  const [first, second] = tests;
  const test =
    second === undefined ? first : (index: EntryIndex) => tests.every((one) => one(index));
  return { test, name, isNameOnly: name !== undefined && fields.length === 1 };
}

/** What a label of the request's version is called in the index; 400 for one not offered. */
function storedLabel(target: Offering, label: string): string {
  const { def, version } = target;
  if (label === nameLabel) return label;
  const own = offeredLabels(def, version);
  const isPlain = own.size === 0 && def.behavior.selectableFields === 'stored';
  if (label === namespaceLabel && (isPlain || def.scope === 'Namespaced')) return label;
  const stored = own.get(label);
  if (stored !== undefined) return stored;
  throw badRequest(
    def.strategy.unknownFieldMessage?.(label) ??
      (isPlain
        ? `${JSON.stringify(label)} is not a known field selector: ` +
          `only "${nameLabel}", "${namespaceLabel}"`
        : `field label not supported: ${label}`),
  );
}

/** The kind's own labels in a version, each with the stored one. */
function offeredLabels(def: ResourceDef, version: VersionDef): ReadonlyMap<string, string> {
  const labels = def.strategy.fieldLabels;
  if (labels !== undefined && Object.hasOwn(labels, version.version)) {
    return new Map(Object.entries(labels[version.version] ?? {}));
  }
  if (def.behavior.selectableFields === 'declared') return new Map();
  return new Map(storedLabels(def.storage).map((label) => [label, label]));
}

const storedLabelsMemo = new WeakMap<StorageDef, readonly string[]>();

/** The labels of the stored form: the reader names them all, whatever the object contains. */
function storedLabels(storage: StorageDef): readonly string[] {
  const cached = storedLabelsMemo.get(storage);
  if (cached !== undefined) return cached;
  const { apiVersion, kind } = storage;
  const labels = Object.keys(storage.fieldsOf?.({ apiVersion, kind, metadata: {} }) ?? {});
  storedLabelsMemo.set(storage, labels);
  return labels;
}

/** One test per label and operator, each with one look-up however many values it names. */
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
  const wanted = operator === '=';
  switch (label) {
    case nameLabel:
      return (index) => (index.name === value) === wanted;
    case namespaceLabel:
      return (index) => (index.namespace === value) === wanted;
    default:
      return (index) => (fieldValue(index, label) === value) === wanted;
  }
}

function fieldValue({ fields, name, namespace }: EntryIndex, label: string): string {
  if (label === nameLabel) return name;
  if (label === namespaceLabel) return namespace;
  return Object.hasOwn(fields, label) ? (fields[label] ?? '') : '';
}
