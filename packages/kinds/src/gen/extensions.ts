/** Facts about the types of `extensions`; made by scripts/facts/generate.mjs, do not edit. */
export const extensionsFacts = `
@v1beta1
#ScaleSpec
replicas 1 int32 e o
#ScaleStatus
replicas 1 int32
selector 2 {}string e o m=atomic
targetSelector 3 string e o
#Scale k i=1.1 d=1.2 x=1.16
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ScaleSpec e o
status 3 ScaleStatus e o
#Deployment k n i=1.1 d=1.8 x=1.16 r=apps,v1,Deployment
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
#DeploymentRollback k i=1.2 d=1.8 x=1.16
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
#DeploymentList k i=1.1 d=1.8 x=1.16 r=apps,v1,DeploymentList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Deployment
#DaemonSetUpdateStrategy
type 1 string e o t=v1beta1.DaemonSetUpdateStrategyType
rollingUpdate 2 *RollingUpdateDaemonSet e o
#RollingUpdateDaemonSet
maxUnavailable 1 *intstr.IntOrString e o
maxSurge 2 *intstr.IntOrString e o
#DaemonSetSpec
selector 1 *meta.v1.LabelSelector e o
template 2 core.v1.PodTemplateSpec
updateStrategy 3 DaemonSetUpdateStrategy e o
minReadySeconds 4 int32 e o
templateGeneration 5 int64 e o
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
type 1 string t=v1beta1.DaemonSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#DaemonSet k n i=1.1 d=1.8 x=1.16 r=apps,v1,DaemonSet
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DaemonSetSpec e o
status 3 DaemonSetStatus e o
#DaemonSetList k i=1.1 d=1.8 x=1.16 r=apps,v1,DaemonSetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []DaemonSet
#Ingress k n i=1.1 d=1.14 x=1.22 r=networking,v1,Ingress
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IngressSpec e o
status 3 IngressStatus e o
#IngressList k i=1.1 d=1.14 x=1.22 r=networking,v1,IngressList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Ingress
#IngressSpec
ingressClassName 4 *string e o
backend 1 *IngressBackend e o
tls 2 []IngressTLS e o l=atomic
rules 3 []IngressRule e o l=atomic
#IngressTLS
hosts 1 []string e o l=atomic
secretName 2 string e o
#IngressStatus
loadBalancer 1 IngressLoadBalancerStatus e o
#IngressLoadBalancerStatus
ingress 1 []IngressLoadBalancerIngress e o l=atomic
#IngressLoadBalancerIngress
ip 1 string e o
hostname 2 string e o
ports 4 []IngressPortStatus e o l=atomic
#IngressPortStatus
port 1 int32
protocol 2 core.v1.Protocol
error 3 *string e o
#IngressRule
host 1 string e o
^2 IngressRuleValue
#IngressRuleValue
http 1 *HTTPIngressRuleValue e
#HTTPIngressRuleValue
paths 1 []HTTPIngressPath l=atomic
#HTTPIngressPath
path 1 string e o
pathType 3 *string e t=v1beta1.PathType
backend 2 IngressBackend
#IngressBackend
serviceName 1 string e o
servicePort 2 intstr.IntOrString e o
resource 3 *core.v1.TypedLocalObjectReference e o
#ReplicaSet k n i=1.2 d=1.8 x=1.16 r=apps,v1,ReplicaSet
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ReplicaSetSpec e o
status 3 ReplicaSetStatus e o
#ReplicaSetList k i=1.2 d=1.8 x=1.16 r=apps,v1,ReplicaSetList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ReplicaSet
#ReplicaSetSpec
replicas 1 *int32 e o
minReadySeconds 4 int32 e o
selector 2 *meta.v1.LabelSelector e o
template 3 core.v1.PodTemplateSpec e o
#ReplicaSetStatus
replicas 1 int32
fullyLabeledReplicas 2 int32 e o
readyReplicas 4 int32 e o
availableReplicas 5 int32 e o
observedGeneration 3 int64 e o
conditions 6 []ReplicaSetCondition e o l=map k=type p=merge y=type
#ReplicaSetCondition
type 1 string t=v1beta1.ReplicaSetConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#NetworkPolicy k n i=1.3 d=1.9 x=1.16 r=networking,v1,NetworkPolicy
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 NetworkPolicySpec e o
#NetworkPolicySpec
podSelector 1 meta.v1.LabelSelector
ingress 2 []NetworkPolicyIngressRule e o l=atomic
egress 3 []NetworkPolicyEgressRule e o l=atomic
policyTypes 4 []string e o l=atomic t=[]v1beta1.PolicyType
#NetworkPolicyIngressRule
ports 1 []NetworkPolicyPort e o l=atomic
from 2 []NetworkPolicyPeer e o l=atomic
#NetworkPolicyEgressRule
ports 1 []NetworkPolicyPort e o l=atomic
to 2 []NetworkPolicyPeer e o l=atomic
#NetworkPolicyPort
protocol 1 *core.v1.Protocol e o
port 2 *intstr.IntOrString e o
endPort 3 *int32 e o
#IPBlock
cidr 1 string
except 2 []string e o l=atomic
#NetworkPolicyPeer
podSelector 1 *meta.v1.LabelSelector e o
namespaceSelector 2 *meta.v1.LabelSelector e o
ipBlock 3 *IPBlock e o
#NetworkPolicyList k i=1.3 d=1.9 x=1.16 r=networking,v1,NetworkPolicyList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []NetworkPolicy
`;
