/** Facts about the types of `flowcontrol`; made by scripts/facts/generate.mjs, do not edit. */
export const flowcontrolFacts = `
@v1
#FlowSchema k c i=1.29
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 FlowSchemaSpec e o
status 3 FlowSchemaStatus e o
#FlowSchemaList k i=1.29
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []FlowSchema
#FlowSchemaSpec
priorityLevelConfiguration 1 PriorityLevelConfigurationReference
matchingPrecedence 2 int32 o
distinguisherMethod 3 *FlowDistinguisherMethod e o
rules 4 []PolicyRulesWithSubjects e o l=atomic
#FlowDistinguisherMethod
type 1 string t=v1.FlowDistinguisherMethodType
#PriorityLevelConfigurationReference
name 1 string
#PolicyRulesWithSubjects
subjects 1 []Subject l=atomic
resourceRules 2 []ResourcePolicyRule e o l=atomic
nonResourceRules 3 []NonResourcePolicyRule e o l=atomic
#Subject
kind 1 string t=v1.SubjectKind
user 2 *UserSubject e o
group 3 *GroupSubject e o
serviceAccount 4 *ServiceAccountSubject e o
#UserSubject
name 1 string
#GroupSubject
name 1 string
#ServiceAccountSubject
namespace 1 string
name 2 string
#ResourcePolicyRule
verbs 1 []string l=set
apiGroups 2 []string l=set
resources 3 []string l=set
clusterScope 4 bool e o
namespaces 5 []string o l=set
#NonResourcePolicyRule
verbs 1 []string l=set
nonResourceURLs 6 []string l=set
#FlowSchemaStatus
conditions 1 []FlowSchemaCondition e o l=map k=type p=merge y=type
#FlowSchemaCondition
type 1 string e t=v1.FlowSchemaConditionType
status 2 string e t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
#PriorityLevelConfiguration k c i=1.29
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PriorityLevelConfigurationSpec e o
status 3 PriorityLevelConfigurationStatus e o
#PriorityLevelConfigurationList k i=1.29
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityLevelConfiguration
#PriorityLevelConfigurationSpec
type 1 string t=v1.PriorityLevelEnablement
limited 2 *LimitedPriorityLevelConfiguration e o
exempt 3 *ExemptPriorityLevelConfiguration e o
#LimitedPriorityLevelConfiguration
nominalConcurrencyShares 1 *int32 o
limitResponse 2 LimitResponse e
lendablePercent 3 *int32 e o
borrowingLimitPercent 4 *int32 e o
#ExemptPriorityLevelConfiguration
nominalConcurrencyShares 1 *int32 e o
lendablePercent 2 *int32 e o
#LimitResponse
type 1 string t=v1.LimitResponseType
queuing 2 *QueuingConfiguration e o
#QueuingConfiguration
queues 1 int32 o
handSize 2 int32 o
queueLengthLimit 3 int32 o
#PriorityLevelConfigurationStatus
conditions 1 []PriorityLevelConfigurationCondition e o l=map k=type p=merge y=type
#PriorityLevelConfigurationCondition
type 1 string e t=v1.PriorityLevelConfigurationConditionType
status 2 string e t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
@v1beta1
#FlowSchema k c i=1.20 r=flowcontrol.apiserver,v1beta3,FlowSchema
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 FlowSchemaSpec e o
status 3 FlowSchemaStatus e o
#FlowSchemaList k i=1.20 r=flowcontrol.apiserver,v1beta3,FlowSchemaList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []FlowSchema
#FlowSchemaSpec
priorityLevelConfiguration 1 PriorityLevelConfigurationReference
matchingPrecedence 2 int32 o
distinguisherMethod 3 *FlowDistinguisherMethod e o
rules 4 []PolicyRulesWithSubjects e o l=atomic
#FlowDistinguisherMethod
type 1 string t=v1beta1.FlowDistinguisherMethodType
#PriorityLevelConfigurationReference
name 1 string
#PolicyRulesWithSubjects
subjects 1 []Subject l=atomic
resourceRules 2 []ResourcePolicyRule e o l=atomic
nonResourceRules 3 []NonResourcePolicyRule e o l=atomic
#Subject
kind 1 string t=v1beta1.SubjectKind
user 2 *UserSubject e o
group 3 *GroupSubject e o
serviceAccount 4 *ServiceAccountSubject e o
#UserSubject
name 1 string
#GroupSubject
name 1 string
#ServiceAccountSubject
namespace 1 string
name 2 string
#ResourcePolicyRule
verbs 1 []string l=set
apiGroups 2 []string l=set
resources 3 []string l=set
clusterScope 4 bool e o
namespaces 5 []string o l=set
#NonResourcePolicyRule
verbs 1 []string l=set
nonResourceURLs 6 []string l=set
#FlowSchemaStatus
conditions 1 []FlowSchemaCondition e o l=map k=type
#FlowSchemaCondition
type 1 string e t=v1beta1.FlowSchemaConditionType
status 2 string e t=v1beta1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
#PriorityLevelConfiguration k c i=1.20 r=flowcontrol.apiserver,v1beta3,PriorityLevelConfiguration
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PriorityLevelConfigurationSpec e o
status 3 PriorityLevelConfigurationStatus e o
#PriorityLevelConfigurationList k i=1.20 r=flowcontrol.apiserver,v1beta3,PriorityLevelConfigurationList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityLevelConfiguration
#PriorityLevelConfigurationSpec
type 1 string t=v1beta1.PriorityLevelEnablement
limited 2 *LimitedPriorityLevelConfiguration e o
exempt 3 *ExemptPriorityLevelConfiguration e o
#LimitedPriorityLevelConfiguration
assuredConcurrencyShares 1 int32 o
limitResponse 2 LimitResponse e
lendablePercent 3 *int32 e o
borrowingLimitPercent 4 *int32 e o
#ExemptPriorityLevelConfiguration
nominalConcurrencyShares 1 *int32 e o
lendablePercent 2 *int32 e o
#LimitResponse
type 1 string t=v1beta1.LimitResponseType
queuing 2 *QueuingConfiguration e o
#QueuingConfiguration
queues 1 int32 o
handSize 2 int32 o
queueLengthLimit 3 int32 o
#PriorityLevelConfigurationStatus
conditions 1 []PriorityLevelConfigurationCondition e o l=map k=type
#PriorityLevelConfigurationCondition
type 1 string e t=v1beta1.PriorityLevelConfigurationConditionType
status 2 string e t=v1beta1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
@v1beta2
#FlowSchema k c i=1.23 r=flowcontrol.apiserver,v1beta3,FlowSchema
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 FlowSchemaSpec e o
status 3 FlowSchemaStatus e o
#FlowSchemaList k i=1.23 r=flowcontrol.apiserver,v1beta3,FlowSchemaList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []FlowSchema
#FlowSchemaSpec
priorityLevelConfiguration 1 PriorityLevelConfigurationReference
matchingPrecedence 2 int32 o
distinguisherMethod 3 *FlowDistinguisherMethod e o
rules 4 []PolicyRulesWithSubjects e o l=atomic
#FlowDistinguisherMethod
type 1 string t=v1beta2.FlowDistinguisherMethodType
#PriorityLevelConfigurationReference
name 1 string
#PolicyRulesWithSubjects
subjects 1 []Subject l=atomic
resourceRules 2 []ResourcePolicyRule e o l=atomic
nonResourceRules 3 []NonResourcePolicyRule e o l=atomic
#Subject
kind 1 string t=v1beta2.SubjectKind
user 2 *UserSubject e o
group 3 *GroupSubject e o
serviceAccount 4 *ServiceAccountSubject e o
#UserSubject
name 1 string
#GroupSubject
name 1 string
#ServiceAccountSubject
namespace 1 string
name 2 string
#ResourcePolicyRule
verbs 1 []string l=set
apiGroups 2 []string l=set
resources 3 []string l=set
clusterScope 4 bool e o
namespaces 5 []string o l=set
#NonResourcePolicyRule
verbs 1 []string l=set
nonResourceURLs 6 []string l=set
#FlowSchemaStatus
conditions 1 []FlowSchemaCondition e o l=map k=type
#FlowSchemaCondition
type 1 string e t=v1beta2.FlowSchemaConditionType
status 2 string e t=v1beta2.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
#PriorityLevelConfiguration k c i=1.23 r=flowcontrol.apiserver,v1beta3,PriorityLevelConfiguration
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PriorityLevelConfigurationSpec e o
status 3 PriorityLevelConfigurationStatus e o
#PriorityLevelConfigurationList k i=1.23 r=flowcontrol.apiserver,v1beta3,PriorityLevelConfigurationList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityLevelConfiguration
#PriorityLevelConfigurationSpec
type 1 string t=v1beta2.PriorityLevelEnablement
limited 2 *LimitedPriorityLevelConfiguration e o
exempt 3 *ExemptPriorityLevelConfiguration e o
#LimitedPriorityLevelConfiguration
assuredConcurrencyShares 1 int32 o
limitResponse 2 LimitResponse e
lendablePercent 3 *int32 e o
borrowingLimitPercent 4 *int32 e o
#ExemptPriorityLevelConfiguration
nominalConcurrencyShares 1 *int32 e o
lendablePercent 2 *int32 e o
#LimitResponse
type 1 string t=v1beta2.LimitResponseType
queuing 2 *QueuingConfiguration e o
#QueuingConfiguration
queues 1 int32 o
handSize 2 int32 o
queueLengthLimit 3 int32 o
#PriorityLevelConfigurationStatus
conditions 1 []PriorityLevelConfigurationCondition e o l=map k=type
#PriorityLevelConfigurationCondition
type 1 string e t=v1beta2.PriorityLevelConfigurationConditionType
status 2 string e t=v1beta2.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
@v1beta3
#FlowSchema k c i=1.26 r=flowcontrol.apiserver,v1,FlowSchema
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 FlowSchemaSpec e o
status 3 FlowSchemaStatus e o
#FlowSchemaList k i=1.26 r=flowcontrol.apiserver,v1,FlowSchemaList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []FlowSchema
#FlowSchemaSpec
priorityLevelConfiguration 1 PriorityLevelConfigurationReference
matchingPrecedence 2 int32 o
distinguisherMethod 3 *FlowDistinguisherMethod e o
rules 4 []PolicyRulesWithSubjects e o l=atomic
#FlowDistinguisherMethod
type 1 string t=v1beta3.FlowDistinguisherMethodType
#PriorityLevelConfigurationReference
name 1 string
#PolicyRulesWithSubjects
subjects 1 []Subject l=atomic
resourceRules 2 []ResourcePolicyRule e o l=atomic
nonResourceRules 3 []NonResourcePolicyRule e o l=atomic
#Subject
kind 1 string t=v1beta3.SubjectKind
user 2 *UserSubject e o
group 3 *GroupSubject e o
serviceAccount 4 *ServiceAccountSubject e o
#UserSubject
name 1 string
#GroupSubject
name 1 string
#ServiceAccountSubject
namespace 1 string
name 2 string
#ResourcePolicyRule
verbs 1 []string l=set
apiGroups 2 []string l=set
resources 3 []string l=set
clusterScope 4 bool e o
namespaces 5 []string o l=set
#NonResourcePolicyRule
verbs 1 []string l=set
nonResourceURLs 6 []string l=set
#FlowSchemaStatus
conditions 1 []FlowSchemaCondition e o l=map k=type p=merge y=type
#FlowSchemaCondition
type 1 string e t=v1beta3.FlowSchemaConditionType
status 2 string e t=v1beta3.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
#PriorityLevelConfiguration k c i=1.26 r=flowcontrol.apiserver,v1,PriorityLevelConfiguration
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PriorityLevelConfigurationSpec e o
status 3 PriorityLevelConfigurationStatus e o
#PriorityLevelConfigurationList k i=1.26 r=flowcontrol.apiserver,v1,PriorityLevelConfigurationList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityLevelConfiguration
#PriorityLevelConfigurationSpec
type 1 string t=v1beta3.PriorityLevelEnablement
limited 2 *LimitedPriorityLevelConfiguration e o
exempt 3 *ExemptPriorityLevelConfiguration e o
#LimitedPriorityLevelConfiguration
nominalConcurrencyShares 1 int32 o
limitResponse 2 LimitResponse e
lendablePercent 3 *int32 e o
borrowingLimitPercent 4 *int32 e o
#ExemptPriorityLevelConfiguration
nominalConcurrencyShares 1 *int32 e o
lendablePercent 2 *int32 e o
#LimitResponse
type 1 string t=v1beta3.LimitResponseType
queuing 2 *QueuingConfiguration e o
#QueuingConfiguration
queues 1 int32 o
handSize 2 int32 o
queueLengthLimit 3 int32 o
#PriorityLevelConfigurationStatus
conditions 1 []PriorityLevelConfigurationCondition e o l=map k=type p=merge y=type
#PriorityLevelConfigurationCondition
type 1 string e t=v1beta3.PriorityLevelConfigurationConditionType
status 2 string e t=v1beta3.ConditionStatus
lastTransitionTime 3 meta.v1.Time e
reason 4 string e
message 5 string e
`;
