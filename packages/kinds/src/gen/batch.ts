/** Facts about the types of `batch`; made by scripts/facts/generate.mjs, do not edit. */
export const batchFacts = `
@v1
!CompletionMode ["Indexed","NonIndexed"]
!PodFailurePolicyAction ["Count","FailIndex","FailJob","Ignore"]
!PodFailurePolicyOnExitCodesOperator ["In","NotIn"]
!PodReplacementPolicy ["Failed","TerminatingOrFailed"]
!ConcurrencyPolicy ["Allow","Forbid","Replace"]
#Job k n i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 JobSpec e o
status 3 JobStatus e o
#JobList k i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Job
#PodFailurePolicyOnExitCodesRequirement
containerName 1 *string e o
operator 2 PodFailurePolicyOnExitCodesOperator
values 3 []int32 l=set
#PodFailurePolicyOnPodConditionsPattern
type 1 string t=v1.PodConditionType
status 2 string t=v1.ConditionStatus
#PodFailurePolicyRule
action 1 PodFailurePolicyAction
onExitCodes 2 *PodFailurePolicyOnExitCodesRequirement e o
onPodConditions 3 []PodFailurePolicyOnPodConditionsPattern e o l=atomic
#PodFailurePolicy
rules 1 []PodFailurePolicyRule l=atomic
#SuccessPolicy
rules 1 []SuccessPolicyRule l=atomic
#SuccessPolicyRule
succeededIndexes 1 *string e o
succeededCount 2 *int32 e o
#JobSpec
parallelism 1 *int32 e o
completions 2 *int32 e o
activeDeadlineSeconds 3 *int64 e o
podFailurePolicy 11 *PodFailurePolicy e o
successPolicy 16 *SuccessPolicy e o
backoffLimit 7 *int32 e o
backoffLimitPerIndex 12 *int32 e o
maxFailedIndexes 13 *int32 e o
selector 4 *meta.v1.LabelSelector e o
manualSelector 5 *bool e o
template 6 core.v1.PodTemplateSpec
ttlSecondsAfterFinished 8 *int32 e o
completionMode 9 *CompletionMode e o
suspend 10 *bool e o
podReplacementPolicy 14 *PodReplacementPolicy e o
managedBy 15 *string e o
#JobStatus
conditions 1 []JobCondition e o l=atomic p=merge y=type
startTime 2 *meta.v1.Time e o
completionTime 3 *meta.v1.Time e o
active 4 int32 e o
succeeded 5 int32 e o
failed 6 int32 e o
terminating 11 *int32 e o
completedIndexes 7 string e o
failedIndexes 10 *string e o
uncountedTerminatedPods 8 *UncountedTerminatedPods e o
ready 9 *int32 e
#UncountedTerminatedPods
succeeded 1 []string e o l=set t=[]types.UID
failed 2 []string e o l=set t=[]types.UID
#JobCondition
type 1 string t=v1.JobConditionType
status 2 string t=v1.ConditionStatus
lastProbeTime 3 meta.v1.Time e o
lastTransitionTime 4 meta.v1.Time e o
reason 5 string e o
message 6 string e o
#JobTemplateSpec
metadata 1 meta.v1.ObjectMeta e o
spec 2 JobSpec e o
#CronJob k n i=1.21
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 CronJobSpec e o
status 3 CronJobStatus e o
#CronJobList k i=1.21
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CronJob
#CronJobSpec
schedule 1 string
timeZone 8 *string e o
startingDeadlineSeconds 2 *int64 e o
concurrencyPolicy 3 ConcurrencyPolicy e o
suspend 4 *bool e o
jobTemplate 5 JobTemplateSpec
successfulJobsHistoryLimit 6 *int32 e o
failedJobsHistoryLimit 7 *int32 e o
#CronJobStatus
active 1 []core.v1.ObjectReference e o l=atomic
lastScheduleTime 4 *meta.v1.Time e o
lastSuccessfulTime 5 *meta.v1.Time e o
@v1beta1
#JobTemplateSpec
metadata 1 meta.v1.ObjectMeta e o
spec 2 batch.v1.JobSpec e o
#CronJob k n i=1.8 d=1.21 x=1.25 r=batch,v1,CronJob
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 CronJobSpec e o
status 3 CronJobStatus e o
#CronJobList k i=1.8 d=1.21 x=1.25 r=batch,v1,CronJobList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CronJob
#CronJobSpec
schedule 1 string
timeZone 8 *string e o
startingDeadlineSeconds 2 *int64 e o
concurrencyPolicy 3 string e o t=v1beta1.ConcurrencyPolicy
suspend 4 *bool e o
jobTemplate 5 JobTemplateSpec
successfulJobsHistoryLimit 6 *int32 e o
failedJobsHistoryLimit 7 *int32 e o
#CronJobStatus
active 1 []core.v1.ObjectReference e o l=atomic
lastScheduleTime 4 *meta.v1.Time e o
lastSuccessfulTime 5 *meta.v1.Time e o
`;
