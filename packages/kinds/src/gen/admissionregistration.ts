/** Facts about the types of `admissionregistration`; made by scripts/facts/generate.mjs, do not edit. */
export const admissionregistrationFacts = `
@v1
!FailurePolicyType ["Fail","Ignore"]
!MatchPolicyType ["Equivalent","Exact"]
!SideEffectClass ["None","NoneOnDryRun","Some","Unknown"]
!ValidationAction ["Audit","Deny","Warn"]
!ReinvocationPolicyType ["IfNeeded","Never"]
!OperationType ["*","CONNECT","CREATE","DELETE","UPDATE"]
#Rule
apiGroups 1 []string e l=atomic
apiVersions 2 []string e l=atomic
resources 3 []string e l=atomic
scope 4 *string e o t=v1.ScopeType
#ValidatingAdmissionPolicy k c i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ValidatingAdmissionPolicySpec e
status 3 ValidatingAdmissionPolicyStatus e o
#ValidatingAdmissionPolicyStatus
observedGeneration 1 int64 e o
typeChecking 2 *TypeChecking e o
conditions 3 []meta.v1.Condition e o l=map k=type
#TypeChecking
expressionWarnings 1 []ExpressionWarning e o l=atomic
#ExpressionWarning
fieldRef 2 string
warning 3 string
#ValidatingAdmissionPolicyList k i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingAdmissionPolicy
#ValidatingAdmissionPolicySpec
paramKind 1 *ParamKind e o
matchConstraints 2 *MatchResources e
validations 3 []Validation e o l=atomic
failurePolicy 4 *FailurePolicyType e o
auditAnnotations 5 []AuditAnnotation e o l=atomic
matchConditions 6 []MatchCondition e o l=map k=name p=merge y=name
variables 7 []Variable e o l=map k=name p=merge y=name
#ParamKind s=atomic
apiVersion 1 string e
kind 2 string e
#Validation
expression 1 string
message 2 string e o
reason 3 *string e o t=v1.StatusReason
messageExpression 4 string e o
#Variable s=atomic
name 1 string
expression 2 string
#AuditAnnotation
key 1 string
valueExpression 2 string
#ValidatingAdmissionPolicyBinding k c i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ValidatingAdmissionPolicyBindingSpec e
#ValidatingAdmissionPolicyBindingList k i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingAdmissionPolicyBinding
#ValidatingAdmissionPolicyBindingSpec
policyName 1 string e
paramRef 2 *ParamRef e o
matchResources 3 *MatchResources e o
validationActions 4 []ValidationAction e l=set
#ParamRef s=atomic
name 1 string e
namespace 2 string e o
selector 3 *meta.v1.LabelSelector e o
parameterNotFoundAction 4 *string e t=v1.ParameterNotFoundActionType
#MatchResources s=atomic
namespaceSelector 1 *meta.v1.LabelSelector e o
objectSelector 2 *meta.v1.LabelSelector e o
resourceRules 3 []NamedRuleWithOperations e o l=atomic
excludeResourceRules 4 []NamedRuleWithOperations e o l=atomic
matchPolicy 7 *MatchPolicyType e o
#NamedRuleWithOperations s=atomic
resourceNames 1 []string e o l=atomic
^2 RuleWithOperations
#ValidatingWebhookConfiguration k c i=1.16
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
webhooks 2 []ValidatingWebhook e o l=map k=name p=merge y=name
#ValidatingWebhookConfigurationList k i=1.16
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingWebhookConfiguration
#MutatingWebhookConfiguration k c i=1.16
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
webhooks 2 []MutatingWebhook e o l=map k=name p=merge y=name
#MutatingWebhookConfigurationList k i=1.16
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []MutatingWebhookConfiguration
#ValidatingWebhook
name 1 string
clientConfig 2 WebhookClientConfig
rules 3 []RuleWithOperations e l=atomic
failurePolicy 4 *FailurePolicyType e o
matchPolicy 9 *MatchPolicyType e o
namespaceSelector 5 *meta.v1.LabelSelector e o
objectSelector 10 *meta.v1.LabelSelector e o
sideEffects 6 *SideEffectClass
timeoutSeconds 7 *int32 e o
admissionReviewVersions 8 []string l=atomic
matchConditions 11 []MatchCondition e o l=map k=name p=merge y=name
#MutatingWebhook
name 1 string
clientConfig 2 WebhookClientConfig
rules 3 []RuleWithOperations e l=atomic
failurePolicy 4 *FailurePolicyType e o
matchPolicy 9 *MatchPolicyType e o
namespaceSelector 5 *meta.v1.LabelSelector e o
objectSelector 11 *meta.v1.LabelSelector e o
sideEffects 6 *SideEffectClass
timeoutSeconds 7 *int32 e o
admissionReviewVersions 8 []string l=atomic
reinvocationPolicy 10 *ReinvocationPolicyType e o
matchConditions 12 []MatchCondition e o l=map k=name p=merge y=name
#RuleWithOperations
operations 1 []OperationType e l=atomic
^2 Rule
#WebhookClientConfig
url 3 *string e o
service 1 *ServiceReference e o
caBundle 2 bytes e o
#ServiceReference
namespace 1 string
name 2 string
path 3 *string e o
port 4 *int32 e o
#MatchCondition
name 1 string
expression 2 string
@v1alpha1
!ParameterNotFoundActionType ["Allow","Deny"]
!FailurePolicyType ["Fail","Ignore"]
!MatchPolicyType ["Equivalent","Exact"]
=MatchCondition admissionregistration.v1.MatchCondition
!ValidationAction ["Audit","Deny","Warn"]
!PatchType ["ApplyConfiguration","JSONPatch"]
#ValidatingAdmissionPolicy k c i=1.26
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ValidatingAdmissionPolicySpec e
status 3 ValidatingAdmissionPolicyStatus e o
#ValidatingAdmissionPolicyStatus
observedGeneration 1 int64 e o
typeChecking 2 *TypeChecking e o
conditions 3 []meta.v1.Condition e o l=map k=type
#TypeChecking
expressionWarnings 1 []ExpressionWarning e o l=atomic
#ExpressionWarning
fieldRef 2 string
warning 3 string
#ValidatingAdmissionPolicyList k i=1.26
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingAdmissionPolicy
#ValidatingAdmissionPolicySpec
paramKind 1 *ParamKind e o
matchConstraints 2 *MatchResources e
validations 3 []Validation e o l=atomic
failurePolicy 4 *FailurePolicyType e o
auditAnnotations 5 []AuditAnnotation e o l=atomic
matchConditions 6 []MatchCondition e o l=map k=name p=merge y=name
variables 7 []Variable e o l=map k=name p=merge y=name
#ParamKind s=atomic
apiVersion 1 string e
kind 2 string e
#Validation
expression 1 string
message 2 string e o
reason 3 *string e o t=v1.StatusReason
messageExpression 4 string e o
#Variable
name 1 string
expression 2 string
#AuditAnnotation
key 1 string
valueExpression 2 string
#ValidatingAdmissionPolicyBinding k c i=1.26
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ValidatingAdmissionPolicyBindingSpec e
#ValidatingAdmissionPolicyBindingList k i=1.26
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingAdmissionPolicyBinding
#ValidatingAdmissionPolicyBindingSpec
policyName 1 string e
paramRef 2 *ParamRef e o
matchResources 3 *MatchResources e o
validationActions 4 []ValidationAction e l=set
#ParamRef s=atomic
name 1 string e o
namespace 2 string e o
selector 3 *meta.v1.LabelSelector e o
parameterNotFoundAction 4 *ParameterNotFoundActionType e o
#MatchResources s=atomic
namespaceSelector 1 *meta.v1.LabelSelector e o
objectSelector 2 *meta.v1.LabelSelector e o
resourceRules 3 []NamedRuleWithOperations e o l=atomic
excludeResourceRules 4 []NamedRuleWithOperations e o l=atomic
matchPolicy 7 *MatchPolicyType e o
#NamedRuleWithOperations s=atomic
resourceNames 1 []string e o l=atomic
^2 admissionregistration.v1.RuleWithOperations
#MutatingAdmissionPolicy k c i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 MutatingAdmissionPolicySpec e
#MutatingAdmissionPolicyList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []MutatingAdmissionPolicy
#MutatingAdmissionPolicySpec
paramKind 1 *ParamKind e o
matchConstraints 2 *MatchResources e
variables 3 []Variable e o l=atomic
mutations 4 []Mutation e o l=atomic
failurePolicy 5 *FailurePolicyType e o
matchConditions 6 []MatchCondition e o l=map k=name p=merge y=name
reinvocationPolicy 7 admissionregistration.v1.ReinvocationPolicyType e
#Mutation
patchType 2 PatchType
applyConfiguration 3 *ApplyConfiguration e
jsonPatch 4 *JSONPatch e
#ApplyConfiguration
expression 1 string e
#JSONPatch
expression 1 string e
#MutatingAdmissionPolicyBinding k c i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 MutatingAdmissionPolicyBindingSpec e
#MutatingAdmissionPolicyBindingList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []MutatingAdmissionPolicyBinding
#MutatingAdmissionPolicyBindingSpec
policyName 1 string e
paramRef 2 *ParamRef e o
matchResources 3 *MatchResources e o
@v1beta1
!ValidationAction ["Audit","Deny","Warn"]
#ValidatingAdmissionPolicy k c i=1.28
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ValidatingAdmissionPolicySpec e
status 3 ValidatingAdmissionPolicyStatus e o
#ValidatingAdmissionPolicyStatus
observedGeneration 1 int64 e o
typeChecking 2 *TypeChecking e o
conditions 3 []meta.v1.Condition e o l=map k=type
#TypeChecking
expressionWarnings 1 []ExpressionWarning e o l=atomic
#ExpressionWarning
fieldRef 2 string
warning 3 string
#ValidatingAdmissionPolicyList k i=1.28
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingAdmissionPolicy
#ValidatingAdmissionPolicySpec
paramKind 1 *ParamKind e o
matchConstraints 2 *MatchResources e
validations 3 []Validation e o l=atomic
failurePolicy 4 *string e o t=v1beta1.FailurePolicyType
auditAnnotations 5 []AuditAnnotation e o l=atomic
matchConditions 6 []MatchCondition e o l=map k=name p=merge y=name
variables 7 []Variable e o l=map k=name p=merge y=name
#ParamKind s=atomic
apiVersion 1 string e
kind 2 string e
#Validation
expression 1 string
message 2 string e o
reason 3 *string e o t=v1.StatusReason
messageExpression 4 string e o
#Variable s=atomic
name 1 string
expression 2 string
#AuditAnnotation
key 1 string
valueExpression 2 string
#ValidatingAdmissionPolicyBinding k c i=1.28
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ValidatingAdmissionPolicyBindingSpec e
#ValidatingAdmissionPolicyBindingList k i=1.28
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingAdmissionPolicyBinding
#ValidatingAdmissionPolicyBindingSpec
policyName 1 string e
paramRef 2 *ParamRef e o
matchResources 3 *MatchResources e o
validationActions 4 []ValidationAction e l=set
#ParamRef s=atomic
name 1 string e
namespace 2 string e o
selector 3 *meta.v1.LabelSelector e o
parameterNotFoundAction 4 *string e t=v1beta1.ParameterNotFoundActionType
#MatchResources s=atomic
namespaceSelector 1 *meta.v1.LabelSelector e o
objectSelector 2 *meta.v1.LabelSelector e o
resourceRules 3 []NamedRuleWithOperations e o l=atomic
excludeResourceRules 4 []NamedRuleWithOperations e o l=atomic
matchPolicy 7 *string e o t=v1beta1.MatchPolicyType
#NamedRuleWithOperations s=atomic
resourceNames 1 []string e o l=atomic
^2 admissionregistration.v1.RuleWithOperations
#ValidatingWebhookConfiguration k c i=1.9 d=1.16 x=1.22 r=admissionregistration,v1,ValidatingWebhookConfiguration
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
webhooks 2 []ValidatingWebhook e o l=map k=name p=merge y=name
#ValidatingWebhookConfigurationList k i=1.9 d=1.16 x=1.22 r=admissionregistration,v1,ValidatingWebhookConfigurationList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ValidatingWebhookConfiguration
#MutatingWebhookConfiguration k c i=1.9 d=1.16 x=1.22 r=admissionregistration,v1,MutatingWebhookConfiguration
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
webhooks 2 []MutatingWebhook e o l=map k=name p=merge y=name
#MutatingWebhookConfigurationList k i=1.9 d=1.16 x=1.22 r=admissionregistration,v1,MutatingWebhookConfigurationList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []MutatingWebhookConfiguration
#ValidatingWebhook
name 1 string
clientConfig 2 WebhookClientConfig
rules 3 []admissionregistration.v1.RuleWithOperations e l=atomic
failurePolicy 4 *string e o t=v1beta1.FailurePolicyType
matchPolicy 9 *string e o t=v1beta1.MatchPolicyType
namespaceSelector 5 *meta.v1.LabelSelector e o
objectSelector 10 *meta.v1.LabelSelector e o
sideEffects 6 *string e o l=atomic t=v1beta1.SideEffectClass
timeoutSeconds 7 *int32 e o
admissionReviewVersions 8 []string e o l=atomic
matchConditions 11 []MatchCondition e o l=map k=name p=merge y=name
#MutatingWebhook
name 1 string
clientConfig 2 WebhookClientConfig
rules 3 []admissionregistration.v1.RuleWithOperations e l=atomic
failurePolicy 4 *string e o t=v1beta1.FailurePolicyType
matchPolicy 9 *string e o t=v1beta1.MatchPolicyType
namespaceSelector 5 *meta.v1.LabelSelector e o
objectSelector 11 *meta.v1.LabelSelector e o
sideEffects 6 *string e o t=v1beta1.SideEffectClass
timeoutSeconds 7 *int32 e o
admissionReviewVersions 8 []string e o l=atomic
reinvocationPolicy 10 *string e o t=v1beta1.ReinvocationPolicyType
matchConditions 12 []MatchCondition e o l=map k=name p=merge y=name
#WebhookClientConfig
url 3 *string e o
service 1 *ServiceReference e o
caBundle 2 bytes e o
#ServiceReference
namespace 1 string
name 2 string
path 3 *string e o
port 4 *int32 e o
#MatchCondition
name 1 string
expression 2 string
`;
