import type { JsonObject } from '../../base/json.ts';
import { type FieldError, forbiddenField, notSupported, required } from '../../meta/field-error.ts';
import {
  isEmptySelector,
  type LabelSelector,
  selects,
  validateLabelSelector,
} from '../../meta/label-selector.ts';
import { breaks, labelValue, qualifiedName } from '../../meta/names.ts';
import { at, textAt } from '../cells.ts';
import { invalidGo, sameOrEmpty, sortedKeys } from '../checks.ts';
import { ensure, objectAt, objectsAt } from '../fill.ts';
import { validatePodSpec } from './validate.ts';

/** A map of strings as Go prints it. */
export function goStringMap(map: JsonObject | undefined): string {
  if (map === undefined) return 'map[string]string(nil)';
  const members = sortedKeys(map).map(
    (key) => `${JSON.stringify(key)}:${JSON.stringify(map[key])}`,
  );
  return `map[string]string{${members.join(', ')}}`;
}

/** A label selector as Go prints it. */
export function goSelector(selector: JsonObject | undefined): string {
  const labels = goStringMap(objectAt(selector, 'matchLabels'));
  const expressions = objectsAt(selector, 'matchExpressions').map((one) => {
    const values = one['values'];
    const list = Array.isArray(values)
      ? `[]string{${values.map((value) => JSON.stringify(value)).join(', ')}}`
      : '[]string(nil)';
    const key = JSON.stringify(textAt(one, 'key'));
    return `v1.LabelSelectorRequirement{Key:${key}, Operator:${JSON.stringify(textAt(one, 'operator'))}, Values:${list}}`;
  });
  const shown =
    expressions.length === 0
      ? '[]v1.LabelSelectorRequirement(nil)'
      : `[]v1.LabelSelectorRequirement{${expressions.join(', ')}}`;
  return `v1.LabelSelector{MatchLabels:${labels}, MatchExpressions:${shown}}`;
}

/** `spec.selector` of a workload kind: there, right, and not empty. */
export function validateSelector(object: JsonObject, kindWord: string): FieldError[] {
  const selector = objectAt(object, 'spec', 'selector');
  if (selector === undefined) return [required('spec.selector')];
  const errors = validateLabelSelector(selector as unknown as LabelSelector, 'spec.selector');
  if (isEmptySelector(selector as unknown as LabelSelector)) {
    const detail = `empty selector is invalid for ${kindWord}`;
    errors.push(invalidGo('spec.selector', goSelector(selector), detail));
  }
  return errors;
}

/** A selector that may not change once set. */
export function selectorKept(object: JsonObject, old: JsonObject): FieldError[] {
  const selector = objectAt(object, 'spec', 'selector');
  if (sameOrEmpty(selector, objectAt(old, 'spec', 'selector'))) return [];
  return [invalidGo('spec.selector', goSelector(selector), 'field is immutable')];
}

/** Labels anywhere but in an object's own metadata, which the registry judges. */
export function validateLabels(labels: JsonObject | undefined, path: string): FieldError[] {
  return sortedKeys(labels).flatMap((key) => [
    ...breaks(path, key, qualifiedName),
    ...breaks(path, textAt(labels, key), labelValue),
  ]);
}

/**
 * The pod template of a controller at `spec.template`: its labels must match the selector, its pods
 * must restart always (`restart` lists what is allowed).
 */
export function validateTemplate(
  object: JsonObject,
  options: { restart: readonly string[]; controller?: string },
): FieldError[] {
  const path = 'spec.template';
  const template = ensure(ensure(object, 'spec'), 'template');
  const spec = ensure(template, 'spec');
  const labels = objectAt(template, 'metadata', 'labels');
  const errors = validateLabels(labels, `${path}.labels`);
  const selector = objectAt(object, 'spec', 'selector') as unknown as LabelSelector | undefined;
  const matches = selects(selector, (labels ?? {}) as Readonly<Record<string, string>>);
  if (selector !== undefined && !isEmptySelector(selector) && !matches) {
    const detail = '`selector` does not match template `labels`';
    errors.push(invalidGo(`${path}.metadata.labels`, goStringMap(labels), detail));
  }
  errors.push(...validatePodSpec(spec, `${path}.spec`));
  const policy = textAt(spec, 'restartPolicy');
  if (policy !== '' && !options.restart.includes(policy)) {
    errors.push(notSupported(`${path}.spec.restartPolicy`, policy, options.restart));
  }
  if (options.controller !== undefined && at(spec, 'activeDeadlineSeconds') !== undefined) {
    const detail = `activeDeadlineSeconds in ${options.controller} is not Supported`;
    errors.push(forbiddenField(`${path}.spec.activeDeadlineSeconds`, detail));
  }
  return errors;
}
