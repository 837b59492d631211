/** Facts about the types of `storage`; made by scripts/facts/generate.mjs, do not edit. */
export const storageFacts = `
@v1
!VolumeBindingMode ["Immediate","WaitForFirstConsumer"]
#StorageClass k c i=1.6
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
provisioner 2 string
parameters 3 {}string e o
reclaimPolicy 4 *core.v1.PersistentVolumeReclaimPolicy e o
mountOptions 5 []string e o l=atomic
allowVolumeExpansion 6 *bool e o
volumeBindingMode 7 *VolumeBindingMode e o
allowedTopologies 8 []core.v1.TopologySelectorTerm e o l=atomic
#StorageClassList k i=1.6
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StorageClass
#VolumeAttachment k c i=1.13
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 VolumeAttachmentSpec
status 3 VolumeAttachmentStatus e o
#VolumeAttachmentList k i=1.13
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []VolumeAttachment
#VolumeAttachmentSpec
attacher 1 string
source 2 VolumeAttachmentSource
nodeName 3 string
#VolumeAttachmentSource
persistentVolumeName 1 *string e o
inlineVolumeSpec 2 *core.v1.PersistentVolumeSpec e o
#VolumeAttachmentStatus
attached 1 bool
attachmentMetadata 2 {}string e o
attachError 3 *VolumeError e o
detachError 4 *VolumeError e o
#VolumeError
time 1 meta.v1.Time e o
message 2 string e o
#CSIDriver k c i=1.18
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 CSIDriverSpec
#CSIDriverList k i=1.18
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSIDriver
#CSIDriverSpec
attachRequired 1 *bool e o
podInfoOnMount 2 *bool e o
volumeLifecycleModes 3 []string e o l=set t=[]v1.VolumeLifecycleMode
storageCapacity 4 *bool e o
fsGroupPolicy 5 *string e o t=v1.FSGroupPolicy
tokenRequests 6 []TokenRequest e o l=atomic
requiresRepublish 7 *bool e o
seLinuxMount 8 *bool e o
#TokenRequest
audience 1 string
expirationSeconds 2 *int64 e o
#CSINode k c i=1.17
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 CSINodeSpec
#CSINodeSpec
drivers 1 []CSINodeDriver l=map k=name p=merge y=name
#CSINodeDriver
name 1 string
nodeID 2 string
topologyKeys 3 []string o l=atomic
allocatable 4 *VolumeNodeResources e o
#VolumeNodeResources
count 1 *int32 e o
#CSINodeList k i=1.17
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSINode
#CSIStorageCapacity k n i=1.24
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
nodeTopology 2 *meta.v1.LabelSelector e o
storageClassName 3 string
capacity 4 *resource.Quantity e o
maximumVolumeSize 5 *resource.Quantity e o
#CSIStorageCapacityList k i=1.24
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSIStorageCapacity
@v1alpha1
#VolumeAttachment k c i=1.9 d=1.21 r=storage,v1,VolumeAttachment
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 VolumeAttachmentSpec
status 3 VolumeAttachmentStatus e o
#VolumeAttachmentList k i=1.9 d=1.21 r=storage,v1,VolumeAttachmentList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []VolumeAttachment
#VolumeAttachmentSpec
attacher 1 string
source 2 VolumeAttachmentSource
nodeName 3 string
#VolumeAttachmentSource
persistentVolumeName 1 *string e o
inlineVolumeSpec 2 *core.v1.PersistentVolumeSpec e o
#VolumeAttachmentStatus
attached 1 bool
attachmentMetadata 2 {}string e o
attachError 3 *VolumeError e o
detachError 4 *VolumeError e o
#VolumeError
time 1 meta.v1.Time e o
message 2 string e o
#CSIStorageCapacity k n i=1.19 d=1.21 r=storage,v1beta1,CSIStorageCapacity
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
nodeTopology 2 *meta.v1.LabelSelector e o
storageClassName 3 string
capacity 4 *resource.Quantity e o
maximumVolumeSize 5 *resource.Quantity e o
#CSIStorageCapacityList k i=1.19 d=1.21 r=storage,v1beta1,CSIStorageCapacityList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSIStorageCapacity
#VolumeAttributesClass k c i=1.29
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
driverName 2 string
parameters 3 {}string e
#VolumeAttributesClassList k i=1.29
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []VolumeAttributesClass
@v1beta1
#StorageClass k c i=1.4 d=1.19 r=storage,v1,StorageClass
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
provisioner 2 string
parameters 3 {}string e o
reclaimPolicy 4 *core.v1.PersistentVolumeReclaimPolicy e o
mountOptions 5 []string e o l=atomic
allowVolumeExpansion 6 *bool e o
volumeBindingMode 7 *string e o t=v1beta1.VolumeBindingMode
allowedTopologies 8 []core.v1.TopologySelectorTerm e o l=atomic
#StorageClassList k i=1.4 d=1.19 r=storage,v1,StorageClassList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StorageClass
#VolumeAttachment k c i=1.10 d=1.19 r=storage,v1,VolumeAttachment
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 VolumeAttachmentSpec
status 3 VolumeAttachmentStatus e o
#VolumeAttachmentList k i=1.10 d=1.19 r=storage,v1,VolumeAttachmentList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []VolumeAttachment
#VolumeAttachmentSpec
attacher 1 string
source 2 VolumeAttachmentSource
nodeName 3 string
#VolumeAttachmentSource
persistentVolumeName 1 *string e o
inlineVolumeSpec 2 *core.v1.PersistentVolumeSpec e o
#VolumeAttachmentStatus
attached 1 bool
attachmentMetadata 2 {}string e o
attachError 3 *VolumeError e o
detachError 4 *VolumeError e o
#VolumeError
time 1 meta.v1.Time e o
message 2 string e o
#CSIDriver k c i=1.14 d=1.19 r=storage,v1,CSIDriver
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 CSIDriverSpec
#CSIDriverList k i=1.14 d=1.19 r=storage,v1,CSIDriverList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSIDriver
#CSIDriverSpec
attachRequired 1 *bool e o
podInfoOnMount 2 *bool e o
volumeLifecycleModes 3 []string e o l=atomic t=[]v1beta1.VolumeLifecycleMode
storageCapacity 4 *bool e o
fsGroupPolicy 5 *string e o t=v1beta1.FSGroupPolicy
tokenRequests 6 []TokenRequest e o l=atomic
requiresRepublish 7 *bool e o
seLinuxMount 8 *bool e o
#TokenRequest
audience 1 string
expirationSeconds 2 *int64 e o
#CSINode k c i=1.14 d=1.17 x=1.22 r=storage,v1,CSINode
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 CSINodeSpec
#CSINodeSpec
drivers 1 []CSINodeDriver l=map k=name p=merge y=name
#CSINodeDriver
name 1 string
nodeID 2 string
topologyKeys 3 []string o l=atomic
allocatable 4 *VolumeNodeResources e o
#VolumeNodeResources
count 1 *int32 e o
#CSINodeList k i=1.14 d=1.17 x=1.22 r=storage,v1,CSINode
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSINode
#CSIStorageCapacity k n i=1.21 d=1.24 r=storage,v1,CSIStorageCapacity
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
nodeTopology 2 *meta.v1.LabelSelector e o
storageClassName 3 string
capacity 4 *resource.Quantity e o
maximumVolumeSize 5 *resource.Quantity e o
#CSIStorageCapacityList k i=1.21 d=1.24 r=storage,v1,CSIStorageCapacityList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CSIStorageCapacity
#VolumeAttributesClass k c i=1.31
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
driverName 2 string
parameters 3 {}string e
#VolumeAttributesClassList k i=1.31
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []VolumeAttributesClass
`;
