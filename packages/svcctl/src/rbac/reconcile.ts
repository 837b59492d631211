import { type PolicyRule, ruleEscalation, rulesOf } from '@wheelhouse/kinds';
import { isObject, type JsonObject, type JsonValue, jsonEqual } from '@wheelhouse/machinery';
import { listAt, objectAt, textAt, valueAt } from '../objects.ts';

/** What it takes to make a role or binding say what a file says. */
export interface Reconciliation {
  readonly operation: 'none' | 'create' | 'update' | 'recreate';
  /** The object to write, or the one that is there when nothing is to be. */
  readonly object: JsonObject;
  /** The object on the server wants to be left alone. */
  readonly isProtected: boolean;
  readonly missingSubjects: readonly JsonObject[];
  readonly extraSubjects: readonly JsonObject[];
  readonly missingRules: readonly PolicyRule[];
  readonly extraRules: readonly PolicyRule[];
}

interface Difference {
  readonly change: JsonObject;
  readonly missingSubjects?: readonly JsonObject[];
  readonly extraSubjects?: readonly JsonObject[];
  readonly missingRules?: readonly PolicyRule[];
  readonly extraRules?: readonly PolicyRule[];
}

const nothing = { missingSubjects: [], extraSubjects: [], missingRules: [], extraRules: [] };

/**
 * Compares a role or binding of a file with the server's, as kubectl does: rules by what they
 * grant and not by how they are written. What the file does not say stays, unless the extras of
 * that sort are to go. Labels and annotations of the file are added. Pure.
 */
export function reconcile(options: {
  readonly wanted: JsonObject;
  readonly live: JsonObject | undefined;
  /** The annotation by which an object opts out. */
  readonly optOut: string;
  readonly removeExtras: boolean;
}): Reconciliation {
  const { wanted, live, removeExtras } = options;
  if (live === undefined) {
    return {
      ...nothing,
      operation: 'create',
      object: wanted,
      isProtected: false,
      missingSubjects: listAt(wanted, 'subjects'),
      missingRules: rulesOf(wanted),
    };
  }
  const isProtected = textAt(live, 'metadata', 'annotations', options.optOut) === 'false';
  const isBinding = valueAt(wanted, 'roleRef') !== undefined;
  if (isBinding && !sameRole(wanted, live)) {
    return { ...nothing, operation: 'recreate', object: wanted, isProtected };
  }
  const compare = isBinding ? compareSubjects : compareRules;
  const { change, ...differences } = compare({ wanted, live, removeExtras });
  const object: JsonObject = { ...live, ...change, metadata: mergedMetadata(wanted, live) };
  for (const name of Object.keys(object)) if (object[name] === null) delete object[name];
  const operation = jsonEqual(object, live) ? 'none' : 'update';
  return { ...nothing, ...differences, operation, object, isProtected };
}

interface Pair {
  readonly wanted: JsonObject;
  readonly live: JsonObject;
  readonly removeExtras: boolean;
}

function sameRole(wanted: JsonObject, live: JsonObject): boolean {
  return ['kind', 'name'].every(
    (name) => textAt(wanted, 'roleRef', name) === textAt(live, 'roleRef', name),
  );
}

function mergedMetadata(wanted: JsonObject, live: JsonObject): JsonObject {
  const metadata: JsonObject = { ...objectAt(live, 'metadata') };
  for (const name of ['labels', 'annotations']) {
    const merged = { ...objectAt(wanted, 'metadata', name), ...objectAt(metadata, name) };
    if (Object.keys(merged).length > 0) metadata[name] = merged;
  }
  return metadata;
}

function compareSubjects({ wanted, live, removeExtras }: Pair): Difference {
  const present = listAt(live, 'subjects');
  const desired = listAt(wanted, 'subjects').map((one) => completed(one, live));
  const missingSubjects = without(desired, present);
  const extraSubjects = without(present, desired);
  let change: JsonObject = {};
  if (removeExtras && missingSubjects.length + extraSubjects.length > 0) {
    change = { subjects: desired };
  } else if (missingSubjects.length > 0) {
    change = { subjects: [...present, ...missingSubjects] };
  }
  return { change, missingSubjects, extraSubjects };
}

/** A subject with the group the server gives one that names none. */
function completed(subject: JsonObject, live: JsonObject): JsonObject {
  const hasGroup = subject.kind === 'User' || subject.kind === 'Group';
  if (!hasGroup || textAt(subject, 'apiGroup') !== '') return subject;
  return { ...subject, apiGroup: textAt(live, 'roleRef', 'apiGroup') };
}

function without<T extends JsonValue>(list: readonly T[], other: readonly T[]): T[] {
  return list.filter(
    (one, at) =>
      !other.some((two) => jsonEqual(one, two)) &&
      list.findIndex((two) => jsonEqual(one, two)) === at,
  );
}

function compareRules(pair: Pair): Difference {
  const { wanted, live, removeExtras } = pair;
  const bothAggregated = isObject(wanted.aggregationRule) && isObject(live.aggregationRule);
  const missingRules = ruleEscalation(rulesOf(live), rulesOf(wanted)).missing;
  // The rules of an aggregated role are its controller's.
  const extraRules = bothAggregated ? [] : ruleEscalation(rulesOf(wanted), rulesOf(live)).missing;
  const change: JsonObject = {};
  if (removeExtras && missingRules.length + extraRules.length > 0) {
    change.rules = listAt(wanted, 'rules');
  } else if (missingRules.length > 0) {
    change.rules = [...listAt(live, 'rules'), ...missingRules.map(ruleObject)];
  }
  return { change: { ...change, ...aggregationChange(pair) }, missingRules, extraRules };
}

function aggregationChange({ wanted, live, removeExtras }: Pair): JsonObject {
  const present = listAt(live, 'aggregationRule', 'clusterRoleSelectors');
  const desired = listAt(wanted, 'aggregationRule', 'clusterRoleSelectors');
  const missing = without(desired, present);
  const extra = without(present, desired);
  // A null is taken away from the object that is written.
  if (wanted.aggregationRule === undefined) {
    return live.aggregationRule === undefined ? {} : { aggregationRule: null };
  }
  if (removeExtras && missing.length + extra.length > 0) {
    return { aggregationRule: wanted.aggregationRule };
  }
  return missing.length === 0
    ? {}
    : { aggregationRule: { clusterRoleSelectors: [...present, ...missing] } };
}

function ruleObject(rule: PolicyRule): JsonObject {
  const lists = Object.entries(rule).filter(([, values]) => values.length > 0);
  return Object.fromEntries(lists.map(([name, values]) => [name, [...values]]));
}
