/** Facts about the types of `policy`; made by scripts/facts/generate.mjs, do not edit. */
export const policyFacts = `
@v1
!UnhealthyPodEvictionPolicyType ["AlwaysAllow","IfHealthyBudget"]
#PodDisruptionBudgetSpec
minAvailable 1 *intstr.IntOrString e o
selector 2 *meta.v1.LabelSelector e o p=replace
maxUnavailable 3 *intstr.IntOrString e o
unhealthyPodEvictionPolicy 4 *UnhealthyPodEvictionPolicyType e o
#PodDisruptionBudgetStatus
observedGeneration 1 int64 e o
disruptedPods 2 {}meta.v1.Time e o
disruptionsAllowed 3 int32
currentHealthy 4 int32
desiredHealthy 5 int32
expectedPods 6 int32
conditions 7 []meta.v1.Condition e o l=map k=type p=merge y=type
#PodDisruptionBudget k n i=1.21
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PodDisruptionBudgetSpec e o
status 3 PodDisruptionBudgetStatus e o
#PodDisruptionBudgetList k i=1.21
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PodDisruptionBudget
#Eviction k n i=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
deleteOptions 2 *meta.v1.DeleteOptions e o
@v1beta1
!UnhealthyPodEvictionPolicyType ["AlwaysAllow","IfHealthyBudget"]
#PodDisruptionBudgetSpec
minAvailable 1 *intstr.IntOrString e o
selector 2 *meta.v1.LabelSelector e o
maxUnavailable 3 *intstr.IntOrString e o
unhealthyPodEvictionPolicy 4 *UnhealthyPodEvictionPolicyType e o
#PodDisruptionBudgetStatus
observedGeneration 1 int64 e o
disruptedPods 2 {}meta.v1.Time e o
disruptionsAllowed 3 int32
currentHealthy 4 int32
desiredHealthy 5 int32
expectedPods 6 int32
conditions 7 []meta.v1.Condition e o l=map k=type p=merge y=type
#PodDisruptionBudget k n i=1.5 d=1.21 x=1.25 r=policy,v1,PodDisruptionBudget
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PodDisruptionBudgetSpec e o
status 3 PodDisruptionBudgetStatus e o
#PodDisruptionBudgetList k i=1.5 d=1.21 x=1.25 r=policy,v1,PodDisruptionBudgetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PodDisruptionBudget
#Eviction k n i=1.5 d=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
deleteOptions 2 *meta.v1.DeleteOptions e o
`;
