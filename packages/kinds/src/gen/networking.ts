/** Facts about the types of `networking`; made by scripts/facts/generate.mjs, do not edit. */
export const networkingFacts = `
@v1
!PolicyType ["Egress","Ingress"]
!PathType ["Exact","ImplementationSpecific","Prefix"]
#NetworkPolicy k n i=1.7
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 NetworkPolicySpec e o
#NetworkPolicySpec
podSelector 1 meta.v1.LabelSelector
ingress 2 []NetworkPolicyIngressRule e o l=atomic
egress 3 []NetworkPolicyEgressRule e o l=atomic
policyTypes 4 []PolicyType e o l=atomic
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
#NetworkPolicyList k i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []NetworkPolicy
#Ingress k n i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IngressSpec e o
status 3 IngressStatus e o
#IngressList k i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Ingress
#IngressSpec
ingressClassName 4 *string e o
defaultBackend 1 *IngressBackend e o
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
http 1 *HTTPIngressRuleValue e o
#HTTPIngressRuleValue
paths 1 []HTTPIngressPath l=atomic
#HTTPIngressPath
path 1 string e o
pathType 3 *PathType
backend 2 IngressBackend
#IngressBackend
service 4 *IngressServiceBackend e o
resource 3 *core.v1.TypedLocalObjectReference e o
#IngressServiceBackend
name 1 string
port 2 ServiceBackendPort e
#ServiceBackendPort s=atomic
name 1 string e o
number 2 int32 e o
#IngressClass k c i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IngressClassSpec e o
#IngressClassSpec
controller 1 string e
parameters 2 *IngressClassParametersReference e o
#IngressClassParametersReference
apiGroup 1 *string e o
kind 2 string
name 3 string
scope 4 *string o
namespace 5 *string e o
#IngressClassList k i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []IngressClass
@v1alpha1
#IPAddress k c i=1.27
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IPAddressSpec e o
#IPAddressSpec
parentRef 1 *ParentReference e q
#ParentReference
group 1 string e o
resource 2 string e q
namespace 3 string e o
name 4 string e q
#IPAddressList k i=1.27
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []IPAddress
#ServiceCIDR k c i=1.27
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ServiceCIDRSpec e o
status 3 ServiceCIDRStatus e o
#ServiceCIDRSpec
cidrs 1 []string e o l=atomic
#ServiceCIDRStatus
conditions 1 []meta.v1.Condition e o l=map k=type p=merge y=type
#ServiceCIDRList k i=1.27
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ServiceCIDR
@v1beta1
#Ingress k n i=1.14 d=1.19 r=networking,v1,Ingress
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IngressSpec e o
status 3 IngressStatus e o
#IngressList k i=1.14 d=1.19 r=networking,v1,IngressList
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
http 1 *HTTPIngressRuleValue e o
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
#IngressClass k c i=1.18 d=1.19 r=networking,v1,IngressClassList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IngressClassSpec e o
#IngressClassSpec
controller 1 string e
parameters 2 *IngressClassParametersReference e o
#IngressClassParametersReference
apiGroup 1 *string e o
kind 2 string
name 3 string
scope 4 *string
namespace 5 *string e o
#IngressClassList k i=1.18 d=1.19 r=networking,v1,IngressClassList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []IngressClass
#IPAddress k c i=1.31
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 IPAddressSpec e o
#IPAddressSpec
parentRef 1 *ParentReference e q
#ParentReference
group 1 string e o
resource 2 string e q
namespace 3 string e o
name 4 string e q
#IPAddressList k i=1.31
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []IPAddress
#ServiceCIDR k c i=1.31
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ServiceCIDRSpec e o
status 3 ServiceCIDRStatus e o
#ServiceCIDRSpec
cidrs 1 []string e o l=atomic
#ServiceCIDRStatus
conditions 1 []meta.v1.Condition e o l=map k=type p=merge y=type
#ServiceCIDRList k i=1.31
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ServiceCIDR
`;
