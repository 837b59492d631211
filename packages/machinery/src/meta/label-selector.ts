import { parseInt64 } from '../base/numbers.ts';
import { type FieldError, forbiddenField, invalid, required, tooMany } from './field-error.ts';
import { labelValue, qualifiedName, ruleErrors } from './names.ts';

/** The labels of an object. Values that are not strings never match. */
type LabelSet = Readonly<Record<string, string>>;

/** The operator of a condition on a label. */
export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/**
 * A condition on one label. `values` is sorted, has no duplicates, and is valid for the operator.
 */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values: readonly string[];
}

type Matcher = (labels: LabelSet) => boolean;

/** Maximum number of requirements for which testing each one is faster than a plan. */
const plainMax = 4;

/**
 * Returns a predicate that requires all of `requirements`. It takes one lookup per label of the
 * object or per requirement, whichever are fewer, and none per value (TRUST-2, TRUST-4).
 */
export function labelMatcher(requirements: readonly LabelRequirement[]): Matcher {
  if (requirements.length > plainMax) return plannedMatcher(requirements);
  const predicates = requirements.map(predicateOf);
  const [first, second] = predicates;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  return (labels) => predicates.every((predicate) => predicate(labels));
}

/** All requirements of a selector on one key. */
interface KeyPlan {
  isRequired: boolean;
  isForbidden: boolean;
  /** Allowed values; undefined for any. */
  allowed: ReadonlySet<string> | undefined;
  excluded: Set<string> | undefined;
  above: bigint | undefined;
  below: bigint | undefined;
}

function plannedMatcher(requirements: readonly LabelRequirement[]): Matcher {
  const plans = new Map<string, KeyPlan>();
  for (const requirement of requirements) {
    let plan = plans.get(requirement.key);
    if (plan === undefined) {
      plan = emptyPlan();
      plans.set(requirement.key, plan);
    }
    addTo(plan, requirement);
  }
  const required = [...plans].filter(([, plan]) => plan.isRequired).map(([key]) => key);
  return (labels) => {
    // Fails at the first missing key, so it checks at most one key more than the object has.
    for (const key of required) if (!Object.hasOwn(labels, key)) return false;
    for (const key of Object.keys(labels)) {
      const plan = plans.get(key);
      if (plan !== undefined && !satisfies(plan, labels[key] ?? '')) return false;
    }
    return true;
  };
}

function emptyPlan(): KeyPlan {
  return {
    isRequired: false,
    isForbidden: false,
    allowed: undefined,
    excluded: undefined,
    above: undefined,
    below: undefined,
  };
}

function addTo(plan: KeyPlan, { operator, values }: LabelRequirement): void {
  const [value = ''] = values;
  switch (operator) {
    case '!=':
    case 'notin':
      plan.excluded ??= new Set();
      for (const excludedValue of values) plan.excluded.add(excludedValue);
      return;
    case '!':
      plan.isForbidden = true;
      return;
    case '=':
    case '==':
    case 'in': {
      const before = plan.allowed;
      const own = operator === 'in' ? values : [value];
      plan.allowed = new Set(
        before === undefined ? own : own.filter((allowedValue) => before.has(allowedValue)),
      );
      break;
    }
    case 'gt':
    case 'lt':
      addBound(plan, operator, int64In(value));
      break;
    case 'exists':
      break;
  }
  plan.isRequired = true;
}

function addBound(plan: KeyPlan, operator: 'gt' | 'lt', bound: bigint | undefined): void {
  if (bound === undefined) plan.allowed = new Set();
  else if (operator === 'gt') {
    if (plan.above === undefined || bound > plan.above) plan.above = bound;
  } else if (plan.below === undefined || bound < plan.below) plan.below = bound;
}

function satisfies(plan: KeyPlan, value: string): boolean {
  const { isForbidden, allowed, excluded, above, below } = plan;
  if (isForbidden || allowed?.has(value) === false || excluded?.has(value) === true) return false;
  if (above === undefined && below === undefined) return true;
  const actual = int64In(value);
  if (actual === undefined) return false;
  return (above === undefined || actual > above) && (below === undefined || actual < below);
}

function predicateOf(requirement: LabelRequirement): Matcher {
  const { key, values } = requirement;
  const [value = ''] = values;
  const has = (labels: LabelSet) => Object.hasOwn(labels, key);
  switch (requirement.operator) {
    case '=':
    case '==':
      return (labels) => has(labels) && labels[key] === value;
    case '!=':
      return (labels) => !has(labels) || labels[key] !== value;
    case 'in': {
      const allowed = new Set(values);
      return (labels) => has(labels) && allowed.has(labels[key] ?? '');
    }
    case 'notin': {
      const excluded = new Set(values);
      return (labels) => !has(labels) || !excluded.has(labels[key] ?? '');
    }
    case 'exists':
      return has;
    case '!':
      return (labels) => !has(labels);
    case 'gt':
    case 'lt':
      return comparison(requirement, value);
  }
}

function comparison({ key, operator }: LabelRequirement, value: string): Matcher {
  const bound = int64In(value);
  return (labels) => {
    const actual = Object.hasOwn(labels, key) ? int64In(labels[key] ?? '') : undefined;
    if (actual === undefined || bound === undefined) return false;
    return operator === 'gt' ? actual > bound : actual < bound;
  };
}

/** The 64-bit integer that a text spells in decimal; undefined if it spells none. */
export function int64In(text: string): bigint | undefined {
  const value = parseInt64(text);
  return typeof value === 'string' ? undefined : value;
}

/** A compiled label selector. `matches` takes undefined for an object without labels. */
export interface LabelSelection {
  /** Sorted by key; empty if the selector selects everything. */
  readonly requirements: readonly LabelRequirement[];
  readonly matches: (labels: LabelSet | undefined) => boolean;
}

/** Maximum number of keys and values, or of field terms, in one selector (TRUST-4). */
export const selectorTermsMax = 1000;

/** Returns the selection that requires all of `requirements`. */
export function selectionOf(requirements: readonly LabelRequirement[]): LabelSelection {
  const matcher = labelMatcher(requirements);
  return { requirements, matches: (labels = noLabels) => matcher(labels) };
}

const noLabels: LabelSet = {};

/** The label selector in objects (`meta.v1.LabelSelector`). */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelSelectorRequirement[] | undefined;
}

interface LabelSelectorRequirement {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly values?: readonly string[] | undefined;
}

/**
 * Validates a selector at `path`. An absent one is valid; one with more than `selectorTermsMax`
 * terms is not.
 */
export function validateLabelSelector(
  selector: LabelSelector | undefined,
  path: string,
): FieldError[] {
  if (selector === undefined || selector === null) return [];
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const terms = termsOf(selector);
  if (terms > selectorTermsMax) return [tooMany(path, terms, selectorTermsMax)];
  return [
    ...Object.keys(matchLabels)
      .sort()
      .flatMap((key) => [
        ...ruleErrors(`${path}.matchLabels`, key, qualifiedName),
        ...ruleErrors(`${path}.matchLabels`, matchLabels[key] ?? '', labelValue),
      ]),
    ...matchExpressions.flatMap((requirement, index) =>
      validateRequirement(requirement, `${path}.matchExpressions[${index}]`),
    ),
  ];
}

/** Number of requirements and their values, counted as in the selectors of queries. */
function termsOf({ matchLabels, matchExpressions }: LabelSelector): number {
  let terms = Object.keys(matchLabels ?? {}).length;
  for (const { values } of matchExpressions ?? []) terms += 1 + (values?.length ?? 0);
  return terms;
}

function validateRequirement(requirement: LabelSelectorRequirement, path: string): FieldError[] {
  const { key, operator, values = [] } = requirement;
  const errors: FieldError[] = [];
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        const detail = "must be specified when `operator` is 'In' or 'NotIn'";
        errors.push(required(`${path}.values`, detail));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        errors.push(forbiddenField(`${path}.values`, detail));
      }
      break;
    default:
      errors.push(invalid(`${path}.operator`, operator ?? '', 'not a valid selector operator'));
  }
  return [
    ...errors,
    ...ruleErrors(`${path}.key`, key ?? '', qualifiedName),
    ...values.flatMap((value, index) => ruleErrors(`${path}.values[${index}]`, value, labelValue)),
  ];
}

/** Whether a selector has neither labels nor expressions, so that it selects all objects. */
export function isEmptySelector(selector: LabelSelector | undefined): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  if (matchExpressions.length > 0) return false;
  // Listing the names of many labels takes longer.
  for (const name in matchLabels) if (Object.hasOwn(matchLabels, name)) return false;
  return true;
}

const operators: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/**
 * Compiles a valid selector. An empty one selects all objects. The meaning of an absent one differs
 * between fields, so callers handle it.
 */
export function compileLabelSelector(selector: LabelSelector): LabelSelection {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return selectionOf([
    ...Object.entries(matchLabels).map(([key, value]) => ({
      key,
      operator: '=' as const,
      values: [value],
    })),
    ...matchExpressions.flatMap(({ key = '', operator = '', values = [] }) => {
      const selectionOperator = Object.hasOwn(operators, operator)
        ? operators[operator]
        : undefined;
      return selectionOperator === undefined ? [] : [{ key, operator: selectionOperator, values }];
    }),
  ]);
}

/** Whether an object's labels match; an absent selector selects all objects. */
export function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  return compileLabelSelector(selector ?? {}).matches(labels);
}
