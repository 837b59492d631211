import {
  appendAll,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
  type LabelSelector,
  labelValue,
  notSupported,
  qualifiedName,
  required,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import type { PodSpec, Toleration, TopologySpreadConstraint } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps, selectorsPerStep, sortedKeys } from '../../rules/checks.ts';
import { notPositive, validateOptionalChoice } from '../fields.ts';
import type { PodRules } from '../rules.ts';

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** Validates the effect of a taint or toleration. */
export function validateEffect(effect: string, field: string): FieldError[] {
  return effects.includes(effect) ? [] : [notSupported(field, effect, effects)];
}

/** Validates the tolerations of a pod. */
export function validateTolerations(
  tolerations: readonly JsonObject[],
  path: string,
): Generator<void, FieldError[]> {
  return flatMapSteps(tolerations, (toleration, index) =>
    validateToleration(toleration, `${path}[${index}]`),
  );
}

/** Validates one toleration at `path`. */
export function validateToleration(toleration: Stored<Toleration>, path: string): FieldError[] {
  const key = toleration.key ?? '';
  const operator = toleration.operator ?? '';
  const effect = toleration.effect ?? '';
  const errors = key === '' ? [] : ruleErrors(`${path}.key`, key, qualifiedName);
  if (key === '' && operator !== 'Exists') {
    const detail =
      'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    errors.push(invalid(`${path}.operator`, operator, detail));
  }
  if (toleration.tolerationSeconds != null && effect !== 'NoExecute') {
    const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    errors.push(invalid(`${path}.effect`, effect, detail));
  }
  appendAll(errors, validateTolerated(operator, toleration.value ?? '', `${path}.operator`));
  if (effect !== '') appendAll(errors, validateEffect(effect, `${path}.effect`));
  return errors;
}

function validateTolerated(operator: string, value: string, field: string): FieldError[] {
  if (operator === '' || operator === 'Equal') {
    const messages = labelValue(value);
    return messages.length === 0 ? [] : [invalid(field, value, messages.join(';'))];
  }
  if (operator !== 'Exists') return [notSupported(field, operator, ['Equal', 'Exists'])];
  if (value === '') return [];
  return [invalid(field, value, "value must be empty when `operator` is 'Exists'")];
}

const actions = ['DoNotSchedule', 'ScheduleAnyway'];
const policies = ['Honor', 'Ignore'];

/** Validates the topology spread constraints of a pod in steps. */
export function validateSpread(
  spec: Stored<PodSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const constraints = spec.topologySpreadConstraints ?? [];
  const lastIndexes = new Map(constraints.map((constraint, index) => [pairOf(constraint), index]));
  const errorsOf = function* (
    constraint: Stored<TopologySpreadConstraint>,
    index: number,
  ): Generator<void, FieldError[]> {
    const field = `${path}[${index}]`;
    const action = constraint.whenUnsatisfiable ?? '';
    const topologyKey = constraint.topologyKey ?? '';
    const skew = constraint.maxSkew ?? 0;
    const errors: FieldError[] = [];
    if (skew <= 0) errors.push(invalid(`${field}.maxSkew`, skew, notPositive));
    if (topologyKey === '') errors.push(required(`${field}.topologyKey`, 'can not be empty'));
    if (!actions.includes(action)) {
      errors.push(notSupported(`${field}.whenUnsatisfiable`, action, actions));
    }
    const pair = pairOf(constraint);
    if (lastIndexes.get(pair) !== index) {
      errors.push(duplicate(`${field}.{topologyKey, whenUnsatisfiable}`, pair));
    }
    return [
      ...errors,
      ...validateMinDomains(constraint, `${field}.minDomains`, action),
      ...validateOptionalChoice(constraint, field, 'nodeAffinityPolicy', policies),
      ...validateOptionalChoice(constraint, field, 'nodeTaintsPolicy', policies),
      ...(yield* validateSpreadKeys(constraint, `${field}.matchLabelKeys`)),
      ...(rules.allow.spreadSelectors ? [] : validateSpreadSelector(constraint, field)),
    ];
  };
  return flatMapSteps(constraints, errorsOf, selectorsPerStep);
}

const pairOf = (constraint: Stored<TopologySpreadConstraint>) =>
  `{${constraint.topologyKey ?? ''}, ${constraint.whenUnsatisfiable ?? ''}}`;

/** Validates the selector of the pods that a spread constraint counts. */
export function validateSpreadSelector(
  constraint: Stored<TopologySpreadConstraint>,
  path: string,
): FieldError[] {
  const selector = constraint.labelSelector as LabelSelector | undefined;
  return validateLabelSelector(selector, `${path}.labelSelector`);
}

function validateMinDomains(
  constraint: Stored<TopologySpreadConstraint>,
  field: string,
  action: string,
): FieldError[] {
  const domains = constraint.minDomains;
  if (domains === undefined) return [];
  const errors = domains <= 0 ? [invalid(field, domains, notPositive)] : [];
  if (action === 'DoNotSchedule') return errors;
  const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
  return [...errors, invalid(field, domains, detail)];
}

function* validateSpreadKeys(
  constraint: Stored<TopologySpreadConstraint>,
  path: string,
): Generator<void, FieldError[]> {
  const keys = constraint.matchLabelKeys ?? [];
  if (keys.length === 0) return [];
  const selector = constraint.labelSelector;
  const selected = new Set([
    ...sortedKeys(selector?.matchLabels),
    ...(selector?.matchExpressions ?? []).map((matchExpression) => matchExpression.key ?? ''),
  ]);
  const unset = 'must not be specified when labelSelector is not set';
  const errors = selector === undefined ? [forbiddenField(path, unset)] : [];
  const ofKeys = yield* flatMapSteps(keys, (key, index) => {
    const keyErrors = ruleErrors(`${path}[${index}]`, key, qualifiedName);
    if (!selected.has(key)) return keyErrors;
    const detail = 'exists in both matchLabelKeys and labelSelector';
    return [...keyErrors, invalid(`${path}[${index}]`, key, detail)];
  });
  return [...errors, ...ofKeys];
}

/** Validates the scheduling gates of a pod in steps: valid names, each once. */
export function validateSchedulingGates(
  spec: Stored<PodSpec>,
  path: string,
): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(spec.schedulingGates ?? [], (gate, index) => {
    const name = gate.name ?? '';
    const field = `${path}[${index}]`;
    const errors = ruleErrors(field, name, qualifiedName);
    if (seen.has(name)) errors.push(duplicate(field, name));
    seen.add(name);
    return errors;
  });
}
