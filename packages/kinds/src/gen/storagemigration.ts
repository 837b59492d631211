/** Facts about the types of `storagemigration`; made by scripts/facts/generate.mjs, do not edit. */
export const storagemigrationFacts = `
@v1alpha1
#StorageVersionMigration k c i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 StorageVersionMigrationSpec e o
status 3 StorageVersionMigrationStatus e o
#StorageVersionMigrationSpec
resource 1 GroupVersionResource
continueToken 2 string e o
#GroupVersionResource
group 1 string e
version 2 string e
resource 3 string e
#MigrationCondition
type 1 string t=v1alpha1.MigrationConditionType
status 2 string t=v1.ConditionStatus
lastUpdateTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#StorageVersionMigrationStatus
conditions 1 []MigrationCondition e o l=map k=type p=merge y=type
resourceVersion 2 string e
#StorageVersionMigrationList k i=1.30
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []StorageVersionMigration l=map k=type p=merge y=type
`;
