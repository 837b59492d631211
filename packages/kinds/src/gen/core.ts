/** Facts about the types of `core`; made by scripts/facts/generate.mjs, do not edit. */
export const coreFacts = `
@v1
!PersistentVolumeReclaimPolicy ["Delete","Recycle","Retain"]
!PersistentVolumeMode ["Block","Filesystem"]
!ClaimResourceStatus ["ControllerResizeInProgress","ControllerResizeInfeasible","NodeResizeInProgress","NodeResizeInfeasible","NodeResizePending"]
!PersistentVolumeClaimModifyVolumeStatus ["InProgress","Infeasible","Pending"]
!PersistentVolumeAccessMode ["ReadOnlyMany","ReadWriteMany","ReadWriteOnce","ReadWriteOncePod"]
!PersistentVolumePhase ["Available","Bound","Failed","Pending","Released"]
!PersistentVolumeClaimPhase ["Bound","Lost","Pending"]
!HostPathType ["","BlockDevice","CharDevice","Directory","DirectoryOrCreate","File","FileOrCreate","Socket"]
!Protocol ["SCTP","TCP","UDP"]
!AzureDataDiskCachingMode ["None","ReadOnly","ReadWrite"]
!AzureDataDiskKind ["Dedicated","Managed","Shared"]
!MountPropagationMode ["Bidirectional","HostToContainer","None"]
!URIScheme ["HTTP","HTTPS"]
!PullPolicy ["Always","IfNotPresent","Never"]
!PreemptionPolicy ["Never","PreemptLowerPriority"]
!TerminationMessagePolicy ["FallbackToLogsOnError","File"]
!PodPhase ["Failed","Pending","Running","Succeeded","Unknown"]
!RestartPolicy ["Always","Never","OnFailure"]
!DNSPolicy ["ClusterFirst","ClusterFirstWithHostNet","Default","None"]
!NodeSelectorOperator ["DoesNotExist","Exists","Gt","In","Lt","NotIn"]
!TaintEffect ["NoExecute","NoSchedule","PreferNoSchedule"]
!TolerationOperator ["Equal","Exists"]
!UnsatisfiableConstraintAction ["DoNotSchedule","ScheduleAnyway"]
!NodeInclusionPolicy ["Honor","Ignore"]
!PodFSGroupChangePolicy ["Always","OnRootMismatch"]
!SupplementalGroupsPolicy ["Merge","Strict"]
!SeccompProfileType ["Localhost","RuntimeDefault","Unconfined"]
!AppArmorProfileType ["Localhost","RuntimeDefault","Unconfined"]
!PodQOSClass ["BestEffort","Burstable","Guaranteed"]
!ServiceAffinity ["ClientIP","None"]
!ServiceType ["ClusterIP","ExternalName","LoadBalancer","NodePort"]
!ServiceInternalTrafficPolicy ["Cluster","Local"]
!ServiceExternalTrafficPolicy ["Cluster","Local"]
!IPFamily ["","IPv4","IPv6"]
!IPFamilyPolicy ["PreferDualStack","RequireDualStack","SingleStack"]
!NodePhase ["Pending","Running","Terminated"]
=ResourceList {}resource.Quantity
!NamespacePhase ["Active","Terminating"]
=List meta.v1.List
!ResourceQuotaScope ["BestEffort","CrossNamespacePodAffinity","NotBestEffort","NotTerminating","PriorityClass","Terminating"]
!ScopeSelectorOperator ["DoesNotExist","Exists","In","NotIn"]
!ProcMountType ["Default","Unmasked"]
#Volume
name 1 string
^2 VolumeSource
#VolumeSource
hostPath 1 *HostPathVolumeSource e o
emptyDir 2 *EmptyDirVolumeSource e o
gcePersistentDisk 3 *GCEPersistentDiskVolumeSource e o
awsElasticBlockStore 4 *AWSElasticBlockStoreVolumeSource e o
gitRepo 5 *GitRepoVolumeSource e o
secret 6 *SecretVolumeSource e o
nfs 7 *NFSVolumeSource e o
iscsi 8 *ISCSIVolumeSource e o
glusterfs 9 *GlusterfsVolumeSource e o
persistentVolumeClaim 10 *PersistentVolumeClaimVolumeSource e o
rbd 11 *RBDVolumeSource e o
flexVolume 12 *FlexVolumeSource e o
cinder 13 *CinderVolumeSource e o
cephfs 14 *CephFSVolumeSource e o
flocker 15 *FlockerVolumeSource e o
downwardAPI 16 *DownwardAPIVolumeSource e o
fc 17 *FCVolumeSource e o
azureFile 18 *AzureFileVolumeSource e o
configMap 19 *ConfigMapVolumeSource e o
vsphereVolume 20 *VsphereVirtualDiskVolumeSource e o
quobyte 21 *QuobyteVolumeSource e o
azureDisk 22 *AzureDiskVolumeSource e o
photonPersistentDisk 23 *PhotonPersistentDiskVolumeSource e
projected 26 *ProjectedVolumeSource e
portworxVolume 24 *PortworxVolumeSource e o
scaleIO 25 *ScaleIOVolumeSource e o
storageos 27 *StorageOSVolumeSource e o
csi 28 *CSIVolumeSource e o
ephemeral 29 *EphemeralVolumeSource e o
image 30 *ImageVolumeSource e o
#PersistentVolumeClaimVolumeSource
claimName 1 string
readOnly 2 bool e o
#PersistentVolumeSource
gcePersistentDisk 1 *GCEPersistentDiskVolumeSource e o
awsElasticBlockStore 2 *AWSElasticBlockStoreVolumeSource e o
hostPath 3 *HostPathVolumeSource e o
glusterfs 4 *GlusterfsPersistentVolumeSource e o
nfs 5 *NFSVolumeSource e o
rbd 6 *RBDPersistentVolumeSource e o
iscsi 7 *ISCSIPersistentVolumeSource e o
cinder 8 *CinderPersistentVolumeSource e o
cephfs 9 *CephFSPersistentVolumeSource e o
fc 10 *FCVolumeSource e o
flocker 11 *FlockerVolumeSource e o
flexVolume 12 *FlexPersistentVolumeSource e o
azureFile 13 *AzureFilePersistentVolumeSource e o
vsphereVolume 14 *VsphereVirtualDiskVolumeSource e o
quobyte 15 *QuobyteVolumeSource e o
azureDisk 16 *AzureDiskVolumeSource e o
photonPersistentDisk 17 *PhotonPersistentDiskVolumeSource e
portworxVolume 18 *PortworxVolumeSource e o
scaleIO 19 *ScaleIOPersistentVolumeSource e o
local 20 *LocalVolumeSource e o
storageos 21 *StorageOSPersistentVolumeSource e o
csi 22 *CSIPersistentVolumeSource e o
#PersistentVolume k c i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PersistentVolumeSpec e o
status 3 PersistentVolumeStatus e o
#PersistentVolumeSpec
capacity 1 ResourceList e o
^2 PersistentVolumeSource
accessModes 3 []PersistentVolumeAccessMode e o l=atomic
claimRef 4 *ObjectReference e o s=granular
persistentVolumeReclaimPolicy 5 PersistentVolumeReclaimPolicy e o
storageClassName 6 string e o
mountOptions 7 []string e o l=atomic
volumeMode 8 *PersistentVolumeMode e o
nodeAffinity 9 *VolumeNodeAffinity e o
volumeAttributesClassName 10 *string e o
#VolumeNodeAffinity
required 1 *NodeSelector e
#PersistentVolumeStatus
phase 1 PersistentVolumePhase e o
message 2 string e o
reason 3 string e o
lastPhaseTransitionTime 4 *meta.v1.Time e o
#PersistentVolumeList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PersistentVolume
#PersistentVolumeClaim k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PersistentVolumeClaimSpec e o
status 3 PersistentVolumeClaimStatus e o
#PersistentVolumeClaimList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PersistentVolumeClaim
#PersistentVolumeClaimSpec
accessModes 1 []PersistentVolumeAccessMode e o l=atomic
selector 4 *meta.v1.LabelSelector e o
resources 2 VolumeResourceRequirements e o
volumeName 3 string e o
storageClassName 5 *string e o
volumeMode 6 *PersistentVolumeMode e o
dataSource 7 *TypedLocalObjectReference e o
dataSourceRef 8 *TypedObjectReference e o
volumeAttributesClassName 9 *string e o
#TypedObjectReference
apiGroup 1 *string o
kind 2 string
name 3 string
namespace 4 *string e o
#ModifyVolumeStatus
targetVolumeAttributesClassName 1 string e
status 2 PersistentVolumeClaimModifyVolumeStatus
#PersistentVolumeClaimCondition
type 1 string t=v1.PersistentVolumeClaimConditionType
status 2 string t=v1.ConditionStatus
lastProbeTime 3 meta.v1.Time e o
lastTransitionTime 4 meta.v1.Time e o
reason 5 string e o
message 6 string e o
#PersistentVolumeClaimStatus
phase 1 PersistentVolumeClaimPhase e o
accessModes 2 []PersistentVolumeAccessMode e o l=atomic
capacity 3 ResourceList e o
conditions 4 []PersistentVolumeClaimCondition e o l=map k=type p=merge y=type
allocatedResources 5 ResourceList e o
allocatedResourceStatuses 7 {}ClaimResourceStatus e o m=granular t=map[v1.ResourceName]v1.ClaimResourceStatus
currentVolumeAttributesClassName 8 *string e o
modifyVolumeStatus 9 *ModifyVolumeStatus e o
#HostPathVolumeSource
path 1 string
type 2 *HostPathType e o
#EmptyDirVolumeSource
medium 1 string e o t=v1.StorageMedium
sizeLimit 2 *resource.Quantity e o
#GlusterfsVolumeSource
endpoints 1 string
path 2 string
readOnly 3 bool e o
#GlusterfsPersistentVolumeSource
endpoints 1 string
path 2 string
readOnly 3 bool e o
endpointsNamespace 4 *string e o
#RBDVolumeSource
monitors 1 []string l=atomic
image 2 string
fsType 3 string e o
pool 4 string e o v="rbd"
user 5 string e o v="admin"
keyring 6 string e o v="/etc/ceph/keyring"
secretRef 7 *LocalObjectReference e o
readOnly 8 bool e o
#RBDPersistentVolumeSource
monitors 1 []string l=atomic
image 2 string
fsType 3 string e o
pool 4 string e o v="rbd"
user 5 string e o v="admin"
keyring 6 string e o v="/etc/ceph/keyring"
secretRef 7 *SecretReference e o
readOnly 8 bool e o
#CinderVolumeSource
volumeID 1 string
fsType 2 string e o
readOnly 3 bool e o
secretRef 4 *LocalObjectReference e o
#CinderPersistentVolumeSource
volumeID 1 string
fsType 2 string e o
readOnly 3 bool e o
secretRef 4 *SecretReference e o
#CephFSVolumeSource
monitors 1 []string l=atomic
path 2 string e o
user 3 string e o
secretFile 4 string e o
secretRef 5 *LocalObjectReference e o
readOnly 6 bool e o
#SecretReference s=atomic
name 1 string e o
namespace 2 string e o
#CephFSPersistentVolumeSource
monitors 1 []string l=atomic
path 2 string e o
user 3 string e o
secretFile 4 string e o
secretRef 5 *SecretReference e o
readOnly 6 bool e o
#FlockerVolumeSource
datasetName 1 string e o
datasetUUID 2 string e o
#GCEPersistentDiskVolumeSource
pdName 1 string
fsType 2 string e o
partition 3 int32 e o
readOnly 4 bool e o
#QuobyteVolumeSource
registry 1 string
volume 2 string
readOnly 3 bool e o
user 4 string e o
group 5 string e o
tenant 6 string e o
#FlexPersistentVolumeSource
driver 1 string
fsType 2 string e o
secretRef 3 *SecretReference e o
readOnly 4 bool e o
options 5 {}string e o
#FlexVolumeSource
driver 1 string
fsType 2 string e o
secretRef 3 *LocalObjectReference e o
readOnly 4 bool e o
options 5 {}string e o
#AWSElasticBlockStoreVolumeSource
volumeID 1 string
fsType 2 string e o
partition 3 int32 e o
readOnly 4 bool e o
#GitRepoVolumeSource
repository 1 string
revision 2 string e o
directory 3 string e o
#SecretVolumeSource
secretName 1 string e o
items 2 []KeyToPath e o l=atomic
defaultMode 3 *int32 e o
optional 4 *bool e o
#SecretProjection
^1 LocalObjectReference
items 2 []KeyToPath e o l=atomic
optional 4 *bool e o
#NFSVolumeSource
server 1 string
path 2 string
readOnly 3 bool e o
#ISCSIVolumeSource
targetPortal 1 string
iqn 2 string
lun 3 int32
iscsiInterface 4 string e o v="default"
fsType 5 string e o
readOnly 6 bool e o
portals 7 []string e o l=atomic
chapAuthDiscovery 8 bool e o
chapAuthSession 11 bool e o
secretRef 10 *LocalObjectReference e o
initiatorName 12 *string e o
#ISCSIPersistentVolumeSource
targetPortal 1 string
iqn 2 string
lun 3 int32
iscsiInterface 4 string e o v="default"
fsType 5 string e o
readOnly 6 bool e o
portals 7 []string e o l=atomic
chapAuthDiscovery 8 bool e o
chapAuthSession 11 bool e o
secretRef 10 *SecretReference e o
initiatorName 12 *string e o
#FCVolumeSource
targetWWNs 1 []string e o l=atomic
lun 2 *int32 e o
fsType 3 string e o
readOnly 4 bool e o
wwids 5 []string e o l=atomic
#AzureFileVolumeSource
secretName 1 string
shareName 2 string
readOnly 3 bool e o
#AzureFilePersistentVolumeSource
secretName 1 string
shareName 2 string
readOnly 3 bool e o
secretNamespace 4 *string o
#VsphereVirtualDiskVolumeSource
volumePath 1 string
fsType 2 string e o
storagePolicyName 3 string e o
storagePolicyID 4 string e o
#PhotonPersistentDiskVolumeSource
pdID 1 string
fsType 2 string e
#AzureDiskVolumeSource
diskName 1 string
diskURI 2 string
cachingMode 3 *AzureDataDiskCachingMode e o v="ReadWrite"
fsType 4 *string e o v="ext4"
readOnly 5 *bool e o v=false
kind 6 *AzureDataDiskKind e v="Shared"
#PortworxVolumeSource
volumeID 1 string
fsType 2 string e
readOnly 3 bool e o
#ScaleIOVolumeSource
gateway 1 string
system 2 string
secretRef 3 *LocalObjectReference
sslEnabled 4 bool e o
protectionDomain 5 string e o
storagePool 6 string e o
storageMode 7 string e o v="ThinProvisioned"
volumeName 8 string e
fsType 9 string e o v="xfs"
readOnly 10 bool e o
#ScaleIOPersistentVolumeSource
gateway 1 string
system 2 string
secretRef 3 *SecretReference
sslEnabled 4 bool e o
protectionDomain 5 string e o
storagePool 6 string e o
storageMode 7 string e o v="ThinProvisioned"
volumeName 8 string e
fsType 9 string e o v="xfs"
readOnly 10 bool e o
#StorageOSVolumeSource
volumeName 1 string e
volumeNamespace 2 string e o
fsType 3 string e o
readOnly 4 bool e o
secretRef 5 *LocalObjectReference e o
#StorageOSPersistentVolumeSource
volumeName 1 string e
volumeNamespace 2 string e o
fsType 3 string e o
readOnly 4 bool e o
secretRef 5 *ObjectReference e o
#ConfigMapVolumeSource
^1 LocalObjectReference
items 2 []KeyToPath e o l=atomic
defaultMode 3 *int32 e o
optional 4 *bool e o
#ConfigMapProjection
^1 LocalObjectReference
items 2 []KeyToPath e o l=atomic
optional 4 *bool e o
#ServiceAccountTokenProjection
audience 1 string e o
expirationSeconds 2 *int64 e o
path 3 string
#ClusterTrustBundleProjection
name 1 *string e o
signerName 2 *string e o
labelSelector 3 *meta.v1.LabelSelector e o
optional 5 *bool e o
path 4 string
#ProjectedVolumeSource
sources 1 []VolumeProjection o l=atomic
defaultMode 2 *int32 e o
#VolumeProjection
secret 1 *SecretProjection e o
downwardAPI 2 *DownwardAPIProjection e o
configMap 3 *ConfigMapProjection e o
serviceAccountToken 4 *ServiceAccountTokenProjection e o
clusterTrustBundle 5 *ClusterTrustBundleProjection e o
#KeyToPath
key 1 string
path 2 string
mode 3 *int32 e o
#LocalVolumeSource
path 1 string
fsType 2 *string e o
#CSIPersistentVolumeSource
driver 1 string
volumeHandle 2 string
readOnly 3 bool e o
fsType 4 string e o
volumeAttributes 5 {}string e o
controllerPublishSecretRef 6 *SecretReference e o
nodeStageSecretRef 7 *SecretReference e o
nodePublishSecretRef 8 *SecretReference e o
controllerExpandSecretRef 9 *SecretReference e o
nodeExpandSecretRef 10 *SecretReference e o
#CSIVolumeSource
driver 1 string
readOnly 2 *bool e o
fsType 3 *string e o
volumeAttributes 4 {}string e o
nodePublishSecretRef 5 *LocalObjectReference e o
#EphemeralVolumeSource
volumeClaimTemplate 1 *PersistentVolumeClaimTemplate e
#PersistentVolumeClaimTemplate
metadata 1 meta.v1.ObjectMeta e o
spec 2 PersistentVolumeClaimSpec
#ContainerPort
name 1 string e o
hostPort 2 int32 e o
containerPort 3 int32
protocol 4 Protocol e o v="TCP"
hostIP 5 string e o
#VolumeMount
name 1 string
readOnly 2 bool e o
recursiveReadOnly 7 *string e o t=v1.RecursiveReadOnlyMode
mountPath 3 string
subPath 4 string e o
mountPropagation 5 *MountPropagationMode e o
subPathExpr 6 string e o
#VolumeDevice
name 1 string
devicePath 2 string
#EnvVar
name 1 string
value 2 string e o
valueFrom 3 *EnvVarSource e o
#EnvVarSource
fieldRef 1 *ObjectFieldSelector e o
resourceFieldRef 2 *ResourceFieldSelector e o
configMapKeyRef 3 *ConfigMapKeySelector e o
secretKeyRef 4 *SecretKeySelector e o
#ObjectFieldSelector s=atomic
apiVersion 1 string e o
fieldPath 2 string
#ResourceFieldSelector s=atomic
containerName 1 string e o
resource 2 string
divisor 3 resource.Quantity e o
#ConfigMapKeySelector s=atomic
^1 LocalObjectReference
key 2 string
optional 3 *bool e o
#SecretKeySelector s=atomic
^1 LocalObjectReference
key 2 string
optional 3 *bool e o
#EnvFromSource
prefix 1 string e o
configMapRef 2 *ConfigMapEnvSource e o
secretRef 3 *SecretEnvSource e o
#ConfigMapEnvSource
^1 LocalObjectReference
optional 2 *bool e o
#SecretEnvSource
^1 LocalObjectReference
optional 2 *bool e o
#HTTPHeader
name 1 string
value 2 string
#HTTPGetAction
path 1 string e o
port 2 intstr.IntOrString
host 3 string e o
scheme 4 URIScheme e o
httpHeaders 5 []HTTPHeader e o l=atomic
#TCPSocketAction
port 1 intstr.IntOrString
host 2 string e o
#GRPCAction
port 1 int32
service 2 *string o v=""
#ExecAction
command 1 []string e o l=atomic
#SleepAction
seconds 1 int64
#Probe
^1 ProbeHandler
initialDelaySeconds 2 int32 e o
timeoutSeconds 3 int32 e o
periodSeconds 4 int32 e o
successThreshold 5 int32 e o
failureThreshold 6 int32 e o
terminationGracePeriodSeconds 7 *int64 e o
#ContainerResizePolicy
resourceName 1 string t=v1.ResourceName
restartPolicy 2 string t=v1.ResourceResizeRestartPolicy
#Capabilities
add 1 []string e o l=atomic t=[]v1.Capability
drop 2 []string e o l=atomic t=[]v1.Capability
#ResourceRequirements
limits 1 ResourceList e o
requests 2 ResourceList e o
claims 3 []ResourceClaim e o l=map k=name
#VolumeResourceRequirements
limits 1 ResourceList e o
requests 2 ResourceList e o
#ResourceClaim
name 1 string
request 2 string e o
#Container
name 1 string
image 2 string e o
command 3 []string e o l=atomic
args 4 []string e o l=atomic
workingDir 5 string e o
ports 6 []ContainerPort e o l=map k=containerPort k=protocol p=merge y=containerPort
envFrom 19 []EnvFromSource e o l=atomic
env 7 []EnvVar e o l=map k=name p=merge y=name
resources 8 ResourceRequirements e o
resizePolicy 23 []ContainerResizePolicy e o l=atomic
restartPolicy 24 *string e o t=v1.ContainerRestartPolicy
volumeMounts 9 []VolumeMount e o l=map k=mountPath p=merge y=mountPath
volumeDevices 21 []VolumeDevice e o l=map k=devicePath p=merge y=devicePath
livenessProbe 10 *Probe e o
readinessProbe 11 *Probe e o
startupProbe 22 *Probe e o
lifecycle 12 *Lifecycle e o
terminationMessagePath 13 string e o
terminationMessagePolicy 20 TerminationMessagePolicy e o
imagePullPolicy 14 PullPolicy e o
securityContext 15 *SecurityContext e o
stdin 16 bool e o
stdinOnce 17 bool e o
tty 18 bool e o
#ProbeHandler
exec 1 *ExecAction e o
httpGet 2 *HTTPGetAction e o
tcpSocket 3 *TCPSocketAction e o
grpc 4 *GRPCAction e o
#LifecycleHandler
exec 1 *ExecAction e o
httpGet 2 *HTTPGetAction e o
tcpSocket 3 *TCPSocketAction e o
sleep 4 *SleepAction e o
#Lifecycle
postStart 1 *LifecycleHandler e o
preStop 2 *LifecycleHandler e o
#ContainerStateWaiting
reason 1 string e o
message 2 string e o
#ContainerStateRunning
startedAt 1 meta.v1.Time e o
#ContainerStateTerminated
exitCode 1 int32
signal 2 int32 e o
reason 3 string e o
message 4 string e o
startedAt 5 meta.v1.Time e o
finishedAt 6 meta.v1.Time e o
containerID 7 string e o
#ContainerState
waiting 1 *ContainerStateWaiting e o
running 2 *ContainerStateRunning e o
terminated 3 *ContainerStateTerminated e o
#ContainerStatus
name 1 string
state 2 ContainerState e o
lastState 3 ContainerState e o
ready 4 bool
restartCount 5 int32
image 6 string
imageID 7 string
containerID 8 string e o
started 9 *bool e o
allocatedResources 10 ResourceList e o
resources 11 *ResourceRequirements e o
volumeMounts 12 []VolumeMountStatus e o l=map k=mountPath p=merge y=mountPath
user 13 *ContainerUser e o
allocatedResourcesStatus 14 []ResourceStatus e o l=map k=name p=merge y=name
#ResourceStatus
name 1 string q t=v1.ResourceName
resources 2 []ResourceHealth e l=map k=resourceID
#ResourceHealth
resourceID 1 string t=v1.ResourceID
health 2 string e t=v1.ResourceHealthStatus
#ContainerUser
linux 1 *LinuxContainerUser e o
#LinuxContainerUser
uid 1 int64
gid 2 int64
supplementalGroups 3 []int64 e o l=atomic
#PodCondition
type 1 string t=v1.PodConditionType
status 2 string t=v1.ConditionStatus
lastProbeTime 3 meta.v1.Time e o
lastTransitionTime 4 meta.v1.Time e o
reason 5 string e o
message 6 string e o
#VolumeMountStatus
name 1 string
mountPath 2 string
readOnly 3 bool e o
recursiveReadOnly 4 *string e o t=v1.RecursiveReadOnlyMode
#NodeSelector s=atomic
nodeSelectorTerms 1 []NodeSelectorTerm l=atomic
#NodeSelectorTerm s=atomic
matchExpressions 1 []NodeSelectorRequirement e o l=atomic
matchFields 2 []NodeSelectorRequirement e o l=atomic
#NodeSelectorRequirement
key 1 string
operator 2 NodeSelectorOperator
values 3 []string e o l=atomic
#TopologySelectorTerm s=atomic
matchLabelExpressions 1 []TopologySelectorLabelRequirement e o l=atomic
#TopologySelectorLabelRequirement
key 1 string
values 2 []string l=atomic
#Affinity
nodeAffinity 1 *NodeAffinity e o
podAffinity 2 *PodAffinity e o
podAntiAffinity 3 *PodAntiAffinity e o
#PodAffinity
requiredDuringSchedulingIgnoredDuringExecution 1 []PodAffinityTerm e o l=atomic
preferredDuringSchedulingIgnoredDuringExecution 2 []WeightedPodAffinityTerm e o l=atomic
#PodAntiAffinity
requiredDuringSchedulingIgnoredDuringExecution 1 []PodAffinityTerm e o l=atomic
preferredDuringSchedulingIgnoredDuringExecution 2 []WeightedPodAffinityTerm e o l=atomic
#WeightedPodAffinityTerm
weight 1 int32
podAffinityTerm 2 PodAffinityTerm
#PodAffinityTerm
labelSelector 1 *meta.v1.LabelSelector e o
namespaces 2 []string e o l=atomic
topologyKey 3 string
namespaceSelector 4 *meta.v1.LabelSelector e o
matchLabelKeys 5 []string e o l=atomic
mismatchLabelKeys 6 []string e o l=atomic
#NodeAffinity
requiredDuringSchedulingIgnoredDuringExecution 1 *NodeSelector e o
preferredDuringSchedulingIgnoredDuringExecution 2 []PreferredSchedulingTerm e o l=atomic
#PreferredSchedulingTerm
weight 1 int32
preference 2 NodeSelectorTerm
#Taint
key 1 string
value 2 string e o
effect 3 TaintEffect
timeAdded 4 *meta.v1.Time e o
#Toleration
key 1 string e o
operator 2 TolerationOperator e o
value 3 string e o
effect 4 TaintEffect e o
tolerationSeconds 5 *int64 e o
#PodReadinessGate
conditionType 1 string t=v1.PodConditionType
#PodSpec
volumes 1 []Volume e o l=map k=name p=merge,retainKeys y=name
initContainers 20 []Container e l=map k=name p=merge y=name
containers 2 []Container l=map k=name p=merge y=name
ephemeralContainers 34 []EphemeralContainer e o l=map k=name p=merge y=name
restartPolicy 3 RestartPolicy e o
terminationGracePeriodSeconds 4 *int64 e o
activeDeadlineSeconds 5 *int64 e o
dnsPolicy 6 DNSPolicy e o
nodeSelector 7 {}string e o m=atomic
serviceAccountName 8 string e o
serviceAccount 9 string e o
automountServiceAccountToken 21 *bool e o
nodeName 10 string e o
hostNetwork 11 bool e o
hostPID 12 bool e o
hostIPC 13 bool e o
shareProcessNamespace 27 *bool e o
securityContext 14 *PodSecurityContext e o
imagePullSecrets 15 []LocalObjectReference e o l=map k=name p=merge y=name
hostname 16 string e o
subdomain 17 string e o
affinity 18 *Affinity e o
schedulerName 19 string e o
tolerations 22 []Toleration e o l=atomic
hostAliases 23 []HostAlias e o l=map k=ip p=merge y=ip
priorityClassName 24 string e o
priority 25 *int32 e o
dnsConfig 26 *PodDNSConfig e o
readinessGates 28 []PodReadinessGate e o l=atomic
runtimeClassName 29 *string e o
enableServiceLinks 30 *bool e o
preemptionPolicy 31 *PreemptionPolicy e o
overhead 32 ResourceList e o
topologySpreadConstraints 33 []TopologySpreadConstraint e o l=map k=topologyKey k=whenUnsatisfiable p=merge y=topologyKey
setHostnameAsFQDN 35 *bool e o
os 36 *PodOS e o
hostUsers 37 *bool e o
schedulingGates 38 []PodSchedulingGate e o l=map k=name p=merge y=name
resourceClaims 39 []PodResourceClaim e o l=map k=name p=merge,retainKeys y=name
resources 40 *ResourceRequirements e o
#PodResourceClaim
name 1 string
resourceClaimName 3 *string e
resourceClaimTemplateName 4 *string e
#PodResourceClaimStatus
name 1 string
resourceClaimName 2 *string e o
#PodOS
name 1 string t=v1.OSName
#PodSchedulingGate
name 1 string
#TopologySpreadConstraint
maxSkew 1 int32
topologyKey 2 string
whenUnsatisfiable 3 UnsatisfiableConstraintAction
labelSelector 4 *meta.v1.LabelSelector e o
minDomains 5 *int32 e o
nodeAffinityPolicy 6 *NodeInclusionPolicy e o
nodeTaintsPolicy 7 *NodeInclusionPolicy e o
matchLabelKeys 8 []string e o l=atomic
#HostAlias
ip 1 string q
hostnames 2 []string e l=atomic
#PodSecurityContext
seLinuxOptions 1 *SELinuxOptions e o
windowsOptions 8 *WindowsSecurityContextOptions e o
runAsUser 2 *int64 e o
runAsGroup 6 *int64 e o
runAsNonRoot 3 *bool e o
supplementalGroups 4 []int64 e o l=atomic
supplementalGroupsPolicy 12 *SupplementalGroupsPolicy e o
fsGroup 5 *int64 e o
sysctls 7 []Sysctl e o l=atomic
fsGroupChangePolicy 9 *PodFSGroupChangePolicy e o
seccompProfile 10 *SeccompProfile e o
appArmorProfile 11 *AppArmorProfile e o
seLinuxChangePolicy 13 *string e o t=v1.PodSELinuxChangePolicy
#SeccompProfile
type 1 SeccompProfileType
localhostProfile 2 *string e o
#AppArmorProfile
type 1 AppArmorProfileType
localhostProfile 2 *string e o
#PodDNSConfig
nameservers 1 []string e o l=atomic
searches 2 []string e o l=atomic
options 3 []PodDNSConfigOption e o l=atomic
#PodDNSConfigOption
name 1 string e
value 2 *string e o
#PodIP
ip 1 string q
#HostIP
ip 1 string q
#EphemeralContainerCommon
name 1 string
image 2 string e
command 3 []string e o l=atomic
args 4 []string e o l=atomic
workingDir 5 string e o
ports 6 []ContainerPort e o l=map k=containerPort k=protocol p=merge y=containerPort
envFrom 19 []EnvFromSource e o l=atomic
env 7 []EnvVar e o l=map k=name p=merge y=name
resources 8 ResourceRequirements e o
resizePolicy 23 []ContainerResizePolicy e o l=atomic
restartPolicy 24 *string e o t=v1.ContainerRestartPolicy
volumeMounts 9 []VolumeMount e o l=map k=mountPath p=merge y=mountPath
volumeDevices 21 []VolumeDevice e o l=map k=devicePath p=merge y=devicePath
livenessProbe 10 *Probe e o
readinessProbe 11 *Probe e o
startupProbe 22 *Probe e o
lifecycle 12 *Lifecycle e o
terminationMessagePath 13 string e o
terminationMessagePolicy 20 TerminationMessagePolicy e o
imagePullPolicy 14 PullPolicy e o
securityContext 15 *SecurityContext e o
stdin 16 bool e o
stdinOnce 17 bool e o
tty 18 bool e o
#EphemeralContainer
^1 EphemeralContainerCommon
targetContainerName 2 string e o
#PodStatus
phase 1 PodPhase e o
conditions 2 []PodCondition e o l=map k=type p=merge y=type
message 3 string e o
reason 4 string e o
nominatedNodeName 11 string e o
hostIP 5 string e o
hostIPs 16 []HostIP e o l=atomic p=merge y=ip
podIP 6 string e o
podIPs 12 []PodIP e o l=map k=ip p=merge y=ip
startTime 7 *meta.v1.Time e o
initContainerStatuses 10 []ContainerStatus e l=atomic
containerStatuses 8 []ContainerStatus e o l=atomic
qosClass 9 PodQOSClass e o
ephemeralContainerStatuses 13 []ContainerStatus e o l=atomic
resize 14 string e o t=v1.PodResizeStatus
resourceClaimStatuses 15 []PodResourceClaimStatus e o l=map k=name p=merge,retainKeys y=name
#PodStatusResult k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
status 2 PodStatus e o
#Pod k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PodSpec e o
status 3 PodStatus e o
#PodList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Pod
#PodTemplateSpec
metadata 1 meta.v1.ObjectMeta e o
spec 2 PodSpec e o
#PodTemplate k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
template 2 PodTemplateSpec e o
#PodTemplateList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PodTemplate
#ReplicationControllerSpec
replicas 1 *int32 e o
minReadySeconds 4 int32 e o
selector 2 {}string e o m=atomic
template 3 *PodTemplateSpec e o
#ReplicationControllerStatus
replicas 1 int32
fullyLabeledReplicas 2 int32 e o
readyReplicas 4 int32 e o
availableReplicas 5 int32 e o
observedGeneration 3 int64 e o
conditions 6 []ReplicationControllerCondition e o l=map k=type p=merge y=type
#ReplicationControllerCondition
type 1 string t=v1.ReplicationControllerConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#ReplicationController k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ReplicationControllerSpec e o
status 3 ReplicationControllerStatus e o
#ReplicationControllerList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ReplicationController
#SessionAffinityConfig
clientIP 1 *ClientIPConfig e o
#ClientIPConfig
timeoutSeconds 1 *int32 e o
#ServiceStatus
loadBalancer 1 LoadBalancerStatus e o
conditions 2 []meta.v1.Condition e o l=map k=type p=merge y=type
#LoadBalancerStatus
ingress 1 []LoadBalancerIngress e o l=atomic
#LoadBalancerIngress
ip 1 string e o
hostname 2 string e o
ipMode 3 *string e o t=v1.LoadBalancerIPMode
ports 4 []PortStatus e o l=atomic
#ServiceSpec
ports 1 []ServicePort e l=map k=port k=protocol p=merge y=port
selector 2 {}string e o m=atomic
clusterIP 3 string e o
clusterIPs 18 []string e o l=atomic
type 4 ServiceType e o
externalIPs 5 []string e o l=atomic
sessionAffinity 7 ServiceAffinity e o
loadBalancerIP 8 string e o
loadBalancerSourceRanges 9 []string e o l=atomic
externalName 10 string e o
externalTrafficPolicy 11 ServiceExternalTrafficPolicy e o
healthCheckNodePort 12 int32 e o
publishNotReadyAddresses 13 bool e o
sessionAffinityConfig 14 *SessionAffinityConfig e o
ipFamilies 19 []IPFamily e o l=atomic
ipFamilyPolicy 17 *IPFamilyPolicy e o
allocateLoadBalancerNodePorts 20 *bool e o
loadBalancerClass 21 *string e o
internalTrafficPolicy 22 *ServiceInternalTrafficPolicy e o
trafficDistribution 23 *string e o
#ServicePort
name 1 string e o
protocol 2 Protocol e o v="TCP"
appProtocol 6 *string e o
port 3 int32
targetPort 4 intstr.IntOrString e o
nodePort 5 int32 e o
#Service k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ServiceSpec e o
status 3 ServiceStatus e o
#ServiceList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Service
#ServiceAccount k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
secrets 2 []ObjectReference e o l=map k=name p=merge y=name
imagePullSecrets 3 []LocalObjectReference e o l=atomic
automountServiceAccountToken 4 *bool e o
#ServiceAccountList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ServiceAccount
#Endpoints k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subsets 2 []EndpointSubset e o l=atomic
#EndpointSubset
addresses 1 []EndpointAddress e o l=atomic
notReadyAddresses 2 []EndpointAddress e o l=atomic
ports 3 []EndpointPort e o l=atomic
#EndpointAddress s=atomic
ip 1 string
hostname 3 string e o
nodeName 4 *string e o
targetRef 2 *ObjectReference e o
#EndpointPort s=atomic
name 1 string e o
port 2 int32
protocol 3 Protocol e o
appProtocol 4 *string e o
#EndpointsList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Endpoints
#NodeSpec
podCIDR 1 string e o
podCIDRs 7 []string e o l=set p=merge
providerID 3 string e o
unschedulable 4 bool e o
taints 5 []Taint e o l=atomic
configSource 6 *NodeConfigSource e o
externalID 2 string e o
#NodeConfigSource
configMap 2 *ConfigMapNodeConfigSource e
#ConfigMapNodeConfigSource
namespace 1 string
name 2 string
uid 3 string e o t=types.UID
resourceVersion 4 string e o
kubeletConfigKey 5 string
#DaemonEndpoint
Port 1 int32
#NodeDaemonEndpoints
kubeletEndpoint 1 DaemonEndpoint e o
#NodeRuntimeHandlerFeatures
recursiveReadOnlyMounts 1 *bool e o
userNamespaces 2 *bool e o
#NodeRuntimeHandler
name 1 string o
features 2 *NodeRuntimeHandlerFeatures e o
#NodeFeatures
supplementalGroupsPolicy 1 *bool e o
#NodeSystemInfo
machineID 1 string
systemUUID 2 string
bootID 3 string
kernelVersion 4 string
osImage 5 string
containerRuntimeVersion 6 string
kubeletVersion 7 string
kubeProxyVersion 8 string
operatingSystem 9 string
architecture 10 string
#NodeConfigStatus
assigned 1 *NodeConfigSource e o
active 2 *NodeConfigSource e o
lastKnownGood 3 *NodeConfigSource e o
error 4 string e o
#NodeStatus
capacity 1 ResourceList e o
allocatable 2 ResourceList e o
phase 3 NodePhase e o
conditions 4 []NodeCondition e o l=map k=type p=merge y=type
addresses 5 []NodeAddress e o l=map k=type p=merge y=type
daemonEndpoints 6 NodeDaemonEndpoints e o
nodeInfo 7 NodeSystemInfo e o
images 8 []ContainerImage e o l=atomic
volumesInUse 9 []string e o l=atomic t=[]v1.UniqueVolumeName
volumesAttached 10 []AttachedVolume e o l=atomic
config 11 *NodeConfigStatus e o
runtimeHandlers 12 []NodeRuntimeHandler e o l=atomic
features 13 *NodeFeatures e o
#AttachedVolume
name 1 string t=v1.UniqueVolumeName
devicePath 2 string
#AvoidPods
preferAvoidPods 1 []PreferAvoidPodsEntry e o l=atomic
#PreferAvoidPodsEntry
podSignature 1 PodSignature
evictionTime 2 meta.v1.Time e o
reason 3 string e o
message 4 string e o
#PodSignature
podController 1 *meta.v1.OwnerReference e o
#ContainerImage
names 1 []string o l=atomic
sizeBytes 2 int64 e o
#NodeCondition
type 1 string t=v1.NodeConditionType
status 2 string t=v1.ConditionStatus
lastHeartbeatTime 3 meta.v1.Time e o
lastTransitionTime 4 meta.v1.Time e o
reason 5 string e o
message 6 string e o
#NodeAddress
type 1 string t=v1.NodeAddressType
address 2 string
#Node k c i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 NodeSpec e o
status 3 NodeStatus e o
#NodeList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Node
#NamespaceSpec
finalizers 1 []string e o l=atomic t=[]v1.FinalizerName
#NamespaceStatus
phase 1 NamespacePhase e o
conditions 2 []NamespaceCondition e o l=map k=type p=merge y=type
#NamespaceCondition
type 1 string t=v1.NamespaceConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 4 meta.v1.Time e o
reason 5 string e o
message 6 string e o
#Namespace k c i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 NamespaceSpec e o
status 3 NamespaceStatus e o
#NamespaceList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Namespace
#Binding k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
target 2 ObjectReference
#Preconditions
uid 1 *string e o t=types.UID
#PodLogOptions k i=1.0
^- meta.v1.TypeMeta
container 1 string e o
follow 2 bool e o
previous 3 bool e o
sinceSeconds 4 *int64 e o
sinceTime 5 *meta.v1.Time e o
timestamps 6 bool e o
tailLines 7 *int64 e o
limitBytes 8 *int64 e o
insecureSkipTLSVerifyBackend 9 bool e o
stream 10 *string e o
#PodAttachOptions k i=1.1
^- meta.v1.TypeMeta
stdin 1 bool e o
stdout 2 bool e o
stderr 3 bool e o
tty 4 bool e o
container 5 string e o
#PodExecOptions k i=1.0
^- meta.v1.TypeMeta
stdin 1 bool e o
stdout 2 bool e o
stderr 3 bool e o
tty 4 bool e o
container 5 string e o
command 6 []string l=atomic
#PodPortForwardOptions k i=1.6
^- meta.v1.TypeMeta
ports 1 []int32 e o l=atomic
#PodProxyOptions k i=1.0
^- meta.v1.TypeMeta
path 1 string e o
#NodeProxyOptions k i=1.2
^- meta.v1.TypeMeta
path 1 string e o
#ServiceProxyOptions k i=1.2
^- meta.v1.TypeMeta
path 1 string e o
#ObjectReference s=atomic
kind 1 string e o
namespace 2 string e o
name 3 string e o
uid 4 string e o t=types.UID
apiVersion 5 string e o
resourceVersion 6 string e o
fieldPath 7 string e o
#LocalObjectReference s=atomic
name 1 string e o v=""
#TypedLocalObjectReference s=atomic
apiGroup 1 *string o
kind 2 string
name 3 string
#SerializedReference k i=1.0
^- meta.v1.TypeMeta
reference 1 ObjectReference e o
#EventSource
component 1 string e o
host 2 string e o
#Event k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta
involvedObject 2 ObjectReference
reason 3 string e o
message 4 string e o
source 5 EventSource e o
firstTimestamp 6 meta.v1.Time e o
lastTimestamp 7 meta.v1.Time e o
count 8 int32 e o
type 9 string e o
eventTime 10 meta.v1.MicroTime e o
series 11 *EventSeries e o
action 12 string e o
related 13 *ObjectReference e o
reportingComponent 14 string o
reportingInstance 15 string o
#EventSeries
count 1 int32 e
lastObservedTime 2 meta.v1.MicroTime e
#EventList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Event
#LimitRangeItem
type 1 string t=v1.LimitType
max 2 ResourceList e o
min 3 ResourceList e o
default 4 ResourceList e o
defaultRequest 5 ResourceList e o
maxLimitRequestRatio 6 ResourceList e o
#LimitRangeSpec
limits 1 []LimitRangeItem l=atomic
#LimitRange k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 LimitRangeSpec e o
#LimitRangeList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []LimitRange
#ResourceQuotaSpec
hard 1 ResourceList e o
scopes 2 []ResourceQuotaScope e o l=atomic
scopeSelector 3 *ScopeSelector e o
#ScopeSelector s=atomic
matchExpressions 1 []ScopedResourceSelectorRequirement e o l=atomic
#ScopedResourceSelectorRequirement
scopeName 1 ResourceQuotaScope
operator 2 ScopeSelectorOperator
values 3 []string e o l=atomic
#ResourceQuotaStatus
hard 1 ResourceList e o
used 2 ResourceList e o
#ResourceQuota k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ResourceQuotaSpec e o
status 3 ResourceQuotaStatus e o
#ResourceQuotaList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ResourceQuota
#Secret k n i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
immutable 5 *bool e o
data 2 {}bytes e o
stringData 4 {}string e o
type 3 string e o t=v1.SecretType
#SecretList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Secret
#ConfigMap k n i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
immutable 4 *bool e o
data 2 {}string e o
binaryData 3 {}bytes e o
#ConfigMapList k i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ConfigMap
#ComponentCondition
type 1 string t=v1.ComponentConditionType
status 2 string t=v1.ConditionStatus
message 3 string e o
error 4 string e o
#ComponentStatus k c i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
conditions 2 []ComponentCondition e o l=map k=type p=merge y=type
#ComponentStatusList k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ComponentStatus
#DownwardAPIVolumeSource
items 1 []DownwardAPIVolumeFile e o l=atomic
defaultMode 2 *int32 e o
#DownwardAPIVolumeFile
path 1 string
fieldRef 2 *ObjectFieldSelector e o
resourceFieldRef 3 *ResourceFieldSelector e o
mode 4 *int32 e o
#DownwardAPIProjection
items 1 []DownwardAPIVolumeFile e o l=atomic
#SecurityContext
capabilities 1 *Capabilities e o
privileged 2 *bool e o
seLinuxOptions 3 *SELinuxOptions e o
windowsOptions 10 *WindowsSecurityContextOptions e o
runAsUser 4 *int64 e o
runAsGroup 8 *int64 e o
runAsNonRoot 5 *bool e o
readOnlyRootFilesystem 6 *bool e o
allowPrivilegeEscalation 7 *bool e o
procMount 9 *ProcMountType e o
seccompProfile 11 *SeccompProfile e o
appArmorProfile 12 *AppArmorProfile e o
#SELinuxOptions
user 1 string e o
role 2 string e o
type 3 string e o
level 4 string e o
#WindowsSecurityContextOptions
gmsaCredentialSpecName 1 *string e o
gmsaCredentialSpec 2 *string e o
runAsUserName 3 *string e o
hostProcess 4 *bool e o
#RangeAllocation k i=1.0
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
range 2 string
data 3 bytes
#Sysctl
name 1 string
value 2 string
#PortStatus
port 1 int32
protocol 2 Protocol
error 3 *string e o
#ImageVolumeSource
reference 1 string e o
pullPolicy 2 PullPolicy e o
`;
