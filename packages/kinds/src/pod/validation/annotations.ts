import {
  appendAll,
  type Dialect,
  type FieldError,
  forbiddenField,
  invalid,
  type JsonObject,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import type { PodSpec, SeccompProfile } from '../../gen/types/core/v1.ts';
import type { Stored } from '../../resource-def.ts';
import { flatMapSteps, keyed, sortedKeys } from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import { annotatedList, oldAnnotations } from '../../rules/old-annotations.ts';
import { optionalText, validateDescendingPath } from '../fields.ts';
import { eachContainer } from '../references.ts';
import type { PodRules } from '../rules.ts';
import { validateTolerations } from './placement.ts';

/** The annotation that a node sets on the mirror of a static pod. */
export const mirrorAnnotation = (dialect: Dialect) => dialect.label('config.mirror');

/** The annotation with the cost of deleting a pod rather than others. */
const deletionCostAnnotation = (dialect: Dialect) =>
  dialect.label('pod-deletion-cost', 'controller');

/** The prefix of AppArmor annotations, before the name of a container. */
export const appArmorPrefix = (dialect: Dialect) =>
  dialect.label('', 'container.apparmor.security.beta');

/** The seccomp annotation of a pod, and the prefix of those of its containers. */
export const seccompAnnotations = (dialect: Dialect) => ({
  pod: dialect.label('pod', 'seccomp.security.alpha'),
  containerPrefix: dialect.label('', 'container.seccomp.security.alpha'),
});

/**
 * Validates the annotations that affect a pod, most of which have been replaced by fields, in steps
 * (TRUST-2).
 * @param spec the spec of the pod, which the annotations may refer to
 * @param at the path of the annotations, and the rules of the pod
 */
export function* validatePodAnnotations(
  annotations: JsonObject,
  spec: Stored<PodSpec>,
  at: { path: string; rules: PodRules },
): Generator<void, FieldError[]> {
  const { path, rules } = at;
  const keys = sortedKeys(annotations);
  if (keys.length === 0) return [];
  const mirror = mirrorAnnotation(rules.dialect);
  const errors: FieldError[] = [];
  if (Object.hasOwn(annotations, mirror) && (spec.nodeName ?? '') === '') {
    const detail = 'must set spec.nodeName if mirror pod annotation is set';
    errors.push(invalid(keyed(path, mirror), textAt(annotations, mirror), detail));
  }
  appendAll(errors, yield* validateTolerationsAnnotation(annotations, path, rules.dialect));
  const cost = deletionCostAnnotation(rules.dialect);
  if (!rules.allow.deletionCost && !isDeletionCost(annotations, rules.dialect)) {
    const detail = 'must be a 32bit integer';
    errors.push(invalid(keyed(path, cost), textAt(annotations, cost), detail));
  }
  return [
    ...errors,
    ...(yield* validateSeccompAnnotations(annotations, path, rules.dialect)),
    ...(yield* validateAppArmorAnnotations(annotations, spec, at)),
  ];
}

/** Whether the deletion cost is a number that kube-apiserver accepts; true if it is absent. */
export function isDeletionCost(annotations: JsonObject, dialect: Dialect): boolean {
  const value = optionalText(annotations, deletionCostAnnotation(dialect));
  if (value === undefined) return true;
  if (!/^(?:0|-?[0-9]+)$/.test(value) || /^0./.test(value)) return false;
  return Number(value) >= -(2 ** 31) && Number(value) < 2 ** 31;
}

function* validateTolerationsAnnotation(
  annotations: JsonObject,
  path: string,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const key = oldAnnotations(dialect).tolerations;
  const text = optionalText(annotations, key) ?? '';
  if (text === '') return [];
  const tolerations = yield* annotatedList('tolerations', text);
  if ('problem' in tolerations) return [invalid(path, key, tolerations.problem)];
  return yield* validateTolerations(tolerations.items, `${path}.${key}`);
}

function validateSeccompAnnotations(
  annotations: JsonObject,
  path: string,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const { pod, containerPrefix } = seccompAnnotations(dialect);
  const named = sortedKeys(annotations).filter((key) => key.startsWith(containerPrefix));
  const keys = Object.hasOwn(annotations, pod) ? [pod, ...named] : named;
  return flatMapSteps(keys, (key) =>
    validateSeccompText(textAt(annotations, key), `${path}.${key}`),
  );
}

const plainProfiles = ['runtime/default', 'docker/default', 'unconfined'];
const local = 'localhost/';

function validateSeccompText(profile: string, field: string): FieldError[] {
  if (plainProfiles.includes(profile)) return [];
  if (profile.startsWith(local)) return validateDescendingPath(field, profile.slice(local.length));
  return [invalid(field, profile, 'must be a valid seccomp profile')];
}

function* validateAppArmorAnnotations(
  annotations: JsonObject,
  spec: Stored<PodSpec>,
  { path, rules }: { path: string; rules: PodRules },
): Generator<void, FieldError[]> {
  const prefix = appArmorPrefix(rules.dialect);
  const keys = sortedKeys(annotations).filter((key) => key.startsWith(prefix));
  if (keys.length === 0) return [];
  const names = new Set(eachContainer(spec, '').map(({ container }) => textAt(container, 'name')));
  return yield* flatMapSteps(keys, (key) => {
    const name = key.slice(prefix.length);
    const profile = textAt(annotations, key);
    const field = keyed(path, key);
    const errors = names.has(name) ? [] : [invalid(field, name, 'container not found')];
    const isNamed = ['', 'runtime/default', 'unconfined'].includes(profile);
    if (!isNamed && !profile.startsWith(local)) {
      const detail = `invalid AppArmor profile name: ${JSON.stringify(profile)}`;
      errors.push(invalid(field, profile, detail));
    }
    return errors;
  });
}

/** Rejects changes of AppArmor annotations and of the mirror annotation. */
export function validateAnnotationChanges(
  annotations: JsonObject,
  old: JsonObject,
  { path, dialect }: { path: string; dialect: Dialect },
): FieldError[] {
  const prefix = appArmorPrefix(dialect);
  const mirror = mirrorAnnotation(dialect);
  const forbid = (key: string, verb: string) => {
    const field = keyed(path, key);
    if (key.startsWith(prefix)) {
      return [forbiddenField(field, `may not ${verb} AppArmor annotations`)];
    }
    return key === mirror ? [forbiddenField(field, `may not ${verb} mirror pod annotation`)] : [];
  };
  const changed = sortedKeys(old).filter((key) => annotations[key] !== old[key]);
  const added = sortedKeys(annotations).filter((key) => !Object.hasOwn(old, key));
  return [
    ...changed.flatMap((key) => forbid(key, 'remove or update')),
    ...added.flatMap((key) => forbid(key, 'add')),
  ];
}

/** The texts by which annotations of one type denote profiles, and its name in messages. */
interface ProfileWords {
  readonly word: string;
  readonly unconfined: readonly string[];
  readonly runtimeDefault: readonly string[];
}

const seccompWords: ProfileWords = {
  word: 'seccomp',
  unconfined: ['unconfined'],
  runtimeDefault: ['runtime/default', 'docker/default'],
};
const appArmorWords: ProfileWords = {
  word: 'apparmor',
  unconfined: ['unconfined'],
  runtimeDefault: ['runtime/default'],
};

function validateAgreement(
  annotation: string | undefined,
  profile: Stored<SeccompProfile> | undefined,
  { path, words }: { path: string; words: ProfileWords },
): FieldError[] {
  if (annotation === undefined || profile === undefined) return [];
  const type = profile.type ?? '';
  const refuse = (name: string, what: string) => [
    forbiddenField(`${path}.${name}`, `${words.word} ${what} in annotation and field must match`),
  ];
  if (type === 'Unconfined' || type === 'RuntimeDefault') {
    const texts = type === 'Unconfined' ? words.unconfined : words.runtimeDefault;
    return texts.includes(annotation) ? [] : refuse('type', 'type');
  }
  if (type !== 'Localhost') return [];
  if (!annotation.startsWith(local)) return refuse('type', 'type');
  const same = annotation.slice(local.length) === profile.localhostProfile;
  return same ? [] : refuse('localhostProfile', 'profile');
}

/** Validates that annotations and fields that state the same profile agree. */
export function validateProfileAgreement(
  annotations: JsonObject,
  spec: Stored<PodSpec>,
  { path, dialect }: { path: string; dialect: Dialect },
): FieldError[] {
  if (sortedKeys(annotations).length === 0) return [];
  const containers = eachContainer(spec, path);
  const { pod, containerPrefix } = seccompAnnotations(dialect);
  const context = spec.securityContext;
  const errors = validateAgreement(optionalText(annotations, pod), context?.seccompProfile, {
    path: `${path}.securityContext.seccompProfile`,
    words: seccompWords,
  });
  for (const { container, path: field } of containers) {
    const annotation = optionalText(annotations, containerPrefix + textAt(container, 'name'));
    const profile = objectAt(container, 'securityContext', 'seccompProfile');
    const at = { path: `${field}.securityContext.seccompProfile`, words: seccompWords };
    appendAll(errors, validateAgreement(annotation, profile, at));
  }
  if ((spec.os?.name ?? '') === 'windows') return errors;
  const prefix = appArmorPrefix(dialect);
  for (const { container, path: field } of containers) {
    const annotation = optionalText(annotations, prefix + textAt(container, 'name'));
    const profile =
      objectAt(container, 'securityContext', 'appArmorProfile') ?? context?.appArmorProfile;
    const at = { path: `${field}.securityContext.appArmorProfile`, words: appArmorWords };
    appendAll(errors, validateAgreement(annotation, profile, at));
  }
  return errors;
}
