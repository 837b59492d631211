/** Facts about the types of `apps`; made by scripts/facts/generate.mjs, do not edit. */
export const appsFacts = `
@v1
!PodManagementPolicyType ["OrderedReady","Parallel"]
!StatefulSetUpdateStrategyType ["OnDelete","RollingUpdate"]
!DeploymentStrategyType ["Recreate","RollingUpdate"]
!DaemonSetUpdateStrategyType ["OnDelete","RollingUpdate"]
#StatefulSet k n i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 StatefulSetSpec e o
status 3 StatefulSetStatus e o
#StatefulSetUpdateStrategy
type 1 StatefulSetUpdateStrategyType e o
rollingUpdate 2 *RollingUpdateStatefulSetStrategy e o
#RollingUpdateStatefulSetStrategy
partition 1 *int32 e o
maxUnavailable 2 *intstr.IntOrString e o
#StatefulSetPersistentVolumeClaimRetentionPolicy
whenDeleted 1 string e t=v1.PersistentVolumeClaimRetentionPolicyType
whenScaled 2 string e t=v1.PersistentVolumeClaimRetentionPolicyType
#StatefulSetOrdinals
start 1 int32 o
#StatefulSetSpec
replicas 1 *int32 e o
selector 2 *meta.v1.LabelSelector
template 3 core.v1.PodTemplateSpec
volumeClaimTemplates 4 []core.v1.PersistentVolumeClaim e o l=atomic
serviceName 5 string
podManagementPolicy 6 PodManagementPolicyType e o
updateStrategy 7 StatefulSetUpdateStrategy e
revisionHistoryLimit 8 *int32 e
minReadySeconds 9 int32 e o
persistentVolumeClaimRetentionPolicy 10 *StatefulSetPersistentVolumeClaimRetentionPolicy e o
ordinals 11 *StatefulSetOrdinals e o
#StatefulSetStatus
observedGeneration 1 int64 e o
replicas 2 int32
readyReplicas 3 int32 e
currentReplicas 4 int32 e
updatedReplicas 5 int32 e
currentRevision 6 string e
updateRevision 7 string e
collisionCount 9 *int32 e o
conditions 10 []StatefulSetCondition e o l=map k=type p=merge y=type
availableReplicas 11 int32 o
#StatefulSetCondition
type 1 string t=v1.StatefulSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#StatefulSetList k i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StatefulSet
#Deployment k n i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DeploymentSpec e o
status 3 DeploymentStatus e o
#DeploymentSpec
replicas 1 *int32 e o
selector 2 *meta.v1.LabelSelector
template 3 core.v1.PodTemplateSpec
strategy 4 DeploymentStrategy e o p=retainKeys
minReadySeconds 5 int32 e o
revisionHistoryLimit 6 *int32 e o
paused 7 bool e o
progressDeadlineSeconds 9 *int32 e
#DeploymentStrategy
type 1 DeploymentStrategyType e o
rollingUpdate 2 *RollingUpdateDeployment e o
#RollingUpdateDeployment
maxUnavailable 1 *intstr.IntOrString e o
maxSurge 2 *intstr.IntOrString e o
#DeploymentStatus
observedGeneration 1 int64 e o
replicas 2 int32 e o
updatedReplicas 3 int32 e o
readyReplicas 7 int32 e o
availableReplicas 4 int32 e o
unavailableReplicas 5 int32 e o
conditions 6 []DeploymentCondition e l=map k=type p=merge y=type
collisionCount 8 *int32 e o
#DeploymentCondition
type 1 string t=v1.DeploymentConditionType
status 2 string t=v1.ConditionStatus
lastUpdateTime 6 meta.v1.Time e
lastTransitionTime 7 meta.v1.Time e
reason 4 string e
message 5 string e
#DeploymentList k i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Deployment
#DaemonSetUpdateStrategy
type 1 DaemonSetUpdateStrategyType e o
rollingUpdate 2 *RollingUpdateDaemonSet e o
#RollingUpdateDaemonSet
maxUnavailable 1 *intstr.IntOrString e o
maxSurge 2 *intstr.IntOrString e o
#DaemonSetSpec
selector 1 *meta.v1.LabelSelector
template 2 core.v1.PodTemplateSpec
updateStrategy 3 DaemonSetUpdateStrategy e o
minReadySeconds 4 int32 e o
revisionHistoryLimit 6 *int32 e o
#DaemonSetStatus
currentNumberScheduled 1 int32
numberMisscheduled 2 int32
desiredNumberScheduled 3 int32
numberReady 4 int32
observedGeneration 5 int64 e o
updatedNumberScheduled 6 int32 e o
numberAvailable 7 int32 e o
numberUnavailable 8 int32 e o
collisionCount 9 *int32 e o
conditions 10 []DaemonSetCondition e o l=map k=type p=merge y=type
#DaemonSetCondition
type 1 string t=v1.DaemonSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#DaemonSet k n i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DaemonSetSpec e o
status 3 DaemonSetStatus e o
#DaemonSetList k i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []DaemonSet
#ReplicaSet k n i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ReplicaSetSpec e o
status 3 ReplicaSetStatus e o
#ReplicaSetList k i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ReplicaSet
#ReplicaSetSpec
replicas 1 *int32 e o
minReadySeconds 4 int32 e o
selector 2 *meta.v1.LabelSelector
template 3 core.v1.PodTemplateSpec e o
#ReplicaSetStatus
replicas 1 int32
fullyLabeledReplicas 2 int32 e o
readyReplicas 4 int32 e o
availableReplicas 5 int32 e o
observedGeneration 3 int64 e o
conditions 6 []ReplicaSetCondition e o l=map k=type p=merge y=type
#ReplicaSetCondition
type 1 string t=v1.ReplicaSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#ControllerRevision k n i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
data 2 runtime.RawExtension e
revision 3 int64
#ControllerRevisionList k i=1.9
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ControllerRevision
@v1beta1
#ScaleSpec
replicas 1 int32 e o
#ScaleStatus
replicas 1 int32
selector 2 {}string e o
targetSelector 3 string e o
#Scale k i=1.6 d=1.8 x=1.16 r=autoscaling,v1,Scale
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ScaleSpec e o
status 3 ScaleStatus e o
#StatefulSet k n i=1.5 d=1.8 x=1.16 r=apps,v1,StatefulSet
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 StatefulSetSpec e o
status 3 StatefulSetStatus e o
#StatefulSetUpdateStrategy
type 1 string e t=v1beta1.StatefulSetUpdateStrategyType
rollingUpdate 2 *RollingUpdateStatefulSetStrategy e
#RollingUpdateStatefulSetStrategy
partition 1 *int32 e
maxUnavailable 2 *intstr.IntOrString e o
#StatefulSetPersistentVolumeClaimRetentionPolicy
whenDeleted 1 string e t=v1beta1.PersistentVolumeClaimRetentionPolicyType
whenScaled 2 string e t=v1beta1.PersistentVolumeClaimRetentionPolicyType
#StatefulSetOrdinals
start 1 int32 o
#StatefulSetSpec
replicas 1 *int32 e o
selector 2 *meta.v1.LabelSelector e o
template 3 core.v1.PodTemplateSpec
volumeClaimTemplates 4 []core.v1.PersistentVolumeClaim e o l=atomic
serviceName 5 string
podManagementPolicy 6 string e o t=v1beta1.PodManagementPolicyType
updateStrategy 7 StatefulSetUpdateStrategy e
revisionHistoryLimit 8 *int32 e
minReadySeconds 9 int32 e o
persistentVolumeClaimRetentionPolicy 10 *StatefulSetPersistentVolumeClaimRetentionPolicy e o
ordinals 11 *StatefulSetOrdinals e o
#StatefulSetStatus
observedGeneration 1 *int64 e o
replicas 2 int32
readyReplicas 3 int32 e
currentReplicas 4 int32 e
updatedReplicas 5 int32 e
currentRevision 6 string e
updateRevision 7 string e
collisionCount 9 *int32 e o
conditions 10 []StatefulSetCondition e o l=map k=type p=merge y=type
availableReplicas 11 int32 o
#StatefulSetCondition
type 1 string t=v1beta1.StatefulSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#StatefulSetList k i=1.5 d=1.8 x=1.16 r=apps,v1,StatefulSetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StatefulSet
#Deployment k n i=1.6 d=1.8 x=1.16 r=apps,v1,Deployment
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DeploymentSpec e o
status 3 DeploymentStatus e o
#DeploymentSpec
replicas 1 *int32 e o
selector 2 *meta.v1.LabelSelector e o
template 3 core.v1.PodTemplateSpec
strategy 4 DeploymentStrategy e o p=retainKeys
minReadySeconds 5 int32 e o
revisionHistoryLimit 6 *int32 e o
paused 7 bool e o
rollbackTo 8 *RollbackConfig e o
progressDeadlineSeconds 9 *int32 e o
#DeploymentRollback k i=1.6 d=1.8 x=1.16 r=apps,v1,DeploymentRollback
^- meta.v1.TypeMeta
name 1 string
updatedAnnotations 2 {}string e o
rollbackTo 3 RollbackConfig
#RollbackConfig
revision 1 int64 e o
#DeploymentStrategy
type 1 string e o t=v1beta1.DeploymentStrategyType
rollingUpdate 2 *RollingUpdateDeployment e o
#RollingUpdateDeployment
maxUnavailable 1 *intstr.IntOrString e o
maxSurge 2 *intstr.IntOrString e o
#DeploymentStatus
observedGeneration 1 int64 e o
replicas 2 int32 e o
updatedReplicas 3 int32 e o
readyReplicas 7 int32 e o
availableReplicas 4 int32 e o
unavailableReplicas 5 int32 e o
conditions 6 []DeploymentCondition e l=map k=type p=merge y=type
collisionCount 8 *int32 e o
#DeploymentCondition
type 1 string t=v1beta1.DeploymentConditionType
status 2 string t=v1.ConditionStatus
lastUpdateTime 6 meta.v1.Time e
lastTransitionTime 7 meta.v1.Time e
reason 4 string e
message 5 string e
#DeploymentList k i=1.6 d=1.8 x=1.16 r=apps,v1,DeploymentList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Deployment
#ControllerRevision k n i=1.7 d=1.8 x=1.16 r=apps,v1,ControllerRevision
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
data 2 runtime.RawExtension e
revision 3 int64
#ControllerRevisionList k i=1.7 d=1.8 x=1.16 r=apps,v1,ControllerRevisionList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ControllerRevision
@v1beta2
#ScaleSpec
replicas 1 int32 e o
#ScaleStatus
replicas 1 int32
selector 2 {}string e o m=atomic
targetSelector 3 string e o
#Scale k i=1.8 d=1.9 x=1.16 r=autoscaling,v1,Scale
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ScaleSpec e o
status 3 ScaleStatus e o
#StatefulSet k n i=1.8 d=1.9 x=1.16 r=apps,v1,StatefulSet
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 StatefulSetSpec e o
status 3 StatefulSetStatus e o
#StatefulSetUpdateStrategy
type 1 string e o t=v1beta2.StatefulSetUpdateStrategyType
rollingUpdate 2 *RollingUpdateStatefulSetStrategy e o
#RollingUpdateStatefulSetStrategy
partition 1 *int32 e o
maxUnavailable 2 *intstr.IntOrString e o
#StatefulSetPersistentVolumeClaimRetentionPolicy
whenDeleted 1 string e t=v1beta2.PersistentVolumeClaimRetentionPolicyType
whenScaled 2 string e t=v1beta2.PersistentVolumeClaimRetentionPolicyType
#StatefulSetOrdinals
start 1 int32 o
#StatefulSetSpec
replicas 1 *int32 e o
selector 2 *meta.v1.LabelSelector
template 3 core.v1.PodTemplateSpec
volumeClaimTemplates 4 []core.v1.PersistentVolumeClaim e o l=atomic
serviceName 5 string
podManagementPolicy 6 string e o t=v1beta2.PodManagementPolicyType
updateStrategy 7 StatefulSetUpdateStrategy e
revisionHistoryLimit 8 *int32 e
minReadySeconds 9 int32 e o
persistentVolumeClaimRetentionPolicy 10 *StatefulSetPersistentVolumeClaimRetentionPolicy e o
ordinals 11 *StatefulSetOrdinals e o
#StatefulSetStatus
observedGeneration 1 int64 e o
replicas 2 int32
readyReplicas 3 int32 e
currentReplicas 4 int32 e
updatedReplicas 5 int32 e
currentRevision 6 string e
updateRevision 7 string e
collisionCount 9 *int32 e o
conditions 10 []StatefulSetCondition e o l=map k=type p=merge y=type
availableReplicas 11 int32 o
#StatefulSetCondition
type 1 string t=v1beta2.StatefulSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#StatefulSetList k i=1.8 d=1.9 x=1.16 r=apps,v1,StatefulSetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StatefulSet
#Deployment k n i=1.8 d=1.9 x=1.16 r=apps,v1,Deployment
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DeploymentSpec e o
status 3 DeploymentStatus e o
#DeploymentSpec
replicas 1 *int32 e o
selector 2 *meta.v1.LabelSelector
template 3 core.v1.PodTemplateSpec
strategy 4 DeploymentStrategy e o p=retainKeys
minReadySeconds 5 int32 e o
revisionHistoryLimit 6 *int32 e o
paused 7 bool e o
progressDeadlineSeconds 9 *int32 e
#DeploymentStrategy
type 1 string e o t=v1beta2.DeploymentStrategyType
rollingUpdate 2 *RollingUpdateDeployment e o
#RollingUpdateDeployment
maxUnavailable 1 *intstr.IntOrString e o
maxSurge 2 *intstr.IntOrString e o
#DeploymentStatus
observedGeneration 1 int64 e o
replicas 2 int32 e o
updatedReplicas 3 int32 e o
readyReplicas 7 int32 e o
availableReplicas 4 int32 e o
unavailableReplicas 5 int32 e o
conditions 6 []DeploymentCondition e l=map k=type p=merge y=type
collisionCount 8 *int32 e o
#DeploymentCondition
type 1 string t=v1beta2.DeploymentConditionType
status 2 string t=v1.ConditionStatus
lastUpdateTime 6 meta.v1.Time e
lastTransitionTime 7 meta.v1.Time e
reason 4 string e
message 5 string e
#DeploymentList k i=1.8 d=1.9 x=1.16 r=apps,v1,DeploymentList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Deployment
#DaemonSetUpdateStrategy
type 1 string e o t=v1beta2.DaemonSetUpdateStrategyType
rollingUpdate 2 *RollingUpdateDaemonSet e o
#RollingUpdateDaemonSet
maxUnavailable 1 *intstr.IntOrString e o
maxSurge 2 *intstr.IntOrString e o
#DaemonSetSpec
selector 1 *meta.v1.LabelSelector
template 2 core.v1.PodTemplateSpec
updateStrategy 3 DaemonSetUpdateStrategy e o
minReadySeconds 4 int32 e o
revisionHistoryLimit 6 *int32 e o
#DaemonSetStatus
currentNumberScheduled 1 int32
numberMisscheduled 2 int32
desiredNumberScheduled 3 int32
numberReady 4 int32
observedGeneration 5 int64 e o
updatedNumberScheduled 6 int32 e o
numberAvailable 7 int32 e o
numberUnavailable 8 int32 e o
collisionCount 9 *int32 e o
conditions 10 []DaemonSetCondition e o l=map k=type p=merge y=type
#DaemonSetCondition
type 1 string t=v1beta2.DaemonSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#DaemonSet k n i=1.8 d=1.9 x=1.16 r=apps,v1,DaemonSet
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DaemonSetSpec e o
status 3 DaemonSetStatus e o
#DaemonSetList k i=1.8 d=1.9 x=1.16 r=apps,v1,DaemonSetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []DaemonSet
#ReplicaSet k n i=1.8 d=1.9 x=1.16 r=apps,v1,ReplicaSet
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ReplicaSetSpec e o
status 3 ReplicaSetStatus e o
#ReplicaSetList k i=1.8 d=1.9 x=1.16 r=apps,v1,ReplicaSetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ReplicaSet
#ReplicaSetSpec
replicas 1 *int32 e o
minReadySeconds 4 int32 e o
selector 2 *meta.v1.LabelSelector
template 3 core.v1.PodTemplateSpec e o
#ReplicaSetStatus
replicas 1 int32
fullyLabeledReplicas 2 int32 e o
readyReplicas 4 int32 e o
availableReplicas 5 int32 e o
observedGeneration 3 int64 e o
conditions 6 []ReplicaSetCondition e o l=map k=type p=merge y=type
#ReplicaSetCondition
type 1 string t=v1beta2.ReplicaSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#ControllerRevision k n i=1.8 d=1.9 x=1.16 r=apps,v1,ControllerRevision
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
data 2 runtime.RawExtension e
revision 3 int64
#ControllerRevisionList k i=1.8 d=1.9 x=1.16 r=apps,v1,ControllerRevisionList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ControllerRevision
`;
