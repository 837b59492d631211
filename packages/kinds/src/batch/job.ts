import {
  type ApiObject,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  humanDuration,
  type JsonObject,
  randomUuid,
} from '@wheelhouse/machinery';
import { selectorText, wideColumns } from '../apps/workload.ts';
import { age, ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind, statusSubresource, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Job } from '../gen/types/batch/v1.ts';
import { fillPodSpecSteps, removingOldInitContainers } from '../pod/defaults.ts';
import { newPodRules, type PodPorts } from '../pod/rules.ts';
import { templateOf, templateRules } from '../pod/template.ts';
import type { ResourceDef, Stored, StrategyContext } from '../resource-def.ts';
import { ensure, fill, fillAbsent, forEachSteps } from '../rules/fill.ts';
import { validateJobStatus } from './job-status.ts';
import { jobWarnings, ownLabels, validateJob, validateJobUpdate } from './job-validation.ts';

/** Job: runs pods until enough of them have succeeded. */
export function job(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<Job>({
    dialect,
    features,
    facts: 'batch',
    kind: 'Job',
    scope: 'Namespaced',
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(
          removingOldInitContainers(dialect, ['spec', 'template'], defaults(features)),
        ),
        columns: [
          nameColumn,
          column('Status', state, { description: 'Status of the job.' }),
          column('Completions', completions, {
            description: 'Successful and desired completions.',
          }),
          column('Duration', duration, { description: 'Duration of the job.' }),
          ageColumn,
          ...wideColumns().slice(0, 2),
          column('Selector', (object) => selectorText(object.spec?.selector), {
            priority: 1,
            description: 'Selector of the pods.',
          }),
        ],
      },
    ],
    storage: { fieldsOf },
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      defaultPropagation: 'Orphan',
      unknownFieldMessage: (label) => `field label ${JSON.stringify(label)} not supported for Job`,
      missingPolicyWarning:
        'child pods are preserved by default when jobs are deleted; set propagationPolicy=' +
        'Background to remove them or set propagationPolicy=Orphan to suppress this warning',
      prepareForCreate: (_, object) => {
        prepareLabels(object, dialect);
      },
      prepareForUpdate: prepareUpdate,
      validateCreate: (_, object) =>
        validateJob(object, undefined, newPodRules({ dialect, features })),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateJobStatus(object, old, features)
          : validateChange(object, old, { dialect, features }),
      warnings: (object, old) => jobWarnings(object, old, dialect),
    },
    subresources: [statusSubresource],
    example: () => ({
      spec: {
        template: {
          spec: {
            restartPolicy: 'Never',
            containers: [{ name: 'main', image: 'example.com/main:1.0' }],
          },
        },
      },
    }),
  });
}

function* validateChange(
  object: Stored<Job>,
  old: Stored<Job>,
  ports: PodPorts,
): Generator<void, FieldError[]> {
  const rules = yield* templateRules(ports, templateOf(old));
  return yield* validateJobUpdate(object, old, rules);
}

/** Fills the defaults of a Job. */
const defaults = (features: Features) =>
  function* (object: Stored<Job>): Generator<void, void> {
    const spec = ensure(object, 'spec');
    if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
    const hasPolicy = spec.podFailurePolicy !== undefined;
    fillAbsent(spec, {
      parallelism: 1,
      backoffLimit: spec.backoffLimitPerIndex === undefined ? 6 : 2147483647,
      completionMode: 'NonIndexed',
      suspend: false,
      manualSelector: false,
    });
    if (features.enabled('JobPodReplacementPolicy')) {
      fillAbsent(spec, { podReplacementPolicy: hasPolicy ? 'Failed' : 'TerminatingOrFailed' });
    }
    yield* forEachSteps(spec.podFailurePolicy?.rules ?? [], (rule) =>
      forEachSteps(rule.onPodConditions ?? [], (pattern) => fill(pattern, { status: 'True' })),
    );
    shareTemplateLabels(object);
    yield* fillPodSpecSteps(spec.template?.spec);
  };

/** A Job without labels shares those of its template, as one object, until it is prepared. */
function shareTemplateLabels(object: Stored<Job>): void {
  const labels = templateLabels(object);
  const metadata = ensure(object, 'metadata');
  if (metadata.labels === undefined && labels !== undefined) metadata.labels = labels;
}

const templateLabels = (object: Stored<Job>) => object.spec?.template?.metadata?.labels;

function state(object: Stored<Job>): string {
  const has = (type: string) =>
    (object.status?.conditions ?? []).some(
      (condition) => (condition.type ?? '') === type && (condition.status ?? '') === 'True',
    );
  if (has('Complete')) return 'Complete';
  if (has('Failed')) return 'Failed';
  if (object.metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (has('Suspended')) return 'Suspended';
  return has('FailureTarget') ? 'FailureTarget' : 'Running';
}

function completions(object: Stored<Job>): string {
  const done = object.status?.succeeded ?? 0;
  const desired = object.spec?.completions;
  if (desired !== undefined) return `${done}/${desired ?? 0}`;
  const parallel = object.spec?.parallelism ?? 0;
  return parallel > 1 ? `${done}/1 of ${parallel}` : `${done}/1`;
}

function duration(object: Stored<Job>, nowMs: number): string {
  const start = object.status?.startTime ?? '';
  const end = object.status?.completionTime ?? '';
  if (start === '') return '';
  return end === '' ? age(start, nowMs) : humanDuration(Date.parse(end) - Date.parse(start));
}

const fieldsOf = (object: Stored<Job>) => ({
  'status.successful': String(object.status?.succeeded ?? 0),
});

/** Generates labels, also in the Job's own labels if it shares those of the template. */
function prepareLabels(object: Stored<Job>, dialect: Dialect): void {
  generateSelector(object, dialect);
  separateLabels(object, templateLabels(object));
}

/** A Job selects its pods by its own uid unless the writer sets `manualSelector`. */
function generateSelector(object: Stored<Job>, dialect: Dialect): void {
  const spec = ensure(object, 'spec');
  if (spec.manualSelector === true) return;
  object.metadata.uid ??= randomUuid();
  const [short, prefixed] = ownLabels(object, dialect);
  const labels = ensure(ensure(ensure(spec, 'template'), 'metadata'), 'labels');
  // Existing labels are validated, not replaced.
  for (const [key, value] of Object.entries({ ...short, ...prefixed })) labels[key] ??= value;
  const own = dialect.label('controller-uid', 'batch');
  ensure(ensure(spec, 'selector'), 'matchLabels')[own] ??= object.metadata.uid;
  // kube-apiserver defaults the labels when it next reads the Job, so clients always see them.
  shareTemplateLabels(object);
}

function prepareUpdate(
  { subresource }: StrategyContext,
  object: Stored<Job>,
  old: Stored<Job>,
): void {
  if (subresource === 'status') fillLabels(object, templateLabels(old));
  separateLabels(object, templateLabels(object));
}

/** Gives an object without labels those of its template, as the defaults do. */
function fillLabels({ metadata }: ApiObject, labels: ApiObject['metadata']['labels']): void {
  if (labels !== undefined) metadata.labels ??= { ...labels };
}

/** Copies the Job's labels if they are the template's, so that both change independently. */
function separateLabels({ metadata }: ApiObject, labels: JsonObject | undefined): void {
  if (metadata.labels === labels && labels !== undefined) metadata.labels = { ...metadata.labels };
}
