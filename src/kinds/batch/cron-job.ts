import type { JsonObject } from '../../base/json.ts';
import type { ColumnDef, ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, notSupported, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { selectorText, wideColumns } from '../apps/workload.ts';
import { age, ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { notNegative, oneOf, validatePodSpec } from '../pod/validate.ts';
import { scheduleProblem } from './schedule.ts';

/** Room for the suffix of the jobs' names. */
const nameLengthMax = 52;

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  });
  fillPodSpec(objectAt(spec, 'jobTemplate', 'spec', 'template', 'spec'));
}

function validateSchedule(spec: JsonObject): FieldError[] {
  const schedule = textAt(spec, 'schedule');
  if (schedule === '') return [required('spec.schedule')];
  const problem = scheduleProblem(schedule);
  if (problem !== undefined) return [invalid('spec.schedule', schedule, problem)];
  if (!schedule.includes('TZ')) return [];
  const detail = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
  return [invalid('spec.schedule', schedule, detail)];
}

function validateTimeZone(spec: JsonObject): FieldError[] {
  const zone = at(spec, 'timeZone');
  if (typeof zone !== 'string') return [];
  if (zone === '')
    return [invalid('spec.timeZone', zone, 'timeZone must be nil or non-empty string')];
  if (zone.toLowerCase() === 'local') {
    return [
      invalid(
        'spec.timeZone',
        zone,
        'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
      ),
    ];
  }
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return [];
  } catch {
    return [invalid('spec.timeZone', zone, `unknown time zone ${zone}`)];
  }
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const path = 'spec.jobTemplate.spec.template.spec';
  const podSpec = ensure(ensure(ensure(ensure(spec, 'jobTemplate'), 'spec'), 'template'), 'spec');
  const errors = [
    ...validateSchedule(spec),
    ...validateTimeZone(spec),
    ...notNegative(spec, 'spec.startingDeadlineSeconds'),
    ...oneOf(spec, 'spec.concurrencyPolicy', ['Allow', 'Forbid', 'Replace']),
    ...validatePodSpec(podSpec, path),
    ...notNegative(spec, 'spec.successfulJobsHistoryLimit'),
    ...notNegative(spec, 'spec.failedJobsHistoryLimit'),
  ];
  const policy = textAt(podSpec, 'restartPolicy');
  const allowed = ['OnFailure', 'Never'];
  if (!allowed.includes(policy)) {
    errors.push(notSupported(`${path}.restartPolicy`, policy, allowed));
  }
  const name = textAt(object, 'metadata', 'name');
  if (name.length > nameLengthMax) {
    errors.push(invalid('metadata.name', name, 'must be no more than 52 characters'));
  }
  return errors;
}

const template = ['spec', 'jobTemplate', 'spec'];

const [containers, images] = wideColumns([...template, 'template', 'spec']);

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Schedule', (object) => textAt(object, 'spec', 'schedule'), {
    description: 'When, in cron form.',
  }),
  column('Timezone', (object) => textAt(object, 'spec', 'timeZone') || '<none>', {
    description: 'Time zone of the schedule.',
  }),
  column('Suspend', (object) => (at(object, 'spec', 'suspend') === true ? 'True' : 'False'), {
    type: 'boolean',
    description: 'Whether it makes no more jobs.',
  }),
  column('Active', (object) => listAt(object, 'status', 'active').length, {
    type: 'integer',
    description: 'Jobs that run now.',
  }),
  column(
    'Last Schedule',
    (object, nowMs) => {
      const last = textAt(object, 'status', 'lastScheduleTime');
      return last === '' ? '<none>' : age(last, nowMs);
    },
    { description: 'Time since the last job was made.' },
  ),
  ageColumn,
  ...(containers === undefined || images === undefined ? [] : [containers, images]),
  column('Selector', (object) => selectorText(objectAt(object, ...template, 'selector')), {
    priority: 1,
    description: 'Selector of the pods.',
  }),
];

/** CronJob: makes Jobs on a schedule. */
export function cronJob(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'batch',
    kind: 'CronJob',
    resource: 'cronjobs',
    scope: 'Namespaced',
    shortNames: ['cj'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns,
      },
    ],
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? [] : validate(object),
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
