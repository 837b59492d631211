import {
  appendAll,
  cloneJsonSteps,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  isObject,
  type JsonObject,
  type JsonValue,
  joined,
  member,
  required,
  Stride,
} from '@wheelhouse/machinery';
import { at, listAt, numberAt, textAt } from '../cells.ts';
import type { NodeSelectorTerm, Pod, PodSpec, Toleration } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import {
  anywhere,
  flatMapSteps,
  type MemberPlace,
  same,
  sameSteps,
  someSteps,
} from '../rules/checks.ts';
import { ensure, forEachSteps, objectsAt, wholeNumber } from '../rules/fill.ts';
import { allowanceSteps } from './allowances.ts';
import { annotationsOf } from './fields.ts';
import { goDifference, goNodeSelectorTerm, goStringMap, goStructs } from './go-text.ts';
import type { PodPorts, PodRules } from './rules.ts';
import { requiredTerms } from './validation/affinity.ts';
import {
  mirrorAnnotation,
  validateAnnotationChanges,
  validatePodAnnotations,
} from './validation/annotations.ts';
import { validateImageSpacing } from './validation/containers.ts';
import { validateTolerations } from './validation/placement.ts';
import { validatePodSpec } from './validation/validate.ts';

const annotationsPath = 'metadata.annotations';

/** Validates a Pod on creation and on each change except of its status, in steps. */
export function* validatePod(object: Stored<Pod>, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const where = { path: annotationsPath, rules };
  return joined(
    yield* validatePodAnnotations(annotationsOf(object), spec, where),
    yield* validatePodSpec(spec, 'spec', rules),
    yield* validateTokenAccounts(spec),
    yield* flatMapSteps(['containers', 'initContainers'] as const, (member) =>
      flatMapSteps(spec[member] ?? [], (container, index) =>
        validateImageSpacing(container, `spec.${member}[${index}]`),
      ),
    ),
  );
}

/** Rejects volumes with a service account token in a pod without a service account. */
function* validateTokenAccounts(spec: Stored<PodSpec>): Generator<void, FieldError[]> {
  if ((spec.serviceAccountName ?? '') !== '') return [];
  return yield* flatMapSteps(spec.volumes ?? [], (volume, index) =>
    flatMapSteps(volume.projected?.sources ?? [], (source, number) => {
      if (source.serviceAccountToken == null) return [];
      const field = `spec.volumes[${index}].projected.sources[${number}].serviceAccountToken`;
      return [forbiddenField(field, 'must not be specified when serviceAccountName is not set')];
    }),
  );
}

/** Returns the rules of a Pod that replaces `old`, in steps. */
export function* changeRules(
  object: Stored<Pod>,
  old: Stored<Pod>,
  ports: PodPorts,
): Generator<void, PodRules> {
  return { ...ports, pod: object, allow: yield* allowanceSteps(old, ports) };
}

/**
 * Validates an update of a Pod in steps. Only images, the deadline, added tolerations, and removed
 * scheduling gates may change.
 */
export function* validatePodUpdate(
  object: Stored<Pod>,
  old: Stored<Pod>,
  ports: PodPorts,
): Generator<void, FieldError[]> {
  const [spec, before] = [ensure(object, 'spec'), ensure(old, 'spec')];
  const rules = yield* changeRules(object, old, ports);
  yield;
  const ownErrors = yield* validatePod(object, rules);
  const errors = joined(ownErrors, yield* validateAnnotationUpdate(object, old, rules));
  yield;
  for (const member of ['containers', 'initContainers']) {
    const counts = [spec, before].map((podSpec) => listAt(podSpec, member).length);
    if (counts[0] !== counts[1]) {
      const detail = 'pod updates may not add or remove containers';
      return [...errors, forbiddenField(`spec.${member}`, detail)];
    }
    appendAll(errors, yield* validateImages(spec, member));
  }
  const deadline = validateDeadline(spec, before);
  appendAll(errors, deadline.errors);
  if (deadline.isLast) return errors;
  appendAll(errors, yield* validateAddedTolerations(spec, before));
  appendAll(errors, yield* validateRemovedGates(spec, before));
  yield;
  if (yield* sameSemantically(spec, before)) return errors;
  yield;
  return joined(errors, yield* restErrorSteps(spec, before));
}

/** Validates changes of annotations, and then all annotations, in steps. */
export function* validateAnnotationUpdate(
  object: Stored<Pod>,
  old: Stored<Pod>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const [annotations, before] = [annotationsOf(object), annotationsOf(old)];
  const where = { path: annotationsPath, rules };
  const { dialect } = rules;
  return [
    ...validateAnnotationChanges(annotations, before, { path: annotationsPath, dialect }),
    ...(yield* validatePodAnnotations(annotations, ensure(object, 'spec'), where)),
  ];
}

function validateImages(spec: Stored<PodSpec>, member: string): Generator<void, FieldError[]> {
  return flatMapSteps(objectsAt(spec, member), (container, index) => {
    const field = `spec.${member}[${index}]`;
    const missing = textAt(container, 'image') === '' ? [required(`${field}.image`)] : [];
    return [...missing, ...validateImageSpacing(container, field)];
  });
}

const secondsMax = 2 ** 31 - 1;

/**
 * Validates a change of the deadline, which may be set and lowered, but not removed.
 * @returns the errors, and whether kube-apiserver reports no further ones
 */
function validateDeadline(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): { errors: FieldError[]; isLast: boolean } {
  const field = 'spec.activeDeadlineSeconds';
  const now = wholeNumber(spec.activeDeadlineSeconds);
  const before = wholeNumber(old.activeDeadlineSeconds);
  const refuse = (detail: string, isLast: boolean) => ({
    errors: [invalid(field, now ?? 'null', detail)],
    isLast,
  });
  if (now === undefined) {
    if (before === undefined) return { errors: [], isLast: false };
    return refuse('must not update from a positive integer to nil value', false);
  }
  if (now < 0 || now > secondsMax) {
    return refuse(`must be between 0 and ${secondsMax}, inclusive`, true);
  }
  if (before === undefined || before >= now) return { errors: [], isLast: false };
  return refuse('must be less than or equal to previous value', true);
}

function* validateAddedTolerations(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const tolerations = spec.tolerations ?? [];
  const kept = new Set<string>();
  yield* forEachSteps(tolerations, (toleration) => {
    kept.add(untimedIdentity(toleration));
  });
  const before = old.tolerations ?? [];
  if (yield* someSteps(before, (toleration) => !kept.has(untimedIdentity(toleration)))) {
    const detail = 'existing toleration can not be modified except its tolerationSeconds';
    return [forbiddenField('spec.tolerations', detail)];
  }
  return yield* validateTolerations(tolerations, 'spec.tolerations');
}

/** A text that is equal for tolerations that differ at most in `tolerationSeconds`. */
function untimedIdentity(toleration: Stored<Toleration>): string {
  const names = ['key', 'operator', 'value', 'effect'];
  return JSON.stringify(names.map((name) => textAt(toleration, name)));
}

function validateRemovedGates(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const before = new Set((old.schedulingGates ?? []).map((gate) => gate.name ?? ''));
  const indexes = new Map((spec.schedulingGates ?? []).map((gate, index) => [gate.name, index]));
  return flatMapSteps(indexes, ([name = '', index]) => {
    if (before.has(name)) return [];
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return [forbiddenField(`spec.schedulingGates[${index}].name`, detail)];
  });
}

/**
 * Compares in steps as Go's semantic equality does: null and an empty list equal an absent member,
 * and quantities are compared by value. An empty object differs from an absent one, because the
 * decoder omits empty maps and keeps all structs without a pointer.
 * @param holder the name of the member that holds the objects
 */
export function* sameSemantically(
  left: JsonObject,
  right: JsonObject,
  { stride = new Stride(), holder = '' } = {},
): Generator<void, boolean> {
  const names = Object.keys(left);
  // Listing thousands of members takes milliseconds.
  stride.count(names.length);
  if (stride.isOver) yield;
  for (const name of names) {
    const pair = [left[name], member(right, name)] as const;
    if (!(yield* sameMember(pair, { stride, holder, name }))) return false;
  }
  const otherNames = Object.keys(right);
  stride.count(otherNames.length);
  if (stride.isOver) yield;
  for (const name of otherNames) {
    if (Object.hasOwn(left, name)) continue;
    if (!(yield* sameMember([undefined, right[name]], { stride, holder, name }))) return false;
  }
  return true;
}

function* sameMember(
  [left, right]: readonly [JsonValue | undefined, JsonValue | undefined],
  at: MemberPlace & { stride: Stride },
): Generator<void, boolean> {
  const { stride, name } = at;
  const isLight = stride.weigh(left) === 'light';
  if (stride.isOver) yield;
  // Most values are equal, and one call for a small value takes less time than its steps.
  if (left === right || (isLight && same(left, right, at))) return true;
  if (isObject(left) && isObject(right)) {
    return yield* sameSemantically(left, right, { stride, holder: name });
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    if (left.length !== right.length) return false;
    for (const [index, item] of left.entries()) {
      if (!(yield* sameMember([item, right[index]], { stride, ...anywhere }))) return false;
    }
    return true;
  }
  return isAbsent(left) && isAbsent(right);
}

const isAbsent = (value: JsonValue | undefined): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

const mutableFields =
  'pod updates may not change fields other than `spec.containers[*].image`,' +
  '`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` ' +
  '(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` ' +
  '(allow it to be set to 1 if it was previously negative)';

/** Restores in a copy what an update may change, and rejects any other difference, in steps. */
function* restErrorSteps(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const rest = yield* withMutableOf(spec, old);
  const errors: FieldError[] = [];
  if ((old.schedulingGates ?? []).length > 0) {
    appendAll(errors, yield* validateNodeSelection(rest, old));
    rest.nodeSelector = old.nodeSelector;
    yield* restoreNodeAffinity(rest, old);
  }
  if (yield* sameSemantically(rest, old)) return errors;
  const difference = yield* goDifference('core.PodSpec', old, rest);
  return [...errors, forbiddenField('spec', `${mutableFields}\n${difference}`)];
}

function* withMutableOf(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, Stored<PodSpec>> {
  const rest = yield* cloneJsonSteps(spec);
  for (const member of ['containers', 'initContainers'] as const) {
    const before = old[member] ?? [];
    (rest[member] ?? []).forEach((container, index) => {
      container.image = before[index]?.image;
    });
  }
  rest.activeDeadlineSeconds = old.activeDeadlineSeconds;
  rest.schedulingGates = old.schedulingGates;
  rest.tolerations = old.tolerations;
  const grace = 'terminationGracePeriodSeconds';
  if (numberAt(old, grace) < 0 && rest[grace] === 1) rest[grace] = old[grace];
  return rest;
}

/** Rejects changes to the node selection of a gated pod that do more than narrow it. */
function* validateNodeSelection(
  spec: Stored<PodSpec>,
  old: Stored<PodSpec>,
): Generator<void, FieldError[]> {
  const before = old.nodeSelector ?? {};
  const now = spec.nodeSelector;
  const isNarrowed = Object.keys(before).every((key) => now?.[key] === before[key]);
  const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
  return [
    ...(isNarrowed ? [] : [invalidGo('spec.nodeSelector', () => goStringMap(now), detail)]),
    ...(yield* validateTerms(termsOf(spec), termsOf(old))),
  ];
}

const termsPath = `spec.affinity.nodeAffinity.${requiredTerms}.nodeSelectorTerms`;

function* validateTerms(
  terms: readonly JsonObject[],
  old: readonly JsonObject[],
): Generator<void, FieldError[]> {
  if (old.length === 0) return [];
  if (terms.length !== old.length) {
    const shown = goStructs('core.NodeSelectorTerm', terms, goNodeSelectorTerm);
    const detail = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    return [invalidGo(termsPath, () => shown, detail)];
  }
  return yield* flatMapSteps(terms, function* (term, index) {
    if (yield* isNarrowedTerm(term, old[index] ?? {})) return [];
    const detail = 'only additions are allowed (no mutations or deletions)';
    return [invalidGo(`${termsPath}[${index}]`, () => goNodeSelectorTerm(term), detail)];
  });
}

const parts = ['matchExpressions', 'matchFields'];

/**
 * Whether a term selects no more nodes than the old one. A term without requirements matches
 * nothing, so an added requirement would widen it.
 */
function* isNarrowedTerm(
  term: Stored<NodeSelectorTerm>,
  old: Stored<NodeSelectorTerm>,
): Generator<void, boolean> {
  const isEmpty = parts.every((name) => listAt(old, name).length === 0);
  if (isEmpty) return parts.every((name) => listAt(term, name).length === 0);
  for (const name of parts) {
    const before = [...listAt(old, name)];
    if (!(yield* sameSteps(listAt(term, name).slice(0, before.length), before))) return false;
  }
  return true;
}

const termsOf = (spec: Stored<PodSpec>) =>
  objectsAt(spec, 'affinity', 'nodeAffinity', requiredTerms, 'nodeSelectorTerms');

/** Restores the old node affinity, so that other changes of the affinity are found. */
function* restoreNodeAffinity(spec: Stored<PodSpec>, old: Stored<PodSpec>): Generator<void, void> {
  const before = old.affinity?.nodeAffinity;
  const affinity = spec.affinity;
  if (yield* sameSteps(affinity?.nodeAffinity, before)) return;
  if (affinity === undefined) {
    spec.affinity = { nodeAffinity: before };
    return;
  }
  const hasPodAffinity =
    affinity.podAffinity !== undefined || affinity.podAntiAffinity !== undefined;
  if (old.affinity === undefined && !hasPodAffinity) delete spec.affinity;
  else if (before === undefined) delete affinity.nodeAffinity;
  else affinity.nodeAffinity = before;
}

/** Validates added ephemeral containers in steps, and rejects changes of those added earlier. */
export function* validateAddedContainers(
  object: Stored<Pod>,
  old: Stored<Pod>,
  ports: PodPorts,
): Generator<void, FieldError[]> {
  const mirror = mirrorAnnotation(ports.dialect);
  if (at(old, 'metadata', 'annotations', mirror) !== undefined) {
    // kube-apiserver reports a path without a name.
    return [forbiddenField('[]', 'static pods do not support ephemeral containers')];
  }
  const rules = yield* changeRules(object, old, ports);
  const errors = [
    ...(yield* validatePod(object, rules)),
    ...(yield* validateAnnotationUpdate(object, old, rules)),
  ];
  const containers = object.spec?.ephemeralContainers ?? [];
  // Of containers with one name, kube-apiserver compares the last.
  const added = new Map(containers.map((container) => [container.name ?? '', container]));
  for (const before of old.spec?.ephemeralContainers ?? []) {
    const name = JSON.stringify(before.name ?? '');
    const now = added.get(before.name ?? '');
    const refuse = (what: string) =>
      errors.push(
        forbiddenField('spec.ephemeralContainers', `existing ephemeral containers ${name} ${what}`),
      );
    if (now === undefined) refuse('may not be removed\n');
    else if (!(yield* sameSemantically(before, now))) {
      const difference = yield* goDifference('core.EphemeralContainer', before, now);
      refuse(`may not be changed\n${difference}`);
    }
  }
  return errors;
}
