import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  invalidGo,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { selectorText, wideColumns } from '../apps/workload.ts';
import { age, ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { CronJob, CronJobSpec, JobSpec } from '../gen/types/batch/v1.ts';
import { fillPodSpec, removingOldInitContainers } from '../pod/defaults.ts';
import { validateChoiceIn, validateNonNegative } from '../pod/fields.ts';
import { goSelector } from '../pod/go-text.ts';
import { newPodRules, type PodRules } from '../pod/rules.ts';
import { templateRules } from '../pod/template.ts';
import { nameWarnings, templateWarnings } from '../pod/warnings.ts';
import type { ColumnDef, ResourceDef } from '../resource-def.ts';
import { ensure, fill, objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { sizeWarnings, validateJobSpec } from './job-validation.ts';
import { isTimeZone, scheduleProblem, zoneProblem } from './schedule.ts';

const jobSpecPath = ['spec', 'jobTemplate', 'spec'];
const templatePath = [...jobSpecPath, 'template'];

const [containers, images] = wideColumns([...templatePath, 'spec']);

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Schedule', (object) => textAt(object, 'spec', 'schedule'), {
    description: 'Schedule in cron format.',
  }),
  column('Timezone', (object) => textAt(object, 'spec', 'timeZone') || '<none>', {
    description: 'Time zone of the schedule.',
  }),
  column('Suspend', (object) => (at(object, 'spec', 'suspend') === true ? 'True' : 'False'), {
    type: 'boolean',
    description: 'Whether the schedule is suspended.',
  }),
  column('Active', (object) => listAt(object, 'status', 'active').length, {
    type: 'integer',
    description: 'Number of running jobs.',
  }),
  column(
    'Last Schedule',
    (object, nowMs) => {
      const last = textAt(object, 'status', 'lastScheduleTime');
      return last === '' ? '<none>' : age(last, nowMs);
    },
    { description: 'Time since the last job was scheduled.' },
  ),
  ageColumn,
  ...(containers === undefined || images === undefined ? [] : [containers, images]),
  column('Selector', (object) => selectorText(objectAt(object, ...jobSpecPath, 'selector')), {
    priority: 1,
    description: 'Selector of the pods.',
  }),
];

/** CronJob: creates Jobs on a schedule. */
export function cronJob(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<CronJob>({
    dialect,
    features,
    facts: 'batch',
    kind: 'CronJob',
    resource: 'cronjobs',
    scope: 'Namespaced',
    shortNames: ['cj'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: removingOldInitContainers(dialect, templatePath, fillDefaults),
        columns,
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { status: [] },
      validateName: dnsSubdomain,
      hasStatus: true,
      *validateCreate(_, object) {
        const rules = newPodRules({ dialect, features });
        return [...(yield* validate(object, undefined, rules)), ...validateName(object)];
      },
      *validateUpdate(context, object, old) {
        if (context.subresource === 'status') return [];
        const oldTemplate = objectAt(old, ...templatePath);
        const rules = yield* templateRules({ dialect, features }, oldTemplate);
        return yield* validate(object, old, rules);
      },
      warnings: (object, old) => warnings(object, old, dialect),
    },
    subresources: [statusSubresource],
    example: () => ({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        schedule: '*/5 * * * *',
        jobTemplate: {
          spec: {
            template: {
              spec: {
                restartPolicy: 'OnFailure',
                containers: [{ name: 'main', image: 'example.com/main:1.0' }],
              },
            },
          },
        },
      },
    }),
  });
}

function fillDefaults(object: Stored<CronJob>): void {
  const spec = ensure(object, 'spec');
  fill(spec, {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  });
  fillPodSpec(spec.jobTemplate?.spec?.template?.spec);
}

/** Maximum length of a name, to which the names of Jobs append a suffix. */
const nameLengthMax = 52;

/** Validates the length of a new object's name; older objects may exceed it. */
function validateName(object: Stored<CronJob>): FieldError[] {
  const name = object.metadata.name ?? '';
  if (name.length <= nameLengthMax) return [];
  return [invalid('metadata.name', name, `must be no more than ${nameLengthMax} characters`)];
}

function* validate(
  object: Stored<CronJob>,
  old: Stored<CronJob> | undefined,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  const before = old?.spec;
  const zone = spec.timeZone;
  const isNewZone = zone !== undefined && zone !== before?.timeZone;
  return [
    ...validateSchedule(spec, before),
    ...validateNonNegative(spec, 'spec', 'startingDeadlineSeconds'),
    ...(isNewZone ? validateTimeZone(zone) : []),
    ...validateChoiceIn(spec, 'spec', 'concurrencyPolicy', ['Allow', 'Forbid', 'Replace']),
    ...(yield* validateJobTemplate(ensure(ensure(spec, 'jobTemplate'), 'spec'), rules)),
    ...validateNonNegative(spec, 'spec', 'successfulJobsHistoryLimit'),
    ...validateNonNegative(spec, 'spec', 'failedJobsHistoryLimit'),
  ];
}

/** Validates the schedule, which may include a time zone only if the old one did. */
function validateSchedule(
  spec: Stored<CronJobSpec>,
  old: Stored<CronJobSpec> | undefined,
): FieldError[] {
  const schedule = spec.schedule ?? '';
  const field = 'spec.schedule';
  if (schedule === '') return [required(field)];
  const problem = scheduleProblem(schedule);
  const errors = problem === undefined ? [] : [invalid(field, schedule, problem)];
  if (!schedule.includes('TZ')) return errors;
  if (!(old?.schedule ?? '').includes('TZ')) {
    const detail = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
    errors.push(invalid(field, schedule, detail));
  } else if (spec.timeZone != null) {
    const detail = 'cannot use both timeZone field and TZ or CRON_TZ in schedule';
    errors.push(invalid(field, schedule, detail));
  }
  return errors;
}

const zonePart = /^[A-Za-z._0-9+-]{1,14}$/;

function validateTimeZone(zone: string): FieldError[] {
  const refuse = (detail: string) => [invalid('spec.timeZone', zone, detail)];
  if (zone === '') return refuse('timeZone must be nil or non-empty string');
  const isName = (part: string) =>
    part !== '.' && part !== '..' && !part.startsWith('-') && zonePart.test(part);
  if (!zone.split('/').every(isName)) return refuse(`unknown time zone ${zone}`);
  const errors =
    zone.toLowerCase() === 'local'
      ? refuse(
          'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
        )
      : [];
  if (zone === 'Local' || isTimeZone(zone)) return errors;
  return [...errors, ...refuse(zoneProblem(zone))];
}

function* validateJobTemplate(
  spec: Stored<JobSpec>,
  rules: PodRules,
): Generator<void, FieldError[]> {
  const path = 'spec.jobTemplate.spec';
  const errors = yield* validateJobSpec(spec, path, rules);
  const selector = spec.selector;
  if (selector !== undefined) {
    const detail = '`selector` will be auto-generated';
    errors.push(invalidGo(`${path}.selector`, () => goSelector(selector), detail));
  }
  if (spec.manualSelector === true) {
    errors.push(notSupported(`${path}.manualSelector`, true, ['nil', 'false']));
  }
  return errors;
}

function* warnings(
  object: Stored<CronJob>,
  old: Stored<CronJob> | undefined,
  dialect: Dialect,
): Generator<void, readonly string[]> {
  const isChange = old !== undefined;
  const isSame = isChange && old.metadata.generation === object.metadata.generation;
  const { schedule = '', jobTemplate } = object.spec ?? {};
  return [
    ...nameWarnings(object, old),
    ...(isSame ? [] : sizeWarnings(jobTemplate?.spec, 'spec.jobTemplate.spec')),
    ...(yield* templateWarnings(object, old, { path: templatePath, dialect })),
    ...(isChange && schedule.includes('TZ') ? [zoneInScheduleWarning(dialect)] : []),
  ];
}

/** kube-apiserver's warning, including its wrong path. */
const zoneInScheduleWarning = ({ labelDomain }: Dialect) =>
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see ' +
  `https://${labelDomain}/docs/concepts/workloads/controllers/cron-jobs/ for more details`;
