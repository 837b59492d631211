import { humanDuration, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import { metadataLines } from './metadata.ts';
import { longTime, podTemplateLines } from './pod-template.ts';
import type { RelatedDescriber } from './related.ts';
import { controlledBy } from './workloads.ts';

/** A title with a value; no line without the value. */
const ifSet = (title: string, value: JsonValue | undefined, unit = ''): string[] =>
  value === undefined ? [] : [`${title}:\t${String(value)}${unit}`];

/** A title with a value, or with a mark that there is none. */
const orUnset = (title: string, value: JsonValue | undefined, unit = ''): string =>
  ifSet(title, value, unit)[0] ?? `${title}:\t<unset>`;

const describeJob: RelatedDescriber = (job) => {
  const [spec, status] = [objectAt(job, 'spec'), objectAt(job, 'status')];
  const [start, end] = [textAt(status, 'startTime'), textAt(status, 'completionTime')];
  return [
    `Name:\t${nameOf(job)}`,
    `Namespace:\t${namespaceOf(job)}`,
    `Selector:\t${selectorText(objectAt(spec, 'selector'))}`,
    ...metadataLines(job),
    ...controlledBy(job),
    ...ifSet('Parallelism', spec.parallelism),
    orUnset('Completions', spec.completions),
    ...ifSet('Completion Mode', spec.completionMode),
    ...ifSet('Suspend', spec.suspend),
    ...ifSet('Backoff Limit', spec.backoffLimit),
    ...ifSet('TTL Seconds After Finished', spec.ttlSecondsAfterFinished),
    ...(start === '' ? [] : [`Start Time:\t${longTime(start)}`]),
    ...(end === '' ? [] : [`Completed At:\t${longTime(end)}`]),
    ...(start === '' || end === ''
      ? []
      : [`Duration:\t${humanDuration(Date.parse(end) - Date.parse(start))}`]),
    ...ifSet('Active Deadline Seconds', spec.activeDeadlineSeconds, 's'),
    podsLine(status),
    ...(spec.completionMode === 'Indexed' ? [indexesLine(status)] : []),
    ...podTemplateLines(objectAt(spec, 'template')),
  ];
};

function podsLine(status: JsonObject): string {
  const { active = 0, ready, succeeded = 0, failed = 0 } = status;
  const readyText = ready === undefined ? '' : ` (${String(ready)} Ready)`;
  return (
    `Pods Statuses:\t${String(active)} Active${readyText} / ${String(succeeded)} Succeeded / ` +
    `${String(failed)} Failed`
  );
}

/** Length from which a list of indexes ends at its next comma. */
const indexesLength = 50;

function indexesLine(status: JsonObject): string {
  const indexes = textAt(status, 'completedIndexes');
  const comma = indexes.indexOf(',', indexesLength);
  const text = comma < 0 ? indexes : `${indexes.slice(0, comma + 1)}...`;
  return `Completed Indexes:\t${text === '' ? '<none>' : text}`;
}

const describeCronJob: RelatedDescriber = (cronJob) => {
  const [spec, status] = [objectAt(cronJob, 'spec'), objectAt(cronJob, 'status')];
  const { suspend } = spec;
  const last = textAt(status, 'lastScheduleTime');
  const active = listAt(status, 'active').map((job) => textAt(job, 'name'));
  return [
    `Name:\t${nameOf(cronJob)}`,
    `Namespace:\t${namespaceOf(cronJob)}`,
    ...metadataLines(cronJob),
    `Schedule:\t${textAt(spec, 'schedule')}`,
    `Concurrency Policy:\t${textAt(spec, 'concurrencyPolicy')}`,
    orUnset('Suspend', suspend === undefined ? suspend : suspend === true ? 'True' : 'False'),
    orUnset('Successful Job History Limit', spec.successfulJobsHistoryLimit),
    orUnset('Failed Job History Limit', spec.failedJobsHistoryLimit),
    orUnset('Starting Deadline Seconds', spec.startingDeadlineSeconds, 's'),
    ...jobTemplateLines(objectAt(spec, 'jobTemplate', 'spec')),
    `Last Schedule Time:\t${last === '' ? '<unset>' : longTime(last)}`,
    `Active Jobs:\t${active.length === 0 ? '<none>' : active.join(', ')}`,
  ];
};

function jobTemplateLines(spec: JsonObject): string[] {
  const selector =
    spec.selector === undefined ? spec.selector : selectorText(objectAt(spec, 'selector'));
  return [
    orUnset('Selector', selector),
    orUnset('Parallelism', spec.parallelism),
    orUnset('Completions', spec.completions),
    ...ifSet('Active Deadline Seconds', spec.activeDeadlineSeconds, 's'),
    ...podTemplateLines(objectAt(spec, 'template')),
  ];
}

/** Describers of Jobs and of the kind that creates them. */
export const jobDescribers: Readonly<Record<string, RelatedDescriber>> = {
  'batch/CronJob': describeCronJob,
  'batch/Job': describeJob,
};
