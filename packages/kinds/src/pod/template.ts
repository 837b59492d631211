import {
  annotationErrorSteps,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  isEmptySelector,
  type JsonObject,
  joined,
  required,
  selects,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import type { DaemonSet, Deployment, StatefulSet } from '../gen/types/apps/v1.ts';
import type { Job } from '../gen/types/batch/v1.ts';
import type { PodTemplateSpec } from '../gen/types/core/v1.ts';
import type { LabelSelector } from '../gen/types/meta/v1.ts';
import type { Stored } from '../resource-def.ts';
import { sameOrEmptySteps } from '../rules/checks.ts';
import { ensure, objectAt } from '../rules/fill.ts';
import { allowanceSteps } from './allowances.ts';
import { annotationsOf, labelErrorSteps } from './fields.ts';
import { goSelector, goStringMap } from './go-text.ts';
import { newPodRules, type PodPorts, type PodRules } from './rules.ts';
import { validatePodAnnotations, validateProfileAgreement } from './validation/annotations.ts';
import { validatePodSpec } from './validation/validate.ts';

/**
 * Returns the rules of a template, without those that `old`, which it replaces, breaks too, in
 * steps (TRUST-2).
 */
export function* templateRules(
  ports: PodPorts,
  old: Stored<PodTemplateSpec> | undefined,
): Generator<void, PodRules> {
  return old === undefined
    ? newPodRules(ports)
    : { ...ports, allow: yield* allowanceSteps(old, ports) };
}

/** The pod template of a controller. */
export const templateOf = (object: JsonObject | undefined): JsonObject | undefined =>
  objectAt(object, 'spec', 'template');

/**
 * Validates `spec.selector` of a workload: present, valid, and not empty.
 * @param kind the name of the kind in the error about an empty selector
 */
export function validateSelector(
  object: Stored<Deployment | StatefulSet>,
  kind: string,
): FieldError[] {
  const selector = object.spec?.selector ?? undefined;
  if (selector === undefined) return [required('spec.selector')];
  const errors = validateLabelSelector(selector, 'spec.selector');
  if (selectsAll(selector)) {
    const detail = `empty selector is invalid for ${kind}`;
    errors.push(invalidGo('spec.selector', () => goSelector(selector), detail));
  }
  return errors;
}

/** Rejects a change of `spec.selector`, in steps. */
export function* validateSelectorUnchanged(
  object: Stored<DaemonSet | Deployment | Job>,
  old: Stored<DaemonSet | Deployment | Job>,
): Generator<void, FieldError[]> {
  const selector = object.spec?.selector ?? undefined;
  if (yield* sameOrEmptySteps(selector, old.spec?.selector ?? undefined)) return [];
  return [invalidGo('spec.selector', () => goSelector(selector), 'field is immutable')];
}

/** Whether a selector is valid. */
export const isValidSelector = (selector: Stored<LabelSelector> | undefined): boolean =>
  validateLabelSelector(selector, '').length === 0;

/** Whether a selector is present and matches everything. */
export const selectsAll = (selector: Stored<LabelSelector> | undefined): boolean =>
  selector !== undefined && isEmptySelector(selector);

/** Requires a selector that matches the labels of the template. */
export function validateSelected(
  object: Stored<Deployment | DaemonSet | StatefulSet | Job>,
  path: string,
): FieldError[] {
  const selector = object.spec?.selector ?? undefined;
  const labels = object.spec?.template?.metadata?.labels;
  const templateLabels = (labels ?? {}) as Readonly<Record<string, string>>;
  if (selector !== undefined && selects(selector, templateLabels)) return [];
  const detail = '`selector` does not match template `labels`';
  return [invalidGo(`${path}.metadata.labels`, () => goStringMap(labels), detail)];
}

/** Validates the labels and annotations of a template, in steps. */
export function* validateTemplateMetadata(
  template: Stored<PodTemplateSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const annotations = annotationsOf(template);
  const field = `${path}.annotations`;
  const spec = template.spec ?? {};
  return joined<FieldError>(
    yield* labelErrorSteps(template.metadata?.labels, `${path}.labels`),
    yield* annotationErrorSteps(annotations, field),
    yield* validatePodAnnotations(annotations, spec, { path: field, rules }),
  );
}

/** Validates a pod template at `path` in steps. */
export function* validatePodTemplate(
  template: Stored<PodTemplateSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const spec = ensure(template, 'spec');
  const field = `${path}.spec`;
  const errors = [
    ...(yield* validateTemplateMetadata(template, path, rules)),
    ...(yield* validatePodSpec(spec, field, rules)),
    ...validateProfileAgreement(annotationsOf(template), spec, {
      path: field,
      dialect: rules.dialect,
    }),
  ];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    const detail = 'ephemeral containers not allowed in pod template';
    errors.push(forbiddenField(`${field}.ephemeralContainers`, detail));
  }
  return errors;
}

/**
 * Requires that the pods of a template always restart and have no deadline.
 * @param controller the name of the kind in messages
 */
export function validateRestartPolicy(
  template: Stored<PodTemplateSpec>,
  path: string,
  controller: string,
): FieldError[] {
  const policy = template.spec?.restartPolicy ?? '';
  const errors: FieldError[] = [];
  if (policy !== 'Always') {
    const field = `${path}.spec.restartPolicy`;
    const message = `Unsupported value: ${JSON.stringify(policy)}: supported values: "Always"`;
    errors.push({ type: 'FieldValueNotSupported', field, message });
  }
  if (template.spec?.activeDeadlineSeconds !== undefined) {
    const detail = `activeDeadlineSeconds in ${controller} is not Supported`;
    errors.push(forbiddenField(`${path}.spec.activeDeadlineSeconds`, detail));
  }
  return errors;
}

/**
 * Validates the pod template of a Deployment or ReplicaSet at `spec.template`, in steps. Its labels
 * must match the selector, and its pods must always restart.
 */
export function* validateTemplate(
  object: Stored<Deployment>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const path = 'spec.template';
  const template = ensure(ensure(object, 'spec'), 'template');
  const selector = object.spec?.selector ?? undefined;
  if (!isValidSelector(selector)) {
    return [invalidGo('spec.selector', () => goSelector(selector), 'invalid label selector')];
  }
  return [
    ...(selectsAll(selector) ? [] : validateSelected(object, path)),
    ...(yield* validatePodTemplate(template, path, rules)),
    ...validateRestartPolicy(template, path, 'ReplicaSet'),
  ];
}

/** Rejects a decrease of `status.collisionCount`. */
export function validateCollisionCount(
  object: Stored<DaemonSet | Deployment | StatefulSet>,
  old: Stored<DaemonSet | Deployment | StatefulSet>,
): FieldError[] {
  const before = old.status?.collisionCount;
  const now = object.status?.collisionCount;
  if (before === undefined || (now !== undefined && now >= before)) return [];
  return [invalid('status.collisionCount', now ?? 0, 'cannot be decremented')];
}
