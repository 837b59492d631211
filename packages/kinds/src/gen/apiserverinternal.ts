/** Facts about the types of `apiserverinternal`; made by scripts/facts/generate.mjs, do not edit. */
export const apiserverinternalFacts = `
@v1alpha1
#StorageVersion k c
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 StorageVersionSpec
status 3 StorageVersionStatus
#StorageVersionSpec
#StorageVersionStatus
storageVersions 1 []ServerStorageVersion e o l=map k=apiServerID
commonEncodingVersion 2 *string e o
conditions 3 []StorageVersionCondition e o l=map k=type
#ServerStorageVersion
apiServerID 1 string e
encodingVersion 2 string e
decodableVersions 3 []string e l=set
servedVersions 4 []string e l=set
#StorageVersionCondition
type 1 string q t=v1alpha1.StorageVersionConditionType
status 2 string q t=v1alpha1.ConditionStatus
observedGeneration 3 int64 e o
lastTransitionTime 4 meta.v1.Time e
reason 5 string q
message 6 string e q
#StorageVersionList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StorageVersion
`;
