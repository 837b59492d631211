import {
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  joined,
  type LabelSelector,
  labelValue,
  qualifiedName,
  required,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type {
  NodeAffinity,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  PodAntiAffinity,
  PodSpec,
} from '../../gen/types/core/v1.ts';
import type { LabelSelector as LabelSelectorType } from '../../gen/types/meta/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps, selectorsPerStep, someSteps, sortedKeys } from '../../rules/checks.ts';
import { objectAt, objectsAt } from '../../rules/fill.ts';
import { intAt, textsAt } from '../fields.ts';
import type { PodRules } from '../rules.ts';

/** The member with the terms that a node must satisfy. */
export const requiredTerms = 'requiredDuringSchedulingIgnoredDuringExecution';
/** The member with the terms that count for the choice among nodes. */
export const preferredTerms = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Validates node affinity, pod affinity, and pod anti-affinity, in steps (TRUST-2). */
export function* affinityErrorSteps(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const affinity = spec.affinity;
  if (affinity === undefined) return [];
  return joined<FieldError>(
    yield* validateNodeAffinity(affinity.nodeAffinity, `${path}.nodeAffinity`),
    yield* validatePodAffinity(affinity.podAffinity, `${path}.podAffinity`, rules),
    yield* validatePodAffinity(affinity.podAntiAffinity, `${path}.podAntiAffinity`, rules),
  );
}

function* validateNodeAffinity(
  affinity: Stored<NodeAffinity> | undefined,
  path: string,
): Generator<void, FieldError[]> {
  if (affinity === undefined) return [];
  const selector = objectAt(affinity, requiredTerms);
  return joined<FieldError>(
    selector === undefined
      ? []
      : yield* nodeSelectorErrorSteps(selector, `${path}.${requiredTerms}`),
    yield* flatMapSteps(objectsAt(affinity, preferredTerms), function* (term, index) {
      const field = `${path}.${preferredTerms}[${index}]`;
      const preference = objectAt(term, 'preference') ?? {};
      return [
        ...validateWeight(term, field),
        ...(yield* validateNodeTerm(preference, `${field}.preference`)),
      ];
    }),
  );
}

function validateWeight(term: JsonObject, path: string): FieldError[] {
  const weight = intAt(term, 'weight') ?? 0;
  if (weight > 0 && weight <= 100) return [];
  return [invalid(`${path}.weight`, weight, 'must be in the range 1-100')];
}

/**
 * Validates a node selector in steps (TRUST-2): at least one term, and each term valid.
 *
 * @param checked `label-values` if values must be possible values of a label. Those of pods and
 * volumes need not be.
 */
export function* nodeSelectorErrorSteps(
  selector: Stored<NodeSelector>,
  path: string,
  checked: 'keys' | 'label-values' = 'keys',
): Generator<void, FieldError[]> {
  const terms = selector.nodeSelectorTerms ?? [];
  const field = `${path}.nodeSelectorTerms`;
  if (terms.length === 0) return [required(field, 'must have at least one node selector term')];
  return yield* flatMapSteps(terms, (term, index) =>
    validateNodeTerm(term, `${field}[${index}]`, checked),
  );
}

function* validateNodeTerm(
  term: Stored<NodeSelectorTerm>,
  path: string,
  checked: 'keys' | 'label-values' = 'keys',
): Generator<void, FieldError[]> {
  return joined<FieldError>(
    yield* flatMapSteps(term.matchExpressions ?? [], (expression, index) => {
      const at = `${path}.matchExpressions[${index}]`;
      const errors = validateNodeExpression(expression, at);
      return checked === 'keys' ? errors : withLabelValueErrors(expression, at, errors);
    }),
    yield* flatMapSteps(term.matchFields ?? [], (field, index) =>
      validateNodeField(field, `${path}.matchFields[${index}]`),
    ),
  );
}

function validateNodeExpression(
  expression: Stored<NodeSelectorRequirement>,
  path: string,
): FieldError[] {
  const operator = expression.operator ?? '';
  const count = (expression.values ?? []).length;
  const field = `${path}.values`;
  const errors: FieldError[] = [];
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (count > 0) break;
      errors.push(required(field, "must be specified when `operator` is 'In' or 'NotIn'"));
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (count === 0) break;
      errors.push(
        forbiddenField(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
      break;
    case 'Gt':
    case 'Lt':
      if (count === 1) break;
      errors.push(
        required(field, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
      );
      break;
    default:
      errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  }
  return [...errors, ...ruleErrors(`${path}.key`, expression.key ?? '', qualifiedName)];
}

function* withLabelValueErrors(
  { values = [] }: Stored<NodeSelectorRequirement>,
  path: string,
  errors: FieldError[],
): Generator<void, FieldError[]> {
  const wrong = yield* flatMapSteps(values, (value, index) =>
    ruleErrors(`${path}.values[${index}]`, value, labelValue),
  );
  return [...errors, ...wrong];
}

/** The name is the only field of a node that can be selected. */
function* validateNodeField(
  requirement: Stored<NodeSelectorRequirement>,
  path: string,
): Generator<void, FieldError[]> {
  const operator = requirement.operator ?? '';
  const values = requirement.values ?? [];
  const key = requirement.key ?? '';
  const errors: FieldError[] = [];
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  } else if (values.length !== 1) {
    const detail =
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(required(`${path}.values`, detail));
  }
  if (key !== 'metadata.name') {
    return [...errors, invalid(`${path}.key`, key, 'not a valid field selector key')];
  }
  const wrong = yield* flatMapSteps(values, (value, index) =>
    ruleErrors(`${path}.values[${index}]`, value, dnsSubdomain),
  );
  return [...errors, ...wrong];
}

function* validatePodAffinity(
  affinity: Stored<PodAffinity | PodAntiAffinity> | undefined,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  if (affinity === undefined) return [];
  return joined<FieldError>(
    yield* flatMapSteps(
      objectsAt(affinity, requiredTerms),
      (term, index) => validatePodTerm(term, `${path}.${requiredTerms}[${index}]`, rules),
      selectorsPerStep,
    ),
    yield* flatMapSteps(
      objectsAt(affinity, preferredTerms),
      function* (weighted, index) {
        const field = `${path}.${preferredTerms}[${index}]`;
        const term = objectAt(weighted, 'podAffinityTerm') ?? {};
        return [
          ...validateWeight(weighted, field),
          ...(yield* validatePodTerm(term, `${field}.podAffinityTerm`, rules)),
        ];
      },
      selectorsPerStep,
    ),
  );
}

function* validatePodTerm(
  term: Stored<PodAffinityTerm>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const topologyKey = term.topologyKey ?? '';
  const field = `${path}.topologyKey`;
  return joined<FieldError>(
    selectorNames.flatMap((name) => validateSelector(term[name], `${path}.${name}`, rules)),
    yield* flatMapSteps(term.namespaces ?? [], (name) =>
      ruleErrors(`${path}.namespace`, name, dnsLabel),
    ),
    yield* validateLabelKeys(term, path),
    topologyKey === '' ? [required(field, 'can not be empty')] : [],
    ruleErrors(field, topologyKey, qualifiedName),
  );
}

/** Validates a selector, except its label values if the old object has invalid ones. */
function validateSelector(
  selector: Stored<LabelSelectorType> | undefined,
  path: string,
  rules: PodRules,
): FieldError[] {
  const errors = validateLabelSelector(selector as LabelSelector | undefined, path);
  return rules.allow.affinityLabelValues ? errors.filter((error) => !isOfValue(error)) : errors;
}

const isOfValue = ({ field }: FieldError) => /\.matchExpressions\[\d+\]\.values\[/.test(field);

const selectorNames = ['labelSelector', 'namespaceSelector'] as const;

/** Whether a selector in the pod affinity of a spec has an invalid label value, in steps. */
export const hasWrongLabelValues = (spec: Stored<PodSpec>): Generator<void, boolean> =>
  someSteps(
    podTerms(spec),
    (term) =>
      selectorNames.some((name) => validateLabelSelector(objectAt(term, name), '').some(isOfValue)),
    { perStep: selectorsPerStep },
  );

/** The terms of pod affinity and anti-affinity. */
const podTerms = (spec: Stored<PodSpec>): JsonObject[] =>
  (['podAffinity', 'podAntiAffinity'] as const).flatMap((name) => {
    const affinity = spec.affinity?.[name];
    const weighted = objectsAt(affinity, preferredTerms).map(
      (weightedTerm) => objectAt(weightedTerm, 'podAffinityTerm') ?? {},
    );
    return [...weighted, ...objectsAt(affinity, requiredTerms)];
  });

function* validateLabelKeys(
  term: Stored<PodAffinityTerm>,
  path: string,
): Generator<void, FieldError[]> {
  const selector = term.labelSelector;
  const match = term.matchLabelKeys ?? [];
  const mismatch = term.mismatchLabelKeys ?? [];
  if (match.length === 0 && mismatch.length === 0) return [];
  const errors = [
    ...(yield* validateKeys(match, `${path}.matchLabelKeys`, selector)),
    ...(yield* validateKeys(mismatch, `${path}.mismatchLabelKeys`, selector)),
    ...duplicateKeys(match, selector, path),
  ];
  const both = 'exists in both matchLabelKeys and mismatchLabelKeys';
  const mismatched = new Set(mismatch);
  match.forEach((key, index) => {
    if (!mismatched.has(key)) return;
    errors.push(invalid(`${path}.matchLabelKeys[${index}]`, key, both));
  });
  return errors;
}

function* validateKeys(
  keys: readonly string[],
  path: string,
  selector: Stored<LabelSelectorType> | undefined,
): Generator<void, FieldError[]> {
  if (keys.length === 0) return [];
  if (selector === undefined) {
    return [forbiddenField(path, 'must not be specified when labelSelector is not set')];
  }
  return yield* flatMapSteps(keys, (key, index) =>
    ruleErrors(`${path}[${index}]`, key, qualifiedName),
  );
}

/**
 * Rejects keys that both `matchLabelKeys` and the selector contain: the server adds each of the
 * former to the selector.
 */
function duplicateKeys(
  match: readonly string[],
  selector: Stored<LabelSelectorType> | undefined,
  path: string,
): FieldError[] {
  const seen = new Set(sortedKeys(selector?.matchLabels));
  const lastIndexes = new Map(match.map((key, index) => [key, index]));
  return (selector?.matchExpressions ?? []).flatMap((expression) => {
    const key = expression.key ?? '';
    const index = seen.has(key) ? lastIndexes.get(key) : undefined;
    seen.add(key);
    if (index === undefined) return [];
    const field = `${path}[${index}]`;
    return [invalid(field, key, 'exists in both matchLabelKeys and labelSelector')];
  });
}

/** Adds to the selector of each term the requirements that its label keys imply for `labels`. */
export function mergeLabelKeys(spec: Stored<PodSpec>, labels: JsonObject): void {
  for (const term of podTerms(spec)) {
    const selector = objectAt(term, 'labelSelector');
    if (selector === undefined) continue;
    const added = [
      ...keyExpressions(textsAt(term, 'matchLabelKeys'), 'In', labels),
      ...keyExpressions(textsAt(term, 'mismatchLabelKeys'), 'NotIn', labels),
    ];
    if (added.length === 0) continue;
    selector['matchExpressions'] = [...objectsAt(selector, 'matchExpressions'), ...added];
  }
}

const keyExpressions = (keys: readonly string[], operator: string, labels: JsonObject) =>
  keys
    .filter((key) => Object.hasOwn(labels, key))
    .map((key) => ({ key, operator, values: [textAt(labels, key)] }));
