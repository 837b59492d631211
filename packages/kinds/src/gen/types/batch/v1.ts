/** The types of `batch/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { ObjectReference, PodTemplateSpec } from '../core/v1.ts';
import type { Embedded, LabelSelector, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type Job = {
  apiVersion: string;
  kind: 'Job';
  metadata: ObjectMeta;
  spec?: JobSpec;
  status?: JobStatus;
};
export type JobList = {
  apiVersion: string;
  kind: 'JobList';
  metadata: ListMeta;
  items: Embedded<Job>[];
};
export type PodFailurePolicyOnExitCodesRequirement = {
  containerName?: string;
  operator: 'In' | 'NotIn';
  values: number[];
};
export type PodFailurePolicyOnPodConditionsPattern = {
  type: string;
  status: string;
};
export type PodFailurePolicyRule = {
  action: 'Count' | 'FailIndex' | 'FailJob' | 'Ignore';
  onExitCodes?: PodFailurePolicyOnExitCodesRequirement;
  onPodConditions?: PodFailurePolicyOnPodConditionsPattern[];
};
export type PodFailurePolicy = {
  rules: PodFailurePolicyRule[];
};
export type SuccessPolicy = {
  rules: SuccessPolicyRule[];
};
export type SuccessPolicyRule = {
  succeededIndexes?: string;
  succeededCount?: number;
};
export type JobSpec = {
  parallelism?: number;
  completions?: number;
  activeDeadlineSeconds?: number;
  podFailurePolicy?: PodFailurePolicy;
  successPolicy?: SuccessPolicy;
  backoffLimit?: number;
  backoffLimitPerIndex?: number;
  maxFailedIndexes?: number;
  selector?: LabelSelector;
  manualSelector?: boolean;
  template: PodTemplateSpec;
  ttlSecondsAfterFinished?: number;
  completionMode?: 'Indexed' | 'NonIndexed';
  suspend?: boolean;
  podReplacementPolicy?: 'Failed' | 'TerminatingOrFailed';
  managedBy?: string;
};
export type JobStatus = {
  conditions?: JobCondition[];
  startTime?: Time;
  completionTime?: Time;
  active?: number;
  succeeded?: number;
  failed?: number;
  terminating?: number;
  completedIndexes?: string;
  failedIndexes?: string;
  uncountedTerminatedPods?: UncountedTerminatedPods;
  ready?: number;
};
export type UncountedTerminatedPods = {
  succeeded?: string[];
  failed?: string[];
};
export type JobCondition = {
  type: string;
  status: string;
  lastProbeTime?: Time | null;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
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
  concurrencyPolicy?: 'Allow' | 'Forbid' | 'Replace';
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
