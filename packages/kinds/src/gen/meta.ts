/** Facts about the types of `meta`; made by scripts/facts/generate.mjs, do not edit. */
export const metaFacts = `
@v1
=Verbs []string
#GroupResource
group 1 string
resource 2 string
#GroupVersionResource
group 1 string
version 2 string
resource 3 string
#GroupKind
group 1 string
kind 2 string
#GroupVersionKind
group 1 string
version 2 string
kind 3 string
#GroupVersion
group 1 string
version 2 string
#TypeMeta
kind 1 string e o
apiVersion 2 string e o
#ListMeta
selfLink 1 string e o
resourceVersion 2 string e o
continue 3 string e
remainingItemCount 4 *int64 e o
#ObjectMeta
name 1 string e o
generateName 2 string e o
namespace 3 string e o
selfLink 4 string e o
uid 5 string e o t=types.UID
resourceVersion 6 string e o
generation 7 int64 e o
creationTimestamp 8 Time e o
deletionTimestamp 9 *Time e o
deletionGracePeriodSeconds 10 *int64 e o
labels 11 {}string e o
annotations 12 {}string e o
ownerReferences 13 []OwnerReference e o l=map k=uid p=merge y=uid
finalizers 14 []string e o l=set p=merge
managedFields 17 []ManagedFieldsEntry e o l=atomic
#OwnerReference s=atomic
apiVersion 5 string
kind 1 string
name 3 string
uid 4 string t=types.UID
controller 6 *bool e o
blockOwnerDeletion 7 *bool e o
#ListOptions k
^- TypeMeta
labelSelector 1 string e o
fieldSelector 2 string e o
watch 3 bool e o
allowWatchBookmarks 9 bool e o
resourceVersion 4 string e o
resourceVersionMatch 10 string e o t=v1.ResourceVersionMatch
timeoutSeconds 5 *int64 e o
limit 7 int64 e
continue 8 string e
sendInitialEvents 11 *bool e o
#GetOptions k
^- TypeMeta
resourceVersion 1 string e o
#DeleteOptions k
^- TypeMeta
gracePeriodSeconds 1 *int64 e o
preconditions 2 *Preconditions e o
orphanDependents 3 *bool e o
propagationPolicy 4 *string e o t=v1.DeletionPropagation
dryRun 5 []string e o l=atomic
ignoreStoreReadErrorWithClusterBreakingPotential 6 *bool e o
#CreateOptions k
^- TypeMeta
dryRun 1 []string e o l=atomic
fieldManager 3 string e o
fieldValidation 4 string e o
#PatchOptions k
^- TypeMeta
dryRun 1 []string e o l=atomic
force 2 *bool e o
fieldManager 3 string e o
fieldValidation 4 string e o
#ApplyOptions k
^- TypeMeta
dryRun 1 []string e o l=atomic
force 2 bool
fieldManager 3 string
#UpdateOptions k
^- TypeMeta
dryRun 1 []string e o l=atomic
fieldManager 2 string e o
fieldValidation 3 string e o
#Preconditions
uid 1 *string e o t=types.UID
resourceVersion 2 *string e o
#Status k
^- TypeMeta
metadata 1 ListMeta e o
status 2 string e o
message 3 string e o
reason 4 string e o t=v1.StatusReason
details 5 *StatusDetails e o l=atomic
code 6 int32 e o
#StatusDetails
name 1 string e o
group 2 string e o
kind 3 string e o
uid 6 string e o t=types.UID
causes 4 []StatusCause e o l=atomic
retryAfterSeconds 5 int32 e o
#StatusCause
reason 1 string e o t=v1.CauseType
message 2 string e o
field 3 string e o
#List k
^- TypeMeta
metadata 1 ListMeta e o
items 2 []runtime.RawExtension
#APIVersions k
^- TypeMeta
versions 1 []string l=atomic
serverAddressByClientCIDRs 2 []ServerAddressByClientCIDR l=atomic
#APIGroupList k
^- TypeMeta
groups 1 []APIGroup l=atomic
#APIGroup k
^- TypeMeta
name 1 string
versions 2 []GroupVersionForDiscovery l=atomic
preferredVersion 3 GroupVersionForDiscovery e o
serverAddressByClientCIDRs 4 []ServerAddressByClientCIDR e o l=atomic
#ServerAddressByClientCIDR
clientCIDR 1 string
serverAddress 2 string
#GroupVersionForDiscovery
groupVersion 1 string
version 2 string
#APIResource
name 1 string
singularName 6 string
namespaced 2 bool
group 8 string e
version 9 string e
kind 3 string
verbs 4 Verbs
shortNames 5 []string e l=atomic
categories 7 []string e l=atomic
storageVersionHash 10 string e o
#APIResourceList k
^- TypeMeta
groupVersion 1 string
resources 2 []APIResource l=atomic
#RootPaths
paths 1 []string l=atomic
#LabelSelector s=atomic
matchLabels 1 {}string e o
matchExpressions 2 []LabelSelectorRequirement e o l=atomic
#LabelSelectorRequirement
key 1 string
operator 2 string t=v1.LabelSelectorOperator
values 3 []string e o l=atomic
#FieldSelectorRequirement
key 1 string
operator 2 string t=v1.FieldSelectorOperator
values 3 []string e o l=atomic
#ManagedFieldsEntry
manager 1 string e
operation 2 string e t=v1.ManagedFieldsOperationType
apiVersion 3 string e
time 4 *Time e o
fieldsType 6 string e
fieldsV1 7 *FieldsV1 e o
subresource 8 string e
#Table k
^- TypeMeta
metadata - ListMeta e o
columnDefinitions - []TableColumnDefinition l=atomic
rows - []TableRow l=atomic
#TableColumnDefinition
name - string
type - string
format - string
description - string
priority - int32
#TableRow
conditions - []TableRowCondition e o l=atomic
object - runtime.RawExtension e o
#TableRowCondition
type - string t=v1.RowConditionType
status - string t=v1.ConditionStatus
reason - string e o
message - string e o
#TableOptions k
^- TypeMeta
includeObject 1 string e t=v1.IncludeObjectPolicy
#PartialObjectMetadata k
^- TypeMeta
metadata 1 ObjectMeta e o
#PartialObjectMetadataList k
^- TypeMeta
metadata 1 ListMeta e o
items 2 []PartialObjectMetadata
#Condition
type 1 string q
status 2 string q t=v1.ConditionStatus
observedGeneration 3 int64 e o
lastTransitionTime 4 Time q
reason 5 string q
message 6 string q
#WatchEvent
type 1 string
object 2 runtime.RawExtension
@v1beta1
#PartialObjectMetadataList k
^- meta.v1.TypeMeta
metadata 2 meta.v1.ListMeta e o
items 1 []meta.v1.PartialObjectMetadata
`;
