import {
  duplicate,
  type FieldError,
  goQuoted,
  invalid,
  invalidGo,
  type JsonObject,
  required,
} from '@wheelhouse/machinery';
import { at, numberAt, textAt } from '../cells.ts';
import type { Features } from '../features/features.ts';
import type { Job, JobStatus, UncountedTerminatedPods } from '../gen/types/batch/v1.ts';
import {
  intAt,
  invalidUnshown,
  isSet,
  optionalText,
  textsAt,
  validateNonNegative,
} from '../pod/fields.ts';
import { goStructs } from '../pod/go-text.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps, same } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import { countIndexes, firstShared } from './job-policies.ts';

/**
 * A Job's status before and after a write. kube-apiserver validates most parts only if they have
 * changed, so that existing errors do not block other changes.
 */
interface Change {
  readonly spec: JsonObject;
  readonly status: JsonObject;
  readonly old: JsonObject;
}

/**
 * Validates a write to a Job's status in steps (TRUST-2). Most rules apply only if the feature
 * JobManagedBy is enabled, which allows controllers other than the built-in one.
 */
export function* validateJobStatus(
  object: Stored<Job>,
  before: Stored<Job>,
  features: Features,
): Generator<void, FieldError[]> {
  const change: Change = {
    spec: object.spec ?? {},
    status: object.status ?? {},
    old: before.status ?? {},
  };
  if (!features.enabled('JobManagedBy')) {
    const mayMeetCriteria =
      features.enabled('JobPodReplacementPolicy') || has(change.old, 'SuccessCriteriaMet');
    return [
      ...(yield* validateCounts(change.status)),
      ...validateSuccess(change, { mayMeetCriteria }),
      ...validateCriteria(change),
    ];
  }
  const rules = [
    validateCompletion,
    validateFinished,
    validateIndexes,
    validatePodCounts,
    (of: Change) => validateSuccess(of, { mayMeetCriteria: true }),
    validateProgress,
    validateCriteria,
  ];
  return [
    ...(yield* validateCounts(change.status)),
    // Each rule searches the conditions, of which there may be many.
    ...(yield* flatMapSteps(rules, (rule) => rule(change), 1)),
  ];
}

const has = (status: Stored<JobStatus>, type: string, value = 'True'): boolean =>
  (status.conditions ?? []).some(
    (condition) => (condition.type ?? '') === type && (condition.status ?? '') === value,
  );

function* validateCounts(status: Stored<JobStatus>): Generator<void, FieldError[]> {
  const counts = ['active', 'succeeded', 'failed', 'ready', 'terminating'];
  const path = 'status.uncountedTerminatedPods';
  const seen = new Set<string>();
  return [
    ...validateNonNegative(status, 'status', ...counts),
    ...(yield* flatMapSteps(['succeeded', 'failed'] as const, (name) =>
      flatMapSteps(status.uncountedTerminatedPods?.[name] ?? [], (uid, index) => {
        const field = `${path}.${name}[${index}]`;
        if (uid === '') return [invalid(field, uid, 'must not be empty')];
        if (seen.has(uid)) return [duplicate(field, uid)];
        seen.add(uid);
        return [];
      }),
    )),
  ];
}

const conditionsPath = 'status.conditions';

/**
 * Validates SuccessCriteriaMet.
 * @param mayMeetCriteria whether Jobs without a success policy may have the condition
 */
function validateSuccess(
  { spec, status }: Change,
  { mayMeetCriteria }: { readonly mayMeetCriteria: boolean },
): FieldError[] {
  const isMet = has(status, 'SuccessCriteriaMet');
  const errors: FieldError[] = [];
  const refuse = (detail: string) => errors.push(invalidUnshown(conditionsPath, detail));
  if (isMet && !mayMeetCriteria && textAt(spec, 'completionMode') !== 'Indexed') {
    refuse('cannot set SuccessCriteriaMet to NonIndexed Job');
  }
  for (const type of ['Failed', 'FailureTarget']) {
    if (isMet && has(status, type)) errors.push(exclusive('SuccessCriteriaMet', type));
  }
  if (isMet && !mayMeetCriteria && !isSet(spec, 'successPolicy')) {
    refuse('cannot set SuccessCriteriaMet=True for Job without SuccessPolicy');
  }
  if (isSet(spec, 'successPolicy') && !isMet && has(status, 'Complete')) {
    refuse('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True');
  }
  return errors;
}

/** The error of two conditions that exclude each other. */
const exclusive = (left: string, right: string) =>
  invalidUnshown(conditionsPath, `cannot set ${left}=True and ${right}=true conditions`);

function validateCriteria({ status, old }: Change): FieldError[] {
  const errors: FieldError[] = [];
  const [wasMet, isMet] = [old, status].map((state) => has(state, 'SuccessCriteriaMet'));
  if (wasMet === true && isMet !== true) {
    const detail = 'cannot disable the SuccessCriteriaMet=True condition';
    errors.push(invalidUnshown(conditionsPath, detail));
  }
  if (has(old, 'Complete') && wasMet !== true && isMet === true) {
    const detail =
      'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions';
    errors.push(invalidUnshown(conditionsPath, detail));
  }
  return errors;
}

/** Validates completion, failure, and their times. */
function validateCompletion(change: Change): FieldError[] {
  const { status } = change;
  const isComplete = has(status, 'Complete');
  const completeChanged = conditionChanged(change, 'Complete');
  const field = 'status.completionTime';
  const [start, end] = [textAt(status, 'startTime'), textAt(status, 'completionTime')];
  const errors: FieldError[] = [];
  if (
    isComplete &&
    has(status, 'Failed') &&
    (completeChanged || conditionChanged(change, 'Failed'))
  ) {
    errors.push(exclusive('Complete', 'Failed'));
  }
  const targetChanged = conditionChanged(change, 'FailureTarget');
  if (isComplete && has(status, 'FailureTarget') && (completeChanged || targetChanged)) {
    errors.push(exclusive('Complete', 'FailureTarget'));
  }
  const applies = completeChanged || isChanged(change, 'completionTime');
  if (applies && end !== '' && !isComplete) {
    const detail = 'cannot set completionTime when there is no Complete=True condition';
    errors.push(invalidGo(field, () => goTime(end), detail));
  }
  if (applies && end === '' && isComplete) {
    errors.push(required(field, 'completionTime is required for Complete jobs'));
  }
  const timesChanged = isChanged(change, 'startTime') || isChanged(change, 'completionTime');
  if (timesChanged && start !== '' && end !== '' && Date.parse(end) < Date.parse(start)) {
    errors.push(
      invalidGo(field, () => goTime(end), 'completionTime cannot be set before startTime'),
    );
  }
  if (
    has(status, 'Failed') &&
    !has(status, 'FailureTarget') &&
    (conditionChanged(change, 'Failed') || isChanged(change, 'failedIndexes'))
  ) {
    const detail = 'cannot set Failed=True condition without the FailureTarget=true condition';
    errors.push(invalidUnshown(conditionsPath, detail));
  }
  const criteriaChanged = completeChanged || conditionChanged(change, 'SuccessCriteriaMet');
  if (isComplete && !has(status, 'SuccessCriteriaMet') && criteriaChanged) {
    const detail =
      'cannot set Complete=True condition without the SuccessCriteriaMet=true condition';
    errors.push(invalidUnshown(conditionsPath, detail));
  }
  return errors;
}

const conditionChanged = (change: Change, type: string) =>
  has(change.status, type) !== has(change.old, type);
const isChanged = ({ status, old }: Change, name: string) => !same(status[name], old[name]);

/** `2030-01-02 03:04:05 +0000 UTC`, as Go prints a time. */
const goTime = (text: string) =>
  `${new Date(Date.parse(text)).toISOString().slice(0, 19).replace('T', ' ')} +0000 UTC`;

/** Validates that a finished Job has a start time and no active pods. */
function validateFinished(change: Change): FieldError[] {
  const { spec, status, old } = change;
  if (!isFinished(status)) return [];
  const finishedChanged = !isFinished(old);
  // A Job without pods is complete even if it is suspended and never starts.
  const mayNotBegin = at(spec, 'suspend') === true && intAt(spec, 'completions') === 0;
  const errors: FieldError[] = [];
  const active = numberAt(status, 'active');
  if (active > 0 && (finishedChanged || isChanged(change, 'active'))) {
    errors.push(invalid('status.active', active, 'active>0 is invalid for finished job'));
  }
  const startChanged = finishedChanged || isChanged(change, 'startTime');
  if (!isSet(status, 'startTime') && startChanged && !mayNotBegin) {
    errors.push(required('status.startTime', 'startTime is required for finished job'));
  }
  const name = 'uncountedTerminatedPods';
  const uncounted = objectAt(status, name);
  const left = ['succeeded', 'failed'].flatMap((list) => textsAt(uncounted, list));
  if (left.length > 0 && (finishedChanged || isChanged(change, name))) {
    const detail = 'uncountedTerminatedPods needs to be empty for finished job';
    errors.push(invalidGo(`status.${name}`, () => goUncounted(uncounted), detail));
  }
  return errors;
}

const isFinished = (status: JsonObject) => has(status, 'Complete') || has(status, 'Failed');

/** Uncounted pods as Go prints them with `%#v`. */
function goUncounted(uncounted: Stored<UncountedTerminatedPods> | undefined): string {
  const list = (name: string) => goStructs('types.UID', textsAt(uncounted, name), goQuoted);
  return `batch.UncountedTerminatedPods{Succeeded:${list('succeeded')}, Failed:${list('failed')}}`;
}

function validateIndexes(change: Change): FieldError[] {
  const { spec, status } = change;
  const completions = intAt(spec, 'completions');
  const completed = textAt(status, 'completedIndexes');
  const failed = optionalText(status, 'failedIndexes');
  const completedChanged = isChanged(change, 'completedIndexes');
  const failedChanged = isChanged(change, 'failedIndexes');
  const hasLimit = isSet(spec, 'backoffLimitPerIndex');
  const errors: FieldError[] = [];
  const refuse = (name: string, value: string, detail: string) =>
    errors.push(invalid(`status.${name}`, value, detail));
  const read = (name: string, value: string) => {
    const { problem } = countIndexes(value, completions ?? 0);
    if (problem !== undefined) refuse(name, value, `error parsing ${name}: ${problem}`);
  };
  if (completedChanged && completions !== undefined) read('completedIndexes', completed);
  if (failedChanged && completions !== undefined && hasLimit && failed !== undefined) {
    read('failedIndexes', failed);
  }
  if (completedChanged && completed !== '' && textAt(spec, 'completionMode') !== 'Indexed') {
    const detail = 'cannot set non-empty completedIndexes when non-indexed completion mode';
    refuse('completedIndexes', completed, detail);
  }
  if (failedChanged && !hasLimit && failed !== undefined) {
    const detail = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
    refuse('failedIndexes', failed, detail);
  }
  if (completions === undefined || failed === undefined || !(completedChanged || failedChanged)) {
    return errors;
  }
  const shared = firstShared(completed, failed, completions);
  if (shared !== undefined) {
    const detail = `failedIndexes and completedIndexes overlap at index: ${shared}`;
    refuse('failedIndexes', failed, detail);
  }
  return errors;
}

/** Validates the counts of terminating and ready pods. */
function validatePodCounts(change: Change): FieldError[] {
  const { status, old } = change;
  const errors: FieldError[] = [];
  const terminating = numberAt(status, 'terminating');
  const finishedChanged = isFinished(status) !== isFinished(old);
  if (
    terminating > 0 &&
    isFinished(status) &&
    (finishedChanged || isChanged(change, 'terminating'))
  ) {
    const detail = 'terminating>0 is invalid for finished job';
    errors.push(invalid('status.terminating', terminating, detail));
  }
  const ready = numberAt(status, 'ready');
  if (
    status.ready != null &&
    ready > numberAt(status, 'active') &&
    (isChanged(change, 'ready') || isChanged(change, 'active'))
  ) {
    errors.push(invalid('status.ready', ready, 'cannot set more ready pods than active'));
  }
  return errors;
}

/** Validates that a finished state is final and that counts do not decrease. */
function validateProgress(change: Change): FieldError[] {
  const { spec, status, old } = change;
  const errors: FieldError[] = [];
  for (const type of ['Failed', 'Complete', 'FailureTarget']) {
    if (!has(old, type) || has(status, type)) continue;
    errors.push(
      invalidUnshown(conditionsPath, `cannot disable the terminal ${type}=True condition`),
    );
  }
  const decreased = (name: string) => {
    const count = numberAt(status, name);
    if (count >= numberAt(old, name)) return;
    errors.push(invalid(`status.${name}`, count, `cannot decrease the ${name} counter`));
  };
  decreased('failed');
  const mayShrink =
    textAt(spec, 'completionMode') === 'Indexed' &&
    intAt(spec, 'completions') === intAt(spec, 'parallelism');
  if (!mayShrink) decreased('succeeded');
  const ends = [status, old].map((state) => textAt(state, 'completionTime'));
  if (ends.every((end) => end !== '') && ends[0] !== ends[1]) {
    const detail = 'completionTime cannot be mutated';
    errors.push(invalidGo('status.completionTime', () => goTime(ends[0] ?? ''), detail));
  }
  const startChanged = isSet(old, 'startTime') && isChanged(change, 'startTime');
  const resumes = has(old, 'Suspended') && has(status, 'Suspended', 'False');
  if (startChanged && at(spec, 'suspend') !== true && !resumes) {
    const detail = 'startTime cannot be removed for unsuspended job';
    errors.push(required('status.startTime', detail));
  }
  return errors;
}
