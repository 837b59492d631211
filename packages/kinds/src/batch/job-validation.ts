import {
  cloneJson,
  type Dialect,
  dnsLabel,
  domainPrefixedPath,
  type FieldError,
  invalid,
  invalidGo,
  notSupported,
  required,
  selects,
  tooLong,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import type { Job, JobSpec } from '../gen/types/batch/v1.ts';
import type { PodTemplateSpec } from '../gen/types/core/v1.ts';
import { validateNonNegative, validateOptionalChoice } from '../pod/fields.ts';
import { goSelector, goStringMap } from '../pod/go-text.ts';
import type { PodRules } from '../pod/rules.ts';
import {
  isValidSelector,
  validatePodTemplate,
  validateSelected,
  validateSelectorUnchanged,
} from '../pod/template.ts';
import { nameWarnings, templateWarnings } from '../pod/warnings.ts';
import type { Stored } from '../resource-def.ts';
import { keyed, same } from '../rules/checks.ts';
import { ensure } from '../rules/fill.ts';
import { validateFailurePolicy, validateSuccessPolicy } from './job-policies.ts';

type Labels = Readonly<Record<string, string>>;

/** The labels of a Job's pods: the unprefixed ones, then those prefixed with a domain. */
export function ownLabels(object: Stored<Job>, dialect: Dialect): readonly [Labels, Labels] {
  const { uid = '', name = '' } = object.metadata;
  return [
    { 'controller-uid': uid, 'job-name': name },
    { [dialect.label('controller-uid', 'batch')]: uid, [dialect.label('job-name', 'batch')]: name },
  ];
}

/**
 * Validates a Job except its metadata.
 * @param old the Job that it replaces; pods need the prefixed labels only if its pods have them
 */
export function* validateJob(
  object: Stored<Job>,
  old: Stored<Job> | undefined,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const [short, prefixed] = ownLabels(object, rules.dialect);
  const hadLabels = Object.keys(prefixed).every(
    (key) => old?.spec?.template?.metadata?.labels?.[key] !== undefined,
  );
  const expected = old === undefined || hadLabels ? { ...short, ...prefixed } : short;
  return [
    ...validateGenerated(object, expected),
    ...(yield* validateOwnSpec(object, rules)),
    ...validateHostnames(object.metadata.name ?? '', spec),
  ];
}

/** Validates that the labels of a Job with a generated selector are the generated ones. */
function validateGenerated(object: Stored<Job>, expected: Labels): FieldError[] {
  const selector = object.spec?.selector;
  if (object.spec?.manualSelector === true || selector === undefined) return [];
  const path = 'spec.template.metadata';
  const labels = object.spec?.template?.metadata?.labels;
  const errors = Object.entries(expected).flatMap(([key, value]) => {
    const detail = `must be '${value}'`;
    const field = keyed(`${path}.labels`, key);
    const labelValue = labels?.[key];
    if (labelValue === undefined) return [required(field, detail)];
    return labelValue === value ? [] : [invalidGo(field, () => goStringMap(labels), detail)];
  });
  if (isValidSelector(selector) && !selects(selector, expected)) {
    errors.push(
      invalidGo('spec.selector', () => goSelector(selector), '`selector` not auto-generated'),
    );
  }
  return errors;
}

function* validateOwnSpec(object: Stored<Job>, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const selector = spec.selector;
  return [
    ...(yield* validateJobSpec(spec, 'spec', rules)),
    ...(selector === undefined
      ? [required('spec.selector')]
      : validateLabelSelector(selector, 'spec.selector')),
    ...(isValidSelector(selector) ? validateSelected(object, 'spec.template') : []),
  ];
}

/** Validates the length of the pods' hostnames, which contain the index. */
function validateHostnames(name: string, spec: Stored<JobSpec>): FieldError[] {
  const completions = spec.completions ?? 0;
  if ((spec.completionMode ?? '') !== 'Indexed' || completions <= 0) return [];
  const longest = `${name}-${completions - 1}`;
  if (dnsLabel(longest).length === 0) return [];
  const detail = `will not able to create pod with invalid DNS label: ${longest}`;
  return [invalid('metadata.name', name, detail)];
}

const counts = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
];

/** Validates the spec of a Job, or of the Jobs that a CronJob creates. */
export function* validateJobSpec(
  spec: Stored<JobSpec>,
  path: string,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const mode = spec.completionMode;
  const errors = validateNonNegative(spec, path, ...counts);
  if (spec.maxFailedIndexes != null && !(spec.backoffLimitPerIndex != null)) {
    const detail = 'when maxFailedIndexes is specified';
    errors.push(required(`${path}.backoffLimitPerIndex`, detail));
  }
  return [
    ...errors,
    ...validateManager(spec, `${path}.managedBy`),
    ...validateOptionalChoice(spec, path, 'completionMode', ['NonIndexed', 'Indexed']),
    ...(mode === 'Indexed' ? validateIndexed(spec, path) : []),
    ...(mode === undefined || mode === 'NonIndexed' ? refuseIndexed(spec, path) : []),
    ...(yield* validateFailurePolicy(spec, `${path}.podFailurePolicy`)),
    ...(yield* validateSuccessPolicy(spec, `${path}.successPolicy`)),
    ...validateReplacement(spec, path),
    ...(yield* validatePodTemplate(ensure(spec, 'template'), `${path}.template`, rules)),
    ...validateRestart(spec, `${path}.template.spec.restartPolicy`),
  ];
}

const managerBytesMax = 63;

/** Validates the name of the Job's controller (`domain/path`). */
function validateManager({ managedBy }: Stored<JobSpec>, field: string): FieldError[] {
  if (managedBy === undefined) return [];
  const isLong = Buffer.byteLength(managedBy) > managerBytesMax;
  const lengthErrors = isLong ? [tooLong(field, managerBytesMax)] : [];
  return [...domainPrefixedPath(field, managedBy), ...lengthErrors];
}

/** Upper bounds that limit the size of the index lists in a status. */
const parallelismMax = 100_000;
const failedIndexesMax = 100_000;
const manyCompletions = 100_000;
const parallelismMaxOfMany = 10_000;
const failedIndexesMaxOfMany = 10_000;

function validateIndexed(spec: Stored<JobSpec>, path: string): FieldError[] {
  const completions = spec.completions;
  const parallelism = spec.parallelism ?? 0;
  const failed = spec.maxFailedIndexes;
  const errors: FieldError[] = [];
  if (completions === undefined) {
    errors.push(required(`${path}.completions`, 'when completion mode is Indexed'));
  }
  if (parallelism > parallelismMax) {
    const detail = `must be less than or equal to ${parallelismMax} when completion mode is Indexed`;
    errors.push(invalid(`${path}.parallelism`, parallelism, detail));
  }
  if (failed !== undefined && completions !== undefined && failed > completions) {
    const detail = 'must be less than or equal to completions';
    errors.push(invalid(`${path}.maxFailedIndexes`, failed, detail));
  }
  if (failed !== undefined && failed > failedIndexesMax) {
    const detail = `must be less than or equal to ${failedIndexesMax}`;
    errors.push(invalid(`${path}.maxFailedIndexes`, failed, detail));
  }
  const isMany = completions !== undefined && completions > manyCompletions;
  if (!isMany || !(spec.backoffLimitPerIndex != null)) return errors;
  return [...errors, ...validateMany({ parallelism, failed }, path)];
}

function validateMany(
  { parallelism, failed }: { parallelism: number; failed: number | undefined },
  path: string,
): FieldError[] {
  const over = (max: number) =>
    `must be less than or equal to ${max} when completions are above ${manyCompletions} and used with backoff limit per index`;
  const errors: FieldError[] = [];
  const field = `${path}.maxFailedIndexes`;
  if (failed === undefined) {
    errors.push(required(field, `must be specified when completions is above ${manyCompletions}`));
  }
  if (parallelism > parallelismMaxOfMany) {
    errors.push(invalid(`${path}.parallelism`, parallelism, over(parallelismMaxOfMany)));
  }
  if (failed !== undefined && failed > failedIndexesMaxOfMany) {
    errors.push(invalid(field, failed, over(failedIndexesMaxOfMany)));
  }
  return errors;
}

function refuseIndexed(spec: Stored<JobSpec>, path: string): FieldError[] {
  return (['backoffLimitPerIndex', 'maxFailedIndexes'] as const).flatMap((name) => {
    const value = spec[name];
    if (value === undefined) return [];
    return [invalid(`${path}.${name}`, value, 'requires indexed completion mode')];
  });
}

function validateReplacement(spec: Stored<JobSpec>, path: string): FieldError[] {
  const allowed = spec.podFailurePolicy != null ? ['Failed'] : ['Failed', 'TerminatingOrFailed'];
  return validateOptionalChoice(spec, path, 'podReplacementPolicy', allowed);
}

/** Rejects `restartPolicy: Always`, with which a Job would never finish. */
function validateRestart(spec: Stored<JobSpec>, field: string): FieldError[] {
  const policy = spec.template?.spec?.restartPolicy ?? '';
  const allowed = ['OnFailure', 'Never'];
  if (policy === 'Always' || policy === '') {
    return [required(field, 'valid values: "OnFailure", "Never"')];
  }
  if (!allowed.includes(policy)) return [notSupported(field, policy, allowed)];
  if (!(spec.podFailurePolicy != null) || policy === 'Never') return [];
  const detail = 'only "Never" is supported when podFailurePolicy is specified';
  return [invalid(field, policy, detail)];
}

const immutableFields = [
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
] as const;

/**
 * Validates a changed Job: the whole object and its spec again, as in kube-apiserver, then changes.
 */
export function* validateJobUpdate(
  object: Stored<Job>,
  old: Stored<Job>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const [spec, before] = [ensure(object, 'spec'), ensure(old, 'spec')];
  return [
    ...(yield* validateJob(object, old, rules)),
    ...(yield* validateOwnSpec(object, rules)),
    ...validateCompletions(spec, before),
    ...(yield* validateSelectorUnchanged(object, old)),
    ...validateTemplateChange(spec, old),
    ...immutableFields.flatMap((name) => validateUnchanged(name, spec, before)),
  ];
}

function validateUnchanged(
  name: 'completions' | (typeof immutableFields)[number],
  spec: Stored<JobSpec>,
  old: Stored<JobSpec>,
): FieldError[] {
  if (same(spec[name], old[name])) return [];
  return [invalid(`spec.${name}`, spec[name] ?? 'null', 'field is immutable')];
}

/** Validates a change of completions, which an indexed Job may change together with parallelism. */
function validateCompletions(spec: Stored<JobSpec>, old: Stored<JobSpec>): FieldError[] {
  if ((spec.completionMode ?? '') !== 'Indexed') return validateUnchanged('completions', spec, old);
  const completions = spec.completions;
  if (completions === undefined || completions === old.completions) return [];
  if (completions === spec.parallelism) return [];
  const detail = 'can only be modified in tandem with spec.parallelism';
  return [invalid('spec.completions', completions, detail)];
}

/** Validates a change of the template; a suspended Job that has not started may be rescheduled. */
function validateTemplateChange(spec: Stored<JobSpec>, old: Stored<Job>): FieldError[] {
  const before = ensure(old, 'spec');
  const template = ensure(spec, 'template');
  const isWaiting = before.suspend === true && old.status?.startTime === undefined;
  const expected = cloneJson(ensure(before, 'template'));
  if (isWaiting) copySchedulingDirectives(expected, template);
  if (same(template, expected)) return [];
  return [invalid('spec.template', template, 'field is immutable')];
}

function copySchedulingDirectives(
  into: Stored<PodTemplateSpec>,
  from: Stored<PodTemplateSpec>,
): void {
  const [spec, fromSpec] = [ensure(into, 'spec'), ensure(from, 'spec')];
  spec.nodeSelector = fromSpec.nodeSelector;
  spec.tolerations = fromSpec.tolerations;
  spec.schedulingGates = fromSpec.schedulingGates;
  const [metadata, fromMetadata] = [ensure(into, 'metadata'), from.metadata];
  metadata.annotations = fromMetadata?.annotations;
  metadata.labels = fromMetadata?.labels;
  const affinity = fromSpec.affinity;
  if (affinity === undefined && spec.affinity === undefined) return;
  const merged = { ...spec.affinity };
  const node = affinity?.nodeAffinity;
  if (node === undefined) delete merged.nodeAffinity;
  else merged.nodeAffinity = node;
  if (Object.keys(merged).length === 0 && affinity === undefined) delete spec.affinity;
  else spec.affinity = merged;
}

const largeIndexedWarning =
  'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than ' +
  '10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail';

/** Returns warnings about an accepted Job in steps; none if the change keeps its generation. */
export function* jobWarnings(
  object: Stored<Job>,
  old: Stored<Job> | undefined,
  dialect: Dialect,
): Generator<void, readonly string[]> {
  if (old !== undefined && old.metadata.generation === object.metadata.generation) return [];
  return [
    ...nameWarnings(object, old),
    ...sizeWarnings(object.spec, 'spec'),
    ...(yield* templateWarnings(object, old, { path: ['spec', 'template'], dialect })),
  ];
}

/** Returns a warning about an Indexed Job of very many completions. */
export function sizeWarnings(spec: Stored<JobSpec> | undefined, path: string): string[] {
  const isLarge =
    (spec?.completionMode ?? '') === 'Indexed' &&
    (spec?.completions ?? 0) > manyCompletions &&
    (spec?.parallelism ?? 0) > parallelismMaxOfMany;
  return isLarge ? [`${path}: ${largeIndexedWarning}`] : [];
}
