/** Of earlier releases: the types of `batch/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { JobSpec } from './v1.ts';
import type { ObjectReference } from '../core/v1.ts';
import type { Embedded, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type JobTemplateSpec = {
  metadata?: ObjectMeta;
  spec?: JobSpec;
};
export type CronJob = {
  apiVersion: string;
  kind: 'CronJob';
  metadata: ObjectMeta;
  spec?: CronJobSpec;
  status?: CronJobStatus;
};
export type CronJobList = {
  apiVersion: string;
  kind: 'CronJobList';
  metadata: ListMeta;
  items: Embedded<CronJob>[];
};
export type CronJobSpec = {
  schedule: string;
  timeZone?: string;
  startingDeadlineSeconds?: number;
  concurrencyPolicy?: string;
  suspend?: boolean;
  jobTemplate: JobTemplateSpec;
  successfulJobsHistoryLimit?: number;
  failedJobsHistoryLimit?: number;
};
export type CronJobStatus = {
  active?: Embedded<ObjectReference>[];
  lastScheduleTime?: Time;
  lastSuccessfulTime?: Time;
};
