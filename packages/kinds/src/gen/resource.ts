/** Facts about the types of `resource`; made by scripts/facts/generate.mjs, do not edit. */
export const resourceFacts = `
@v1alpha3
#ResourceSlice k c i=1.31 r=resource,v1beta1,ResourceSlice
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceSliceSpec
#ResourceSliceSpec
driver 1 string q
pool 2 ResourcePool q
nodeName 3 string e o
nodeSelector 4 *core.v1.NodeSelector e o
allNodes 5 bool e o
devices 6 []Device o l=atomic
#ResourcePool
name 1 string q
generation 2 int64 q
resourceSliceCount 3 int64 q
#Device
name 1 string q
basic 2 *BasicDevice e o
#BasicDevice
attributes 1 {}DeviceAttribute e o t=map[v1alpha3.QualifiedName]v1alpha3.DeviceAttribute
capacity 2 {}resource.Quantity e o t=map[v1alpha3.QualifiedName]resource.Quantity
#DeviceAttribute
int 2 *int64 e o
bool 3 *bool e o
string 4 *string e o
version 5 *string e o
#ResourceSliceList k i=1.31 r=resource,v1beta1,ResourceSliceList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceSlice
#ResourceClaim k n i=1.31 r=resource,v1beta1,ResourceClaim
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceClaimSpec
status 3 ResourceClaimStatus e o
#ResourceClaimSpec
devices 1 DeviceClaim o
#DeviceClaim
requests 1 []DeviceRequest o l=atomic
constraints 2 []DeviceConstraint e o l=atomic
config 3 []DeviceClaimConfiguration e o l=atomic
#DeviceRequest
name 1 string q
deviceClassName 2 string q
selectors 3 []DeviceSelector e o l=atomic
allocationMode 4 string e o t=v1alpha3.DeviceAllocationMode
count 5 int64 e o
adminAccess 6 *bool e o
#DeviceSelector
cel 1 *CELDeviceSelector e o
#CELDeviceSelector
expression 1 string q
#DeviceConstraint
requests 1 []string e o l=atomic
matchAttribute 2 *string e o t=v1alpha3.FullyQualifiedName
#DeviceClaimConfiguration
requests 1 []string e o l=atomic
^2 DeviceConfiguration
#DeviceConfiguration
opaque 1 *OpaqueDeviceConfiguration e o
#OpaqueDeviceConfiguration
driver 1 string q
parameters 2 runtime.RawExtension q
#ResourceClaimStatus
allocation 1 *AllocationResult e o
reservedFor 2 []ResourceClaimConsumerReference e o l=map k=uid p=merge y=uid
devices 4 []AllocatedDeviceStatus e o l=map k=driver k=device k=pool
#ResourceClaimConsumerReference
apiGroup 1 string e o
resource 3 string q
name 4 string q
uid 5 string q t=types.UID
#AllocationResult
devices 1 DeviceAllocationResult e o
nodeSelector 3 *core.v1.NodeSelector e o
#DeviceAllocationResult
results 1 []DeviceRequestAllocationResult e o l=atomic
config 2 []DeviceAllocationConfiguration e o l=atomic
#DeviceRequestAllocationResult
request 1 string q
driver 2 string q
pool 3 string q
device 4 string q
adminAccess 5 *bool o
#DeviceAllocationConfiguration
source 1 string q t=v1alpha3.AllocationConfigSource
requests 2 []string e o l=atomic
^3 DeviceConfiguration
#ResourceClaimList k i=1.31 r=resource,v1beta1,ResourceClaimList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceClaim
#DeviceClass k c i=1.31 r=resource,v1beta1,DeviceClass
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DeviceClassSpec
#DeviceClassSpec
selectors 1 []DeviceSelector e o l=atomic
config 2 []DeviceClassConfiguration e o l=atomic
#DeviceClassConfiguration
^1 DeviceConfiguration
#DeviceClassList k i=1.31 r=resource,v1beta1,DeviceClassList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []DeviceClass
#ResourceClaimTemplate k n i=1.31 r=resource,v1beta1,ResourceClaimTemplate
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceClaimTemplateSpec
#ResourceClaimTemplateSpec
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceClaimSpec
#ResourceClaimTemplateList k i=1.31 r=resource,v1beta1,ResourceClaimTemplateList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceClaimTemplate
#AllocatedDeviceStatus
driver 1 string q
pool 2 string q
device 3 string q
conditions 4 []meta.v1.Condition o l=map k=type
data 5 runtime.RawExtension e o
networkData 6 *NetworkDeviceData e o
#NetworkDeviceData
interfaceName 1 string e o
ips 2 []string e o l=atomic
hardwareAddress 3 string e o
@v1beta1
#ResourceSlice k c i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceSliceSpec
#ResourceSliceSpec
driver 1 string q
pool 2 ResourcePool q
nodeName 3 string e o
nodeSelector 4 *core.v1.NodeSelector e o
allNodes 5 bool e o
devices 6 []Device o l=atomic
#ResourcePool
name 1 string q
generation 2 int64 q
resourceSliceCount 3 int64 q
#Device
name 1 string q
basic 2 *BasicDevice e o
#BasicDevice
attributes 1 {}DeviceAttribute e o t=map[v1beta1.QualifiedName]v1beta1.DeviceAttribute
capacity 2 {}DeviceCapacity e o t=map[v1beta1.QualifiedName]v1beta1.DeviceCapacity
#DeviceCapacity
value 1 resource.Quantity q
#DeviceAttribute
int 2 *int64 e o
bool 3 *bool e o
string 4 *string e o
version 5 *string e o
#ResourceSliceList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceSlice
#ResourceClaim k n i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceClaimSpec
status 3 ResourceClaimStatus e o
#ResourceClaimSpec
devices 1 DeviceClaim o
#DeviceClaim
requests 1 []DeviceRequest o l=atomic
constraints 2 []DeviceConstraint e o l=atomic
config 3 []DeviceClaimConfiguration e o l=atomic
#DeviceRequest
name 1 string q
deviceClassName 2 string q
selectors 3 []DeviceSelector e o l=atomic
allocationMode 4 string e o t=v1beta1.DeviceAllocationMode
count 5 int64 e o
adminAccess 6 *bool e o
#DeviceSelector
cel 1 *CELDeviceSelector e o
#CELDeviceSelector
expression 1 string q
#DeviceConstraint
requests 1 []string e o l=atomic
matchAttribute 2 *string e o t=v1beta1.FullyQualifiedName
#DeviceClaimConfiguration
requests 1 []string e o l=atomic
^2 DeviceConfiguration
#DeviceConfiguration
opaque 1 *OpaqueDeviceConfiguration e o
#OpaqueDeviceConfiguration
driver 1 string q
parameters 2 runtime.RawExtension q
#ResourceClaimStatus
allocation 1 *AllocationResult e o
reservedFor 2 []ResourceClaimConsumerReference e o l=map k=uid p=merge y=uid
devices 4 []AllocatedDeviceStatus e o l=map k=driver k=device k=pool
#ResourceClaimConsumerReference
apiGroup 1 string e o
resource 3 string q
name 4 string q
uid 5 string q t=types.UID
#AllocationResult
devices 1 DeviceAllocationResult e o
nodeSelector 3 *core.v1.NodeSelector e o
#DeviceAllocationResult
results 1 []DeviceRequestAllocationResult e o l=atomic
config 2 []DeviceAllocationConfiguration e o l=atomic
#DeviceRequestAllocationResult
request 1 string q
driver 2 string q
pool 3 string q
device 4 string q
adminAccess 5 *bool o
#DeviceAllocationConfiguration
source 1 string q t=v1beta1.AllocationConfigSource
requests 2 []string e o l=atomic
^3 DeviceConfiguration
#ResourceClaimList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceClaim
#DeviceClass k c i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 DeviceClassSpec
#DeviceClassSpec
selectors 1 []DeviceSelector e o l=atomic
config 2 []DeviceClassConfiguration e o l=atomic
#DeviceClassConfiguration
^1 DeviceConfiguration
#DeviceClassList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []DeviceClass
#ResourceClaimTemplate k n i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceClaimTemplateSpec
#ResourceClaimTemplateSpec
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceClaimSpec
#ResourceClaimTemplateList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceClaimTemplate
#AllocatedDeviceStatus
driver 1 string q
pool 2 string q
device 3 string q
conditions 4 []meta.v1.Condition o l=map k=type
data 5 runtime.RawExtension e o
networkData 6 *NetworkDeviceData e o
#NetworkDeviceData
interfaceName 1 string e o
ips 2 []string e o l=atomic
hardwareAddress 3 string e o
`;
