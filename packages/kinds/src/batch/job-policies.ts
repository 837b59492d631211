import {
  appendAll,
  duplicate,
  type FieldError,
  goItems,
  invalid,
  invalidGo,
  itemAt,
  notSupported,
  parseInt64,
  qualifiedName,
  required,
  ruleErrors,
  seenBefore,
  tooLong,
  tooMany,
} from '@wheelhouse/machinery';
import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyOnPodConditionsPattern,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from '../gen/types/batch/v1.ts';
import { invalidUnshown, validateNonNegative } from '../pod/fields.ts';
import type { Stored } from '../resource-def.ts';
import { conditionStatuses, flatMapSteps } from '../rules/checks.ts';

/** Counts the indexes in a list such as `1,3-5,7`; `problem` is the error in an invalid list. */
export function countIndexes(
  list: string,
  completions: number,
): { readonly total: number; readonly problem?: string } {
  if (list === '') return { total: 0 };
  let last: number | undefined;
  let total = 0;
  for (const text of list.split(',')) {
    const interval = intervalOf(text, completions);
    if (typeof interval === 'string') return { total: 0, problem: interval };
    const { from, to } = interval;
    if (last !== undefined && last >= from) {
      return { total: 0, problem: `non-increasing order, previous: ${last}, current: ${from}` };
    }
    total += to - from + 1;
    last = to;
  }
  return { total };
}

interface Interval {
  readonly from: number;
  readonly to: number;
}

/** Parses `3` or `3-5`; returns kube-apiserver's error for other texts. */
function intervalOf(text: string, completions: number): Interval | string {
  const limits = text.split('-');
  if (limits.length > 2) {
    const shown = JSON.stringify(text);
    return `the fragment ${shown} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  for (const limit of limits) {
    const shown = JSON.stringify(limit);
    if (typeof parseInt64(limit) === 'string')
      return `cannot convert string to integer for index: ${shown}`;
    if (Number(limit) >= completions) return `too large index: ${shown}`;
  }
  const [from = 0, to = from] = limits.map(Number);
  if (limits.length === 2 && from >= to) {
    return `non-increasing order, previous: ${from}, current: ${to}`;
  }
  return { from, to };
}

/** The first index that both lists contain, ignoring invalid parts; undefined if there is none. */
export function firstShared(
  completed: string,
  failed: string,
  completions: number,
): number | undefined {
  if (completed === '' || failed === '') return undefined;
  const [left, right] = [completed, failed].map((list) =>
    list
      .split(',')
      .map((text) => intervalOf(text, completions))
      .filter((interval) => typeof interval !== 'string'),
  ) as [Interval[], Interval[]];
  let [leftIndex, rightIndex] = [0, 0];
  while (leftIndex < left.length && rightIndex < right.length) {
    const [a, b] = [itemAt(left, leftIndex), itemAt(right, rightIndex)];
    if (a.from <= b.to && b.from <= a.to) return Math.max(a.from, b.from);
    if (a.from <= b.from) leftIndex += 1;
    else rightIndex += 1;
  }
  return undefined;
}

const rulesMax = 20;

/** Validates the rules for failed pods. */
export function* validateFailurePolicy(
  spec: Stored<JobSpec>,
  path: string,
): Generator<void, FieldError[]> {
  const policy = spec.podFailurePolicy;
  if (policy === undefined) return [];
  const rules = policy.rules ?? [];
  const names = new Set(
    (['containers', 'initContainers'] as const).flatMap((member) =>
      (spec.template?.spec?.[member] ?? []).map((container) => container.name ?? ''),
    ),
  );
  const errors = rules.length > rulesMax ? [tooMany(`${path}.rules`, rules.length, rulesMax)] : [];
  return [
    ...errors,
    ...(yield* flatMapSteps(rules, (rule, index) =>
      validateFailureRule(rule, `${path}.rules[${index}]`, { spec, names }),
    )),
  ];
}

function* validateFailureRule(
  rule: Stored<PodFailurePolicyRule>,
  path: string,
  of: { spec: Stored<JobSpec>; names: ReadonlySet<string> },
): Generator<void, FieldError[]> {
  const codes = rule.onExitCodes;
  const patterns = rule.onPodConditions ?? [];
  const errors = validateAction(rule.action ?? '', `${path}.action`, of.spec);
  if (codes !== undefined) {
    appendAll(errors, yield* validateExitCodes(codes, `${path}.onExitCodes`, of.names));
  }
  appendAll(errors, yield* validatePatterns(patterns, `${path}.onPodConditions`));
  const hasPatterns = patterns.length > 0;
  if (codes !== undefined && hasPatterns) {
    const detail = 'specifying both OnExitCodes and OnPodConditions is not supported';
    errors.push(invalidUnshown(path, detail));
  }
  if (codes === undefined && !hasPatterns) {
    const detail = 'specifying one of OnExitCodes and OnPodConditions is required';
    errors.push(invalidUnshown(path, detail));
  }
  return errors;
}

const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore'];

function validateAction(action: string, field: string, spec: Stored<JobSpec>): FieldError[] {
  if (action === '') return [required(field, validValues(actions))];
  if (!actions.includes(action)) return [notSupported(field, action, actions)];
  if (action !== 'FailIndex' || spec.backoffLimitPerIndex !== undefined) return [];
  return [invalid(field, action, 'requires the backoffLimitPerIndex to be set')];
}

const validValues = (values: readonly string[]) =>
  `valid values: [${values.map((value) => JSON.stringify(value)).join(' ')}]`;

const operators = ['In', 'NotIn'];

function* validateExitCodes(
  codes: Stored<PodFailurePolicyOnExitCodesRequirement>,
  path: string,
  names: ReadonlySet<string>,
): Generator<void, FieldError[]> {
  const operator = codes.operator ?? '';
  const container = codes.containerName;
  const field = `${path}.operator`;
  const errors: FieldError[] = [];
  if (operator === '') errors.push(required(field, validValues(operators)));
  else if (!operators.includes(operator)) errors.push(notSupported(field, operator, operators));
  if (container !== undefined && !names.has(container)) {
    const detail = 'must be one of the container or initContainer names in the pod template';
    errors.push(invalid(`${path}.containerName`, container, detail));
  }
  const values = (codes.values ?? []).map(Number);
  const place = `${path}.values`;
  if (!Array.isArray(codes.values)) {
    return [...errors, invalidGo(place, () => '[]int32(nil)', 'at least one value is required')];
  }
  return [...errors, ...(yield* validateValues(values, place, operator))];
}

const exitCodesMax = 255;

function* validateValues(
  values: readonly number[],
  path: string,
  operator: string,
): Generator<void, FieldError[]> {
  const shown = () => `[]int32{${goItems(values, String)}}`;
  const errors: FieldError[] = [];
  if (values.length === 0) errors.push(invalidGo(path, shown, 'at least one value is required'));
  else if (values.length > exitCodesMax) errors.push(tooMany(path, values.length, exitCodesMax));
  const isRepeated = seenBefore();
  const ofEach = yield* flatMapSteps(values, (value, index) => {
    const field = `${path}[${index}]`;
    return [
      ...(operator === 'In' && value === 0
        ? [invalid(field, value, 'must not be 0 for the In operator')]
        : []),
      ...(isRepeated(value) ? [duplicate(field, value)] : []),
    ];
  });
  appendAll(errors, ofEach);
  const isOrdered = values.every((value, index) => value >= (values[index - 1] ?? value));
  return isOrdered ? errors : [...errors, invalidGo(path, shown, 'must be ordered')];
}

const patternsMax = 20;

function* validatePatterns(
  patterns: readonly Stored<PodFailurePolicyOnPodConditionsPattern>[],
  path: string,
): Generator<void, FieldError[]> {
  const errors = patterns.length > patternsMax ? [tooMany(path, patterns.length, patternsMax)] : [];
  const ofEach = yield* flatMapSteps(patterns, (pattern, index) =>
    validatePattern(pattern, `${path}[${index}]`),
  );
  return [...errors, ...ofEach];
}

function validatePattern(
  pattern: Stored<PodFailurePolicyOnPodConditionsPattern>,
  path: string,
): FieldError[] {
  const status = pattern.status ?? '';
  const errors = ruleErrors(`${path}.type`, pattern.type ?? '', qualifiedName);
  if (status === '') return [...errors, required(`${path}.status`, validValues(conditionStatuses))];
  if (conditionStatuses.includes(status)) return errors;
  return [...errors, notSupported(`${path}.status`, status, conditionStatuses)];
}

/** Validates the rules by which a Job succeeds before all its pods have succeeded. */
export function* validateSuccessPolicy(
  spec: Stored<JobSpec>,
  path: string,
): Generator<void, FieldError[]> {
  const policy = spec.successPolicy;
  if (policy === undefined) return [];
  if ((spec.completionMode ?? '') !== 'Indexed') {
    return [invalid(path, policy, 'requires indexed completion mode')];
  }
  const rules = policy.rules ?? [];
  const field = `${path}.rules`;
  const errors: FieldError[] = [];
  if (rules.length === 0) {
    const detail = 'at least one rules must be specified when the successPolicy is specified';
    errors.push(required(field, detail));
  }
  if (rules.length > rulesMax) errors.push(tooMany(field, rules.length, rulesMax));
  // An indexed Job without completions has an error of its own.
  const completions = spec.completions ?? 0;
  return [
    ...errors,
    ...(yield* flatMapSteps(rules, (rule, index) =>
      validateSuccessRule(rule, `${field}[${index}]`, completions),
    )),
  ];
}

const indexesLengthMax = 64 * 1024;

function validateSuccessRule(
  rule: Stored<SuccessPolicyRule>,
  path: string,
  completions: number,
): FieldError[] {
  const indexes = rule.succeededIndexes;
  const count = rule.succeededCount;
  const errors: FieldError[] = [];
  if (indexes === undefined && count === undefined) {
    const detail = 'at least one of succeededCount or succeededIndexes must be specified';
    errors.push(required(path, detail));
  }
  const { total, problem } = countIndexes(indexes ?? '', completions);
  if (indexes !== undefined && indexes.length > indexesLengthMax) {
    errors.push(tooLong(`${path}.succeededIndexes`, indexesLengthMax));
  }
  if (problem !== undefined && indexes !== undefined) {
    const detail = `error parsing succeededIndexes: ${problem}`;
    errors.push(invalid(`${path}.succeededIndexes`, indexes, detail));
  }
  if (count === undefined) return errors;
  const field = `${path}.succeededCount`;
  appendAll(errors, validateNonNegative(rule, path, 'succeededCount'));
  const over = (max: number, of: string) => {
    if (count > max)
      errors.push(invalid(field, count, `must be less than or equal to ${max} (${of})`));
  };
  over(completions, 'the number of specified completions');
  if (indexes !== undefined) {
    over(total, 'the number of indexes in the specified succeededIndexes field');
  }
  return errors;
}
