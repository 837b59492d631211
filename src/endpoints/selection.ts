import type { ResourceDef, StorageDef, VersionDef } from '../catalogue/resource-def.ts';
import {
  type FieldRequirement,
  type LabelSelection,
  parseFieldSelector,
  parseLabelSelector,
} from '../meta/selectors.ts';
import { badRequest } from '../meta/status.ts';
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
export function selectionOf(call: ApiCall, { labels, fields: given }: Selectors): Selection {
  const fields = fieldsOf(call, given);
  const name = fields.find(({ label, operator }) => label === nameLabel && operator === '=')?.value;
  const hasLabels = labels.requirements.length > 0;
  if (!hasLabels && fields.length === 0) {
    return { filter: undefined, name: undefined, isNameOnly: false };
  }
  const tests = fields.map(fieldTest);
  const [first] = tests;
  const isNameOnly = name !== undefined && fields.length === 1 && !hasLabels;
  if (!hasLabels && tests.length === 1) return { filter: first, name, isNameOnly };
  const filter = (index: EntryIndex) =>
    labels.matches(index.labels) && tests.every((test) => test(index));
  return { filter, name, isNameOnly };
}

const nameLabel = 'metadata.name';
const namespaceLabel = 'metadata.namespace';

/** Field requirements under the labels of the stored form. */
function fieldsOf(call: ApiCall, given: readonly FieldRequirement[]): readonly FieldRequirement[] {
  const { info, target } = call;
  const fields = given.map((requirement) => ({
    ...requirement,
    label: storedLabel(target, requirement.label),
  }));
  // A name from the field selector stands in `info.name` too: only the path has it in its parts.
  if (info.parts.length < 2) return fields;
  const chosen = fields.find(({ label, operator }) => label === nameLabel && operator === '=');
  if (fields.length > 0 && chosen?.value !== target.name) {
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  }
  return fields.length > 0 ? fields : [{ label: nameLabel, operator: '=', value: target.name }];
}

/** What a label of the request's version is called in the index; 400 for one not offered. */
function storedLabel(target: { def: ResourceDef; version: VersionDef }, label: string): string {
  const { def, version } = target;
  if (label === nameLabel) return label;
  const own = offeredLabels(def, version);
  const isPlain = own.size === 0 && def.custom === undefined;
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
  if (def.custom !== undefined) return new Map();
  return new Map(storedLabels(def.storage).map((label) => [label, label]));
}

const storedLabelsMemo = new WeakMap<StorageDef, readonly string[]>();

/** The labels of the stored form: the reader names them all, whatever the object holds. */
function storedLabels(storage: StorageDef): readonly string[] {
  const known = storedLabelsMemo.get(storage);
  if (known !== undefined) return known;
  const { apiVersion, kind } = storage;
  const labels = Object.keys(storage.fieldsOf?.({ apiVersion, kind, metadata: {} }) ?? {});
  storedLabelsMemo.set(storage, labels);
  return labels;
}

function fieldTest({ label, operator, value }: FieldRequirement): EntryFilter {
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

function fieldValue({ fields }: EntryIndex, label: string): string {
  return Object.hasOwn(fields, label) ? (fields[label] as string) : '';
}
